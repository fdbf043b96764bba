//===- Names.h - which of our names is which of the record's ----------------===//
#ifndef LOWTIDE_TOOLS_VERIFY_NAMES_H
#define LOWTIDE_TOOLS_VERIFY_NAMES_H

#include "Record.h"

#include <map>
#include <string>
#include <vector>

namespace lowtide::verify {

/// Recorded name → ours. Equal names go together. What is left goes by its end, where that tells: a file may hold a
/// part of the module (`0.weight` for `body.0.weight`), or the module in a shell that returns the loss.
std::map<std::string, std::string> pairNames(const std::vector<std::string> &recorded,
                                             const std::vector<std::string> &ours);

/// Ours, with the parts of one parameter that a file holds each by itself (`w@select`, `w@select_1`) put together as
/// `w`. The file does not say along which dimension they were taken: it is the one along which they agree best with
/// `recorded`.
Arrays joinParts(Arrays ours, const Arrays &recorded);

/// What both hold of a table of which the file holds some rows: the recorded array is cut to the size of ours, where
/// nothing but zeros is cut off (`isGradient`) or whatever is (else). Dimensions of one do not count. False: they do
/// not fit together.
bool cutToSize(Array &recorded, const Array &ours, bool isGradient);

/// The same of a table of which the file holds the rows that the program reads: rows of `recorded` without a gradient
/// are left out where as many are left as ours has.
void keepReadRows(Array &recorded, const Array &ours, const Array &gradient);

} // namespace lowtide::verify

#endif // LOWTIDE_TOOLS_VERIFY_NAMES_H

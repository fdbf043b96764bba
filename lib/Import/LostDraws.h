//===- LostDraws.h - random numbers that an exporter drew once instead of twice --===//

#ifndef LOWTIDE_LIB_IMPORT_LOSTDRAWS_H
#define LOWTIDE_LIB_IMPORT_LOSTDRAWS_H

#include "onnx/onnx_pb.h"

#include <string>
#include <vector>

namespace lowtide {

/// Names of the program's values.
struct LostDraws {
  /// Those that came back, computed of draws of their own.
  std::vector<std::string> restored;
  /// Those of which the file does not tell whether the program drew for them.
  std::vector<std::string> unknown;
};

/// Takes apart what a program computes of several draws (two passes with dropout over the same samples) and an
/// exporter's optimizer made one; after `restoreDetached` and `unfoldInitializers`.
LostDraws restoreDraws(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_IMPORT_LOSTDRAWS_H

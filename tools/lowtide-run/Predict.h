//===- Predict.h - outputs of every row of a data set ----------------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_PREDICT_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_PREDICT_H

#include "Validation.h"

namespace lowtide::run {

/// Evaluates every row and writes the entry's outputs to `path` (.npz or .safetensors): one row for each row of the
/// data, in their order. Rows go to the file batch by batch. Refuses an entry without outputs, outputs that do not
/// count samples, and rows that would be left out. A file that cannot be written whole does not stay.
rt::Expected<EvaluationReport> predict(Validation &validation, const rt::Session &session, const std::string &entry,
                                       const std::string &path);

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_PREDICT_H

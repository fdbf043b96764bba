//===- Predict.cpp - outputs of every row of a data set --------------------===//

#include "Predict.h"

#include "RowFile.h"
#include "Signals.h"

#include "runtime/Verify.h"
#include "runtime/data/Conversion.h"

#include <algorithm>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::run;

namespace {

/// An output and the array of the file that gets its rows.
struct Column {
  std::string name;
  int64_t rowsOfSample = 1; ///< where the output has samples merged with what follows them
  Conversion conversion;
  std::vector<uint8_t> converted;
};

} // namespace

Expected<EvaluationReport> run::predict(Validation &validation, const Session &session, const std::string &entry,
                                        const std::string &path) {
  Expected<RowFile::Format> format = RowFile::formatOf(path);
  if (!format)
    return format.takeStatus().at("--predict");
  if (validation.batches() == 0)
    return Status(StatusCode::Usage, "--predict needs data with an end, in files");
  if (validation.leftOut())
    return Status(StatusCode::Unsupported,
                  "--predict writes every row, and the last " + std::to_string(validation.leftOut()) + " of " +
                      std::to_string(validation.rows()) + " fill no batch: entry '" + printable(entry) +
                      "' is not known to evaluate samples apart; compile with --last-batch=" +
                      std::to_string(validation.leftOut()));
  const int64_t batch = std::max<int64_t>(session.artifact().entry(entry)->batch(), 1);
  for (const Tensor &tensor : session.tensors(entry, plan::Binding::BATCH))
    if (tensor.binding->batch_dim() > 0)
      return Status(StatusCode::Unsupported,
                    "--predict: '" + printable(tensor.binding->name()) + "' has its samples in dimension " +
                        std::to_string(tensor.binding->batch_dim()) +
                        ", and no output tells where it has them; export the model with samples first");
  std::vector<Column> columns;
  std::vector<RowFile::Array> arrays;
  for (const Tensor &tensor : session.tensors(entry, plan::Binding::OUTPUT)) {
    const plan::Binding &binding = *tensor.binding;
    if (binding.dims_size() == 0 || binding.dims(0) == 0 || binding.dims(0) % batch)
      continue; // the same for all samples
    const bool isWidened = *format == RowFile::Format::Npz && binding.dtype() == plan::BF16;
    Column column;
    column.name = binding.name();
    column.rowsOfSample = binding.dims(0) / batch;
    RowFile::Array array{
        binding.name(), isWidened ? plan::F32 : binding.dtype(), {binding.dims().begin(), binding.dims().end()}};
    array.dims[0] = validation.rows() * column.rowsOfSample;
    Expected<Conversion> conversion = Conversion::create(binding.dtype(), array.dtype);
    if (!conversion)
      return conversion.takeStatus();
    column.conversion = *conversion;
    columns.push_back(std::move(column));
    arrays.push_back(std::move(array));
  }
  if (columns.empty())
    return Status(StatusCode::Usage, "entry '" + printable(entry) +
                                         "' has no output with a row for each sample; compile with --outputs=NAME, or "
                                         "without --loss");
  Expected<std::unique_ptr<RowFile>> file = RowFile::create(path, std::move(arrays));
  if (!file)
    return file.takeStatus();
  validation.begin();
  for (int64_t i = 0; i < validation.batches(); ++i) {
    if (stopSignal())
      return validation.report();
    if (Expected<double> loss = validation.evaluate(i, /*wantsOutputs=*/true); !loss)
      return loss.takeStatus();
    const Validation::Window window = validation.window(i);
    for (size_t c = 0; c < columns.size(); ++c) {
      Column &column = columns[c];
      Expected<Tensor> output = session.tensor(*window.entry, column.name);
      if (!output)
        return output.takeStatus();
      const plan::Binding &binding = *output->binding;
      int64_t elements = window.rows * column.rowsOfSample;
      for (int d = 1; d < binding.dims_size(); ++d)
        elements *= binding.dims(d);
      const uint8_t *from = output->data;
      if (!column.conversion.isCopy()) {
        column.converted.resize(static_cast<size_t>(elements) * elementBytes(column.conversion.to()));
        if (column.conversion.convert(from, column.converted.data(), elements) < elements)
          return Status(StatusCode::Internal, "output '" + printable(column.name) + "' cannot be widened");
        from = column.converted.data();
      }
      LOWTIDE_TRY((*file)->append(c, from, static_cast<uint64_t>(elements) * elementBytes(column.conversion.to())));
    }
  }
  LOWTIDE_TRY((*file)->finish());
  return validation.report();
}

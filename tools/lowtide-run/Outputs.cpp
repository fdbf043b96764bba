//===- Outputs.cpp - what a step computed, as a file -----------------------===//

#include "Outputs.h"

#include "RowFile.h"

#include "runtime/Element.h"
#include "runtime/checkpoint/FrameworkTensor.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/data/Conversion.h"

namespace lowtide::run {

using namespace lowtide::rt;

/// Writes an archive where the name ends in .npz, whose bf16 is widened, and else a .safetensors.
static Status writeTensors(const std::vector<SafetensorsEntry> &entries, const std::string &path) {
  if (!path.ends_with(".npz"))
    return writeSafetensors(path, entries);
  std::vector<RowFile::Array> arrays;
  for (const SafetensorsEntry &entry : entries)
    arrays.push_back({entry.name, entry.dtype == plan::BF16 ? plan::F32 : entry.dtype, entry.dims});
  Expected<std::unique_ptr<RowFile>> file = RowFile::create(path, arrays);
  if (!file)
    return file.takeStatus();
  for (size_t i = 0; i < entries.size(); ++i) {
    Expected<Conversion> conversion = Conversion::create(entries[i].dtype, arrays[i].dtype);
    if (!conversion)
      return conversion.takeStatus();
    std::vector<uint8_t> converted;
    LOWTIDE_TRY(entries[i].write([&](const void *data, size_t bytes) {
      if (conversion->isCopy())
        return (*file)->append(i, data, bytes);
      const auto elements = static_cast<int64_t>(bytes / elementBytes(entries[i].dtype));
      converted.resize(static_cast<size_t>(elements) * elementBytes(arrays[i].dtype));
      if (conversion->convert(static_cast<const uint8_t *>(data), converted.data(), elements) < elements)
        return Status(StatusCode::Internal, "'" + printable(entries[i].name) + "' cannot be widened");
      return (*file)->append(i, converted.data(), converted.size());
    }));
  }
  return (*file)->finish();
}

Status dumpGradients(const Session &session, const std::string &entry, const std::string &path) {
  Expected<std::vector<SafetensorsEntry>> entries = gradientEntries(session, entry);
  return entries ? writeTensors(*entries, path) : entries.takeStatus();
}

Status dumpOutputs(const Session &session, const std::string &entry, const std::string &path) {
  LOWTIDE_TRY(session.download(entry));
  std::vector<SafetensorsEntry> entries;
  for (plan::Binding::Kind kind : {plan::Binding::METRIC, plan::Binding::OUTPUT, plan::Binding::GRADIENT})
    for (const Tensor &tensor : session.tensors(entry, kind)) {
      const plan::Binding &binding = *tensor.binding;
      entries.push_back({binding.name(),
                         binding.dtype(),
                         {binding.dims().begin(), binding.dims().end()},
                         tensor.bytes(),
                         [tensor](const SafetensorsEntry::Sink &sink) { return sink(tensor.data, tensor.bytes()); }});
    }
  return writeTensors(entries, path);
}

} // namespace lowtide::run

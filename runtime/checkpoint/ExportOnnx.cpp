//===- ExportOnnx.cpp - trained weights back into the user's own model -----===//
//
// Values are replaced where they lie; of external files, in a copy next to the new model. Where an exporter had merged
// equal tensors that training drove apart, each gets an initializer of its own, and the nodes that read it say so.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/ExportOnnx.h"

#include "lowtide-rt/ExportNames.h"
#include "runtime/CheckedMath.h"
#include "runtime/Element.h"
#include "runtime/FewBits.h"
#include "runtime/MappedFile.h"
#include "runtime/Sha256.h"
#include "runtime/checkpoint/Adapters.h"
#include "runtime/checkpoint/FrameworkTensor.h"
#include "runtime/checkpoint/OnnxWire.h"
#include "runtime/checkpoint/OutputFile.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <set>

namespace lowtide::rt {
namespace {

namespace fs = std::filesystem;

/// The values of `tensor`, element by element in the initializer's type.
std::vector<uint8_t> converted(const Tensor &tensor, plan::DType dtype) {
  uint64_t from = elementBytes(tensor.binding->dtype()), to = elementBytes(dtype), count = tensor.bytes() / from;
  const std::vector<uint8_t> numbers = tensor.read();
  if (dtype == tensor.binding->dtype())
    return numbers;
  std::vector<uint8_t> values(count * to);
  for (uint64_t i = 0; i < count; ++i)
    storeElement(dtype, values.data() + i * to, loadElement(tensor.binding->dtype(), numbers.data() + i * from));
  return values;
}

/// One export: the files with their new contents, and what does not fit into the old ones.
class Writer {
public:
  Writer(const std::string &model, const std::string &target, std::span<const uint8_t> bytes)
      : model_(model), target_(target), from_(fs::path(model).parent_path()), to_(fs::path(target).parent_path()) {
    files_[""].assign(bytes.begin(), bytes.end());
  }

  Status findPlaces() {
    auto places = findInitializers(files_[""]);
    if (!places)
      return places.takeStatus().at(model_);
    places_ = std::move(*places);
    return Status::ok();
  }
  /// All tensors that one initializer stands for. The first keeps it.
  Status add(const std::string &initializer, const std::vector<const Tensor *> &tensors, const plan::Plan &plan);
  /// Whether a frozen tensor holds other numbers than the file, as after --init: not those of the file as they are,
  /// rounded to the tensor's type, or in codes. What is no whole initializer counts as the file's.
  Expected<bool> isReplaced(const Session &session, const Tensor &tensor, const plan::ParameterSource &source);
  /// What an entry computed of parameters, as the exporter had.
  Status addImage(const std::string &initializer, const Tensor &image);
  /// A parameter that is in the file in its images alone, or not at all.
  Status addMissing(const Tensor &tensor, const plan::ParameterSource &source);
  bool holds(const std::string &initializer) const { return places_.count(initializer) != 0; }
  Status finish();
  size_t written = 0, split = 0;

private:
  /// The bytes of the model (`external` empty) or of a file beside it.
  Expected<std::vector<uint8_t> *> contentOf(const std::string &external);
  /// The place of an initializer and what `tensor` puts there.
  Expected<InitializerPlace> placeOf(const std::string &initializer, const Tensor &tensor,
                                     std::vector<uint8_t> &values);
  /// The bytes of an initializer, as the file has them or as they were written.
  Expected<std::span<uint8_t>> heldBy(const std::string &initializer, const InitializerPlace &place);
  Status overwrite(const std::string &initializer, const InitializerPlace &place, const std::vector<uint8_t> &values);
  /// Names of the external files where they are written, by those that the model gives them.
  Expected<std::map<std::string, std::string>> nameExternal();

  std::string model_, target_;
  fs::path from_, to_;
  /// External files of which nothing changes, for a model in another folder.
  std::vector<std::string> copied_;
  std::map<std::string, InitializerPlace> places_;
  std::map<std::string, std::vector<uint8_t>> files_; ///< "" is the model
  GraphEdit edit_;
};

std::string describe(const std::string &initializer) { return "initializer '" + printable(initializer) + "'"; }

Expected<InitializerPlace> Writer::placeOf(const std::string &initializer, const Tensor &tensor,
                                           std::vector<uint8_t> &values) {
  auto it = places_.find(initializer);
  if (it == places_.end() || !it->second.found)
    return badInput("holds no values for " + describe(initializer), model_);
  InitializerPlace place = it->second;
  uint64_t element = elementBytes(place.dtype);
  if (element)
    values = converted(tensor, place.dtype);
  if (!place.external.empty() && place.bytes == 0)
    place.bytes = values.size();
  if (!element || values.size() != place.bytes)
    return badInput(describe(initializer) + " has " + std::to_string(place.bytes) + " bytes, parameter '" +
                        printable(tensor.binding->name()) + "' needs " + std::to_string(values.size()),
                    model_);
  return place;
}

Expected<std::vector<uint8_t> *> Writer::contentOf(const std::string &external) {
  auto file = files_.find(external);
  if (file == files_.end()) {
    Expected<MappedFile> mapped = MappedFile::open((from_ / external).string());
    if (!mapped)
      return mapped.takeStatus();
    std::vector<uint8_t> content(mapped->bytes().begin(), mapped->bytes().end());
    file = files_.emplace(external, std::move(content)).first;
  }
  return &file->second;
}

Expected<std::span<uint8_t>> Writer::heldBy(const std::string &initializer, const InitializerPlace &place) {
  Expected<std::vector<uint8_t> *> content = contentOf(place.external);
  if (!content)
    return content.takeStatus();
  const uint64_t element = elementBytes(place.dtype);
  Checked span = place.bytes;
  if (place.stride && place.bytes)
    span = Checked(place.bytes / element - 1) * place.stride + element;
  if (!(Checked(place.offset) + span).atMost((*content)->size()))
    return badInput(describe(initializer) + " reaches beyond the end of its file", model_);
  std::span<uint8_t> rest = std::span(**content).subspan(place.offset);
  return place.stride && place.bytes ? rest.first((place.bytes / element - 1) * place.stride + element)
                                     : rest.first(place.bytes);
}

Status Writer::overwrite(const std::string &initializer, const InitializerPlace &place,
                         const std::vector<uint8_t> &values) {
  Expected<std::span<uint8_t>> held = heldBy(initializer, place);
  if (!held)
    return held.takeStatus();
  const uint64_t element = elementBytes(place.dtype);
  if (!place.stride)
    std::memcpy(held->data(), values.data(), values.size());
  else
    for (uint64_t i = 0; i < values.size() / element; ++i)
      std::memcpy(held->data() + i * place.stride, values.data() + i * element, element);
  ++written;
  return Status::ok();
}

/// Rows of a matrix of so many columns in the framework's order; the file may hold it transposed.
std::vector<float> reordered(const std::vector<float> &numbers, uint64_t rows, uint64_t columns) {
  std::vector<float> result(numbers.size());
  for (uint64_t row = 0; row < rows; ++row)
    for (uint64_t column = 0; column < columns; ++column)
      result[column * rows + row] = numbers[row * columns + column];
  return result;
}

Expected<bool> Writer::isReplaced(const Session &session, const Tensor &tensor, const plan::ParameterSource &source) {
  auto it = places_.find(source.initializer());
  if (it == places_.end() || !it->second.found)
    return false;
  const InitializerPlace &place = it->second;
  const std::optional<CodedTensor> coded = findCoded(session, tensor, &source);
  const plan::DType type = tensor.binding->dtype();
  const uint64_t element = elementBytes(place.dtype),
                 count = coded ? coded->count : tensor.bytes() / std::max<uint64_t>(elementBytes(type), 1);
  uint64_t held = 1;
  for (uint64_t dim : place.dims)
    held *= dim;
  if (!element || held != count || isScales(&source))
    return false;
  InitializerPlace whole = place;
  whole.bytes = count * element; // external data need not state theirs
  Expected<std::span<uint8_t>> content = heldBy(source.initializer(), whole);
  if (!content)
    return content.takeStatus();
  const uint8_t *file = content->data();
  const uint64_t step = place.step(element);
  if (!coded) {
    const uint64_t size = elementBytes(type);
    std::vector<uint8_t> wanted(tensor.bytes());
    for (uint64_t i = 0; i < count; ++i)
      storeElement(type, wanted.data() + i * size, loadElement(place.dtype, file + i * step));
    LOWTIDE_TRY(tensor.bring(HostAccess::Read));
    return wanted != tensor.read();
  }
  std::vector<float> numbers(count);
  for (uint64_t i = 0; i < count; ++i)
    numbers[i] = static_cast<float>(loadElement(place.dtype, file + i * step));
  if (source.coded_transposed())
    numbers =
        reordered(numbers, static_cast<uint64_t>(source.coded_dims(1)), static_cast<uint64_t>(source.coded_dims(0)));
  LOWTIDE_TRY(coded->bring(HostAccess::Read));
  std::vector<uint8_t> codes(coded->codes.bytes());
  std::vector<float> scales(count / fewBitsBlock);
  return encodeFewBits(coded->codec, numbers, codes.data(), scales.data()).has_value() ||
         std::memcmp(codes.data(), coded->codes.data, codes.size()) != 0 ||
         std::memcmp(scales.data(), coded->scales.data, scales.size() * sizeof(float)) != 0;
}

/// A matrix in codes as the numbers that the step computes with, in the order of the file.
struct DecodedMatrix {
  plan::Binding binding;
  std::vector<float> numbers;

  DecodedMatrix(const Tensor &codes, const CodedTensor &coded, const plan::ParameterSource &source)
      : binding(*codes.binding), numbers(coded.decode()) {
    int64_t dims[] = {source.coded_dims(0), source.coded_dims(1)};
    if (source.coded_transposed()) {
      numbers = reordered(numbers, static_cast<uint64_t>(dims[0]), static_cast<uint64_t>(dims[1]));
      std::swap(dims[0], dims[1]);
    }
    binding.set_dtype(plan::F32);
    binding.clear_dims();
    binding.add_dims(dims[0]), binding.add_dims(dims[1]);
    binding.mutable_slice()->set_bytes(numbers.size() * sizeof(float));
  }
  Tensor tensor() { return {&binding, reinterpret_cast<uint8_t *>(numbers.data())}; }
};

Status Writer::add(const std::string &initializer, const std::vector<const Tensor *> &tensors, const plan::Plan &plan) {
  std::vector<uint8_t> kept;
  for (const Tensor *tensor : tensors) {
    const plan::ParameterSource &source = *findSource(plan, tensor->binding->name());
    std::vector<uint8_t> values;
    Expected<InitializerPlace> place = placeOf(initializer, *tensor, values);
    if (!place)
      return place.takeStatus();
    // What is frozen, or no tensor of the plan, and reads the initializer as well, keeps its numbers.
    const bool isShared = tensors.size() == 1 && source.use_nodes_size();
    if (isShared) {
      Expected<std::span<uint8_t>> held = heldBy(initializer, *place);
      if (!held)
        return held.takeStatus();
      const uint64_t element = elementBytes(place->dtype);
      kept.clear();
      for (uint64_t at = 0; at < held->size(); at += place->step(element))
        kept.insert(kept.end(), held->begin() + at, held->begin() + at + element);
    } else if (tensor == tensors.front()) {
      LOWTIDE_TRY(overwrite(initializer, *place, values));
      kept = std::move(values);
      continue;
    }
    if (values == kept)
      continue;
    std::string name = tensor->binding->name();
    while (places_.count(name))
      name += "@" + initializer;
    if (source.use_nodes_size() == 0 || source.use_nodes_size() != source.use_operands_size())
      return {StatusCode::Unsupported,
              describe(initializer) + " stands for several parameters (among them '" +
                  printable(tensor->binding->name()) +
                  "') that training has driven apart, and the artifact does not say who reads which: compile it again, "
                  "or use --save",
              model_};
    for (int i = 0; i < source.use_nodes_size(); ++i)
      edit_.reads[{source.use_nodes(i), source.use_operands(i)}] = name;
    edit_.initializers.push_back(writeInitializer(name, *place, values));
    places_[name] = *place;
    ++split;
  }
  return Status::ok();
}

Status Writer::addImage(const std::string &initializer, const Tensor &image) {
  std::vector<uint8_t> values;
  Expected<InitializerPlace> place = placeOf(initializer, image, values);
  return place ? overwrite(initializer, *place, values) : place.takeStatus();
}

Status Writer::addMissing(const Tensor &tensor, const plan::ParameterSource &source) {
  if (source.image_initializers_size())
    return Status::ok();
  // What the exporter dropped becomes an initializer and an operand again.
  static const std::map<plan::DType, uint64_t> types = {
      {plan::F32, 1}, {plan::F16, 10}, {plan::F64, 11}, {plan::BF16, 16}};
  InitializerPlace place;
  place.dtype = tensor.binding->dtype();
  auto type = types.find(place.dtype);
  if (type == types.end() || source.use_nodes_size() == 0 || source.use_nodes_size() != source.use_operands_size())
    return badInput("holds no values for " + describe(source.initializer()) + ", and parameter '" +
                        printable(source.name()) +
                        "' has no other place there, for its exporter merged or dropped it: use --save",
                    model_);
  place.onnxType = type->second;
  place.dims.assign(tensor.binding->dims().begin(), tensor.binding->dims().end());
  std::string name = source.name();
  while (places_.count(name))
    name += "@";
  for (int i = 0; i < source.use_nodes_size(); ++i)
    edit_.reads[{source.use_nodes(i), source.use_operands(i)}] = name;
  edit_.initializers.push_back(writeInitializer(name, place, tensor.read()));
  places_[name] = place;
  ++written;
  return Status::ok();
}

Expected<std::map<std::string, std::string>> Writer::nameExternal() {
  std::error_code error;
  std::set<std::string> all;
  for (const auto &[initializer, place] : places_)
    if (!place.external.empty())
      all.insert(place.external);
  std::map<std::string, std::string> names;
  const bool isSameFolder = fs::equivalent(from_.empty() ? "." : from_, to_.empty() ? "." : to_, error);
  if (!isSameFolder || fs::equivalent(model_, target_, error)) {
    for (const std::string &name : all) {
      // In another folder the model needs all of them.
      if (!isSameFolder && !files_.count(name))
        copied_.push_back(name);
      names[name] = name;
    }
    return names;
  }
  // The model that was read keeps its files.
  const std::string target = fs::path(target_).filename().string();
  for (const auto &[name, content] : files_) {
    if (name.empty())
      continue;
    std::string &own = names[name] = files_.size() == 2 ? target + ".data" : target + "." + name;
    while (all.count(own))
      own += ".data";
  }
  return names;
}

Status Writer::finish() {
  Expected<std::map<std::string, std::string>> names = nameExternal();
  if (!names)
    return names.takeStatus();
  for (const auto &[name, own] : *names)
    if (name != own)
      edit_.locations.emplace(name, own);
  if (!edit_.isEmpty()) {
    auto edited = editGraph(files_[""], edit_);
    if (!edited)
      return edited.takeStatus().at(model_);
    if (!edit_.reads.empty())
      return {StatusCode::Unsupported,
              "training has driven parameters apart that the exporter had merged, and what reads '" +
                  printable(edit_.reads.begin()->second) +
                  "' is inside of a local function, or was merged, too. Export the model again without merging "
                  "initializers, or use --save",
              model_};
    files_[""] = std::move(*edited);
  }
  for (const std::string &name : copied_) {
    Expected<MappedFile> mapped = MappedFile::open((from_ / name).string());
    if (!mapped)
      return mapped.takeStatus();
    const std::span<const uint8_t> bytes = mapped->bytes();
    LOWTIDE_TRY(replaceFile((to_ / name).string(), {reinterpret_cast<const char *>(bytes.data()), bytes.size()}));
  }
  // The model comes last: until then no file names what is not whole.
  for (auto file = files_.rbegin(); file != files_.rend(); ++file) {
    const auto &[name, content] = *file;
    std::string path = name.empty() ? target_ : (to_ / names->at(name)).string();
    LOWTIDE_TRY(replaceFile(path, {reinterpret_cast<const char *>(content.data()), content.size()}));
  }
  return Status::ok();
}

/// The images that the entries compute.
std::set<std::string> listImages(const plan::Plan &plan) {
  std::set<std::string> images;
  for (const plan::Entry &entry : plan.entries())
    for (const plan::Binding &binding : entry.bindings())
      if (isExportEntry(entry.name()) && binding.kind() == plan::Binding::OUTPUT)
        images.emplace(imageInitializer(binding.name()));
  return images;
}

/// Writes what the entries compute of the session's parameters.
Status addImages(Session &session, Writer &writer) {
  for (const plan::Entry &entry : session.plan().entries()) {
    if (!isExportEntry(entry.name()))
      continue;
    LOWTIDE_TRY(session.step(entry.name()));
    LOWTIDE_TRY(session.download(entry.name()));
    for (const Tensor &image : session.tensors(entry.name(), plan::Binding::OUTPUT)) {
      LOWTIDE_TRY(image.bring(HostAccess::Read));
      LOWTIDE_TRY(writer.addImage(std::string(imageInitializer(image.binding->name())), image));
    }
  }
  return Status::ok();
}

/// Refuses a change of a tensor of which the file holds an image that would stay as it was.
Status checkImages(const std::set<std::string> &images, const plan::ParameterSource &source, bool isMerged,
                   const std::string &model) {
  for (const std::string &image : source.image_initializers())
    if (isMerged || !images.count(image))
      return {StatusCode::Unsupported,
              "parameter '" + printable(source.name()) + "' is changed, and the file also holds '" + printable(image) +
                  "', which its exporter evaluated from it and which would stay as it was" +
                  (isMerged ? "" : ": it stands for several values, or for what no step computes") +
                  ". Export the model again without constant folding (do_constant_folding=False, optimize=False), or "
                  "use --save",
              model};
  return Status::ok();
}

} // namespace

Status checkExport(const Session &session, const std::string &model, const std::string &target, bool mergesAdapters) {
  if (session.plan().adapters_size() && !mergesAdapters)
    return {StatusCode::Usage,
            "the model file has no place for the low-rank pairs that were trained: --merge-lora adds them to their "
            "weights there; --save writes them as PEFT's files",
            target};
  Expected<MappedFile> mapped = MappedFile::open(model);
  if (!mapped)
    return mapped.takeStatus();
  const std::string &digest = session.plan().model_digest();
  if (!digest.empty() && toHex(Sha256::of(mapped->bytes().data(), mapped->bytes().size())) != digest)
    return badInput("is not the model that the artifact was compiled from: its SHA-256 differs", model);
  return checkWritable(target);
}

Status exportOnnx(Session &session, const std::string &model, const std::string &target,
                  std::vector<std::string> &notes, bool mergesAdapters) {
  LOWTIDE_TRY(checkExport(session, model, target, mergesAdapters));
  Expected<MappedFile> mapped = MappedFile::open(model);
  if (!mapped)
    return mapped.takeStatus();
  std::span<const uint8_t> bytes = mapped->bytes();
  LOWTIDE_TRY(session.download());
  Writer writer(model, target, bytes);
  LOWTIDE_TRY(writer.findPlaces());
  std::vector<MergedWeight> merged;
  if (mergesAdapters) {
    Expected<std::vector<MergedWeight>> made = mergeAdapters(session);
    if (!made)
      return made.takeStatus();
    merged = std::move(*made);
  }
  std::set<std::string> changed;
  for (const MergedWeight &weight : merged)
    if (const plan::ParameterSource *source = findSource(session.plan(), weight.binding->name()))
      changed.insert(source->initializer());
  // By initializer; the tensor that goes by its name comes first.
  std::map<std::string, std::vector<const Tensor *>> sharers;
  std::vector<std::pair<const Tensor *, const plan::ParameterSource *>> missing;
  const std::set<std::string> images = listImages(session.plan());
  LOWTIDE_TRY(addImages(session, writer));
  std::deque<DecodedMatrix> decoded;
  std::vector<Tensor> persistent = session.persistent();
  for (Tensor &tensor : persistent) {
    if (tensor.binding->kind() == plan::Binding::PARAM)
      LOWTIDE_TRY(tensor.bring(HostAccess::Read));
    const plan::ParameterSource *source = findSource(session.plan(), tensor.binding->name());
    bool isMerged = false;
    for (MergedWeight &weight : merged)
      if (weight.binding->name() == tensor.binding->name())
        tensor = weight.tensor(), isMerged = true;
    if (!source || source->initializer().empty())
      continue;
    if (tensor.binding->kind() == plan::Binding::CONSTANT) {
      Expected<bool> isReplaced = writer.isReplaced(session, tensor, *source);
      if (!isReplaced)
        return isReplaced.takeStatus();
      // What a merged weight shares its initializer with, keeps its values.
      if (!*isReplaced && !changed.count(source->initializer()))
        continue;
      if (std::optional<CodedTensor> coded = findCoded(session, tensor, source))
        tensor = decoded.emplace_back(tensor, *coded, *source).tensor();
    }
    LOWTIDE_TRY(checkImages(images, *source, isMerged, model));
    if (!writer.holds(source->initializer())) {
      missing.emplace_back(&tensor, source);
      continue;
    }
    std::vector<const Tensor *> &list = sharers[source->initializer()];
    list.insert(tensor.binding->name() == source->initializer() ? list.begin() : list.end(), &tensor);
  }
  for (const auto &[initializer, tensors] : sharers)
    LOWTIDE_TRY(writer.add(initializer, tensors, session.plan()));
  for (const auto &[tensor, source] : missing)
    LOWTIDE_TRY(writer.addMissing(*tensor, *source));
  LOWTIDE_TRY(writer.finish());
  notes.push_back(std::to_string(writer.written) + " tensors written to " + target +
                  (writer.split ? "; " + std::to_string(writer.split) +
                                      " that the exporter had merged have initializers of their own"
                                : ""));
  return Status::ok();
}

} // namespace lowtide::rt

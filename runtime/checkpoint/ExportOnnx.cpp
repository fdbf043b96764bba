//===- ExportOnnx.cpp - trained weights back into the user's own model -----===//
//
// The runtime does not link ONNX. It walks the protobuf wire format as far as it must: ModelProto.graph (7),
// GraphProto.initializer (5), TensorProto's dims (1), data_type (2), float_data (4), name (8), raw_data (9),
// double_data (10), external_data (13). Replacing values keeps every length, so no other byte of the file moves.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/ExportOnnx.h"

#include "runtime/CheckedMath.h"
#include "runtime/Element.h"
#include "runtime/MappedFile.h"
#include "runtime/Sha256.h"
#include "runtime/checkpoint/FrameworkTensor.h"
#include "runtime/checkpoint/OutputFile.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>

namespace lowtide::rt {
namespace {

namespace fs = std::filesystem;

/// Reads fields of one message; positions are offsets in the whole file.
class WireReader {
public:
  WireReader(std::span<const uint8_t> file, size_t begin, size_t end) : file_(file), at_(begin), end_(end) {}

  uint32_t field = 0;
  uint64_t number = 0;       ///< of a varint field
  size_t begin = 0, end = 0; ///< of a length-delimited field
  bool bytes = false;        ///< the field is length-delimited

  bool damaged() const { return damaged_; }
  bool next() {
    if (at_ >= end_ || damaged_)
      return false;
    uint64_t tag = varint();
    field = static_cast<uint32_t>(tag >> 3);
    bytes = false;
    switch (tag & 7) {
    case 0:
      number = varint();
      break;
    case 1:
      skip(8);
      break;
    case 2: {
      uint64_t length = varint();
      bytes = true, begin = at_;
      skip(length);
      end = at_;
      break;
    }
    case 5:
      skip(4);
      break;
    default:
      damaged_ = true;
    }
    return !damaged_;
  }
  WireReader inside() const { return {file_, begin, end}; }
  std::string text() const { return {reinterpret_cast<const char *>(file_.data()) + begin, end - begin}; }

private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ >= end_)
        break;
      uint8_t byte = file_[at_++];
      value |= uint64_t(byte & 127) << shift;
      if (!(byte & 128))
        return value;
    }
    damaged_ = true;
    return 0;
  }
  void skip(uint64_t length) {
    if (length > end_ - at_)
      damaged_ = true;
    else
      at_ += length;
  }

  std::span<const uint8_t> file_;
  size_t at_, end_;
  bool damaged_ = false;
};

/// Where the values of an initializer lie: in the model file, or in an external one.
struct Place {
  plan::DType dtype = plan::DTYPE_UNSPECIFIED;
  std::string external; ///< file name, or empty
  uint64_t offset = 0, bytes = 0;
  bool found = false;
};

Expected<Place> readPlace(WireReader tensor, std::string &name) {
  Place place;
  std::map<std::string, std::string> external;
  while (tensor.next()) {
    if (tensor.field == 2 && !tensor.bytes) {
      static const std::map<uint64_t, plan::DType> types = {{1, plan::F32},  {2, plan::U8},   {3, plan::I8},
                                                            {5, plan::I16},  {6, plan::I32},  {7, plan::I64},
                                                            {10, plan::F16}, {11, plan::F64}, {16, plan::BF16}};
      auto it = types.find(tensor.number);
      place.dtype = it == types.end() ? plan::DTYPE_UNSPECIFIED : it->second;
    } else if (tensor.field == 8 && tensor.bytes) {
      name = tensor.text();
    } else if ((tensor.field == 4 || tensor.field == 9 || tensor.field == 10) && tensor.bytes &&
               tensor.end > tensor.begin) {
      place.offset = tensor.begin, place.bytes = tensor.end - tensor.begin, place.found = true;
    } else if (tensor.field == 13 && tensor.bytes) {
      std::string key, value;
      WireReader pair = tensor.inside();
      while (pair.next())
        if (pair.bytes)
          (pair.field == 1 ? key : value) = pair.text();
      external[key] = value;
    }
  }
  if (tensor.damaged())
    return badInput("damaged inside an initializer");
  if (external.count("location")) {
    place.external = external["location"];
    auto number = [&](const char *key, uint64_t &value) {
      const std::string &text = external[key];
      return text.empty() ||
             std::from_chars(text.data(), text.data() + text.size(), value).ptr == text.data() + text.size();
    };
    if (!number("offset", place.offset) || !number("length", place.bytes))
      return badInput("external data with an offset or length that is no number", printable(name));
    if (place.external.empty() || place.external.find('/') != std::string::npos || place.external == "." ||
        place.external == "..")
      return badInput("external data '" + printable(place.external) + "' is not a plain file name", printable(name));
    place.found = true;
  }
  return place;
}

Expected<std::map<std::string, Place>> findInitializers(std::span<const uint8_t> file) {
  std::map<std::string, Place> places;
  WireReader model(file, 0, file.size());
  while (model.next()) {
    if (model.field != 7 || !model.bytes)
      continue;
    WireReader graph = model.inside();
    while (graph.next()) {
      if (graph.field != 5 || !graph.bytes)
        continue;
      std::string name;
      Expected<Place> place = readPlace(graph.inside(), name);
      if (!place)
        return place.takeStatus();
      places.emplace(std::move(name), *place);
    }
    if (graph.damaged())
      return badInput("damaged inside the graph");
  }
  if (model.damaged())
    return badInput("is not an ONNX model, or damaged");
  return places;
}

/// The values of `tensor`, element by element in the initializer's type.
std::vector<uint8_t> converted(const Tensor &tensor, plan::DType dtype) {
  uint64_t from = elementBytes(tensor.binding->dtype()), to = elementBytes(dtype), count = tensor.bytes() / from;
  if (dtype == tensor.binding->dtype())
    return {tensor.data, tensor.data + tensor.bytes()};
  std::vector<uint8_t> values(count * to);
  for (uint64_t i = 0; i < count; ++i)
    storeElement(dtype, values.data() + i * to, loadElement(tensor.binding->dtype(), tensor.data + i * from));
  return values;
}

} // namespace

Status exportOnnx(const Session &session, const std::string &model, const std::string &target,
                  std::vector<std::string> &notes) {
  Expected<MappedFile> mapped = MappedFile::open(model);
  if (!mapped)
    return mapped.takeStatus();
  std::span<const uint8_t> bytes = mapped->bytes();
  const std::string &digest = session.plan().model_digest();
  if (!digest.empty() && toHex(Sha256::of(bytes.data(), bytes.size())) != digest)
    return badInput("is not the model that the artifact was compiled from: its SHA-256 differs", model);
  Expected<std::map<std::string, Place>> places = findInitializers(bytes);
  if (!places)
    return places.takeStatus().at(model);

  std::map<std::string, std::vector<uint8_t>> files; // "" is the model
  files[""].assign(bytes.begin(), bytes.end());
  fs::path from = fs::path(model).parent_path(), to = fs::path(target).parent_path();
  std::map<std::string, std::vector<uint8_t>> written;
  int count = 0;
  for (const Tensor &tensor : session.persistent()) {
    const plan::ParameterSource *source = findSource(session.plan(), tensor.binding->name());
    if (tensor.binding->kind() == plan::Binding::CONSTANT || !source || source->initializer().empty())
      continue;
    std::string where = "initializer '" + printable(source->initializer()) + "'";
    auto it = places->find(source->initializer());
    if (it == places->end() || !it->second.found)
      return badInput("holds no values for " + where, model);
    Place place = it->second;
    uint64_t element = elementBytes(place.dtype);
    std::vector<uint8_t> values = element ? converted(tensor, place.dtype) : std::vector<uint8_t>();
    if (!place.external.empty() && place.bytes == 0)
      place.bytes = values.size();
    if (!element || values.size() != place.bytes)
      return badInput(where + " has " + std::to_string(place.bytes) + " bytes, parameter '" +
                          printable(tensor.binding->name()) + "' needs " + std::to_string(values.size()),
                      model);
    auto [previous, fresh] = written.try_emplace(source->initializer(), values);
    if (!fresh && previous->second != values)
      return {StatusCode::Unsupported,
              where + " stands for several parameters (among them '" + printable(tensor.binding->name()) +
                  "') that training has driven apart: the file has one place for them. Export the model again without "
                  "merging initializers, or use --save",
              model};
    auto file = files.find(place.external);
    if (file == files.end()) {
      std::error_code error;
      if (fs::equivalent(from.empty() ? "." : from, to.empty() ? "." : to, error))
        return {StatusCode::Usage, "the weights are in external files beside the model: export into another directory",
                target};
      Expected<MappedFile> external = MappedFile::open((from / place.external).string());
      if (!external)
        return external.takeStatus();
      file =
          files.emplace(place.external, std::vector<uint8_t>(external->bytes().begin(), external->bytes().end())).first;
    }
    if (!(Checked(place.offset) + values.size()).atMost(file->second.size()))
      return badInput(where + " reaches beyond the end of its file", model);
    std::memcpy(file->second.data() + place.offset, values.data(), values.size());
    ++count;
  }
  for (const auto &[name, content] : files) {
    std::string path = name.empty() ? target : (to / name).string();
    LOWTIDE_TRY(writeFile(path + ".tmp", {reinterpret_cast<const char *>(content.data()), content.size()}));
    std::error_code error;
    fs::rename(path + ".tmp", path, error);
    if (error)
      return ioError("cannot rename to its final name: " + error.message(), path);
  }
  notes.push_back(std::to_string(count) + " tensors written to " + target);
  return Status::ok();
}

} // namespace lowtide::rt

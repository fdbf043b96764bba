//===- OnnxWire.cpp - initializers in the bytes of a model file ------------===//
//
// Fields that are read: ModelProto.graph (7); GraphProto.node (1), name (2), initializer (5), input (11);
// NodeProto.input (1), output (2), op_type (4), attribute (5); AttributeProto.t (5), g (6), floats (7), graphs (11);
// ValueInfoProto.name (1); TensorProto.dims (1), data_type (2), float_data (4), name (8), raw_data (9), double_data
// (10), external_data (13). Everything else is copied as it is.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/OnnxWire.h"

#include <charconv>

namespace lowtide::rt {
namespace {

/// Reads fields of one message; positions are offsets in the whole file.
class WireReader {
public:
  WireReader(std::span<const uint8_t> file, size_t begin, size_t end) : file_(file), at_(begin), end_(end) {}

  uint32_t field = 0;
  size_t start = 0;          ///< of the field, its tag included
  uint64_t number = 0;       ///< of a varint field
  size_t begin = 0, end = 0; ///< of a length-delimited field
  bool bytes = false;        ///< the field is length-delimited

  std::string raw() const { return {reinterpret_cast<const char *>(file_.data()) + start, at_ - start}; }
  bool damaged() const { return damaged_; }
  bool next() {
    if (at_ >= end_ || damaged_)
      return false;
    start = at_;
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

  /// Appends the numbers of a repeated varint field, packed or not.
  void numbers(std::vector<uint64_t> &to) {
    if (!bytes)
      return to.push_back(number);
    WireReader packed = inside();
    while (packed.at_ < packed.end_ && !packed.damaged_)
      to.push_back(packed.varint());
    damaged_ |= packed.damaged_;
  }

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

Expected<InitializerPlace> readPlace(WireReader tensor, std::string &name) {
  InitializerPlace place;
  std::map<std::string, std::string> external;
  while (tensor.next()) {
    if (tensor.field == 1) {
      tensor.numbers(place.dims);
    } else if (tensor.field == 2 && !tensor.bytes) {
      static const std::map<uint64_t, plan::DType> types = {{1, plan::F32},  {2, plan::U8},   {3, plan::I8},
                                                            {5, plan::I16},  {6, plan::I32},  {7, plan::I64},
                                                            {10, plan::F16}, {11, plan::F64}, {16, plan::BF16}};
      auto it = types.find(tensor.number);
      place.onnxType = tensor.number;
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

/// Floats of an attribute, each with a tag of its own unless they are packed.
void addFloat(const WireReader &attribute, InitializerPlace &place) {
  constexpr uint64_t tag = 1, element = sizeof(float);
  if (attribute.bytes) {
    place.found = place.bytes == 0 && (attribute.end - attribute.begin) % element == 0;
    place.offset = attribute.begin, place.bytes = attribute.end - attribute.begin;
    return;
  }
  place.stride = tag + element;
  if (place.bytes == 0)
    place.offset = attribute.start + tag, place.found = true;
  place.found &= place.offset + place.bytes / element * place.stride == attribute.start + tag;
  place.bytes += element;
}

/// Nests of graphs that are followed; ours are no deeper.
constexpr unsigned maxDepth = 64;

/// Finds the tensors of a model's graphs.
class PlaceFinder {
public:
  std::map<std::string, InitializerPlace> places;

  Status read(WireReader graph, unsigned depth = 0) {
    if (depth > maxDepth)
      return badInput("has too many graphs within graphs");
    std::string graphName, name;
    std::vector<std::pair<std::string, InitializerPlace>> own;
    while (graph.next()) {
      if (!graph.bytes)
        continue;
      if (graph.field == 2)
        graphName = graph.text();
      if (graph.field == 11)
        for (WireReader input = graph.inside(); input.next();)
          if (input.field == 1 && input.bytes)
            ++defined_[input.text()];
      if (graph.field == 1)
        LOWTIDE_TRY(readNode(graph.inside(), depth, own));
      if (graph.field == 5) {
        Expected<InitializerPlace> place = readPlace(graph.inside(), name);
        if (!place)
          return place.takeStatus();
        ++defined_[name];
        own.emplace_back(name, *place);
      }
    }
    if (graph.damaged())
      return badInput("damaged inside the graph");
    for (auto &[tensor, place] : own)
      if (depth == 0)
        places.emplace(tensor, place);
      else
        inner_.push_back({tensor, graphName, place});
    return Status::ok();
  }

  /// Names what lies within other graphs. Two tensors of one name in graphs of one name cannot be told apart: they
  /// count as not found.
  void nameInner() {
    std::map<std::string, unsigned> taken;
    for (const Inner &inner : inner_)
      ++taken[nameOf(inner)];
    for (const Inner &inner : inner_) {
      const std::string name = nameOf(inner);
      auto [place, isNew] = places.emplace(name, inner.place);
      if (!isNew || taken[name] > 1)
        place->second.found = false;
    }
  }

private:
  struct Inner {
    std::string name, graph;
    InitializerPlace place;
  };

  std::string nameOf(const Inner &inner) {
    return defined_[inner.name] > 1 ? inner.name + "@" + inner.graph : inner.name;
  }

  /// A tensor in a `Constant` node counts as an initializer.
  Status readNode(WireReader node, unsigned depth, std::vector<std::pair<std::string, InitializerPlace>> &own) {
    std::string op, output, ignored;
    InitializerPlace floats, tensor;
    while (node.next()) {
      if (node.field == 2 && node.bytes)
        ++defined_[output = node.text()];
      if (node.field == 4 && node.bytes)
        op = node.text();
      if (node.field != 5 || !node.bytes)
        continue;
      for (WireReader attribute = node.inside(); attribute.next();)
        if (attribute.field == 5 && attribute.bytes) {
          Expected<InitializerPlace> place = readPlace(attribute.inside(), ignored);
          if (!place)
            return place.takeStatus();
          tensor = *place;
        } else if (attribute.field == 6 && attribute.bytes) {
          LOWTIDE_TRY(read(attribute.inside(), depth + 1));
        } else if (attribute.field == 7) {
          addFloat(attribute, floats);
        }
    }
    if (op != "Constant" || output.empty())
      return Status::ok();
    if (floats.bytes) {
      floats.dtype = plan::F32, floats.onnxType = 1;
      floats.dims = {floats.bytes / sizeof(float)};
    }
    own.emplace_back(output, floats.bytes ? floats : tensor);
    return Status::ok();
  }

  std::map<std::string, unsigned> defined_; ///< how often each name is defined
  std::vector<Inner> inner_;
};

void writeVarint(std::string &to, uint64_t value) {
  for (; value > 127; value >>= 7)
    to.push_back(static_cast<char>((value & 127) | 128));
  to.push_back(static_cast<char>(value));
}
void writeNumber(std::string &to, uint32_t field, uint64_t value) {
  writeVarint(to, field << 3);
  writeVarint(to, value);
}
void writeBytes(std::string &to, uint32_t field, std::string_view bytes) {
  writeVarint(to, field << 3 | 2);
  writeVarint(to, bytes.size());
  to.append(bytes);
}

/// A TensorProto whose external file has the name that `edit` gives it.
std::string editedTensor(WireReader tensor, const GraphEdit &edit, bool &damaged) {
  std::string to;
  while (tensor.next()) {
    std::string key, value;
    if (tensor.field == 13 && tensor.bytes)
      for (WireReader pair = tensor.inside(); pair.next();)
        if (pair.bytes)
          (pair.field == 1 ? key : value) = pair.text();
    const auto found = key == "location" ? edit.locations.find(value) : edit.locations.end();
    if (found == edit.locations.end()) {
      to += tensor.raw();
      continue;
    }
    std::string pair;
    writeBytes(pair, 1, key);
    writeBytes(pair, 2, found->second);
    writeBytes(to, 13, pair);
  }
  damaged |= tensor.damaged();
  return to;
}

std::string editedGraph(WireReader graph, GraphEdit &edit, unsigned depth, bool &damaged);

std::string editedNode(WireReader node, GraphEdit &edit, unsigned depth, bool &damaged) {
  std::string name, to;
  for (WireReader look = node; look.next();)
    if (look.field == 2 && look.bytes && name.empty())
      name = look.text();
  int64_t operand = 0;
  while (node.next()) {
    if (node.field == 1 && node.bytes) {
      auto found = edit.reads.find({name, operand++});
      writeBytes(to, 1, found == edit.reads.end() ? node.text() : found->second);
      if (found != edit.reads.end())
        edit.reads.erase(found);
    } else if (node.field == 5 && node.bytes) {
      std::string attribute;
      WireReader inner = node.inside();
      while (inner.next())
        if ((inner.field == 6 || inner.field == 11) && inner.bytes)
          writeBytes(attribute, inner.field, editedGraph(inner.inside(), edit, depth + 1, damaged));
        else if (inner.field == 5 && inner.bytes)
          writeBytes(attribute, inner.field, editedTensor(inner.inside(), edit, damaged));
        else
          attribute += inner.raw();
      damaged |= inner.damaged();
      writeBytes(to, 5, attribute);
    } else {
      to += node.raw();
    }
  }
  // Operands after the last one.
  for (auto found = edit.reads.find({name, operand}); found != edit.reads.end();
       found = edit.reads.find({name, ++operand})) {
    writeBytes(to, 1, found->second);
    edit.reads.erase(found);
  }
  damaged |= node.damaged();
  return to;
}

std::string editedGraph(WireReader graph, GraphEdit &edit, unsigned depth, bool &damaged) {
  std::string to;
  if (depth > maxDepth)
    damaged = true;
  while (!damaged && graph.next())
    if (graph.field == 1 && graph.bytes)
      writeBytes(to, 1, editedNode(graph.inside(), edit, depth, damaged));
    else if (graph.field == 5 && graph.bytes)
      writeBytes(to, 5, editedTensor(graph.inside(), edit, damaged));
    else
      to += graph.raw();
  damaged |= graph.damaged();
  if (depth == 0)
    for (const std::string &initializer : edit.initializers)
      writeBytes(to, 5, initializer);
  return to;
}

} // namespace

Expected<std::map<std::string, InitializerPlace>> findInitializers(std::span<const uint8_t> file) {
  PlaceFinder finder;
  WireReader model(file, 0, file.size());
  while (model.next())
    if (model.field == 7 && model.bytes)
      LOWTIDE_TRY(finder.read(model.inside()));
  if (model.damaged())
    return badInput("is not an ONNX model, or damaged");
  finder.nameInner();
  return std::move(finder.places);
}

std::string writeInitializer(const std::string &name, const InitializerPlace &place, std::span<const uint8_t> values) {
  std::string to;
  for (uint64_t dim : place.dims)
    writeNumber(to, 1, dim);
  writeNumber(to, 2, place.onnxType);
  writeBytes(to, 8, name);
  writeBytes(to, 9, {reinterpret_cast<const char *>(values.data()), values.size()});
  return to;
}

Expected<std::vector<uint8_t>> editGraph(std::span<const uint8_t> file, GraphEdit &edit) {
  std::string to;
  bool damaged = false;
  WireReader model(file, 0, file.size());
  while (!damaged && model.next())
    if (model.field == 7 && model.bytes)
      writeBytes(to, 7, editedGraph(model.inside(), edit, 0, damaged));
    else
      to += model.raw();
  if (damaged || model.damaged())
    return badInput("is not an ONNX model, or damaged");
  return std::vector<uint8_t>(to.begin(), to.end());
}

} // namespace lowtide::rt

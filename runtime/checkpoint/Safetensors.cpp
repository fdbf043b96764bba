//===- Safetensors.cpp - named tensors in one file -------------------------===//

#include "runtime/checkpoint/Safetensors.h"

#include "runtime/CheckedMath.h"
#include "runtime/Element.h"
#include "runtime/Json.h"
#include "runtime/MappedFile.h"
#include "runtime/checkpoint/OutputFile.h"

#include <algorithm>
#include <cstring>

namespace lowtide::rt {

using Json = nlohmann::ordered_json;

static constexpr std::string_view metadataName = "__metadata__";

/// `__metadata__`, with any number of further underscores.
static bool isLikeMetadata(std::string_view name) {
  return name.starts_with(metadataName) && name.find_first_not_of('_', metadataName.size()) == name.npos;
}

Status writeSafetensors(const std::string &path, const std::vector<SafetensorsEntry> &entries,
                        const std::map<std::string, std::string> &metadata) {
  Json header = Json::object();
  if (!metadata.empty())
    header[metadataName] = metadata;
  uint64_t offset = 0;
  for (const SafetensorsEntry &entry : entries) {
    const std::string name = isLikeMetadata(entry.name) ? entry.name + "_" : entry.name;
    if (header.contains(name))
      return Status(StatusCode::Internal, "tensor '" + printable(entry.name) + "' is written twice", path);
    header[name] = {
        {"dtype", dtypeName(entry.dtype)}, {"shape", entry.dims}, {"data_offsets", {offset, offset + entry.bytes}}};
    offset += entry.bytes;
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.append(alignUp(text.size(), 8) - text.size(), ' ');
  Expected<OutputFile> file = OutputFile::create(path);
  if (!file)
    return file.takeStatus();
  uint8_t length[8];
  for (int i = 0; i < 8; ++i)
    length[i] = static_cast<uint8_t>(text.size() >> (8 * i));
  LOWTIDE_TRY(file->write(length, sizeof length));
  LOWTIDE_TRY(file->write(text.data(), text.size()));
  for (const SafetensorsEntry &entry : entries) {
    uint64_t written = 0;
    LOWTIDE_TRY(entry.write([&](const void *data, size_t bytes) {
      written += bytes;
      return file->write(data, bytes);
    }));
    if (written != entry.bytes)
      return Status(StatusCode::Internal, "tensor '" + printable(entry.name) + "' wrote another size than announced",
                    path);
  }
  return file->close();
}

Expected<std::vector<NamedArray>> parseSafetensors(std::span<const uint8_t> file, std::shared_ptr<const void> owner) {
  if (file.size() < 8)
    return badInput("a safetensors file of " + std::to_string(file.size()) + " bytes is shorter than its length field");
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;)
    length = length << 8 | file[i];
  if (length > 100'000'000 || length > file.size() - 8)
    return badInput("safetensors header of " + std::to_string(length) + " bytes is too long or truncated");
  Expected<nlohmann::json> header = parseJson({reinterpret_cast<const char *>(file.data()) + 8, length});
  if (!header)
    return header.takeStatus().at("safetensors header");
  if (!header->is_object() || header->size() > 1'000'000)
    return badInput("the safetensors header is not an object of at most a million tensors");
  std::span<const uint8_t> data = file.subspan(8 + length);
  struct Extent {
    uint64_t begin, end;
  };
  std::vector<Extent> extents;
  std::vector<NamedArray> arrays;
  for (const auto &[name, value] : header->items()) {
    if (name == metadataName)
      continue;
    std::string where = "tensor '" + printable(name) + "'";
    bool formed = value.is_object() && value.size() == 3 && value.contains("dtype") && value["dtype"].is_string() &&
                  value.contains("shape") && value["shape"].is_array() && value["shape"].size() <= 16 &&
                  value.contains("data_offsets") && value["data_offsets"].is_array() &&
                  value["data_offsets"].size() == 2 && value["data_offsets"][0].is_number_unsigned() &&
                  value["data_offsets"][1].is_number_unsigned();
    if (!formed || name.size() > 4096)
      return badInput("is not described by dtype, shape and two data_offsets", where);
    NamedArray entry;
    entry.name = isLikeMetadata(name) ? name.substr(0, name.size() - 1) : name;
    entry.array.dtype = dtypeFromName(value["dtype"].get<std::string>());
    if (entry.array.dtype == plan::DTYPE_UNSPECIFIED)
      return badInput("dtype '" + printable(value["dtype"].get<std::string>()) + "' is unknown", where);
    Checked bytes = elementBytes(entry.array.dtype);
    for (const nlohmann::json &dim : value["shape"]) {
      if (!dim.is_number_unsigned() || dim.get<uint64_t>() >> 62)
        return badInput("a dimension is negative, too large or no integer", where);
      bytes *= dim.get<uint64_t>();
      entry.array.dims.push_back(static_cast<int64_t>(dim.get<uint64_t>()));
    }
    uint64_t begin = value["data_offsets"][0].get<uint64_t>(), end = value["data_offsets"][1].get<uint64_t>();
    if (begin > end || end > data.size() || bytes.get() != end - begin)
      return badInput(
          "offsets " + std::to_string(begin) + "–" + std::to_string(end) + " do not fit its shape or the file", where);
    entry.array.bytes = data.subspan(begin, end - begin);
    entry.array.owner = owner;
    extents.push_back({begin, end});
    arrays.push_back(std::move(entry));
  }
  std::sort(extents.begin(), extents.end(),
            [](const Extent &a, const Extent &b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; });
  uint64_t position = 0;
  for (const Extent &extent : extents) {
    if (extent.begin != position)
      return badInput("the tensors overlap or leave gaps");
    position = extent.end;
  }
  if (position != data.size())
    return badInput("bytes after the last tensor");
  return arrays;
}

Expected<std::map<std::string, HostArray>> readSafetensors(const std::string &path) {
  Expected<MappedFile> mapped = MappedFile::open(path);
  if (!mapped)
    return mapped.takeStatus();
  auto file = std::make_shared<MappedFile>(std::move(*mapped));
  Expected<std::vector<NamedArray>> parsed = parseSafetensors(file->bytes(), file);
  if (!parsed)
    return parsed.takeStatus().at(path);
  std::map<std::string, HostArray> arrays;
  for (NamedArray &entry : *parsed)
    arrays.emplace(entry.name, std::move(entry.array));
  return arrays;
}

} // namespace lowtide::rt

//===- Dataset.cpp - the user's arrays, found and opened -------------------===//

#include "runtime/data/Dataset.h"

#include "runtime/MappedFile.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <glob.h>
#include <sys/stat.h>

namespace lowtide::rt {

std::vector<int64_t> DataArray::dims() const {
  std::vector<int64_t> result = parts[0].array.dims;
  if (!result.empty())
    result[0] = rows();
  return result;
}

int64_t DataArray::rows() const {
  const Part &last = parts.back();
  return last.array.dims.empty() ? 1 : last.firstRow + last.array.dims[0];
}

const DataArray::Part &DataArray::partOf(int64_t row) const {
  auto after = std::upper_bound(parts.begin(), parts.end(), row,
                                [](int64_t number, const Part &part) { return number < part.firstRow; });
  return *(after - 1);
}

namespace {

std::string nameOf(const std::string &path) { return path.substr(path.rfind('/') + 1); }
std::string stem(const std::string &path) { return nameOf(path).substr(0, nameOf(path).find('.')); }
bool endsIn(const std::string &text, const char *end) { return text.ends_with(end); }

bool isFile(const std::string &path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0;
}

Expected<std::vector<std::string>> expand(const std::string &pattern) {
  if (pattern.find_first_of("*?[") == std::string::npos || isFile(pattern))
    return std::vector<std::string>{pattern};
  glob_t found = {};
  int result = ::glob(pattern.c_str(), 0, nullptr, &found); // sorted
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + (result == 0 ? found.gl_pathc : 0));
  ::globfree(&found);
  if (paths.empty())
    return ioError("no file matches", pattern);
  return paths;
}

bool isThere(const std::string &pattern) {
  Expected<std::vector<std::string>> paths = expand(pattern);
  return paths && isFile(paths->front());
}

/// Takes the array's name off an item: what stands before '=', unless that belongs to a path (`fold=3/train.npz`).
std::string takeName(std::string &item) {
  const size_t equals = item.find('=');
  if (equals == std::string::npos || (!isThere(item.substr(equals + 1)) && isThere(item)))
    return {};
  std::string name = item.substr(0, equals);
  item = item.substr(equals + 1);
  return name;
}

/// Tokens without a header: what the name says they are.
plan::DType rawTokens(const std::string &path) {
  static constexpr struct {
    const char *end;
    plan::DType dtype;
  } table[] = {{".bin", plan::U16}, {".u8", plan::U8},   {".u16", plan::U16}, {".u32", plan::U32}, {".u64", plan::U64},
               {".i8", plan::I8},   {".i16", plan::I16}, {".i32", plan::I32}, {".i64", plan::I64}};
  for (const auto &row : table)
    if (endsIn(path, row.end))
      return row.dtype;
  return plan::DTYPE_UNSPECIFIED;
}

class Reader {
public:
  Status addFile(const std::string &name, const std::string &path);
  Dataset dataset;

private:
  Status put(const std::string &key, HostArray array, const std::string &path);

  uint64_t inflatable_ = freeMemory();
};

Status Reader::put(const std::string &key, HostArray array, const std::string &path) {
  const std::string where = path + ": array '" + printable(key) + "'";
  DataArray &all = dataset.arrays[key];
  if (all.parts.empty()) {
    all.parts.push_back({std::move(array), 0, path});
    return Status::ok();
  }
  const DataArray::Part &first = all.parts[0], &last = all.parts.back();
  for (const DataArray::Part &part : all.parts)
    if (part.file == path)
      return badInput("is given twice", where);
  const auto &rows = array.dims, &others = first.array.dims;
  if (array.dtype != first.array.dtype || array.imageBytes != first.array.imageBytes || rows.empty() ||
      rows.size() != others.size() || !std::equal(rows.begin() + 1, rows.end(), others.begin() + 1))
    return badInput("is " + describe(array.dtype, rows) + ", in " + first.file + " " +
                        describe(first.array.dtype, others) +
                        "; files that are one data set agree in type and in all dimensions but the first",
                    where);
  if (last.firstRow > INT64_MAX - last.array.dims[0] - rows[0])
    return badInput("has too many rows", where);
  all.parts.push_back({std::move(array), last.firstRow + last.array.dims[0], path});
  return Status::ok();
}

Status Reader::addFile(const std::string &name, const std::string &path) {
  Expected<MappedFile> mapped = MappedFile::open(path);
  if (!mapped)
    return mapped.takeStatus();
  auto file = std::make_shared<MappedFile>(std::move(*mapped));
  std::span<const uint8_t> bytes = file->bytes();
  auto starts = [&](const char *magic, size_t size) {
    return bytes.size() >= size && std::memcmp(bytes.data(), magic, size) == 0;
  };
  if (starts("PK", 2)) {
    Expected<std::vector<NamedArray>> arrays = parseNpz(bytes, file, &inflatable_);
    if (!arrays)
      return arrays.takeStatus().at(path);
    for (NamedArray &entry : *arrays)
      LOWTIDE_TRY(put(name.empty() ? entry.name : name + "." + entry.name, std::move(entry.array), path));
    return Status::ok();
  }
  int32_t magic = 0;
  if (bytes.size() >= 4)
    std::memcpy(&magic, bytes.data(), 4);
  const bool hasHeader = magic == 20240520 || magic == 20240801, isNpy = starts("\x93NUMPY", 6);
  // An idx file states its size exactly; raw tokens may begin with zeros, too.
  const bool isIdx = starts("\0\0", 2) && parseIdx(bytes, file);
  const plan::DType raw = isNpy || isIdx ? plan::DTYPE_UNSPECIFIED : rawTokens(path);
  const bool isShard = hasHeader || raw != plan::DTYPE_UNSPECIFIED;
  Expected<HostArray> array =
      isNpy       ? parseNpy(bytes, file)
      : hasHeader ? parseTokenShard(bytes, file)
      : isShard   ? parseRawTokens(bytes, raw, file)
      : starts("\0\0", 2)
          ? parseIdx(bytes, file)
          : Expected<HostArray>(badInput("is none of .npy, .npz, idx and token shard (raw tokens end in "
                                         ".bin or .u16: uint16, or in .u8, .u32, .u64, .i8, .i16, .i32, .i64)"));
  if (!array)
    return array.takeStatus().at(path);
  if (isShard && name.empty()) {
    dataset.shards.push_back({std::move(*array), 0, path});
    return Status::ok();
  }
  return put(name.empty() ? stem(path) : name, std::move(*array), path);
}

Expected<std::vector<std::string>> split(const std::string &spec, const char *flag) {
  std::vector<std::string> items;
  for (size_t at = 0; at <= spec.size();) {
    size_t comma = std::min(spec.find(',', at), spec.size());
    items.push_back(spec.substr(at, comma - at));
    at = comma + 1;
    if (items.back().empty())
      return Status(StatusCode::Usage, "empty name in " + std::string(flag) + "=" + printable(spec));
  }
  return items;
}

Status readScales(const std::string &text, Dataset &dataset) {
  if (text.empty())
    return Status::ok();
  Expected<std::vector<std::string>> items = split(text, "--scale");
  if (!items)
    return items.takeStatus();
  for (const std::string &item : *items) {
    size_t colon = item.rfind(':');
    if (colon == std::string::npos || colon == 0)
      return {StatusCode::Usage, "--scale=" + printable(item) + " names no array; write --scale=ARRAY:1/255"};
    Expected<Scale> scale = Scale::parse(item.substr(colon + 1));
    if (!scale)
      return scale.takeStatus().at("--scale");
    if (!dataset.scales.emplace(item.substr(0, colon), *scale).second)
      return {StatusCode::Usage, "--scale names array '" + printable(item.substr(0, colon)) + "' twice"};
  }
  return Status::ok();
}

/// A file and the name that its array gets, or synthetic data.
struct Item {
  std::string name, path;
  std::optional<uint64_t> synthetic;
};

Expected<std::vector<Item>> listItems(const std::string &spec) {
  // A path may hold commas, too.
  Expected<std::vector<std::string>> items =
      isFile(spec) ? Expected<std::vector<std::string>>({spec}) : split(spec, "--data");
  if (!items)
    return items.takeStatus();
  std::vector<Item> list;
  for (std::string item : *items) {
    if (item == "synthetic" || item.rfind("synthetic:", 0) == 0) {
      uint64_t seed = 0;
      if (item.size() > 9) {
        auto [end, error] = std::from_chars(item.data() + 10, item.data() + item.size(), seed);
        if (error != std::errc() || end != item.data() + item.size())
          return Status(StatusCode::Usage, "'" + printable(item) + "' does not end in a seed");
      }
      list.push_back({{}, {}, seed});
      continue;
    }
    const std::string name = takeName(item);
    Expected<std::vector<std::string>> paths = expand(item);
    if (!paths)
      return paths.takeStatus();
    for (std::string &path : *paths)
      list.push_back({name, std::move(path), std::nullopt});
  }
  return list;
}

constexpr std::string_view streamPrefix = "pipe:";

} // namespace

std::vector<std::string> Dataset::listFiles(const std::string &spec) {
  std::vector<std::string> paths;
  if (spec.empty() || spec.starts_with(streamPrefix))
    return paths;
  if (Expected<std::vector<Item>> items = listItems(spec))
    for (Item &item : *items)
      if (!item.synthetic)
        paths.push_back(std::move(item.path));
  return paths;
}

Expected<Dataset> Dataset::open(const std::string &spec, const std::string &scales) {
  Reader reader;
  // A command may hold commas.
  if (spec.starts_with(streamPrefix)) {
    if (spec.find_first_not_of(' ', streamPrefix.size()) == std::string::npos)
      return Status(StatusCode::Usage, "--data=pipe: names no program; write --data='pipe:python3 batches.py'");
    reader.dataset.stream = std::make_shared<BatchStream>(spec.substr(streamPrefix.size()));
    LOWTIDE_TRY(readScales(scales, reader.dataset));
    return std::move(reader.dataset);
  }
  Expected<std::vector<Item>> items = listItems(spec);
  if (!items)
    return items.takeStatus();
  for (const Item &item : *items) {
    if (item.synthetic)
      reader.dataset.synthetic = item.synthetic;
    else
      LOWTIDE_TRY(reader.addFile(item.name, item.path));
  }
  Dataset &dataset = reader.dataset;
  if (dataset.synthetic && (!dataset.arrays.empty() || !dataset.shards.empty()))
    return Status(StatusCode::Usage, "synthetic data and files cannot be mixed");
  LOWTIDE_TRY(readScales(scales, dataset));
  return std::move(dataset);
}

} // namespace lowtide::rt

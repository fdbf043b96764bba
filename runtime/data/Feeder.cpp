//===- Feeder.cpp - batches from arrays and token shards -------------------===//

#include "runtime/data/Feeder.h"

#include "runtime/RandomInit.h"
#include "runtime/ShellQuote.h"
#include "runtime/Verify.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace lowtide::rt {

static std::string bindingText(const plan::Binding &binding) {
  return describe(binding.dtype(), std::span(binding.dims().data(), static_cast<size_t>(binding.dims_size())));
}

uint64_t permuted(uint64_t index, uint64_t count, uint64_t seed) {
  if (count <= 1)
    return 0;
  // A Feistel network permutes the smallest square power of two that holds `count`; positions outside are walked on
  // until one falls inside (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
  unsigned half = 1;
  while ((uint64_t(1) << (2 * half)) < count)
    ++half;
  uint64_t mask = (uint64_t(1) << half) - 1;
  do {
    uint64_t left = index >> half, right = index & mask;
    for (uint64_t round = 0; round < 6; ++round) {
      uint64_t next = left ^ (counterRandom(seed + round * 0x632be59bd9b4e019, right) & mask);
      left = right, right = next;
    }
    index = left << half | right;
  } while (index >= count);
  return index;
}

Expected<Feeder> Feeder::create(const Dataset &dataset, const Session &session, const std::string &entryName,
                                std::optional<uint64_t> shuffleSeed, std::vector<std::string> &notes, Least least) {
  Feeder feeder;
  const plan::Entry *entry = session.artifact().entry(entryName);
  if (!entry)
    return Status(StatusCode::Usage, "no entry '" + printable(entryName) + "'");
  feeder.batch_ = std::max<int64_t>(entry->batch(), 1);
  feeder.shuffle_ = shuffleSeed;
  feeder.synthetic_ = dataset.synthetic;
  std::vector<Tensor> tensors = session.tensors(entryName, plan::Binding::BATCH);
  for (const auto &[name, scale] : dataset.scales)
    if (std::none_of(tensors.begin(), tensors.end(),
                     [&](const Tensor &tensor) { return tensor.binding->name() == name; }))
      return Status(StatusCode::Usage, "--scale names '" + printable(name) + "', which is no array that entry '" +
                                           printable(entryName) + "' reads");
  if (dataset.synthetic) {
    for (const Tensor &tensor : tensors)
      feeder.addColumn({.tensor = tensor, .array = {}, .conversion = {}});
    return feeder;
  }
  if (dataset.stream) {
    LOWTIDE_TRY(feeder.addStream(dataset, tensors, notes));
    return feeder;
  }
  if (!dataset.shards.empty())
    LOWTIDE_TRY(feeder.addShards(tensors, dataset.shards));
  else
    LOWTIDE_TRY(feeder.addArrays(dataset, tensors, notes));
  if (feeder.rows_ == 0 && !dataset.shards.empty()) {
    const int64_t time = feeder.columns_[0].rowElements;
    return badInput("holds " + std::to_string(dataset.shards[0].array.dims[0]) + " tokens, and a sample takes " +
                        std::to_string(time + 1) + ": " + std::to_string(time) + " and the next one" +
                        (dataset.shards.size() > 1 ? "; no other file holds as many" : ""),
                    dataset.shards[0].file);
  }
  if (feeder.rows_ < (least == Least::OneRow ? 1 : feeder.batch_))
    return badInput(feeder.rows_ == 0 ? "the data have no samples"
                                      : "the data have " + std::to_string(feeder.rows_) +
                                            (feeder.rows_ == 1 ? " sample" : " samples") + ", a batch takes " +
                                            std::to_string(feeder.batch_) + ": give more, or compile with --batch=" +
                                            std::to_string(feeder.rows_) + (feeder.rows_ == 1 ? "" : " or less"));
  return feeder;
}

void Feeder::addColumn(Column column) {
  constexpr uint64_t alignment = 64;
  column.offset = batchBytes_;
  batchBytes_ += (column.tensor.bytes() + alignment - 1) / alignment * alignment;
  columns_.push_back(std::move(column));
}

Status Feeder::addStream(const Dataset &dataset, const std::vector<Tensor> &tensors, std::vector<std::string> &notes) {
  stream_ = dataset.stream;
  std::string arrays;
  for (const Tensor &tensor : tensors) {
    const std::string &name = tensor.binding->name();
    Column column{.tensor = tensor, .array = {}, .conversion = {}};
    if (auto asked = dataset.scales.find(name); asked != dataset.scales.end())
      column.scale = asked->second;
    arrays += (arrays.empty() ? "" : ", then ") + ("'" + printable(name) + "' ") + bindingText(*tensor.binding);
    addColumn(std::move(column));
  }
  notes.push_back("a batch of the program is " + (arrays.empty() ? "nothing" : arrays));
  return Status::ok();
}

/// An argument of `numpy.savez`: names of a file need not be names of Python.
static std::string asKeyword(const std::string &name) {
  auto isLetter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; };
  auto isPlain = [&](char c) { return isLetter(c) || std::isdigit(static_cast<unsigned char>(c)); };
  if (!name.empty() && isLetter(name[0]) && std::all_of(name.begin(), name.end(), isPlain))
    return name + "=…";
  return "**{'" + printable(name) + "': …}";
}

Status Feeder::addArrays(const Dataset &dataset, const std::vector<Tensor> &tensors, std::vector<std::string> &notes) {
  std::string available;
  for (const auto &[name, array] : dataset.arrays)
    available += (available.empty() ? "" : ", ") + printable(name) + " " + describe(array.dtype(), array.dims());
  for (const Tensor &tensor : tensors) {
    const plan::Binding &binding = *tensor.binding;
    auto it = dataset.arrays.find(binding.name());
    if (it == dataset.arrays.end())
      return badInput("the data have no array '" + printable(binding.name()) + "', which the model reads as " +
                      bindingText(binding) + "; they have: " + (available.empty() ? "nothing" : available) +
                      "; arrays go by the model's names: numpy.savez('data.npz', " + asKeyword(binding.name()) +
                      "), or --data=" + quoteForShell(binding.name() + "=FILE.npy"));
    if (Status status = addArray(tensor, it->second, dataset, notes); !status.isOk())
      return std::move(status).at(it->second.parts[0].file + ": array '" + printable(binding.name()) + "'");
  }
  for (const auto &[name, array] : dataset.arrays)
    if (std::none_of(tensors.begin(), tensors.end(),
                     [&](const Tensor &tensor) { return tensor.binding->name() == name; }))
      notes.push_back("array '" + printable(name) + "' is not read by this entry");
  return Status::ok();
}

/// What to type where a sample has the elements of the model's in another shape; empty where it has others.
static std::string adviseShape(const std::vector<int64_t> &dims, const plan::Binding &binding) {
  const std::vector<int64_t> wanted(binding.dims().begin() + 1, binding.dims().end());
  if (dims.empty())
    return "";
  std::vector<int64_t> given(dims.begin() + 1, dims.end()), sorted = wanted;
  if (given.size() == wanted.size()) {
    std::sort(given.begin(), given.end());
    std::sort(sorted.begin(), sorted.end());
    return given == sorted ? "; its dimensions are in another order: save it with .transpose(…)" : "";
  }
  given.erase(std::remove(given.begin(), given.end(), 1), given.end());
  sorted.erase(std::remove(sorted.begin(), sorted.end(), 1), sorted.end());
  if (given != sorted)
    return "";
  std::string shape = "-1";
  for (int64_t dim : wanted)
    shape += ", " + std::to_string(dim);
  return "; save it with .reshape(" + shape + ")";
}

Status Feeder::addArray(const Tensor &tensor, const DataArray &array, const Dataset &dataset,
                        std::vector<std::string> &notes) {
  const plan::Binding &binding = *tensor.binding;
  const bool batched = binding.batch_dim() >= 0;
  const int batchDim = static_cast<int>(binding.batch_dim());
  const std::vector<int64_t> dims = array.dims();
  // Data have their samples first, wherever the model has them, or where it has them.
  auto fits = [&](int dim) {
    std::vector<int64_t> expected(binding.dims().begin(), binding.dims().end());
    if (batched) {
      expected.erase(expected.begin() + batchDim);
      expected.insert(expected.begin() + dim, dims.size() == expected.size() + 1 ? dims[static_cast<size_t>(dim)] : 0);
    }
    return dims == expected;
  };
  const bool isFirst = !(dataset.isBatch && batchDim > 0) && fits(0);
  const bool isInPlace = !isFirst && batchDim > 0 && array.parts.size() == 1 && fits(batchDim);
  const std::string found = "is " + describe(array.dtype(), dims) + ", the model reads " + bindingText(binding);
  if (!isFirst && !isInPlace)
    return badInput(found + (!batched ? ""
                             : batchDim == 0
                                 ? " per batch (the first dimension counts samples)" + adviseShape(dims, binding)
                                 : " per batch (dimension " + std::to_string(batchDim) +
                                       " counts samples; data may have them first instead)"));
  auto asked = dataset.scales.find(binding.name());
  const bool isImage = array.parts[0].array.imageBytes && isFloat(binding.dtype());
  const Scale scale = asked != dataset.scales.end() ? asked->second : isImage ? Scale{1, 255} : Scale{};
  Expected<Conversion> conversion = Conversion::create(array.dtype(), binding.dtype(), scale);
  if (!conversion)
    return {conversion.status().code(), found + "; " + conversion.status().message()};
  if (!conversion->isCopy())
    notes.push_back("array '" + printable(binding.name()) + "' is " +
                    (isFloat(array.dtype()) && elementBytes(binding.dtype()) < elementBytes(array.dtype())
                         ? "rounded"
                         : "converted") +
                    " from " + describe(array.dtype()) + " to " + describe(binding.dtype()) +
                    (scale.isOne() ? "" : " (times " + scale.str() + ")"));
  Column column{.tensor = tensor, .array = array, .conversion = *conversion};
  column.rowElements = 1;
  for (int d = 0; d < binding.dims_size(); ++d) {
    column.rowElements *= d == batchDim ? 1 : binding.dims(d); // the product of all dims fits: the verifier checked it
    column.pieces *= d < batchDim ? binding.dims(d) : 1;
  }
  if (batched) {
    const int64_t there = dims[static_cast<size_t>(isInPlace ? batchDim : 0)];
    column.samples = binding.dims(batchDim);
    column.inPlace = isInPlace ? there : 0;
    if (column.samples != batch_)
      return badInput("has " + std::to_string(column.samples) + " samples per batch, the entry " +
                      std::to_string(batch_));
    if (rows_ != INT64_MAX && rows_ != there)
      return badInput("has " + std::to_string(there) + " samples, the arrays before it " + std::to_string(rows_) +
                      ": rows of different samples would be paired");
    rows_ = there;
  }
  addColumn(std::move(column));
  return Status::ok();
}

Status Feeder::addShards(const std::vector<Tensor> &tensors, const std::vector<DataArray::Part> &shards) {
  readsTokens_ = true;
  if (tensors.empty() || tensors.size() > 2)
    return badInput("token shards feed one or two arrays (tokens, targets); the model reads " +
                    std::to_string(tensors.size()));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const plan::Binding &binding = *tensors[i].binding;
    bool fits = binding.dims_size() == 2 && binding.batch_dim() == 0 && binding.dims(0) == batch_ &&
                binding.dims(1) > 0 && (binding.dtype() == plan::I64 || binding.dtype() == plan::I32);
    if (!fits || binding.dims(1) != tensors[0].binding->dims(1))
      return badInput("array '" + printable(binding.name()) + "' is " + bindingText(binding) +
                      "; token shards feed integers [batch, time]");
    Column column{.tensor = tensors[i], .array = {shards}, .conversion = {}};
    column.rowElements = binding.dims(1);
    column.samples = batch_;
    column.shift = static_cast<int64_t>(i);
    rows_ = 0;
    for (DataArray::Part &shard : column.array.parts) {
      if (shard.array.dtype != shards[0].array.dtype)
        return badInput("tokens are " + describe(shard.array.dtype) + ", in " + shards[0].file + " " +
                            describe(shards[0].array.dtype),
                        shard.file);
      // A row is a window of tokens; the next token of its last one is in the same shard.
      shard.firstRow = rows_;
      rows_ += std::max<int64_t>(shard.array.dims[0] - 1, 0) / column.rowElements;
    }
    Expected<Conversion> conversion = Conversion::create(shards[0].array.dtype, binding.dtype());
    if (!conversion)
      return conversion.takeStatus();
    column.conversion = *conversion;
    addColumn(std::move(column));
  }
  return Status::ok();
}

int64_t Feeder::sourceRow(int64_t epoch, int64_t row) const {
  if (!shuffle_)
    return row;
  return static_cast<int64_t>(permuted(static_cast<uint64_t>(row), static_cast<uint64_t>(rows_),
                                       counterRandom(*shuffle_, static_cast<uint64_t>(epoch))));
}

Status Feeder::feedRows(int64_t step, int64_t epoch, int64_t first, uint8_t *slot, Share share) const {
  if (stream_)
    return share.part == 0 ? copyStream(step, slot) : Status::ok();
  for (const Column &column : columns_) {
    uint8_t *to = target(column, slot);
    if (synthetic_ || column.samples == 0) { // one piece
      if (share.part != 0)
        continue;
      if (synthetic_)
        synthesize(column, step, to);
      else
        LOWTIDE_TRY(copyRows(column, 0, 1, to));
      continue;
    }
    const int64_t begin = column.samples * share.part / share.parts;
    const int64_t end = column.samples * (share.part + 1) / share.parts;
    if (!shuffle_) {
      LOWTIDE_TRY(copy(column, first + begin, end - begin, to, begin));
      continue;
    }
    for (int64_t sample = begin; sample < end; ++sample)
      LOWTIDE_TRY(copy(column, sourceRow(epoch, first + sample), 1, to, sample));
  }
  return Status::ok();
}

Status Feeder::copyStream(int64_t step, uint8_t *slot) const {
  LOWTIDE_TRY(stream_->seek(step, columns_.size()));
  for (const Column &column : columns_) {
    const plan::Binding &binding = *column.tensor.binding;
    const BatchStream::Wanted wanted{binding.name(), binding.dtype(),
                                     std::span(binding.dims().data(), static_cast<size_t>(binding.dims_size())),
                                     column.scale};
    LOWTIDE_TRY(stream_->read(wanted, target(column, slot)));
  }
  return Status::ok();
}

void Feeder::deliver(const uint8_t *slot) const {
  for (const Column &column : columns_)
    if (column.tensor.bytes())
      std::memcpy(column.tensor.data, slot + column.offset, column.tensor.bytes());
}

Status Feeder::feedAgain(int64_t first, int64_t count) const {
  for (const Column &column : columns_) {
    if (column.samples == 0) {
      LOWTIDE_TRY(copyRows(column, 0, 1, column.tensor.data));
      continue;
    }
    for (int64_t sample = 0; sample < column.samples; sample += count)
      LOWTIDE_TRY(copy(column, first, std::min(count, column.samples - sample), column.tensor.data, sample));
  }
  return Status::ok();
}

Status Feeder::copy(const Column &column, int64_t row, int64_t rows, uint8_t *batch, int64_t sample) const {
  if (column.pieces > 1 || column.inPlace) {
    for (int64_t i = 0; i < rows; ++i)
      LOWTIDE_TRY(copyPieces(column, row + i, batch, sample + i));
    return Status::ok();
  }
  const uint64_t rowBytes = column.tensor.bytes() / static_cast<uint64_t>(column.samples);
  uint8_t *to = batch + static_cast<uint64_t>(sample) * rowBytes;
  if (!readsTokens_)
    return copyRows(column, row, rows, to);
  for (int64_t i = 0; i < rows; ++i)
    LOWTIDE_TRY(copyTokens(column, row + i, to + static_cast<uint64_t>(i) * rowBytes));
  return Status::ok();
}

/// What does not fit, and where it is.
static Status misfit(const Conversion &conversion, const DataArray::Part &part, const std::string &array, int64_t row,
                     const uint8_t *value) {
  return badInput("value " + elementText(conversion.from(), value) + " in row " + std::to_string(row) + " is no " +
                      describe(conversion.to()) + " that the model could read",
                  part.file + ": array '" + printable(array) + "'");
}

Status Feeder::copyRows(const Column &column, int64_t row, int64_t rows, uint8_t *to) const {
  const plan::DType from = column.conversion.from();
  const uint64_t written = elementBytes(column.conversion.to());
  while (rows > 0) {
    const DataArray::Part &part = column.array.partOf(row);
    // A scalar, and what is the same in every step, is one row whatever its dimensions are.
    const int64_t there = column.samples ? part.firstRow + part.array.dims[0] - row : 1;
    const int64_t now = std::min(rows, there), elements = now * column.rowElements;
    const uint8_t *source = part.array.bytes.data() +
                            static_cast<uint64_t>((row - part.firstRow) * column.rowElements) * elementBytes(from);
    int64_t done = column.conversion.convert(source, to, elements);
    if (done < elements)
      return misfit(column.conversion, part, column.tensor.binding->name(),
                    row - part.firstRow + done / column.rowElements,
                    source + static_cast<uint64_t>(done) * elementBytes(from));
    row += now, rows -= now;
    to += static_cast<uint64_t>(elements) * written;
  }
  return Status::ok();
}

Status Feeder::copyPieces(const Column &column, int64_t row, uint8_t *batch, int64_t sample) const {
  const DataArray::Part &part = column.inPlace ? column.array.parts[0] : column.array.partOf(row);
  const int64_t elements = column.rowElements / column.pieces;
  const uint64_t read = elementBytes(column.conversion.from()), written = elementBytes(column.conversion.to());
  for (int64_t piece = 0; piece < column.pieces; ++piece) {
    const int64_t at = column.inPlace ? piece * column.inPlace + row : (row - part.firstRow) * column.pieces + piece;
    const uint8_t *from = part.array.bytes.data() + static_cast<uint64_t>(at * elements) * read;
    uint8_t *to = batch + static_cast<uint64_t>((piece * column.samples + sample) * elements) * written;
    if (const int64_t done = column.conversion.convert(from, to, elements); done < elements)
      return misfit(column.conversion, part, column.tensor.binding->name(), row - part.firstRow,
                    from + static_cast<uint64_t>(done) * read);
  }
  return Status::ok();
}

Status Feeder::copyTokens(const Column &column, int64_t row, uint8_t *to) const {
  const DataArray::Part &shard = column.array.partOf(row);
  const int64_t first = (row - shard.firstRow) * column.rowElements + column.shift;
  const uint64_t size = elementBytes(column.conversion.from());
  const uint8_t *source = shard.array.bytes.data() + static_cast<uint64_t>(first) * size;
  int64_t done = column.conversion.convert(source, to, column.rowElements);
  if (done < column.rowElements)
    return badInput("token " + elementText(column.conversion.from(), source + static_cast<uint64_t>(done) * size) +
                        " at position " + std::to_string(first + done) + " is no " + describe(column.conversion.to()),
                    shard.file);
  return Status::ok();
}

} // namespace lowtide::rt

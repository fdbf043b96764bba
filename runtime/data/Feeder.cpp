//===- Feeder.cpp - batches from arrays, token shards or a counter ---------===//

#include "runtime/CheckedMath.h"
#include "runtime/Element.h"
#include "runtime/RandomInit.h"
#include "runtime/data/Dataset.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace lowtide::rt {
namespace {

template <typename From, typename To> void widen(const uint8_t *from, uint8_t *to, int64_t count, To scale = 1) {
  for (int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + static_cast<size_t>(i) * sizeof(From), sizeof value);
    To wide = static_cast<To>(value) * scale;
    std::memcpy(to + static_cast<size_t>(i) * sizeof(To), &wide, sizeof wide);
  }
}

/// The same in 16 bits.
template <typename From>
void narrow(plan::DType dtype, const uint8_t *from, uint8_t *to, int64_t count, double scale = 1) {
  for (int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + static_cast<uint64_t>(i) * sizeof(From), sizeof(From));
    storeElement(dtype, to + static_cast<uint64_t>(i) * elementBytes(dtype), static_cast<double>(value) * scale);
  }
}

std::string bindingText(const plan::Binding &binding) {
  return describe(binding.dtype(), std::span(binding.dims().data(), static_cast<size_t>(binding.dims_size())));
}

} // namespace

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
                                std::optional<uint64_t> shuffleSeed, std::vector<std::string> &notes) {
  Feeder feeder;
  const plan::Entry *entry = session.artifact().entry(entryName);
  if (!entry)
    return Status(StatusCode::Usage, "no entry '" + printable(entryName) + "'");
  feeder.batch_ = std::max<int64_t>(entry->batch(), 1);
  feeder.shuffle_ = shuffleSeed;
  feeder.synthetic_ = dataset.synthetic;
  std::vector<Tensor> tensors = session.tensors(entryName, plan::Binding::BATCH);
  for (const Tensor &tensor : tensors) {
    const plan::Binding &binding = *tensor.binding;
    if (binding.batch_dim() > 0)
      return Status(StatusCode::Unsupported,
                    "its samples are counted by dimension " + std::to_string(binding.batch_dim()) +
                        ", not by the first",
                    "batch array '" + printable(binding.name()) + "'");
  }
  if (dataset.synthetic) {
    for (const Tensor &tensor : tensors) {
      Column column;
      column.tensor = tensor;
      column.vocabulary = 2;
      feeder.columns_.push_back(std::move(column));
    }
    return feeder;
  }
  feeder.rows_ = INT64_MAX;
  if (!dataset.shards.empty()) {
    LOWTIDE_TRY(feeder.addShards(tensors, dataset.shards));
  } else {
    std::string available;
    for (const auto &[name, array] : dataset.arrays)
      available += (available.empty() ? "" : ", ") + printable(name) + " " + describe(array.dtype, array.dims);
    for (const Tensor &tensor : tensors) {
      const plan::Binding &binding = *tensor.binding;
      auto it = dataset.arrays.find(binding.name());
      if (it == dataset.arrays.end())
        return badInput("the data have no array '" + printable(binding.name()) + "', which the model reads as " +
                        bindingText(binding) + "; they have: " + (available.empty() ? "nothing" : available));
      if (Status status = feeder.addArray(tensor, it->second, notes); !status.isOk())
        return std::move(status).at("array '" + printable(binding.name()) + "'");
    }
    for (const auto &[name, array] : dataset.arrays) {
      bool used = std::any_of(tensors.begin(), tensors.end(),
                              [&](const Tensor &tensor) { return tensor.binding->name() == name; });
      if (!used)
        notes.push_back("array '" + printable(name) + "' is not read by this entry");
    }
  }
  if (feeder.rows_ < feeder.batch_)
    return badInput("the data have " + std::to_string(feeder.rows_) + " samples, a batch takes " +
                    std::to_string(feeder.batch_));
  return feeder;
}

Status Feeder::addArray(const Tensor &tensor, const HostArray &array, std::vector<std::string> &notes) {
  const plan::Binding &binding = *tensor.binding;
  bool batched = binding.batch_dim() == 0;
  bool shapeFits = array.dims.size() == static_cast<size_t>(binding.dims_size());
  for (size_t d = batched ? 1 : 0; shapeFits && d < array.dims.size(); ++d)
    shapeFits = array.dims[d] == binding.dims(static_cast<int>(d));
  if (!shapeFits)
    return badInput("is " + describe(array.dtype, array.dims) + ", the model reads " + bindingText(binding) +
                    (batched ? " per batch (the first dimension counts samples)" : ""));
  Column column;
  column.tensor = tensor;
  column.array = array;
  plan::DType from = array.dtype, to = binding.dtype();
  const bool isNarrow = to == plan::F16 || to == plan::BF16;
  if (from == to)
    column.conversion = Conversion::None;
  else if (from == plan::F32 && to == plan::F64)
    column.conversion = Conversion::ToF64;
  else if (from == plan::I32 && to == plan::I64)
    column.conversion = Conversion::ToI64;
  else if (from == plan::F32 && isNarrow)
    column.conversion = Conversion::Rounded;
  else if (array.imageBytes && isNarrow)
    column.conversion = Conversion::ImageRounded;
  else if (array.imageBytes && (to == plan::F32 || to == plan::F64))
    column.conversion = to == plan::F32 ? Conversion::ImageToF32 : Conversion::ImageToF64;
  else if (from == plan::U8 && to == plan::I64)
    column.conversion = Conversion::ToI64;
  else
    return badInput("is " + describe(from, {}) + ", the model reads " + describe(to, {}) +
                    "; only float32 to other floats and int32 to int64 are converted");
  if (column.conversion != Conversion::None)
    notes.push_back("array '" + printable(binding.name()) + "' is " + (isNarrow ? "rounded" : "converted") + " from " +
                    describe(from, {}) + " to " + describe(to, {}) + (array.imageBytes ? " (divided by 255)" : ""));
  column.rowElements = 1;
  for (int d = batched ? 1 : 0; d < binding.dims_size(); ++d)
    column.rowElements *= binding.dims(d); // the product of all dims fits: the verifier checked it
  if (batched) {
    column.samples = binding.dims(0);
    if (column.samples != batch_)
      return badInput("has " + std::to_string(column.samples) + " samples per batch, the entry " +
                      std::to_string(batch_));
    if (rows_ != INT64_MAX && rows_ != array.dims[0])
      return badInput("has " + std::to_string(array.dims[0]) + " samples, the arrays before it " +
                      std::to_string(rows_) + ": rows of different samples would be paired");
    rows_ = array.dims[0];
  }
  columns_.push_back(std::move(column));
  return Status::ok();
}

Status Feeder::addShards(const std::vector<Tensor> &tensors, const std::vector<HostArray> &shards) {
  shards_ = shards;
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
    Column column;
    column.tensor = tensors[i];
    column.conversion = binding.dtype() == plan::I64 ? Conversion::TokensToI64 : Conversion::TokensToI32;
    column.rowElements = binding.dims(1);
    column.samples = batch_;
    column.shift = static_cast<int64_t>(i);
    rows_ = 0;
    for (const HostArray &shard : shards) {
      column.shardStarts.push_back(rows_);
      rows_ += std::max<int64_t>(shard.dims[0] - 1, 0) / column.rowElements;
    }
    columns_.push_back(std::move(column));
  }
  return Status::ok();
}

int64_t Feeder::sourceRow(int64_t epoch, int64_t row) const {
  if (!shuffle_)
    return row;
  return static_cast<int64_t>(permuted(static_cast<uint64_t>(row), static_cast<uint64_t>(rows_),
                                       counterRandom(*shuffle_, static_cast<uint64_t>(epoch))));
}

void Feeder::feedRows(int64_t step, int64_t epoch, int64_t first) const {
  for (const Column &column : columns_) {
    if (synthetic_) {
      synthesize(column, step);
      continue;
    }
    if (column.samples == 0) {
      copyRow(column, 0, column.tensor.data, column.rowElements);
      continue;
    }
    uint64_t rowBytes = static_cast<uint64_t>(column.rowElements) * elementBytes(column.tensor.binding->dtype());
    if (!shuffle_ && shards_.empty()) {
      copyRow(column, sourceRow(epoch, first), column.tensor.data, column.rowElements * column.samples);
      continue;
    }
    for (int64_t sample = 0; sample < column.samples; ++sample) {
      uint8_t *to = column.tensor.data + static_cast<uint64_t>(sample) * rowBytes;
      if (shards_.empty())
        copyRow(column, sourceRow(epoch, first + sample), to, column.rowElements);
      else
        copyTokens(column, sourceRow(epoch, first + sample), to);
    }
  }
}

/// Elements starting at sample `row`.
void Feeder::copyRow(const Column &column, int64_t row, uint8_t *to, int64_t elements) const {
  const uint8_t *from =
      column.array.bytes.data() + static_cast<uint64_t>(row * column.rowElements) * elementBytes(column.array.dtype);
  switch (column.conversion) {
  case Conversion::ToF64:
    return widen<float, double>(from, to, elements);
  case Conversion::ToI64:
    return column.array.dtype == plan::U8 ? widen<uint8_t, int64_t>(from, to, elements)
                                          : widen<int32_t, int64_t>(from, to, elements);
  case Conversion::Rounded:
    return narrow<float>(column.tensor.binding->dtype(), from, to, elements);
  case Conversion::ImageRounded:
    return narrow<uint8_t>(column.tensor.binding->dtype(), from, to, elements, 1.0 / 255);
  case Conversion::ImageToF32:
    return widen<uint8_t, float>(from, to, elements, 1.0f / 255);
  case Conversion::ImageToF64:
    return widen<uint8_t, double>(from, to, elements, 1.0 / 255);
  default:
    std::memcpy(to, from, static_cast<uint64_t>(elements) * elementBytes(column.array.dtype));
  }
}

void Feeder::copyTokens(const Column &column, int64_t row, uint8_t *to) const {
  size_t shard = static_cast<size_t>(std::upper_bound(column.shardStarts.begin(), column.shardStarts.end(), row) -
                                     column.shardStarts.begin()) -
                 1;
  const HostArray &array = shards_[shard];
  int64_t first = (row - column.shardStarts[shard]) * column.rowElements + column.shift;
  const uint8_t *from = array.bytes.data() + static_cast<uint64_t>(first) * elementBytes(array.dtype);
  bool wide = column.conversion == Conversion::TokensToI64;
  if (array.dtype == plan::U16)
    return wide ? widen<uint16_t, int64_t>(from, to, column.rowElements)
                : widen<uint16_t, int32_t>(from, to, column.rowElements);
  return wide ? widen<uint32_t, int64_t>(from, to, column.rowElements)
              : widen<uint32_t, int32_t>(from, to, column.rowElements);
}

/// Normal numbers for floating-point arrays, 0 and 1 for integers: within any vocabulary or number of classes above
/// one.
void Feeder::synthesize(const Column &column, int64_t step) const {
  const plan::Binding &binding = *column.tensor.binding;
  uint64_t size = elementBytes(binding.dtype()), count = column.tensor.bytes() / size;
  uint64_t seed = counterRandom(*synthetic_, static_cast<uint64_t>(&column - columns_.data()));
  bool real = binding.dtype() == plan::F64 || binding.dtype() == plan::F32 || binding.dtype() == plan::F16 ||
              binding.dtype() == plan::BF16;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t bits = counterRandom(seed, static_cast<uint64_t>(step) * count + i);
    if (!real) {
      storeInteger(binding.dtype(), column.tensor.data + i * size,
                   static_cast<int64_t>(bits % static_cast<uint64_t>(column.vocabulary)));
      continue;
    }
    double u = (static_cast<double>(bits >> 32) + 0.5) * 0x1p-32, v = static_cast<double>(bits & 0xffffffff) * 0x1p-32;
    storeElement(binding.dtype(), column.tensor.data + i * size,
                 std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v));
  }
}

} // namespace lowtide::rt

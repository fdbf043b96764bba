//===- Dimensions.cpp - symbolic dimensions get numbers
//-------------------------------===//
//
// Everything after the importer has static shapes. A symbol is bound by name
// (`--dim`), through a whole input (`--shape`), or as the batch that all inputs
// share (`--batch`). What stays unbound is listed with an example to type.
//
//===----------------------------------------------------------------------===//

#include "Dimensions.h"

#include "TensorData.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lowtide;
using ::onnx::ValueInfoProto;

DimBinding::DimBinding(OnnxFile &file, const ImportOptions &options) : file(file) {
  for (const auto &[symbol, size] : options.dims)
    bind(symbol, size, "--dim");
  // A symbol that the model does not have is a typing mistake.
  llvm::StringMap<bool> known;
  for (const ValueInfoProto *input : getInputs())
    for (const auto &dim : input->type().tensor_type().shape().dim())
      if (dim.has_dim_param())
        known[dim.dim_param()] = true;
  for (const auto &[symbol, size] : options.dims) {
    if (known.contains(symbol))
      continue;
    std::string names;
    for (const auto &entry : known)
      names += (names.empty() ? "" : ", ") + entry.getKey().str();
    usageError("the inputs have no symbolic dimension " + quoteName(symbol),
               names.empty() ? "all input shapes are static" : "symbolic dimensions: " + names);
  }
  applyShapes(options);
  if (options.batch)
    applyBatch(*options.batch, options.batchOverrides);
}

void DimBinding::usageError(const Twine &message, const Twine &remedy) {
  file.getReport().error(Failure::Usage, message, remedy);
  valid = false;
}

std::vector<const ValueInfoProto *> DimBinding::getInputs() const {
  std::vector<const ValueInfoProto *> inputs;
  for (const ValueInfoProto &input : file.getModel().graph().input())
    if (!file.findInitializer(input.name()))
      inputs.push_back(&input);
  return inputs;
}

void DimBinding::bind(StringRef symbol, int64_t size, StringRef origin) {
  if (size < 1)
    return usageError(origin + ": dimension " + quoteName(symbol) + " must be at least 1, got " + Twine(size));
  auto [known, isNew] = symbols.try_emplace(symbol, size);
  if (!isNew && known->second != size)
    usageError(origin + ": dimension " + quoteName(symbol) + " is given as " + Twine(size) + " and as " +
               Twine(known->second));
}

void DimBinding::applyShapes(const ImportOptions &options) {
  std::vector<const ValueInfoProto *> inputs = getInputs();
  for (const auto &[name, shape] : options.shapes) {
    auto input = llvm::find_if(inputs, [&](const ValueInfoProto *value) { return value->name() == name; });
    if (input == inputs.end()) {
      std::string names;
      for (const ValueInfoProto *value : inputs)
        names += (names.empty() ? "" : ", ") + value->name();
      usageError("--shape: the model has no input " + quoteName(name), "inputs: " + names);
      continue;
    }
    shapes[name] = shape;
    for (int64_t size : shape)
      if (size < 1)
        usageError("--shape: input " + quoteName(name) + " has a dimension of " + Twine(size));
    if (!(*input)->type().tensor_type().has_shape())
      continue;
    const auto &stated = (*input)->type().tensor_type().shape();
    if (size_t(stated.dim_size()) != shape.size()) {
      usageError("--shape: input " + quoteName(name) + " has rank " + Twine(stated.dim_size()) + " in the file, " +
                 Twine(shape.size()) + " on the command line");
      continue;
    }
    for (auto [dim, size] : llvm::zip_equal(stated.dim(), shape)) {
      if (dim.has_dim_value() && dim.dim_value() != size)
        usageError("--shape: input " + quoteName(name) + " has a dimension of " + Twine(dim.dim_value()) +
                   " in the file, " + Twine(size) + " on the command line");
      else if (dim.has_dim_param() && !dim.dim_param().empty())
        bind(dim.dim_param(), size, "--shape");
    }
  }
}

void DimBinding::applyBatch(int64_t batch, bool overrides) {
  if (batch < 1)
    return usageError("--batch must be at least 1, got " + Twine(batch));
  std::string symbol;
  const ValueInfoProto *fixed = nullptr;
  bool nameless = false, fits = false;
  for (const ValueInfoProto *input : getInputs()) {
    const auto &shape = input->type().tensor_type().shape();
    if (shape.dim_size() == 0)
      continue;
    const auto &dim = shape.dim(0);
    if (dim.has_dim_value()) {
      fixed = input;
      fits |= dim.dim_value() == batch;
      continue;
    }
    nameless |= dim.dim_param().empty();
    if (!symbol.empty() && !dim.dim_param().empty() && symbol != dim.dim_param())
      return usageError("--batch: the inputs begin with different symbols, " + quoteName(symbol) + " and " +
                            quoteName(dim.dim_param()),
                        "bind each: --dim " + symbol + "=" + Twine(batch) + " --dim " + dim.dim_param() + "=…");
    if (!dim.dim_param().empty())
      symbol = dim.dim_param();
  }
  // A batch that the exporter fixed can only be confirmed.
  if (fixed && symbol.empty() && !nameless && !fits)
    return usageError("--batch=" + Twine(batch) + ": input " + quoteName(fixed->name()) +
                          " has a fixed first dimension of " +
                          Twine(fixed->type().tensor_type().shape().dim(0).dim_value()),
                      "export the model with a dynamic batch, or use its own");
  batchSize = batch;
  if (overrides)
    symbols.erase(symbol);
  if (!symbol.empty())
    bind(symbol, batch, "--batch");
}

std::optional<SmallVector<int64_t>> DimBinding::getInputShape(const ValueInfoProto &value) const {
  if (auto given = shapes.find(value.name()); given != shapes.end())
    return SmallVector<int64_t>(given->second.begin(), given->second.end());
  const auto &type = value.type().tensor_type();
  if (!type.has_shape())
    return std::nullopt;
  SmallVector<int64_t> dims;
  for (const auto &dim : type.shape().dim()) {
    if (dim.has_dim_value()) {
      dims.push_back(dim.dim_value());
      continue;
    }
    auto bound = symbols.find(dim.dim_param());
    if (bound != symbols.end())
      dims.push_back(bound->second);
    else if (dims.empty() && batchSize && dim.dim_param().empty())
      dims.push_back(*batchSize);
    else
      return std::nullopt;
  }
  return dims;
}

RankedTensorType DimBinding::getStatedType(const ValueInfoProto &value) const {
  if (!value.type().has_tensor_type() || !value.type().tensor_type().has_shape())
    return {};
  Type element = convertElementType(value.type().tensor_type().elem_type(), &file.getContext());
  SmallVector<int64_t> dims;
  for (const auto &dim : value.type().tensor_type().shape().dim()) {
    auto bound = symbols.find(dim.dim_param());
    if (dim.has_dim_value())
      dims.push_back(dim.dim_value());
    else if (dim.has_dim_param() && bound != symbols.end())
      dims.push_back(bound->second);
    else
      return {};
  }
  if (!element || !checkedElements(dims))
    return {};
  return RankedTensorType::get(dims, element);
}

std::vector<std::string> DimBinding::findUnbound() const {
  std::vector<std::string> unbound;
  llvm::StringMap<bool> listed;
  for (const ValueInfoProto *input : getInputs()) {
    if (getInputShape(*input))
      continue;
    const auto &type = input->type().tensor_type();
    bool nameless = !type.has_shape();
    for (const auto &dim : type.shape().dim()) {
      if (dim.has_dim_value() || symbols.contains(dim.dim_param()))
        continue;
      if (dim.dim_param().empty())
        nameless = true;
      else if (listed.try_emplace(dim.dim_param(), true).second)
        unbound.push_back("--dim " + dim.dim_param() + "=8");
    }
    if (nameless) {
      std::string shape;
      for (const auto &dim : type.shape().dim())
        shape += (shape.empty() ? "" : "x") + (dim.has_dim_value() ? std::to_string(dim.dim_value()) : "8");
      unbound.push_back("--shape " + input->name() + "=" + (shape.empty() ? "8x64" : shape));
    }
  }
  return unbound;
}

std::vector<std::string> lowtide::findUnboundDims(OnnxFile &file, const ImportOptions &options) {
  return DimBinding(file, options).findUnbound();
}

ImportOptions lowtide::bindExamples(OnnxFile &file, const ImportOptions &options) {
  ImportOptions bound = options;
  for (const std::string &example : findUnboundDims(file, options)) {
    auto [flag, binding] = StringRef(example).split(' ');
    auto [name, value] = binding.rsplit('=');
    SmallVector<StringRef> extents;
    value.split(extents, 'x');
    std::vector<int64_t> sizes(extents.size(), 1);
    for (auto [size, extent] : llvm::zip(sizes, extents))
      (void)extent.getAsInteger(10, size);
    if (flag == "--dim")
      bound.dims[name.str()] = sizes.front();
    else
      bound.shapes[name.str()] = sizes;
  }
  return bound;
}

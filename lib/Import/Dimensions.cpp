//===- Dimensions.cpp - symbolic dimensions get numbers
//-------------------------------===//
//
// Everything after the importer has static shapes. A symbol is bound by name
// (`--dim`), through a whole input (`--shape`), or as the batch that all inputs
// share (`--batch`). What stays unbound is listed with an example to type.
//
//===----------------------------------------------------------------------===//

#include "Dimensions.h"

#include "lowtide/OnnxModel/NodeNames.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "lowtide/Support/NameList.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lowtide;
using ::onnx::ValueInfoProto;

/// Elements of a tensor at most.
static constexpr int64_t mostElements = int64_t(1) << 40;

DimBinding::DimBinding(OnnxFile &file, const ImportOptions &options) : file(file) {
  for (const ValueInfoProto *input : getInputs())
    for (const auto &dim : input->type().tensor_type().shape().dim())
      if (std::optional<DimExpression> expression = DimExpression::parse(dim.dim_param()))
        derived.try_emplace(dim.dim_param(), std::move(*expression));
  // `s - 1` of what is returned: its name is printed like those of inputs.
  for (const ValueInfoProto &output : file.getModel().graph().output())
    for (const auto &dim : output.type().tensor_type().shape().dim())
      if (std::optional<DimExpression> expression = DimExpression::parse(dim.dim_param()))
        ofOutputs.try_emplace(dim.dim_param(), std::move(*expression));
  applyDims(options);
  applyShapes(options);
  if (options.batch && options.wholeBatch)
    applyOtherBatch(*options.batch, *options.wholeBatch);
  else if (options.batch)
    applyBatch(*options.batch);
  if (!valid)
    return;
  solve();
  if (valid)
    checkDerived();
  if (valid)
    checkSizes();
  batchSymbol = findBatchSymbol();
  if (batchSymbol.empty())
    findBatchLength(options.batch);
}

/// `2*h` of `2 * h`.
static std::string withoutBlanks(StringRef name) {
  std::string text = name.str();
  llvm::erase(text, ' ');
  return text;
}

void DimBinding::applyDims(const ImportOptions &options) {
  // A symbol that the model does not have is a typing mistake.
  std::vector<std::string> known;
  auto add = [&](StringRef name) {
    if (!name.empty() && !llvm::is_contained(known, name))
      known.push_back(name.str());
  };
  for (const ValueInfoProto *input : getInputs())
    for (const auto &dim : input->type().tensor_type().shape().dim())
      if (auto expression = derived.find(dim.dim_param()); expression == derived.end())
        add(dim.dim_param());
      else
        for (const std::string &symbol : expression->second.getSymbols())
          add(symbol);
  for (const auto &[name, size] : options.dims) {
    if (llvm::is_contained(known, name)) {
      bind(name, size, "--dim");
      continue;
    }
    auto isNamed = [&, &name = name](const auto &entry) {
      return withoutBlanks(entry.getKey()) == withoutBlanks(name);
    };
    if (auto output = llvm::find_if(ofOutputs, isNamed);
        output != ofOutputs.end() && llvm::all_of(output->second.getSymbols(), [&](const std::string &symbol) {
          return llvm::is_contained(known, symbol);
        }))
      derived.try_emplace(output->getKey(), output->second);
    if (auto expression = llvm::find_if(derived, isNamed); expression != derived.end()) {
      bind(expression->getKey(), size, "--dim");
      continue;
    }
    const std::vector<StringRef> names(known.begin(), known.end());
    usageError("the inputs have no symbolic dimension " + quoteName(name) + suggestName(name, names),
               names.empty() ? "all input shapes are static" : "symbolic dimensions: " + llvm::join(names, ", "));
  }
}

void DimBinding::solve() {
  // Each round may give the symbol that another equation lacks.
  for (bool isNew = true; isNew && valid;) {
    isNew = false;
    for (const Equation &equation : equations) {
      const DimExpression &expression = derived.find(equation.name)->second;
      SmallVector<StringRef> open;
      for (const std::string &symbol : expression.getSymbols())
        if (!symbols.contains(symbol))
          open.push_back(symbol);
      if (open.size() != 1)
        continue;
      const StringRef symbol = open.front();
      const std::string what = equation.origin + ": dimension " + quoteName(equation.name);
      DimExpression::Solution solution = expression.solve(symbol, equation.size, symbols);
      if (solution.size) {
        symbols[symbol] = *solution.size;
        isNew = true;
        continue;
      }
      if (solution.range) {
        usageError(what + " = " + Twine(equation.size) + " leaves " + quoteName(symbol) + " open: from " +
                       Twine(solution.range->first) + " to " + Twine(solution.range->second),
                   "bind it itself: --dim " + symbol + "=" + Twine(solution.range->first));
        break;
      }
      // As of a decoder's cache: its positions are those before and those that are read.
      llvm::StringMap<int64_t> empty = symbols;
      empty[symbol] = 0;
      const bool wouldBeEmpty = expression.evaluate(empty) == equation.size;
      std::string nearest;
      for (auto [value, size] : solution.nearest)
        nearest += (nearest.empty() ? "" : ", ") + std::to_string(value) + " with " + symbol.str() + "=" +
                   std::to_string(size);
      if (wouldBeEmpty)
        usageError(what + " cannot be " + Twine(equation.size) + ": " + quoteName(symbol) +
                       " would be 0, and no dimension is empty",
                   "export the model without what has this dimension (a decoder without its cache)" +
                       (nearest.empty() ? "" : "; possible are " + nearest));
      else
        usageError(what + " cannot be " + Twine(equation.size) + ": no whole " + quoteName(symbol) + " makes it so",
                   nearest.empty() ? "" : "possible are " + nearest);
      break;
    }
  }
}

void DimBinding::checkDerived() {
  for (const Equation &equation : equations) {
    std::optional<int64_t> size = derived.find(equation.name)->second.evaluate(symbols);
    if (size && *size != equation.size)
      return usageError(equation.origin + ": dimension " + quoteName(equation.name) + " is given as " +
                        Twine(equation.size) + ", and its symbols make it " + Twine(*size));
  }
  // `isKnown`: by rules that hold; those of an output may be an exporter's guess, of which only "empty" is taken.
  auto check = [&](const ValueInfoProto &value, const char *what, const llvm::StringMap<DimExpression> &expressions,
                   bool isKnown) {
    for (const auto &dim : value.type().tensor_type().shape().dim()) {
      auto expression = expressions.find(dim.dim_param());
      if (expression == expressions.end() || !valid)
        continue;
      std::string sizes;
      bool isBound = true;
      for (const std::string &symbol : expression->second.getSymbols()) {
        auto bound = symbols.find(symbol);
        isBound &= bound != symbols.end();
        if (isBound)
          sizes += (sizes.empty() ? "" : ", ") + symbol + "=" + std::to_string(bound->second);
      }
      std::optional<int64_t> size = expression->second.evaluate(symbols);
      if (isBound && (size ? *size < 1 : isKnown))
        usageError(what + quoteName(value.name()) + ": dimension " + quoteName(dim.dim_param()) +
                   (size ? " is " + std::to_string(*size) : " is no whole number") + " with " + sizes);
    }
  };
  for (const ValueInfoProto *input : getInputs())
    check(*input, "input ", derived, true);
  for (const ValueInfoProto &output : file.getModel().graph().output())
    check(output, "output ", ofOutputs, false);
}

void DimBinding::checkSizes() {
  for (const ValueInfoProto *input : getInputs()) {
    // Named are the dimensions that the options made.
    std::string names;
    std::vector<int64_t> sizes;
    for (const auto &dim : input->type().tensor_type().shape().dim()) {
      const std::optional<int64_t> bound = findSize(dim.dim_param());
      if (!dim.has_dim_value() && bound)
        names += (names.empty() ? "" : ", ") + dim.dim_param() + "=" + std::to_string(*bound);
      sizes.push_back(dim.has_dim_value() ? dim.dim_value() : bound.value_or(1));
    }
    const std::optional<int64_t> elements = checkedElements(sizes);
    if (!names.empty() && (!elements || *elements > mostElements))
      return usageError("input " + quoteName(input->name()) + " is too large with " + names +
                        ": a tensor holds at most 2^40 elements");
  }
}

std::optional<int64_t> DimBinding::findSize(StringRef name) const {
  if (auto bound = symbols.find(name); bound != symbols.end())
    return bound->second;
  auto expression = derived.find(name);
  if (expression == derived.end())
    return std::nullopt;
  if (std::optional<int64_t> size = expression->second.evaluate(symbols))
    return size;
  // Bound as a whole, with symbols that nothing else needs.
  auto equation = llvm::find_if(equations, [&](const Equation &equation) { return equation.name == name; });
  return equation == equations.end() ? std::nullopt : std::optional(equation->size);
}

void DimBinding::usageError(const Twine &message, const Twine &remedy) {
  file.getReport().error(FailureKind::Usage, message, remedy);
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
  if (derived.contains(symbol)) {
    for (const Equation &equation : equations)
      if (equation.name == symbol && equation.size != size)
        return usageError(origin + ": dimension " + quoteName(symbol) + " is given as " + Twine(size) + " and as " +
                          Twine(equation.size));
    equations.push_back({symbol.str(), size, origin.str()});
    return;
  }
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
    if (std::optional<int64_t> size = findSize(dim.dim_param()))
      dims.push_back(*size);
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
    std::optional<int64_t> bound = findSize(dim.dim_param());
    if (dim.has_dim_value())
      dims.push_back(dim.dim_value());
    else if (dim.has_dim_param() && bound)
      dims.push_back(*bound);
    else
      return {};
  }
  if (!element || !checkedElements(dims))
    return {};
  return RankedTensorType::get(dims, element);
}

std::vector<std::string> DimBinding::findUnbound(int64_t example) const {
  // Samples are few in an example, whatever the other sizes.
  llvm::StringMap<bool> counts;
  for (const ValueInfoProto *input : getInputs())
    if (const auto &shape = input->type().tensor_type().shape(); shape.dim_size())
      counts[shape.dim(0).dim_param()] = true;
  auto sizeOf = [&](StringRef symbol) { return std::to_string(counts.contains(symbol) ? 8 : example); };
  std::vector<std::string> unbound;
  llvm::StringMap<bool> listed;
  for (const ValueInfoProto *input : getInputs()) {
    if (getInputShape(*input))
      continue;
    const auto &type = input->type().tensor_type();
    bool nameless = !type.has_shape();
    for (const auto &dim : type.shape().dim()) {
      if (dim.has_dim_value() || findSize(dim.dim_param()))
        continue;
      if (auto expression = derived.find(dim.dim_param()); expression != derived.end()) {
        for (const std::string &symbol : expression->second.getSymbols())
          if (!symbols.contains(symbol) && listed.try_emplace(symbol, true).second)
            unbound.push_back("--dim " + symbol + "=" + sizeOf(symbol));
      } else if (dim.dim_param().empty())
        nameless = true;
      else if (listed.try_emplace(dim.dim_param(), true).second)
        unbound.push_back("--dim " + dim.dim_param() + "=" + sizeOf(dim.dim_param()));
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

std::vector<std::string> lowtide::findUnboundDims(OnnxFile &file, const ImportOptions &options, int64_t example) {
  return DimBinding(file, options).findUnbound(example);
}

ImportOptions lowtide::bindExamples(OnnxFile &file, const ImportOptions &options, int64_t example) {
  ImportOptions bound = options;
  for (const std::string &unbound : findUnboundDims(file, options, example)) {
    auto [flag, binding] = StringRef(unbound).split(' ');
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

//===- ImageImporter.cpp - how the file's evaluated tensors are computed ---------===//
//
// A file holds tensors that its exporter evaluated from parameters, their images. @model computes them. @export is that
// computation alone, and its results are what goes back into the file.
//
//===----------------------------------------------------------------------===//

#include "GraphImporter.h"

#include "lowtide/Dialect/ONNX/ONNX.h"
#include "lowtide/Interfaces/ExportNames.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowtide;

/// What a plan aligns buffers to, in bytes.
static constexpr uint64_t bufferAlignment = 64;
/// A plan has at most 64 entries, and this leaves enough of them to steps.
static constexpr size_t mostFunctions = 48;

namespace {
struct Image {
  uint64_t bytes = 0;
  /// What its readers read; of several, the file has no place for more than one.
  llvm::SmallSetVector<Value, 2> values;
};

/// A value of @model, and what it is computed from.
struct Computation {
  llvm::SmallSetVector<Operation *, 8> ops;
  llvm::SmallSetVector<BlockArgument, 4> arguments;

  void add(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      arguments.insert(argument);
    } else if (Operation *op = value.getDefiningOp(); op && ops.insert(op)) {
      op->walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (!op->isAncestor(operand.getParentBlock()->getParentOp()))
            add(operand);
      });
    }
  }
};
} // namespace

static StringRef getRole(func::FuncOp model, BlockArgument argument) {
  auto role = model.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "onnx.role");
  return role ? role.getValue() : StringRef();
}

void GraphImporter::importImages(func::FuncOp model) {
  llvm::MapVector<StringRef, Image> images;
  for (const ReplacedTensor &replaced : file.getUnfolded().replaced) {
    Image &image = images[replaced.tensor];
    image.bytes = replaced.bytes;
    for (const std::string &name : replaced.values)
      if (Value value = lookup(name))
        image.values.insert(value);
  }
  for (auto [i, info] : llvm::enumerate(infos)) {
    if (!info.viewOf)
      continue;
    Image &image = images[info.tensor];
    image.bytes = info.bytes;
    // Several uses of one view are one.
    auto isSame = [&, &info = info](const InitializerInfo &other) {
      return other.tensor == info.tensor && other.viewOf == info.viewOf && other.transposed == info.transposed;
    };
    if (llvm::none_of(infos.take_front(i), isSame))
      image.values.insert(infoValues[i]);
  }
  // A tensor may also be a parameter of its own.
  for (auto [i, info] : llvm::enumerate(infos))
    if (auto image = images.find(info.tensor); image != images.end() && !info.viewOf && infoValues[i])
      image->second.values.insert(infoValues[i]);

  llvm::MapVector<unsigned, llvm::SmallSetVector<Attribute, 2>> imagesOf;
  SmallVector<std::pair<StringAttr, const Image *>> computed;
  uint64_t largest = 0;
  for (auto &[tensor, image] : images) {
    StringAttr name = builder.getStringAttr(file.nameInFile(tensor));
    Computation computation;
    llvm::for_each(image.values, [&](Value value) { computation.add(value); });
    auto hasRole = [&](StringRef role) {
      return [model, role](BlockArgument argument) { return getRole(model, argument) == role; };
    };
    // What a batch is part of, the file does not hold.
    if (llvm::any_of(computation.arguments, hasRole("")))
      continue;
    for (BlockArgument argument : computation.arguments)
      imagesOf[argument.getArgNumber()].insert(name);
    // What no step changes stays as it is in the file.
    if (image.values.size() != 1 || llvm::all_of(computation.arguments, hasRole("constant")))
      continue;
    image.bytes = llvm::alignTo(image.bytes, bufferAlignment);
    computed.emplace_back(name, &image);
    largest = std::max(largest, image.bytes);
  }
  for (auto &[number, names] : imagesOf)
    model.setArgAttr(number, "onnx.image_initializers", builder.getArrayAttr(names.getArrayRef()));
  // All results of a function are alive at its end: no function needs more than the largest image, unless there were
  // too many of them (a weight that an exporter evaluated once for each step of a recurrence).
  auto findEnd = [&](size_t begin, uint64_t limit) {
    uint64_t bytes = computed[begin].second->bytes;
    size_t end = begin + 1;
    while (end < computed.size() && bytes + computed[end].second->bytes <= limit)
      bytes += computed[end++].second->bytes;
    return end;
  };
  auto countFunctions = [&](uint64_t limit) {
    size_t count = 0;
    for (size_t begin = 0; begin < computed.size(); begin = findEnd(begin, limit))
      ++count;
    return count;
  };
  uint64_t limit = largest;
  while (countFunctions(limit) > mostFunctions)
    limit *= 2;
  unsigned count = 0;
  for (size_t begin = 0, end = 0; begin < computed.size(); begin = end) {
    end = findEnd(begin, limit);
    SmallVector<std::pair<StringAttr, Value>> results;
    for (const auto &[name, image] : ArrayRef(computed).slice(begin, end - begin))
      results.emplace_back(name, image->values.front());
    buildExport(model, ++count, results);
  }
}

void GraphImporter::buildExport(func::FuncOp model, unsigned number, ArrayRef<std::pair<StringAttr, Value>> results) {
  Computation computation;
  for (const auto &[name, value] : results)
    computation.add(value);
  SmallVector<BlockArgument> arguments = computation.arguments.takeVector();
  llvm::sort(arguments, [](BlockArgument a, BlockArgument b) { return a.getArgNumber() < b.getArgNumber(); });

  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(model->getParentOfType<ModuleOp>().getBody());
  const auto argumentTypes = llvm::map_to_vector(arguments, [](BlockArgument argument) { return argument.getType(); });
  SmallVector<Type> resultTypes;
  SmallVector<DictionaryAttr> resultAttrs;
  for (const auto &[name, value] : results) {
    resultTypes.push_back(value.getType());
    resultAttrs.push_back(builder.getDictionaryAttr(
        builder.getNamedAttr("onnx.output", builder.getStringAttr(imageName(name.getValue().str())))));
  }
  auto function = func::FuncOp::create(builder, model.getLoc(), exportEntryName(number),
                                       builder.getFunctionType(argumentTypes, resultTypes));
  for (NamedAttribute attr : model->getDiscardableAttrs())
    function->setAttr(attr.getName(), attr.getValue());
  Block *block = function.addEntryBlock();
  IRMapping copies;
  for (auto [to, from] : llvm::zip_equal(block->getArguments(), arguments)) {
    copies.map(from, to);
    to.setLoc(from.getLoc());
    function.setArgAttrs(to.getArgNumber(), model.getArgAttrDict(from.getArgNumber()));
  }
  builder.setInsertionPointToEnd(block);
  for (Operation &op : model.getBody().front())
    if (computation.ops.contains(&op))
      builder.clone(op, copies);
  SmallVector<Value> values;
  for (const auto &[name, value] : results)
    values.push_back(copies.lookup(value));
  func::ReturnOp::create(builder, model.getLoc(), values);
  function.setAllResultAttrs(resultAttrs);
}

//===- Folds.cpp - parameters in another form
//------------------------------------------===//
//
// The exporter's optimizer evaluates what depends on no input: a transposed
// weight, a table gathered at constant positions, a norm's scale with two more
// dimensions. Such a tensor trains like the parameter as long as each element
// of it is one element of the parameter, and none occurs twice.
//
//===----------------------------------------------------------------------===//

#include "Classifier.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/NodeNames.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace mlir;
using namespace lowtide;

static bool isGathered(const TensorFacts &facts) {
  return operationName(facts.tensor->name()) == "embedding" ||
         llvm::any_of(facts.foldedFrom, [](const std::string &name) {
           StringRef operation = operationName(name);
           return operation == "embedding" || operation == "index" || operation == "gather" ||
                  operation == "index_select";
         });
}

/// Whether the tensor is what indices took, of which nothing says where.
static bool isIndexed(const TensorFacts &facts) {
  auto takes = [](StringRef name) {
    return llvm::is_contained({"index", "gather", "index_select", "take"}, operationName(name));
  };
  return takes(facts.tensor->name()) || llvm::any_of(facts.foldedFrom, takes);
}

/// Whether the program took some elements of what it is, or all of them: the bounds of a slice are not noted.
static bool isSliced(const TensorFacts &facts) {
  auto takes = [](StringRef name) { return llvm::is_contained({"slice", "select", "narrow"}, operationName(name)); };
  return takes(facts.tensor->name()) || llvm::any_of(facts.foldedFrom, takes);
}

/// Whether something else than parameters was joined with them: a buffer, a constant, a range, zeros. Arithmetic with
/// it has names of its own.
static bool joinsNumbers(const TensorFacts &facts, const Signature &signature) {
  auto isOther = [&](StringRef name) {
    const SignatureEntry *entry = signature.findTarget(name);
    return entry ? entry->kind != SignatureEntry::Parameter
                 : llvm::is_contained({"arange", "zeros", "lift_fresh_copy"}, operationName(name));
  };
  return (isJoin(facts.tensor->name()) || llvm::any_of(facts.foldedFrom, isJoin)) &&
         llvm::any_of(facts.foldedFrom, isOther);
}

/// Whether two rows (innermost dimension) of the tensor are equal while the
/// tensor as a whole is not constant.
static bool repeatsRows(const ModelView &file, const ::onnx::TensorProto &tensor) {
  if (tensor.dims_size() < 2 || isConstantValued(file, tensor).value_or(true))
    return false;
  std::string bytes = file.tryReadInitializer(tensor.name()).value_or("");
  const ElementType *type = findElementType(tensor.data_type());
  size_t row = size_t(tensor.dims(tensor.dims_size() - 1)) * type->bytes;
  if (row <= type->bytes)
    return false;
  llvm::StringSet<> rows;
  for (size_t at = 0; at + row <= bytes.size(); at += row)
    if (!rows.insert(StringRef(bytes).substr(at, row)).second)
      return true;
  return false;
}

/// Whether many elements of the tensor are equal bit by bit: more than are by chance.
static bool repeatsElements(const ModelView &file, const ::onnx::TensorProto &tensor) {
  const std::string bytes = file.tryReadInitializer(tensor.name()).value_or("");
  const size_t width = findElementType(tensor.data_type())->bytes;
  llvm::StringSet<> elements;
  for (size_t at = 0; at + width <= bytes.size(); at += width)
    elements.insert(StringRef(bytes).substr(at, width));
  const size_t all = bytes.size() / width;
  return 64 * (all - elements.size()) > all;
}

bool lowtide::mayScale(StringRef tensor, const ::onnx::NodeProto &reader) {
  if (operationName(tensor) != "val")
    return false;
  const std::string name = findProgramOperator(reader);
  auto begins = [&](StringRef prefix) { return StringRef(name).starts_with(prefix); };
  // A sum that names no number takes its operands as they are.
  if (begins("aten.add.") || begins("aten.sub.") || begins("aten.rsub."))
    return findProgramNote(reader).contains("alpha: ");
  return llvm::any_of(ArrayRef<StringRef>{"aten.addcmul.", "aten.addcdiv.", "aten.lerp.", "aten.addr.", "aten.addmv.",
                                          "aten.addbmm.", "aten.baddbmm.", "aten.logaddexp"},
                      begins) ||
         (begins("aten.scaled_dot_product_attention.") && reader.op_type() == "MatMul");
}

static bool isScaledOperand(const TensorFacts &facts) {
  return llvm::any_of(facts.uses, [&](const InitializerUse &use) { return mayScale(facts.tensor->name(), *use.node); });
}

/// One of several results of an operation: the file does not say of which. Parts of a split are numbered one after the
/// other, and programs read several of them. The values of a maximum come with indices, those of a normalization with
/// statistics, which nothing reads.
static bool isOneOfResults(const ModelView &file, const TensorFacts &facts, const Signature &signature) {
  auto isResult = [](StringRef name) { return operationName(name) == "getitem"; };
  if (!isResult(facts.tensor->name()) && llvm::none_of(facts.foldedFrom, isResult))
    return false;
  std::set<int64_t> numbers;
  auto note = [&](StringRef name) {
    int64_t number = 0;
    name.drop_front(std::min(name.size(), operationName(name).size() + 1)).getAsInteger(10, number);
    if (isResult(name))
      numbers.insert(number);
  };
  for (const auto &value : file.getModel().graph().value_info()) {
    std::vector<std::string> sources = findFoldedFrom(value);
    const ::onnx::TensorProto *tensor = file.findInitializer(value.name());
    if (!tensor || !isFloatType(tensor->data_type()) || llvm::none_of(sources, [&](const std::string &name) {
          return signature.findTarget(name) && llvm::is_contained(facts.foldedFrom, name);
        }))
      continue;
    note(value.name());
    llvm::for_each(sources, note);
  }
  return numbers.size() < 2 || *numbers.rbegin() - *numbers.begin() != int64_t(numbers.size()) - 1;
}

/// Whether arithmetic may have put an offset before the positions at which rows were looked up: it is nowhere in the
/// file.
static bool isOffset(const TensorFacts &facts) {
  return llvm::any_of(facts.foldedFrom, [](const std::string &name) {
    return llvm::is_contained(ArrayRef<StringRef>{"add", "sub", "mul", "rsub"}, operationName(name));
  });
}

/// Numbers that a step of an operation may have multiplied the parameter with: what a layer makes of the program's own
/// coordinates goes by a name that says nothing. Empty: none.
static std::string findOtherOperand(const TensorFacts &facts, const Signature &signature) {
  if (operationName(facts.tensor->name()) != "val")
    return "";
  for (const std::string &name : facts.foldedFrom) {
    const SignatureEntry *entry = signature.findTarget(name);
    if (entry ? entry->kind != SignatureEntry::Parameter : operationName(name) == "arange")
      return name;
  }
  return "";
}

std::string lowtide::findFoldFault(const ModelView &file, const TensorFacts &facts, const Signature &signature) {
  if (isScaledOperand(facts))
    return "perhaps scaled by the operation that reads it";
  // Arithmetic on positions is no arithmetic on the rows gathered there.
  if (isGathered(facts)) {
    if (!movesElements(facts.tensor->name()))
      return "changed by '" + operationName(facts.tensor->name()).str() + "'";
    // Rows are looked up in order, at positions that were computed, or at those of a buffer.
    bool computes = llvm::any_of(facts.foldedFrom, [&](const std::string &name) {
      return !signature.findTarget(name) && (!movesElements(name) || operationName(name) == "index");
    });
    if (computes && facts.getNumElements() > 1 && isConstantValued(file, *facts.tensor).value_or(false))
      return "has one value everywhere, so that it cannot be seen which of its rows are one";
    if (isOffset(facts) && facts.tensor->dims_size() > 1)
      return "looked up at positions that were computed, so that it cannot be seen which of its rows these are";
  } else {
    // It is named after the operation that came last.
    if (!facts.foldedFrom.empty() && !movesElements(facts.tensor->name()))
      return "changed by '" + operationName(facts.tensor->name()).str() + "'";
    for (const std::string &name : facts.foldedFrom)
      if (!signature.findTarget(name) && !movesElements(name))
        return "changed by '" + operationName(name).str() + "'";
    if (std::string other = findOtherOperand(facts, signature); !other.empty())
      return "computed of '" + other + "', too";
    if (joinsNumbers(facts, signature))
      return "joined with numbers that the program does not train";
    if (isOneOfResults(file, facts, signature))
      return "perhaps changed by an operation with several results";
    if (isConversion(facts.tensor->name()) || llvm::any_of(facts.foldedFrom, isConversion))
      if (facts.tensor->data_type() != ::onnx::TensorProto::FLOAT)
        return "converted to " + elementTypeName(facts.tensor->data_type());
  }
  auto repeats = [](StringRef name) {
    return llvm::is_contained({"expand", "repeat", "tile", "cat"}, operationName(name));
  };
  bool mayRepeat = isGathered(facts) || repeats(facts.tensor->name()) || llvm::any_of(facts.foldedFrom, repeats);
  bool expands = isGather(facts.tensor->name()) || llvm::any_of(facts.foldedFrom, isGather);
  auto isParameter = [&](const std::string &name) {
    const SignatureEntry *entry = signature.findTarget(name);
    return entry && entry->kind == SignatureEntry::Parameter;
  };
  const int64_t parameters = llvm::count_if(facts.foldedFrom, isParameter);
  const bool joinsOne = parameters == 1 && (isJoin(facts.tensor->name()) || llvm::any_of(facts.foldedFrom, isJoin));
  if (((mayRepeat && expands && !isGathered(facts)) || joinsOne) && facts.getNumElements() > 1 &&
      isConstantValued(file, *facts.tensor).value_or(false))
    return "has one value everywhere, so that it cannot be seen which of its elements are one";
  if (mayRepeat && repeatsRows(file, *facts.tensor))
    return "holds some of its rows several times";
  // One of several may have been repeated along any dimension.
  if ((joinsOne || (expands && parameters > 1)) && repeatsElements(file, *facts.tensor))
    return "holds some of its elements several times";
  return "";
}

bool lowtide::joinsZeros(const TensorFacts &facts) {
  return llvm::any_of(facts.foldedFrom, [](StringRef name) { return operationName(name) == "zeros"; });
}

/// Whether operations took some elements of one parameter, and only moved them.
static bool isPiece(const TensorFacts &facts, const Signature &signature) {
  bool takes = takesPart(facts.tensor->name());
  if (!movesElements(facts.tensor->name()) || isGather(facts.tensor->name()))
    return false;
  for (const std::string &name : facts.foldedFrom) {
    if (signature.findTarget(name))
      continue;
    if (!movesElements(name) || isGather(name))
      return false;
    takes |= takesPart(name);
  }
  return takes;
}

bool lowtide::areDisjointPieces(const ModelView &file, ArrayRef<const TensorFacts *> tensors,
                                const Signature &signature) {
  // Numbers drawn at random agree by chance among many, pairs of neighbours do not.
  static constexpr int64_t mostElements = 4096;
  int64_t elements = 0;
  for (const TensorFacts *facts : tensors) {
    if (!isPiece(*facts, signature))
      return false;
    elements += facts->getNumElements();
  }
  llvm::StringMap<const TensorFacts *> seen;
  for (const TensorFacts *facts : tensors) {
    std::string bytes = file.tryReadInitializer(facts->tensor->name()).value_or("");
    size_t width = findElementType(facts->tensor->data_type())->bytes;
    size_t window = elements > mostElements ? 2 * width : width;
    if (bytes.empty() || bytes.size() < window)
      return false;
    for (size_t at = 0; at + window <= bytes.size(); at += width)
      if (seen.try_emplace(StringRef(bytes).substr(at, window), facts).first->second != facts)
        return false;
  }
  return true;
}

/// Whether the program's own operation made the tensor and left its elements in their order: a view, be it in the shape
/// that the parameter has.
static bool keepsOrder(StringRef name) {
  return movesElements(name) && operationName(name) != "val" && !turnsDimensions(name);
}

void lowtide::describeFold(const TensorFacts &facts, const Signature &signature, InitializerInfo &info) {
  ArrayRef<int64_t> dims = info.dims;
  if (isGathered(facts)) {
    // Rows at constant positions; exporters write positions as 0, 1, 2 …
    SmallVector<int64_t> shape(dims);
    while (shape.size() > 2 && shape.front() == 1)
      shape.erase(shape.begin());
    if (shape.size() != 2)
      return;
    bool ascending = llvm::any_of(facts.foldedFrom, [](const std::string &name) {
      return operationName(name) == "arange" || leafOf(name) == "position_ids";
    });
    if (ascending && !isOffset(facts))
      info.sourceRows = {0, shape[0]};
    return;
  }
  auto order = [&](ArrayRef<int64_t> sources) {
    info.transposed.assign(sources.begin(), sources.end());
    info.sourceShape.emplace(dims.size(), 1);
    for (auto [dim, source] : llvm::zip_equal(dims, sources))
      (*info.sourceShape)[source] = dim;
  };
  if (std::optional<SmallVector<int64_t>> sources = findFoldedOrder(facts, signature)) {
    if (!llvm::is_sorted(*sources))
      order(*sources);
    return;
  }
  if (std::optional<SmallVector<int64_t>> sources = assumeFoldedOrder(facts)) {
    order(*sources);
    info.certainty = Certainty::Assumed;
    info.reason.add(RoleReason::LastDimensionsExchanged);
    return;
  }
  // Without a note, the operation tells: a linear layer's weight is stored transposed.
  // What is looked up row by row was not: the exporter permuted dimensions into the order that they had.
  bool transposed = facts.foldedFrom.size() == 1 && !isPiece(facts, signature) && !isConversion(facts.tensor->name()) &&
                    !keepsOrder(facts.tensor->name()) && llvm::none_of(facts.uses, [](const InitializerUse &use) {
                      return use.operand == 0 && StringRef(use.node->op_type()).starts_with("Gather");
                    });
  if (facts.foldedFrom.empty() && !facts.uses.empty())
    transposed = facts.uses.front().node->op_type() == "MatMul" && facts.uses.front().operand == 1 &&
                 findProgramOperator(*facts.uses.front().node).find("linear") != std::string::npos;
  if (transposed && dims.size() == 2) {
    order({1, 0});
    return;
  }
  // A vector with dimensions of one put around it.
  SmallVector<int64_t> kept;
  for (int64_t dim : dims)
    if (dim != 1)
      kept.push_back(dim);
  if (kept.size() <= 1 && dims.size() > 1)
    info.sourceShape = kept.empty() ? SmallVector<int64_t>{1} : kept;
}

/// Whether the parameter is in the file as the program views or permutes it, in a shape of which that of the parameter
/// cannot be told.
static bool isViewed(const TensorFacts &facts, const InitializerInfo &info) {
  auto views = [&](StringRef name) { return isView(name) || (info.dims.size() > 2 && turnsDimensions(name)); };
  // One dimension, of several (`w.view(-1)`), unless something else was done: nothing views a vector as one.
  auto isOnlyViewed = [&] {
    return llvm::all_of(facts.foldedFrom, [&](StringRef name) {
      return name == info.name || isView(name) || operationName(name) == "val";
    });
  };
  return !facts.foldedFrom.empty() && !info.sourceShape && !info.sourceRows &&
         (info.dims.size() > 1 || (info.dims.size() == 1 && isOnlyViewed())) &&
         (views(facts.tensor->name()) || llvm::any_of(facts.foldedFrom, views));
}

/// Whether elements may be in another order than the parameter's: dimensions were turned and then viewed as others, or
/// its pieces were joined again.
static bool isReordered(const TensorFacts &facts) {
  auto has = [&](llvm::function_ref<bool(StringRef)> isOne) {
    return isOne(facts.tensor->name()) || llvm::any_of(facts.foldedFrom, isOne);
  };
  auto isPart = [](StringRef name) {
    return llvm::is_contained({"getitem", "select", "slice", "split", "chunk", "unbind"}, operationName(name));
  };
  return (has(turnsDimensions) && has(isView)) || (has(isJoin) && has(isPart));
}

void lowtide::reportTakenRows(ModelView &file, ArrayRef<TensorFacts> facts, const Signature &signature,
                              std::vector<InitializerInfo> &infos) {
  llvm::StringSet<> atBuffers;
  for (const TensorFacts &fact : facts)
    if (llvm::any_of(fact.foldedFrom, [](const std::string &name) { return leafOf(name) == "position_ids"; }))
      atBuffers.insert(fact.tensor->name());
  SmallVector<StringRef> names, parts, viewed, exchanged;
  for (const TensorFacts &fact : facts) {
    if (fact.foldedFrom.empty() && !isIndexed(fact))
      continue;
    for (const InitializerInfo &info : infos) {
      const bool isOf = info.role == InitializerRole::Parameter && info.tensor == fact.tensor->name();
      if (!isOf || info.viewOf)
        continue;
      // Several, which go by the tensor's name.
      if (info.name == info.tensor && info.certainty != Certainty::Assumed && !signature.findTarget(info.name))
        for (const std::string &source : fact.foldedFrom)
          if (const SignatureEntry *entry = signature.findTarget(source);
              entry && entry->kind == SignatureEntry::Parameter && !llvm::is_contained(viewed, source))
            viewed.push_back(source);
      if (info.name == info.tensor)
        continue;
      const bool turns = turnsDimensions(fact.tensor->name()) || llvm::any_of(fact.foldedFrom, turnsDimensions);
      if (auto [whole, piece] = StringRef(info.name).split('@');
          !piece.empty() && turns && info.dims.size() > 1 && info.transposed.empty()) {
        if (!llvm::is_contained(viewed, whole))
          viewed.push_back(whole);
      } else if (!info.transposed.empty() && !findFoldedOrder(fact, signature) && assumeFoldedOrder(fact))
        exchanged.push_back(info.name);
      else if ((isIndexed(fact) || (isSliced(fact) && info.certainty != Certainty::Assumed)) && !info.sourceRows &&
               !StringRef(info.name).contains('@'))
        parts.push_back(info.name);
      else if (info.certainty != Certainty::Assumed && (isViewed(fact, info) || isReordered(fact)))
        viewed.push_back(info.name);
    }
  }
  if (!exchanged.empty())
    file.getReport().add(
        {FindingKind::DimensionsExchanged, exchanged.front().str(), {exchanged.begin(), exchanged.end()}});
  if (!viewed.empty())
    file.getReport().add({FindingKind::ParametersViewed, viewed.front().str(), {viewed.begin(), viewed.end()}});
  if (!parts.empty())
    file.getReport().add({FindingKind::ParametersIndexed, parts.front().str(), {parts.begin(), parts.end()}});
  for (InitializerInfo &info : infos)
    if (info.role == InitializerRole::Parameter && info.sourceRows && atBuffers.contains(info.tensor)) {
      info.certainty = Certainty::Assumed;
      info.reason.add(RoleReason::AtBufferPositions);
      names.push_back(info.name);
    }
  if (!names.empty())
    file.getReport().add({FindingKind::RowsAtPositions, names.front().str(), {names.begin(), names.end()}});
}

/// Whether matrix `part`, or its transpose, is at the start or at the end of matrix `whole` along either dimension.
static bool holdsBlock(const ModelView &file, const ::onnx::TensorProto &whole, const ::onnx::TensorProto &part) {
  if (whole.dims_size() != 2 || part.dims_size() != 2 || whole.data_type() != part.data_type() ||
      isConstantValued(file, part).value_or(true))
    return false;
  std::string all = file.tryReadInitializer(whole.name()).value_or(""),
              some = file.tryReadInitializer(part.name()).value_or("");
  size_t width = findElementType(part.data_type())->bytes;
  int64_t rows = whole.dims(0), columns = whole.dims(1);
  if (all.empty() || some.empty())
    return false;
  auto isAt = [&](bool transposed, int64_t row, int64_t column) {
    int64_t height = part.dims(transposed), breadth = part.dims(!transposed);
    for (int64_t i = 0; i != height; ++i)
      for (int64_t j = 0; j != breadth; ++j) {
        size_t from = size_t(transposed ? j * height + i : i * breadth + j) * width;
        size_t to = size_t((row + i) * columns + column + j) * width;
        if (StringRef(some).substr(from, width) != StringRef(all).substr(to, width))
          return false;
      }
    return true;
  };
  for (bool transposed : {false, true}) {
    int64_t height = part.dims(transposed), breadth = part.dims(!transposed);
    bool fits = (height == rows && breadth < columns) || (breadth == columns && height < rows);
    if (fits && (isAt(transposed, 0, 0) || isAt(transposed, rows - height, columns - breadth)))
      return true;
  }
  return false;
}

LogicalResult lowtide::checkJoined(ModelView &file, const Signature &signature, ArrayRef<TensorFacts> facts,
                                   ArrayRef<InitializerInfo> infos) {
  llvm::StringMap<std::string> owners;
  llvm::StringSet<> joined;
  for (const InitializerInfo &info : infos)
    if (info.role == InitializerRole::Parameter && signature.findTarget(info.name))
      owners.try_emplace(info.name, info.tensor);
    else if (info.role == InitializerRole::Parameter)
      joined.insert(info.tensor);
  llvm::StringMap<const TensorFacts *> first; // by parameter, the first tensor in which it was joined with others
  for (const TensorFacts &fact : facts) {
    if (!joined.contains(fact.tensor->name()))
      continue;
    for (const std::string &source : fact.foldedFrom) {
      const SignatureEntry *entry = signature.findTarget(source);
      if (!entry || entry->kind != SignatureEntry::Parameter)
        continue;
      auto [at, isNew] = first.try_emplace(source, &fact);
      // What arithmetic made of them was warned about.
      auto isWarnedAbout = [&](const TensorFacts &facts) { return !findFoldFault(file, facts, signature).empty(); };
      if (isNew || isWarnedAbout(*at->second) || isWarnedAbout(fact) ||
          areDisjointPieces(file, {at->second, &fact}, signature))
        continue;
      file.getReport().errorAt(FailureKind::Unsupported, fact.tensor->name(),
                               "parameter " + quoteName(source) + " is in the file twice, in " +
                                   quoteName(at->second->tensor->name()) + " and in " + quoteName(fact.tensor->name()) +
                                   ", where it was joined with others: trained as they stand, the two would part",
                               "export with optimize=False");
      return failure();
    }
    std::vector<std::string> sources = fact.foldedFrom;
    // One that is tied has other names.
    for (const auto &owner : owners)
      if (const ::onnx::TensorProto *tensor = file.findInitializer(owner.second);
          tensor && !fact.foldedFrom.empty() && holdsBlock(file, *fact.tensor, *tensor))
        sources.push_back(owner.first().str());
    for (const std::string &source : sources) {
      auto owner = owners.find(source);
      if (owner == owners.end() || owner->second == fact.tensor->name())
        continue;
      file.getReport().errorAt(FailureKind::Unsupported, fact.tensor->name(),
                               "parameter " + quoteName(source) + " is in the file twice, as " +
                                   quoteName(owner->second) + " and in " + quoteName(fact.tensor->name()) +
                                   ", where it was joined with others: trained as they stand, the two would part",
                               "export with optimize=False");
      return failure();
    }
  }
  return success();
}

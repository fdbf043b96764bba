//===- TrainAdapt.cpp - low-rank pairs for frozen weights ------*- C++ -*-===//
//
// Which layers get a pair, and what the artifact says about them. How a product takes one:
// lib/Dialect/NN/WeightReads.cpp.
//
//===----------------------------------------------------------------------===//

#include "LayerNames.h"
#include "StepPass.h"
#include "lowtide/Analysis/BatchTracking.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/WeightReads.h"
#include "lowtide/Dialect/Train/Adapters.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Interfaces/ExportNames.h"
#include "lowtide/Support/Failure.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <charconv>
#include <cmath>

namespace lowtide {
#define GEN_PASS_DEF_TRAINADAPT
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;
using namespace lowtide;
using train::AdapterRule;

/// Layers that a message names at most.
static constexpr size_t shownLayers = 8;

namespace {
/// A layer of a step: a name of a weight, and the reads that are this layer's.
struct Layer {
  std::string name, parameter;
  Value weight; ///< an argument, or what is unpacked from codes of few bits
  SmallVector<nn::WeightRead> reads;
  bool sharesWeight = false; ///< something else reads it, too
  std::string otherwise;     ///< no reads: what reads it instead
};

/// What a layer gets; without magnitudes the last two are null.
struct PairArguments {
  Value a, b, magnitude, norm;
};
} // namespace

/// "h.0.ln1, h.0.ln2 and 3 more".
static std::string listLayers(ArrayRef<std::string> names) {
  std::string text = llvm::join(names.take_front(shownLayers), ", ");
  return names.size() > shownLayers ? text + " and " + std::to_string(names.size() - shownLayers) + " more" : text;
}

static std::string shapeText(RankedTensorType type) {
  return llvm::join(llvm::map_range(type.getShape(), [](int64_t size) { return std::to_string(size); }), "×");
}

/// A number as text that reads back as the same number.
static std::string numberText(double number) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), number).ptr);
}

static bool belongsTo(const nn::WeightRead &read, StringRef layer) {
  return llvm::any_of(getLayerNames(read.product->getLoc()), [&](StringRef name) {
    return name == layer || (name.starts_with(layer) && name[layer.size()] == '.');
  });
}

/// Of a weight that goes by several names, the reads of each; where nothing tells them apart, each layer has all.
static void divideReads(MutableArrayRef<Layer> layers, ArrayRef<nn::WeightRead> reads) {
  bool isTold = false;
  for (Layer &layer : layers) {
    for (const nn::WeightRead &read : reads)
      if (layers.size() > 1 && belongsTo(read, layer.name))
        layer.reads.push_back(read);
    isTold |= !layer.reads.empty();
  }
  for (Layer &layer : layers) {
    if (!isTold)
      layer.reads.assign(reads.begin(), reads.end());
    // A module that looks rows up is a table; that its weight multiplies elsewhere is no part of it.
    auto isTable = [](const nn::WeightRead &read) { return read.kind == nn::WeightKind::Table; };
    if ((isTold || layers.size() == 1) && llvm::any_of(layer.reads, isTable))
      llvm::erase_if(layer.reads, [&](const nn::WeightRead &read) { return !isTable(read); });
    layer.sharesWeight |= layer.reads.size() < reads.size();
  }
}

/// Values that are computed from constants alone, with the largest of the integer arguments that they are computed
/// from: next to the codes of a weight there may be zero points, which are fewer. Null: no integers.
static llvm::DenseMap<Value, BlockArgument> findConstantValues(func::FuncOp step) {
  llvm::DenseMap<Value, BlockArgument> codes;
  auto count = [](BlockArgument argument) {
    return argument ? cast<RankedTensorType>(argument.getType()).getNumElements() : 0;
  };
  for (BlockArgument argument : step.getArguments())
    if (isa_and_nonnull<train::ConstantAttr>(train::getArgBinding(step, argument.getArgNumber())))
      codes[argument] = isa<IntegerType>(getElementTypeOrSelf(argument.getType())) ? argument : BlockArgument();
  for (Operation &op : step.getBody().front().without_terminator()) {
    if (op.getNumRegions() || !llvm::all_of(op.getOperands(), [&](Value value) { return codes.contains(value); }))
      continue;
    BlockArgument largest;
    for (Value operand : op.getOperands())
      if (BlockArgument other = codes.lookup(operand); count(largest) < count(other))
        largest = other;
    for (Value result : op.getResults())
      codes[result] = largest;
  }
  return codes;
}

/// A name without what onnxruntime's quantizers add to it (`fc_Q4`, `fc_matmul_Q4`, `fc.weight_quantized`).
static StringRef withoutQuantizer(StringRef name) {
  StringRef stem = name.rtrim("0123456789");
  if (stem.size() < name.size() && stem.consume_back("_Q")) {
    stem.consume_back("_matmul") || stem.consume_back("_DQ");
    name = stem;
  }
  name.consume_back("_quantized");
  return name;
}

/// The layer of a weight of few bits: by the name of its codes, where that is a parameter's; otherwise, or if several
/// layers read it, by its first product: the module, or the node without what quantizers and exporters
/// (`q_proj/MatMul`) add to a module's name.
static std::string getLayerOfCodes(StringRef codes, const nn::WeightRead &read, bool isShared) {
  if (StringRef weight = withoutQuantizer(codes); weight.ends_with(".weight") && !isShared)
    return train::getLayerOf(weight).str();
  SmallVector<std::string> names = getLayerNames(read.product->getLoc());
  StringRef name = withoutQuantizer(names.empty() ? StringRef() : StringRef(names.front()));
  auto [module, leaf] = name.rsplit('.');
  const bool isOperator =
      llvm::is_contained({"MatMul", "MatMulNBits", "MatMulBnb4", "Gemm", "Conv", "ConvTranspose", "Gather"}, leaf);
  return (isOperator ? module : name).str();
}

/// Adds the layers whose weights are unpacked from codes of few bits, in the order of their products. A table and the
/// head that is tied to it are two.
static void addUnpackedLayers(func::FuncOp step, std::vector<Layer> &layers) {
  const llvm::DenseMap<Value, BlockArgument> constants = findConstantValues(step);
  for (Value weight : nn::findComputedWeights(step)) {
    BlockArgument codes = constants.lookup(weight);
    if (!codes || !isa<FloatType>(getElementTypeOrSelf(weight.getType())))
      continue;
    const nn::WeightReads reads = nn::findWeightReads(weight);
    llvm::MapVector<nn::WeightKind, SmallVector<nn::WeightRead>> kinds;
    for (const nn::WeightRead &read : reads.products)
      kinds[read.kind].push_back(read);
    for (auto &[kind, ofKind] : kinds) {
      Layer layer;
      layer.parameter = train::getBindingName(train::getArgBinding(step, codes.getArgNumber())).str();
      layer.name = getLayerOfCodes(layer.parameter, ofKind.front(), kinds.size() > 1);
      layer.weight = weight;
      layer.reads = std::move(ofKind);
      layer.sharesWeight = !reads.others.empty() || kinds.size() > 1;
      layers.push_back(std::move(layer));
    }
  }
}

/// Of modules with several matrices, as recurrent layers are, each is a layer by its own name, but for what PyTorch
/// calls the weight.
static void nameByParameter(MutableArrayRef<Layer> layers) {
  llvm::StringMap<llvm::StringSet<>> matrices;
  for (const Layer &layer : layers)
    if (!layer.reads.empty() || cast<RankedTensorType>(layer.weight.getType()).getRank() == 2)
      matrices[layer.name].insert(layer.parameter);
  for (Layer &layer : layers)
    if (auto found = matrices.find(layer.name);
        found != matrices.end() && found->second.size() > 1 && !StringRef(layer.parameter).ends_with(".weight"))
      layer.name = layer.parameter;
}

/// All layers of a step with a float weight, in the order of its arguments.
static std::vector<Layer> findLayers(func::FuncOp step) {
  std::vector<Layer> layers;
  for (BlockArgument argument : step.getArguments()) {
    const unsigned number = argument.getArgNumber();
    Attribute binding = train::getArgBinding(step, number);
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!isa_and_nonnull<train::ParamAttr, train::ConstantAttr>(binding) || !type || !type.hasStaticShape() ||
        !isa<FloatType>(type.getElementType()))
      continue;
    nn::WeightReads reads = nn::findWeightReads(argument);
    const size_t first = layers.size();
    for (StringRef name : train::listNames(step, number)) {
      Layer layer;
      layer.name = train::getLayerOf(name).str();
      layer.parameter = name;
      layer.weight = argument;
      layer.sharesWeight = !reads.others.empty();
      if (!reads.others.empty())
        layer.otherwise = reads.others.front()->getName().getStringRef().str();
      layers.push_back(std::move(layer));
    }
    divideReads(MutableArrayRef(layers).drop_front(first), reads.products);
  }
  nameByParameter(layers);
  addUnpackedLayers(step, layers);
  return layers;
}

namespace {
/// Inputs of pairs with numbers of them set to zero.
class Dropout {
public:
  Dropout(func::FuncOp step, double override) : step(step), override(override) {}

  /// Before anything is added to the step.
  void prepare() {
    ScopedDiagnosticHandler silent(step.getContext(), [](Diagnostic &) { return success(); });
    if (FailureOr<BatchTracking> found = BatchTracking::compute(step); succeeded(found))
      tracking = std::move(*found);
    nextDraw = nn::getNextDraw(step.getBody().front());
  }

  /// `source`: what `input` is, or is a cast of.
  nn::Expr drop(nn::Expr input, Value source, double ratio) {
    if (override >= 0.0)
      ratio = override;
    if (ratio <= 0.0)
      return input;
    if (ratio >= 1.0)
      return input.like(0.0);
    Builder b(step.getContext());
    auto scalar = [&](StringRef name) {
      return input.with(train::getOrAppendScalar(step, name, RankedTensorType::get({}, b.getI64Type())));
    };
    // Each sample draws the same numbers wherever the batch is split.
    SmallVector<int64_t> shape(input.shape());
    int64_t batchDim = -1;
    if (tracking && tracking->getKind(source) == BatchTracking::Kind::Rows) {
      const BatchPosition position = tracking->get(source).position;
      SmallVector<int64_t> parts = {tracking->getSamples()};
      if (position.outer != 1)
        parts.insert(parts.begin(), position.outer);
      if (position.inner != 1)
        parts.push_back(position.inner);
      shape.erase(shape.begin() + position.dim);
      shape.insert(shape.begin() + position.dim, parts.begin(), parts.end());
      batchDim = position.dim + (position.outer != 1);
    }
    Type drawn = input.elementType();
    nn::Expr numbers = nn::randomUniform(RankedTensorType::get(shape, drawn), scalar(seedScalar), scalar(stepScalar),
                                         scalar(rowScalar), nextDraw++, batchDim);
    nn::Expr keep = nn::greaterEqual(nn::reshape(numbers, input.shape()), ratio);
    return nn::select(keep, input * (1.0 / (1.0 - ratio)), input.like(0.0));
  }

private:
  func::FuncOp step;
  double override;
  std::optional<BatchTracking> tracking;
  int64_t nextDraw = 0;
};

struct TrainAdapt : StepPass<lowtide::impl::TrainAdaptBase<TrainAdapt>> {
  using StepPass::StepPass;

  void runOnSteps() override {
    if (failed(run())) {
      setFailure(getOperation(), FailureKind::Usage);
      signalPassFailure();
    }
  }

private:
  /// An error of a flag, which has no place.
  InFlightDiagnostic refuse() { return emitError(UnknownLoc::get(&getContext())); }

  LogicalResult run() {
    double override;
    if (failed(checkOptions(getOperation(), {{"dropout", dropout}, {"lora", lora}})) ||
        StringRef(dropout).getAsDouble(override))
      return failure();
    llvm::Expected<std::vector<AdapterRule>> parsed = train::parseAdapterRules(lora);
    if (!parsed)
      return refuse() << llvm::toString(parsed.takeError());
    adapterRules = std::move(*parsed);
    for (func::FuncOp step : getOperation().getOps<func::FuncOp>())
      if (!isExportEntry(step.getSymName()) && failed(adapt(step, step.getSymName() == "forward" ? override : 0.0)))
        return failure();
    if (failed(checkPatterns()))
      return failure();
    warnOfFolding();
    SmallVector<Attribute> facts = llvm::map_to_vector(adapters, [](auto &entry) -> Attribute { return entry.second; });
    getOperation()->setAttr(train::adaptersAttrName, ArrayAttr::get(&getContext(), facts));
    return success();
  }

  LogicalResult adapt(func::FuncOp step, double override) {
    if (failed(checkStaticArguments(step, "low-rank pairs belong to tensors of static shape")))
      return failure();
    const std::vector<Layer> layers = findLayers(step);
    Dropout dropout(step, override);
    dropout.prepare();
    // What products read now: pairs put sums in the place of some of it.
    llvm::DenseMap<Operation *, Value> sources;
    for (const Layer &layer : layers)
      for (const nn::WeightRead &read : layer.reads)
        if (read.kind != nn::WeightKind::Table)
          sources[read.product] = read.getInput();
    size_t pairs = 0;
    int64_t added = 0, held = 0;
    for (BlockArgument argument : step.getArguments())
      if (isa_and_nonnull<train::ParamAttr, train::ConstantAttr>(train::getArgBinding(step, argument.getArgNumber())))
        held += cast<RankedTensorType>(argument.getType()).getNumElements();
    for (const Layer &layer : layers) {
      const AdapterRule *rule = findRule(layer);
      if (!rule || layer.reads.empty())
        continue;
      if (failed(check(step, layer, *rule)))
        return failure();
      noteFolding(layer);
      const PairArguments arguments = addArguments(step, layer, *rule);
      OpBuilder builder = OpBuilder::atBlockBegin(&step.getBody().front());
      nn::LowRankPair pair{arguments.a, arguments.b, rule->getScale()};
      if (arguments.magnitude)
        pair.ratio =
            nn::computeRatio(builder, layer.reads.front(), layer.weight, pair, arguments.magnitude, arguments.norm);
      for (const nn::WeightRead &read : layer.reads) {
        nn::addPair(builder, read, pair,
                    [&](nn::Expr input) { return dropout.drop(input, sources.lookup(read.product), rule->dropout); });
      }
      ++pairs;
      for (Value trained : {arguments.a, arguments.b, arguments.magnitude})
        added += trained ? cast<RankedTensorType>(trained.getType()).getNumElements() : 0;
    }
    numPairs += pairs;
    if (pairs)
      step.emitRemark("@") << step.getSymName() << ": " << pairs << " low-rank pairs of " << added
                           << " numbers for a model of " << held;
    return success();
  }

  /// The first rule that means the layer; notes which patterns do.
  const AdapterRule *findRule(const Layer &layer) {
    const AdapterRule *first = nullptr;
    if (!layer.reads.empty() && !llvm::is_contained(products, layer.name))
      products.push_back(layer.name);
    for (const AdapterRule &rule : adapterRules)
      for (auto [i, pattern] : llvm::enumerate(rule.patterns)) {
        if (!pattern.matches(layer.name) && !pattern.matches(layer.parameter))
          continue;
        std::string &other = met[{&rule, i}];
        if (layer.reads.empty())
          other = other.empty() ? layer.name + " is read by " + layer.otherwise : other;
        else
          taken.insert({&rule, i}), first = first ? first : &rule;
      }
    return first;
  }

  LogicalResult check(func::FuncOp step, const Layer &layer, const AdapterRule &rule) {
    auto weight = cast<RankedTensorType>(layer.weight.getType());
    auto argument = dyn_cast<BlockArgument>(layer.weight);
    if (argument && isa<train::ParamAttr>(train::getArgBinding(step, argument.getArgNumber()))) {
      InFlightDiagnostic error = refuse()
                                 << "lora: '" << layer.parameter << "' is trained itself, and would get a pair, too";
      error.attachNote() << "leave it out of --params, or out of --lora";
      return error;
    }
    if (rule.isDecomposed && !argument)
      return refuse() << "lora: dora starts from the norms of '" << layer.name
                      << "', whose numbers the step unpacks from codes that the file holds";
    for (const nn::WeightRead &read : layer.reads) {
      if (std::string reason = nn::refusePair(read, rule.isDecomposed); !reason.empty()) {
        InFlightDiagnostic error = refuse() << "lora: '" << layer.name << "' " << reason;
        error.attachNote() << "name the other layers alone, in place of '" << rule.text << "'";
        return error;
      }
      const int64_t most = nn::getLargestRank(read, weight);
      if (rule.rank > most) {
        InFlightDiagnostic error = refuse() << "lora: r=" << rule.rank << " is more than '" << layer.name
                                            << "' has room for: its weight is " << shapeText(weight) << ", of rank "
                                            << most << " at most";
        error.attachNote() << "give it a smaller rank by a rule in front: --lora='" << layer.name << ":r=" << most
                           << ";" << rule.text << "'";
        return error;
      }
      const nn::WeightRead &first = layer.reads.front();
      if (read.kind != first.kind || read.inputDim != first.inputDim)
        return refuse() << "lora: '" << layer.name << "' is read in two ways, by "
                        << first.product->getName().getStringRef() << " and by "
                        << read.product->getName().getStringRef() << ": no one pair fits both";
    }
    return success();
  }

  /// Notes a filter that is read in another module's place: exporters put a batch norm into the convolution before, and
  /// call that as the norm.
  void noteFolding(const Layer &layer) {
    const nn::WeightRead &read = layer.reads.front();
    SmallVector<std::string> names = getLayerNames(read.product->getLoc());
    const StringRef place = names.empty() ? StringRef() : StringRef(names.front());
    if (read.kind == nn::WeightKind::Filter && isa<BlockArgument>(layer.weight) && !place.empty() &&
        !belongsTo(read, layer.name) && !layer.name.starts_with((place + ".").str()))
      if (std::string entry = layer.name + " (as " + place.str() + ")"; !llvm::is_contained(folded, entry))
        folded.push_back(std::move(entry));
  }

  void warnOfFolding() {
    if (folded.empty())
      return;
    InFlightDiagnostic warning = emitWarning(UnknownLoc::get(&getContext()))
                                 << "lora: filters are read where other modules are: if batch norms were folded into "
                                    "them, a norm scales PEFT's pair, and not this one: "
                                 << listLayers(folded);
    warning.attachNote() << "export with optimize=False, so that adapters mean the same to PEFT";
  }

  PairArguments addArguments(func::FuncOp step, const Layer &layer, const AdapterRule &rule) {
    Builder b(&getContext());
    const nn::WeightRead &read = layer.reads.front();
    auto weight = cast<RankedTensorType>(layer.weight.getType());
    Type element = weight.getElementType().isF64() ? Type(b.getF64Type()) : Type(b.getF32Type());
    const nn::PairShapes shapes = nn::getPairShapes(read, weight, rule.rank);
    const bool isTable = read.kind == nn::WeightKind::Table;
    // PEFT's: of a table B is drawn, else A, as PyTorch draws the weight of a linear layer.
    const int64_t fan = RankedTensorType::get(shapes.a, element).getNumElements() / rule.rank;
    const std::string drawn = isTable ? "normal:1" : "uniform:" + numberText(1.0 / std::sqrt(double(fan)));
    auto add = [&](StringRef suffix, ArrayRef<int64_t> shape, StringRef init, bool isTrained = true) {
      StringAttr name = b.getStringAttr(layer.name + suffix);
      Attribute binding = train::ConstantAttr::get(&getContext(), name);
      if (isTrained)
        binding = train::ParamAttr::get(&getContext(), name);
      Value value = train::appendArg(step, RankedTensorType::get(shape, element), binding, NameLoc::get(name));
      step.setArgAttr(step.getNumArguments() - 1, train::initAttrName, b.getStringAttr(init));
      return std::pair(value, name);
    };
    auto [a, nameA] = add(isTable ? ".lora_embedding_A" : ".lora_A.weight", shapes.a, isTable ? "zeros" : drawn);
    auto [c, nameB] = add(isTable ? ".lora_embedding_B" : ".lora_B.weight", shapes.b, isTable ? drawn : "zeros");
    StringRef kind = isTable ? "embedding" : read.kind == nn::WeightKind::Filter ? "convolution" : "linear";
    NamedAttrList facts;
    facts.set("module", b.getStringAttr(layer.name));
    facts.set("kind", b.getStringAttr(kind));
    auto argument = dyn_cast<BlockArgument>(layer.weight);
    facts.set("weight", argument ? train::getBindingName(train::getArgBinding(step, argument.getArgNumber()))
                                 : b.getStringAttr(""));
    facts.set("a", nameA);
    facts.set("b", nameB);
    facts.set("alpha", b.getF64FloatAttr(rule.alpha));
    facts.set("dropout", b.getF64FloatAttr(rule.dropout));
    facts.set("input_dim", b.getI64IntegerAttr(read.inputDim));
    if (rule.isRankStabilized)
      facts.set("rslora", b.getUnitAttr());
    if (layer.sharesWeight)
      facts.set("shares_weight", b.getUnitAttr());
    PairArguments result{a, c, {}, {}};
    if (rule.isDecomposed) {
      const SmallVector<int64_t> shape = nn::getMagnitudeShape(read, weight);
      const int64_t outputs = RankedTensorType::get(shape, element).getNumElements();
      auto [magnitude, nameM] = add(".lora_magnitude_vector", shape, train::normInit);
      auto [norm, nameN] = add(".lora_weight_norm", {outputs}, train::normInit, /*isTrained=*/false);
      facts.set("magnitude", nameM);
      facts.set("norm", nameN);
      facts.set("norm_of", facts.get("weight"));
      result.magnitude = magnitude, result.norm = norm;
    }
    adapters.insert({nameA, facts.getDictionary(&getContext())});
    return result;
  }

  /// A pattern that no product answers to is a mistake.
  LogicalResult checkPatterns() {
    for (const AdapterRule &rule : adapterRules)
      for (auto [i, pattern] : llvm::enumerate(rule.patterns)) {
        if (taken.contains({&rule, i}))
          continue;
        auto other = met.find({&rule, i});
        SmallVector<StringRef> known(products.begin(), products.end());
        InFlightDiagnostic error = refuse() << "lora: '" << pattern.getText() << "' ";
        if (other != met.end())
          error << "matches no product: " << other->second;
        else if (!pattern.getFault().empty())
          error << "is no layer, and no glob: " << pattern.getFault();
        else
          error << "matches no layer" << suggestName(pattern.getText(), known);
        error.attachNote() << (products.empty() ? "no product reads a weight of the model"
                                                : "layers with a product: " + listLayers(products));
        return error;
      }
    return success();
  }

  using PatternKey = std::pair<const AdapterRule *, size_t>;
  std::vector<AdapterRule> adapterRules;
  /// By the name of A: an entry has the same pairs as another one.
  llvm::MapVector<Attribute, DictionaryAttr> adapters;
  llvm::DenseSet<PatternKey> taken;
  std::vector<std::string> folded;
  /// Patterns that mean a layer without a product, and what reads it.
  llvm::DenseMap<PatternKey, std::string> met;
  std::vector<std::string> products;
};
} // namespace

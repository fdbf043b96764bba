//===- ParametersFromNames.cpp - who is a parameter, by names and operators ------===//
//
// For files whose exporter left no notes. Float tensors that a layer reads as weight or bias are parameters, running
// statistics are known by their operand, and what the old exporter folded (`onnx::MatMul_123`) gets the name of the
// module that reads it.
//
//===----------------------------------------------------------------------===//

#include "BufferNames.h"
#include "ElementFunctions.h"
#include "FewBits.h"
#include "FoldedNorms.h"
#include "LostNotes.h"
#include "MadeByLayers.h"
#include "MergedTensors.h"
#include "NamedModules.h"
#include "PaddleNames.h"
#include "Products.h"
#include "TableValues.h"
#include "TensorFlowNames.h"
#include "TiedModules.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/NodeNames.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>
#include <cstring>
#include <set>

using namespace mlir;
using namespace lowtide;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

bool lowtide::isSetting(const InitializerUse &use) {
  // A loss that onnxruntime wrote out: its other operands are weights of classes.
  StringRef value = use.node->output_size() ? StringRef(use.node->output(0)) : "";
  if (value.starts_with("_inlfunc_") && value.contains("Loss"))
    return true;
  if (isOfFewBits(use))
    return true;
  return llvm::StringSwitch<bool>(use.node->op_type())
      .Case("Clip", use.operand > 0)
      .Case("Pad", use.operand > 0)
      .Case("Resize", use.operand > 0)
      .Case("OneHot", use.operand > 0)
      .Case("Dropout", use.operand > 0)
      .Case("RotaryEmbedding", use.operand > 0)                                          // tables of angles
      .Cases({"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"}, use.operand == 2) // weights of classes
      .Case("Range", true)
      .Cases({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}, true)
      .Case("Pow", use.operand == 1)
      .Default(false);
}

/// Whether it is an exponent that a module keeps: PyTorch's exporters give names of their own to numbers. Those of the
/// current one look like the root module's, where its notes are gone.
static bool isLearnedExponent(const ModelView &file, const TensorFacts &facts) {
  StringRef name = facts.tensor->name();
  return file.getModel().producer_name() == "pytorch" && !isInventedName(name) &&
         (!moduleOf(name).empty() || !isOfCurrentExporter(file.getModel().graph())) &&
         llvm::all_of(facts.uses,
                      [](const InitializerUse &use) { return use.node->op_type() == "Pow" && use.operand == 1; });
}

/// Whether frameworks call a layer's parameters so: `net.fc.weight`, `params/Dense_0/kernel`, `model/norm/gamma:0`.
static bool isParameterName(StringRef name) {
  name.consume_back(":0");
  StringRef leaf = leafOf(name);
  leaf = leaf.rsplit('/').second.empty() ? leaf : leaf.rsplit('/').second;
  return llvm::StringSwitch<bool>(leaf).Cases({"weight", "bias", "kernel", "gamma", "beta"}, true).Default(false);
}

/// The module of the layer that `node` computes, by its other weight if that kept its name; empty: nothing tells.
static StringRef findNamedLayer(const NodeProto &node, int operand, const MergedTensors &merged) {
  if (operand != 1 && operand != 2)
    return "";
  int other = 3 - operand;
  StringRef leaf = operandLeaf(node, other), name = other < node.input_size() ? StringRef(node.input(other)) : "";
  return !leaf.empty() && leafOf(name) == leaf && merged.hasName(name) ? moduleOf(name) : "";
}

/// `net.fc.weight` for a folded weight that module `net.fc` reads.
static std::string likelyName(const TensorFacts &facts, StringRef name, const MergedTensors &merged) {
  if (facts.uses.empty())
    return name.str();
  const InitializerUse &use = facts.uses.front();
  std::optional<std::string> module = merged.getPaths().findOfValue(name);
  if (!module)
    module = findModulePath(*use.node);
  if (!module)
    module = merged.findModuleOfBias(*use.node);
  StringRef leaf = operandLeaf(*use.node, use.operand);
  if (!module || module->empty() || leaf.empty())
    return name.str();
  // A program that calls the function itself, `conv1d(x, self.conv.weight, self.conv.bias)`, is in another module.
  const std::string biased = merged.findModuleOfBias(*use.node).value_or("");
  if (StringRef layer = findNamedLayer(*use.node, use.operand, merged); layer.starts_with(*module + "."))
    module = layer.str();
  else if (StringRef(biased).starts_with(*module + ".") && !merged.hasName(biased + "." + leaf.str()))
    module = biased;
  std::string prefix = *module + ".";
  // Attention calls what it projects with otherwise.
  if (leaf == "weight" && !merged.hasName(prefix + "bias") && merged.hasName(prefix + "in_proj_bias"))
    return prefix + "in_proj_weight";
  // The module's own is there, and this is another: a scale next to the weight that it scales.
  return merged.hasName(prefix + leaf.str()) ? name.str() : prefix + leaf.str();
}

/// Whether the node's product is x·V with its second operand, which PyTorch keeps as Vᵀ.
static bool multipliesAsItStands(const NodeProto &node) {
  if (node.op_type() != "Gemm")
    return node.op_type() == "MatMul";
  return llvm::none_of(node.attribute(),
                       [](const auto &attribute) { return attribute.name() == "transB" && attribute.i(); });
}

/// What formula wrote the tensor, if one did.
static Formula findFormula(const ModelView &file, const TensorFacts &facts) {
  std::optional<std::string> bytes = file.tryReadInitializer(facts.tensor->name());
  return bytes ? lowtide::findFormula(*facts.tensor, *bytes) : Formula::None;
}

static Reason holds(Formula formula) {
  return formula == Formula::Mask ? Reason(RoleReason::Mask)
                                  : Reason(RoleReason::Formula, {describeFormula(formula).str()});
}

/// Whether the tensor is added to what a layer's weights made, in the same module, and nowhere else.
static bool isAddedToProduct(const MergedTensors &merged, const TensorFacts &facts) {
  return llvm::all_of(facts.uses, [&](const InitializerUse &use) {
    if (use.node->op_type() != "Add" || use.node->input_size() != 2 || facts.tensor->dims_size() != 1)
      return false;
    const NodeProto *product = merged.findProducer(use.node->input(1 - use.operand));
    return product && product->op_type() == "MatMul" && findModulePath(*product) == findModulePath(*use.node);
  });
}

/// The bias's name, where the one reader adds the tensor to what a weight that kept its name made; empty otherwise.
static std::string findBiasName(const MergedTensors &merged, const TensorFacts &facts) {
  if (facts.uses.size() != 1 || facts.uses[0].node->op_type() != "Add" || facts.uses[0].node->input_size() != 2)
    return "";
  const NodeProto *product = merged.findProducer(facts.uses[0].node->input(1 - facts.uses[0].operand));
  if (!product || product->op_type() != "MatMul")
    return "";
  for (StringRef factor : product->input())
    if (leafOf(factor) == "weight" && merged.hasName(factor))
      if (std::string name = (moduleOf(factor) + ".bias").str(); !merged.hasName(name))
        return name;
  return "";
}

/// Whether the dimension of the tensor that is not one numbers the channels of a convolution, whose result is `value`
/// after operations by element.
static bool followsChannels(const MergedTensors &merged, const TensorProto &tensor, StringRef value) {
  for (int depth = 0; depth != 6; ++depth) {
    const NodeProto *node = merged.findProducer(value);
    if (!node || node->input_size() == 0)
      return false;
    if (node->op_type() == "Conv" || node->op_type() == "ConvTranspose")
      return tensor.dims_size() > 2 && tensor.dims(1) != 1;
    if (!llvm::StringSwitch<bool>(node->op_type())
             .Cases({"Mul", "Add", "Sigmoid", "Relu", "Gelu", "Tanh", "Slice", "Cast", "BatchNormalization"}, true)
             .Default(false))
      return false;
    value = node->input(0);
  }
  return false;
}

/// Whether a cleaner let a layer add what the program adds to its result: its own bias has one dimension.
static bool isFusedSum(const TensorFacts &facts, const InitializerUse &use) {
  return use.node->op_type() == "Gemm" && use.operand == 2 && facts.tensor->dims_size() != 1 &&
         isEvaluatedName(facts.tensor->name());
}

/// Whether a product reads one number for each sample, head and place, as the zeros that a recurrence begins with: a
/// layer's weight is a matrix.
static bool isFirstState(const ModelView &file, const TensorFacts &facts, const InitializerUse &use) {
  return use.node->op_type() == "MatMul" && facts.tensor->dims_size() > 2 && isInventedName(facts.tensor->name()) &&
         isConstantValued(file, *facts.tensor).value_or(false);
}

/// Whether the tensor scales values by one number for each channel: a layer's scale. Masks of ones look the same, but
/// where a convolution made the channels.
static bool isFreshScale(const ModelView &file, const MergedTensors &merged, const TensorFacts &facts) {
  const TensorProto &tensor = *facts.tensor;
  if (tensor.dims_size() < 2 || llvm::count_if(tensor.dims(), [](int64_t dim) { return dim != 1; }) != 1 ||
      tensor.data_type() != TensorProto::FLOAT || !isConstantValued(file, tensor).value_or(false))
    return false;
  float value = 0;
  std::memcpy(&value, file.tryReadInitializer(tensor.name())->data(), sizeof(value));
  return llvm::all_of(facts.uses, [&](const InitializerUse &use) {
    if (use.node->op_type() != "Mul" || use.node->input_size() != 2)
      return false;
    StringRef other = use.node->input(1 - use.operand);
    return value == 0 || value == 1 ? followsChannels(merged, tensor, other) : bool(merged.findProducer(other));
  });
}

/// Whether the tensor has one dimension along which its numbers grow or fall evenly.
static bool isRamp(const ModelView &file, const TensorFacts &facts) {
  std::string bytes = file.tryReadInitializer(facts.tensor->name()).value_or("");
  if (facts.tensor->dims_size() != 1 || facts.tensor->data_type() != TensorProto::FLOAT)
    return false;
  std::vector<float> values = asFloats(bytes);
  if (values.size() < 3)
    return true; // any two numbers do
  double range = std::abs(double(values.back()) - values.front());
  for (size_t i = 2; i < values.size(); ++i)
    if (!(std::abs(values[i] - 2.0 * values[i - 1] + values[i - 2]) <= 1e-5 * range))
      return false;
  return true;
}

/// Whether functions that keep what is learned positive read the tensor, and nothing else does. Programs compute
/// frequencies so, of a ramp.
static bool isExponent(const ModelView &file, const TensorFacts &facts) {
  return facts.tensor->dims_size() > 0 && facts.getNumElements() > 1 && !isRamp(file, facts) &&
         llvm::all_of(facts.uses, [](const InitializerUse &use) {
           return llvm::StringSwitch<bool>(use.node->op_type()).Cases({"Exp", "Softplus"}, true).Default(false);
         });
}

/// Whether a single number is learned: a function reads it alone, which no program leaves to be computed of a number
/// that it knows, or it is added to what a layer's weights made and to nothing else.
static bool isLearnedNumber(const MergedTensors &merged, const TensorFacts &facts) {
  auto isFunctionOf = [](const InitializerUse &use) {
    return llvm::is_contained({"Exp", "Tanh", "Sigmoid", "Softplus"}, StringRef(use.node->op_type()));
  };
  return llvm::any_of(facts.uses, isFunctionOf) || llvm::all_of(facts.uses, [&](const InitializerUse &use) {
           const NodeProto &node = *use.node;
           if (node.op_type() != "Add" || node.input_size() != 2 || facts.tensor->dims_size() == 0)
             return false;
           const NodeProto *product = merged.findProducer(node.input(1 - use.operand));
           if (product && product->op_type() == "Transpose")
             product = merged.findProducer(product->input(0));
           return product && llvm::StringSwitch<bool>(product->op_type())
                                 .Cases({"MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum", "FusedMatMul"}, true)
                                 .Default(false);
         });
}

/// Whether the old exporter evaluated the tensor from a parameter: a bias, or numbers that follow no rule.
static bool isEvaluatedParameter(const ModelView &file, const MergedTensors &merged, const TensorFacts &facts,
                                 StringRef name) {
  // Experts, of which those that a router chose are read.
  if (llvm::all_of(facts.uses, [](auto &use) { return use.node->op_type() == "GatherND" && use.operand == 0; }) &&
      followsNoRule(*facts.tensor, file.tryReadInitializer(facts.tensor->name()).value_or("")))
    return true;
  const bool isUnnamed = name.starts_with("Constant_"); // of a node without a name: a weight in some files
  if ((!isEvaluatedName(name) && !isUnnamed) || facts.uses.empty() || llvm::all_of(facts.uses, isSetting))
    return false;
  bool isVector = llvm::count_if(facts.tensor->dims(), [](int64_t dim) { return dim != 1; }) == 1;
  if (facts.getNumElements() > 1 &&
      (isAddedToProduct(merged, facts) || (isVector && (!findBiasName(merged, facts).empty() ||
                                                        (merged.isEvaluatedWhole() && adjustsLayer(merged, facts))))))
    return true;
  return !isUnnamed && (isFreshScale(file, merged, facts) || isExponent(file, facts) ||
                        followsNoRule(*facts.tensor, file.tryReadInitializer(facts.tensor->name()).value_or("")));
}

/// The same for a file of tf2onnx, where variables have names and everything else was evaluated.
static InitializerInfo classifyVariable(const ModelView &file, const MergedTensors &merged, const TensorFacts &facts,
                                        StringRef name, bool isWeight) {
  auto info = [&](InitializerRole role, Certainty certainty, Reason reason) {
    return makeInfo(facts, name.str(), role, certainty, std::move(reason));
  };
  if (isVariableRead(name) || isParameterName(name))
    return info(InitializerRole::Parameter, Certainty::Inferred, RoleReason::Variable);
  if (isWeight)
    return info(InitializerRole::Parameter, Certainty::Inferred, {RoleReason::ReadByLayer, {"weight or bias"}});
  if (facts.getNumElements() == 1)
    return info(InitializerRole::Constant, Certainty::Assumed, RoleReason::SingleNumber);
  if (isFoldedNorm(name))
    return info(InitializerRole::Parameter, Certainty::Assumed, RoleReason::FoldedNorm);
  Formula formula = isConstantValued(file, *facts.tensor).value_or(false) ? Formula::None : findFormula(file, facts);
  if (formula != Formula::None)
    return info(InitializerRole::Constant, Certainty::Inferred, holds(formula));
  const bool scales = scalesLayers(merged, facts);
  if (scales && isMovedVariable(name))
    return info(InitializerRole::Parameter, Certainty::Inferred, RoleReason::MovedVariable);
  if (scales || followsNoRule(*facts.tensor, file.tryReadInitializer(facts.tensor->name()).value_or("")))
    return info(InitializerRole::Parameter, Certainty::Assumed, RoleReason::EvaluatedParameter);
  return info(InitializerRole::Constant, Certainty::Assumed, RoleReason::UnreadByLayers);
}

/// The same for what paddle2onnx evaluated: biases and filters in another shape are parameters; scales of attention,
/// zeros that a recurrence begins with and factors of dropout are not.
static InitializerInfo classifyPaddleValue(const ModelView &file, const MergedTensors &merged, const TensorFacts &facts,
                                           StringRef name, bool isWeight) {
  auto info = [&](InitializerRole role, Certainty certainty, Reason reason) {
    return makeInfo(facts, name.str(), role, certainty, std::move(reason));
  };
  if (isWeight)
    return info(InitializerRole::Parameter, Certainty::Inferred,
                {RoleReason::ReadByLayer, {operandLeaf(*facts.uses.front().node, facts.uses.front().operand).str()}});
  if (facts.getNumElements() == 1 && !isMovedInPaddle(name))
    return info(InitializerRole::Constant, Certainty::Inferred, RoleReason::SingleNumber);
  if (isMovedInPaddle(name) && llvm::all_of(facts.uses, [&](const InitializerUse &use) {
        return llvm::is_contained({"Add", "Sub", "Mul", "Div"}, StringRef(use.node->op_type())) &&
               use.node->input_size() == 2 && comesFromLayer(merged, use.node->input(1 - use.operand));
      }))
    return info(InitializerRole::Parameter, Certainty::Inferred, RoleReason::MovedVariable);
  if (scalesLayers(merged, facts) ||
      followsNoRule(*facts.tensor, file.tryReadInitializer(facts.tensor->name()).value_or("")))
    return info(InitializerRole::Parameter, Certainty::Assumed, RoleReason::EvaluatedParameter);
  return info(InitializerRole::Constant, Certainty::Assumed, RoleReason::UnreadByLayers);
}

/// Whether zeros and ones, both of them, multiply something: a mask that a module keeps.
static bool isMaskOfFactors(const ModelView &file, const TensorFacts &facts) {
  auto multiplies = [](const InitializerUse &use) { return use.node->op_type() == "Mul"; };
  return llvm::all_of(facts.uses, multiplies) &&
         holdsMask(*facts.tensor, file.tryReadInitializer(facts.tensor->name()).value_or(""));
}

/// What the tensor is that is, or was, called `name`.
static InitializerInfo classify(const ModelView &file, const MergedTensors &merged, const TensorFacts &facts,
                                StringRef name) {
  auto info = [&](InitializerRole role, Certainty certainty, Reason reason) {
    return makeInfo(facts, name.str(), role, certainty, std::move(reason));
  };
  if (!facts.uses.empty() && llvm::any_of(facts.uses, isRunningStatistic))
    return info(InitializerRole::State, Certainty::Inferred, RoleReason::RunningStatistic);
  if (!isFloatType(facts.tensor->data_type()))
    return info(InitializerRole::Constant, Certainty::Inferred, RoleReason::NoFloat);
  if (!facts.isUsed())
    return info(InitializerRole::Constant, Certainty::Inferred, RoleReason::Unread);
  if (isBufferLeaf(leafOf(name)) || isPowerIteration(file, facts, name))
    return info(InitializerRole::Constant, Certainty::Assumed, RoleReason::BufferName);
  if (llvm::all_of(facts.uses, isSetting) && !isLearnedExponent(file, facts))
    return info(InitializerRole::Constant, Certainty::Inferred, RoleReason::Setting);
  if (fillsBias(file, facts))
    return info(InitializerRole::Constant, Certainty::Inferred, RoleReason::FillsBias);
  bool isWeight = llvm::any_of(facts.uses, [&](const InitializerUse &use) {
    return !operandLeaf(*use.node, use.operand).empty() && use.node->op_type() != "Add" && !isFusedSum(facts, use) &&
           !isFirstState(file, facts, use);
  });
  if (merged.isTensorFlow())
    return classifyVariable(file, merged, facts, name, isWeight);
  if (merged.isPaddle() && isPaddleValue(name))
    return classifyPaddleValue(file, merged, facts, name, isWeight);
  SmallVector<const NodeProto *> products = findProducts(merged, facts);
  bool isFactor = !products.empty() && !(isInventedName(name) && isLayer(merged, products));
  if (isFactor && !isParameterName(name) && facts.tensor->dims_size() == 2 && makesFourierFeatures(merged, products))
    return info(InitializerRole::Constant, Certainty::Assumed, RoleReason::FourierFactor);
  if (isInventedName(name)) {
    // What `/layer/Constant` computes was a number in the program: parameters are initializers there.
    if (!isWeight && isEvaluatedParameter(file, merged, facts, name)) {
      std::string bias = findBiasName(merged, facts);
      std::string likely = !bias.empty()                     ? bias
                           : isAddedToProduct(merged, facts) ? likelyName(facts, name, merged)
                                                             : name.str();
      return makeInfo(facts, likely, InitializerRole::Parameter, Certainty::Assumed, RoleReason::EvaluatedParameter);
    }
    if (!isWeight || name.contains("/Constant")) {
      Formula formula = findFormula(file, facts);
      return formula == Formula::None ? info(InitializerRole::Constant, Certainty::Assumed, RoleReason::InventedName)
                                      : info(InitializerRole::Constant, Certainty::Inferred, holds(formula));
    }
    if (Formula formula = isFactor ? findFormula(file, facts) : Formula::None; formula != Formula::None)
      return info(InitializerRole::Constant, Certainty::Inferred, holds(formula));
    InitializerInfo folded = makeInfo(facts, likelyName(facts, name, merged), InitializerRole::Parameter,
                                      Certainty::Assumed, RoleReason::FoldedWeight);
    // Constant folding turns x·Wᵀ into x·V.
    if (facts.tensor->dims_size() == 2 &&
        (findEvaluatedOperator(name) == "Transpose" || multipliesAsItStands(*facts.uses.front().node))) {
      folded.transposed = {1, 0};
      folded.sourceShape = SmallVector<int64_t>{facts.tensor->dims(1), facts.tensor->dims(0)};
    }
    return folded;
  }
  bool isNamed = isParameterName(name);
  if (isWeight && !isNamed &&
      llvm::all_of(facts.uses,
                   [](const InitializerUse &use) { return use.node->op_type() == "Conv" && use.operand == 1; }) &&
      repeatsFilter(*facts.tensor, file.tryReadInitializer(facts.tensor->name()).value_or("")))
    return info(InitializerRole::Constant, Certainty::Inferred, RoleReason::RepeatedFilter);
  // Programs transform and accumulate by products with matrices; filters begin with formulas, too, and are trained.
  if (Formula formula = (isWeight && !isFactor) || isNamed ? Formula::None : findFormula(file, facts);
      formula != Formula::None)
    return info(InitializerRole::Constant, Certainty::Inferred, holds(formula));
  // PyTorch's own numbers have invented names: a plain one is a tensor's of the root module.
  bool isPyTorch = file.getModel().producer_name() == "pytorch";
  // Without notes, those of the current exporter have names of operations.
  bool isNumber = !isPyTorch || (isOfCurrentExporter(file.getModel().graph()) &&
                                 (movesElements(name) || isElementOperation(operationName(name))));
  if (facts.getNumElements() == 1 && !name.contains('.') && !isWeight && !isNamed && isNumber &&
      !isLearnedNumber(merged, facts))
    return info(InitializerRole::Constant, Certainty::Assumed, RoleReason::NumberWithoutModule);
  if (isWeight)
    return info(InitializerRole::Parameter, Certainty::Inferred,
                {RoleReason::ReadByLayer, {operandLeaf(*facts.uses.front().node, facts.uses.front().operand).str()}});
  if (isNamed)
    return info(InitializerRole::Parameter, Certainty::Inferred, RoleReason::ParameterName);
  if (isMaskOfFactors(file, facts))
    return info(InitializerRole::Constant, Certainty::Assumed, holds(Formula::Mask));
  return info(InitializerRole::Parameter, Certainty::Assumed, RoleReason::NothingAgainst);
}

/// A number that is no count of several: those come from shapes. Parameters begin at zero or one.
static bool isNoCount(const ModelView &file, const TensorFacts &facts) {
  std::string bytes = file.tryReadInitializer(facts.tensor->name()).value_or("");
  float value = 0;
  if (facts.tensor->data_type() != ::onnx::TensorProto::FLOAT || bytes.size() != sizeof(value))
    return false;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value == 0 || value == 1 || value != std::floor(value);
}

/// Whether the name is of what was evaluated to one element, or moved: `onnx::Mul_36`, where the exporter did it, and
/// `/net/Gather_output_0`, where a cleaner did.
static bool isElementTaken(StringRef name) {
  return name.starts_with("onnx::") ||
         llvm::is_contained({"Gather", "GatherND", "GatherElements", "Slice", "Split", "Squeeze", "Reshape", "Flatten"},
                            findEvaluatedOperator(name));
}

/// Whether a tensor that is left as a constant may be what the exporter made of a parameter: it has an invented name
/// that is no `Constant` node's, and its values tell nothing.
static bool mayBeEvaluated(const ModelView &file, const TensorFacts &facts, const InitializerInfo &info) {
  StringRef name = facts.tensor->name();
  return info.role == InitializerRole::Constant && isInventedName(name) &&
         (!name.contains("Constant") || name.starts_with("Constant_")) && isFloatType(facts.tensor->data_type()) &&
         facts.isUsed() && (facts.getNumElements() > 1 || (isElementTaken(name) && isNoCount(file, facts))) &&
         !llvm::all_of(facts.uses, isSetting) && findFormula(file, facts) == Formula::None;
}

/// Whether layers of several modules read the tensor in the same way.
static bool isReadByLayers(const TensorFacts &facts) {
  std::set<std::string> modules;
  for (const InitializerUse &use : facts.uses) {
    std::optional<std::string> module = findModulePath(*use.node);
    if (!module || use.node->op_type() != facts.uses.front().node->op_type())
      return false;
    modules.insert(*module);
  }
  return facts.getNumElements() > 1 && modules.size() > 1;
}

/// Constants of equal value stay one.
static InitializerInfo *findConstant(std::vector<InitializerInfo> &infos, size_t first) {
  for (size_t i = first; i != infos.size(); ++i)
    if (infos[i].role == InitializerRole::Constant)
      return &infos[i];
  return nullptr;
}

namespace {
/// What names and values leave open: warned about once, for all tensors together.
class Doubts {
public:
  Doubts(ModelView &file, const MergedTensors &merged) : file(file), merged(merged) {}

  /// `info` is what was concluded about `part` of a tensor.
  void note(const MergedTensor &part, const InitializerInfo &info);
  /// `apart`: names of parameters that the exporter had merged, the first in tensor `first`.
  void report(ArrayRef<std::string> apart, StringRef first) const;

private:
  using Names = SmallVector<std::string>;
  void warn(FindingKind kind, const Names &names, StringRef folding, StringRef training) const {
    if (!names.empty())
      file.getReport().add({kind,
                            names.front(),
                            {names.begin(), names.end()},
                            {{"number", std::to_string(names.size())},
                             {"export with do_constant_folding=False", folding.str()},
                             {"export in training form", training.str()}}});
  }

  ModelView &file;
  const MergedTensors &merged;
  Names frozen, shared, trained, tables, computed, convolutions;
  std::string folded; ///< the first whose name is guessed
};
} // namespace

void Doubts::note(const MergedTensor &part, const InitializerInfo &info) {
  const bool isParameter = info.role == InitializerRole::Parameter, isInvented = isInventedName(info.tensor);
  // A table may begin by a formula and be trained; no one trains masks, or transforms by products.
  if (info.reason.is(RoleReason::FourierFactor) ||
      (info.reason.is(RoleReason::Mask) && info.certainty == Certainty::Assumed) ||
      (info.reason.is(RoleReason::Formula) && !isInvented && findProducts(merged, part.facts).empty()))
    tables.push_back(info.tensor);
  else if (mayBeEvaluated(file, part.facts, info))
    frozen.push_back(info.tensor);
  // A weight that was only turned is known by its layer; what else was evaluated goes by no name of the program.
  const StringRef op = findEvaluatedOperator(info.tensor);
  if (info.reason.is(RoleReason::EvaluatedParameter) ||
      (info.reason.is(RoleReason::FoldedWeight) && !op.empty() && op != "Transpose"))
    trained.push_back(info.tensor);
  if (!isParameter)
    return;
  if (isInvented && isReadByLayers(part.facts))
    shared.push_back(info.tensor);
  if (isInvented && seemsComputed(*part.facts.tensor, file.tryReadInitializer(info.tensor).value_or("")))
    computed.push_back(info.tensor);
  if (folded.empty() && (info.name != part.name || info.reason.is(RoleReason::FoldedWeight)))
    folded = info.tensor;
  // The old exporter's inference mode merges batch norms into convolutions and numbers the results.
  const InitializerUse &use = part.facts.uses.front();
  if ((StringRef(info.tensor).starts_with("onnx::Conv_") && operandLeaf(*use.node, use.operand) == "weight") ||
      (merged.isTensorFlow() && isFoldedNorm(info.tensor)))
    convolutions.push_back(info.name);
}

void Doubts::report(ArrayRef<std::string> apart, StringRef first) const {
  const bool isTensorFlow = merged.isTensorFlow(), saysRoles = isTensorFlow || merged.isPaddle();
  const StringRef unfold =
      saysRoles ? "say what is a parameter and what is not: --params=+<initializer>, --frozen=<initializer>"
                : "export with do_constant_folding=False";
  const StringRef unfoldTraining =
      isTensorFlow ? "export a function that calls the model with training=True, without dropout"
                   : "export with training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False";
  if (!apart.empty())
    file.getReport().add(
        {FindingKind::LayersApart,
         first.str(),
         apart,
         {{"or export in training form", isTensorFlow ? "or begin with unlike numbers" : unfoldTraining.str()}}});
  const std::string plain = unfold.str();
  warn(FindingKind::LayersTied, shared, plain, unfoldTraining);
  warn(FindingKind::EvaluatedTrained, trained,
       plain + (saysRoles ? "" : ", or freeze what is a buffer: --frozen <initializer>"), unfoldTraining);
  warn(FindingKind::EvaluatedWeights, computed, plain, unfoldTraining);
  warn(FindingKind::FormulasNotTrained, tables, plain, unfoldTraining);
  warn(FindingKind::EvaluatedNotTrained, frozen,
       plain + (saysRoles ? "" : ", or train what is a parameter in another order: --params=+<initializer>"),
       unfoldTraining);
  if (!convolutions.empty())
    file.getReport().add({FindingKind::ConvolutionsFolded,
                          folded,
                          {convolutions.begin(), convolutions.end()},
                          {{"export in training form", unfoldTraining.str()}}});
  else if (!folded.empty())
    file.getReport().add({FindingKind::NamesGuessed,
                          folded,
                          {},
                          {{"initializer", quoteName(folded)}, {"export with do_constant_folding=False", plain}}});
}

void lowtide::classifyByName(ModelView &file, ArrayRef<TensorFacts> facts, const llvm::StringSet<> &ofFewBits,
                             std::vector<InitializerInfo> &infos) {
  reportFoldedNorms(file);
  reportRemovedDropout(file);
  reportRemovedArithmetic(file);
  SmallVector<size_t> apart;
  MergedTensors merged(file, facts);
  Doubts doubts(file, merged);
  llvm::StringSet<> buffers = findBuffersByOrder(file, facts);
  for (const TensorFacts &fact : facts) {
    if (!fact.isUsed())
      continue;
    if (ofFewBits.contains(fact.tensor->name())) {
      infos.push_back(describeFewBits(fact));
      continue;
    }
    size_t first = infos.size();
    for (const MergedTensor &part : merged.split(fact)) {
      InitializerInfo info = classify(file, merged, part.facts, part.name);
      if (info.role == InitializerRole::Parameter && buffers.contains(part.name))
        info = makeInfo(part.facts, part.name, InitializerRole::Constant, Certainty::Inferred,
                        RoleReason::ListedAfterBuffer);
      info.uses.assign(part.uses.begin(), part.uses.end());
      if (info.role == InitializerRole::Constant)
        if (InitializerInfo *same = findConstant(infos, first)) {
          same->uses.insert(same->uses.end(), part.uses.begin(), part.uses.end());
          continue;
        }
      doubts.note(part, info);
      if (part.reason && info.role != InitializerRole::Constant) {
        info.reason = *part.reason;
        info.certainty = part.isAssumed ? Certainty::Assumed : Certainty::Inferred;
        if (part.isAssumed)
          apart.push_back(infos.size());
      }
      infos.push_back(std::move(info));
    }
  }
  findTransposedTies(file, infos);
  nameTiedModules(file, infos);
  llvm::erase_if(apart, [&](size_t i) { return infos[i].viewOf.has_value(); });
  doubts.report(llvm::map_to_vector(apart, [&](size_t i) { return infos[i].name; }),
                apart.empty() ? StringRef() : StringRef(infos[apart.front()].tensor));
  keepFrozenNorms(file, infos);
  reportLostNotes(file, infos);
  reportBufferWords(file, infos);
  reportCopiedModules(file, infos);
}

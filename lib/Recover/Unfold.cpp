//===- Unfold.cpp - parameters out of what an exporter evaluated -----------------===//
//
// Ordered tables of rules: for which files each is, what was evaluated, and what comes back. The table of
// docs/import.md is printed from them.
//
//===----------------------------------------------------------------------===//

#include "Unfold.h"

#include "Classifier.h"
#include "ElementFunctions.h"
#include "LostBiases.h"
#include "TensorFlowNames.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// Evaluated tensors with a parameter among their sources, by name; those that cannot be taken apart are left out.
/// `images` gets those of which a parameter is in the file in another form.
static StringMap<Evaluated> findEvaluated(const UnfoldingGraph &graph, const Signature &signature,
                                          std::vector<Evaluated> &images) {
  StringMap<Evaluated> found;
  StringMap<unsigned> readers;
  StringSet<> outputs;
  for (const auto &output : graph.getGraph().output())
    outputs.insert(output.name());
  for (const auto &value : graph.getGraph().value_info()) {
    const TensorProto *tensor = graph.find(value.name());
    if (!tensor || graph.isRemoved(value.name()) || signature.findTarget(value.name()) ||
        outputs.contains(value.name()) || !isFloatType(tensor->data_type()))
      continue;
    Evaluated evaluated{tensor, findFoldedFrom(value), {}};
    for (const std::string &name : evaluated.foldedFrom)
      if (const SignatureEntry *entry = signature.findTarget(name); entry && entry->kind == SignatureEntry::Parameter) {
        evaluated.parameters.push_back(entry);
        ++readers[entry->target];
      }
    if (!evaluated.parameters.empty())
      found[value.name()] = std::move(evaluated);
  }
  for (StringRef name : to_vector(found.keys()))
    if (any_of(found[name].parameters,
               [&](const SignatureEntry *entry) { return readers[entry->target] > 1 || graph.find(entry->target); })) {
      images.push_back(std::move(found[name]));
      found.erase(name);
    }
  return found;
}

/// Whether the tensor is constant along one of its dimensions: it began so, and has nothing random.
static bool isRegular(const TensorProto &tensor, StringRef bytes) {
  size_t inner = findElementType(tensor.data_type())->bytes;
  if (bytes.empty())
    return false;
  for (int axis = tensor.dims_size(); axis-- > 0;) {
    size_t size = size_t(tensor.dims(axis)), outer = bytes.size() / (inner * size);
    bool isConstant = size > 1;
    for (size_t o = 0; isConstant && o != outer; ++o)
      for (size_t i = 1; isConstant && i != size; ++i)
        isConstant = bytes.substr((o * size + i) * inner, inner) == bytes.substr(o * size * inner, inner);
    if (isConstant)
      return true;
    inner *= size;
  }
  return false;
}

/// Evaluated tensors of equal value are merged, too. A use in another module, which lacks a parameter of that name,
/// gets a tensor of its own, evaluated from that one.
static void splitMerged(UnfoldingGraph &graph, GraphProto &proto, const Signature &signature,
                        StringMap<Evaluated> &evaluated) {
  StringSet<> present;
  for (const auto &value : proto.value_info())
    for (const std::string &name : findFoldedFrom(value))
      present.insert(name);
  for (StringRef name : to_vector(evaluated.keys())) {
    Evaluated whole = evaluated[name];
    const std::string &owner = whole.parameters.front()->target;
    std::optional<std::string> bytes;
    int64_t elements = checkedElements({whole.tensor->dims().data(), size_t(whole.tensor->dims_size())}).value_or(0);
    if (whole.parameters.size() != 1 || elements < 2 || elements > largestMerged ||
        !(bytes = graph.read(*whole.tensor)) || !isRegular(*whole.tensor, *bytes))
      continue;
    // Equal elements that were only moved are taken apart use by use (ParametersFromSignature.cpp).
    size_t width = findElementType(whole.tensor->data_type())->bytes;
    if (movesElements(name) && hasEqualElements(*bytes, width))
      continue;
    for (int i = 0, e = proto.node_size(); i != e; ++i) {
      NodeProto &node = *proto.mutable_node(i);
      std::optional<std::string> module = findModulePath(node);
      if (!module || *module == moduleOf(owner) || !is_contained(node.input(), name))
        continue;
      std::string other = (module->empty() ? "" : *module + ".") + leafOf(owner).str();
      const SignatureEntry *entry = signature.findTarget(other);
      if (!entry || entry->kind != SignatureEntry::Parameter || graph.find(other) || present.contains(other))
        continue;
      std::string copy = (name + "@" + other).str();
      for (std::string &input : *node.mutable_input())
        if (input == name)
          input = copy;
      if (graph.find(copy))
        continue;
      graph.addCopy(*whole.tensor, copy, *bytes, owner, other);
      Evaluated &part = evaluated[copy];
      part = {graph.find(copy), whole.foldedFrom, {entry}};
      std::replace(part.foldedFrom.begin(), part.foldedFrom.end(), owner, other);
    }
  }
}

/// A table that was read several times at the same positions, as relative positions are in each layer, is evaluated
/// once; the others, in pairs with that one's name, become copies of it.
static std::vector<std::pair<std::string, std::string>>
joinRepeated(const UnfoldingGraph &graph, std::vector<Evaluated> &images, StringMap<Evaluated> &evaluated) {
  std::vector<std::pair<std::string, std::string>> copies;
  StringMap<SmallVector<const Evaluated *>> groups;
  for (const Evaluated &each : images)
    if (each.parameters.size() == 1 && !graph.find(each.parameters.front()->target) &&
        (isGather(each.tensor->name()) || any_of(each.foldedFrom, isGather)))
      groups[each.parameters.front()->target].push_back(&each);
  StringSet<> joined;
  for (const auto &group : groups) {
    const Evaluated &first = *group.second.front();
    std::string bytes = graph.read(*first.tensor).value_or("");
    auto isSame = [&](const Evaluated *other) {
      return operationName(other->tensor->name()) == operationName(first.tensor->name()) &&
             ArrayRef(other->tensor->dims().data(), size_t(other->tensor->dims_size())) ==
                 ArrayRef(first.tensor->dims().data(), size_t(first.tensor->dims_size())) &&
             graph.read(*other->tensor) == bytes;
    };
    if (group.second.size() < 2 || bytes.empty() || !all_of(group.second, isSame))
      continue;
    for (const Evaluated *each : group.second)
      joined.insert(each->tensor->name());
    for (const Evaluated *other : ArrayRef(group.second).drop_front())
      copies.emplace_back(other->tensor->name(), first.tensor->name());
    evaluated[first.tensor->name()] = first;
  }
  llvm::erase_if(images, [&](const Evaluated &each) { return joined.contains(each.tensor->name()); });
  return copies;
}

namespace {
/// Which files a rule is for.
enum class Files { All, WithNotes, WithoutNotes, OfTensorFlow };

/// A file whose evaluated tensors are taken apart.
struct Unfolding {
  UnfoldingGraph graph;
  GraphProto &proto;
  Signature signature;
  /// By name, tensors whose parameters are gone and were evaluated into no other tensor.
  StringMap<Evaluated> evaluated = {};
  /// Other evaluated tensors of parameters.
  std::vector<Evaluated> images = {};
  /// Tensors that are copies of another.
  std::vector<std::pair<std::string, std::string>> copies = {};
  /// Tensors that are parts of a value that was put together again.
  std::vector<StackedPart> stacked = {};
  /// Per evaluated tensor, what it was evaluated from.
  StringMap<std::vector<std::string>> notes = {};

  bool isFor(Files files) const {
    return files == Files::All || (files == Files::OfTensorFlow && isOfTensorFlow(proto)) ||
           (files != Files::OfTensorFlow && signature.isPresent() == (files == Files::WithNotes));
  }
  /// Whether the exporter evaluated the initializer.
  bool isImage(const TensorProto &tensor) const {
    return signature.isPresent() ? notes.contains(tensor.name()) && !signature.findTarget(tensor.name())
                                 : isEvaluatedName(tensor.name());
  }
};

struct UnfoldingRule {
  void (*apply)(Unfolding &);
  Files files;
  /// Empty: a step that no file shows.
  const char *evaluated, *restores;
};

/// Of an operand that was evaluated; `evaluated` is null in files without notes. Returns whether it was taken apart.
struct OperandRule {
  bool (*apply)(Unfolding &, const NodeProto &node, int operand, const Evaluated *evaluated);
  Files files;
  const char *evaluated, *restores;
};

/// Of a tensor whose parameters are gone. Returns whether it was taken apart.
struct TensorRule {
  bool (*apply)(Unfolding &, const Evaluated &);
  const char *evaluated, *restores;
};
} // namespace

/// A step of the graph alone.
template <void (*step)(UnfoldingGraph &, GraphProto &)> static void ofGraph(Unfolding &all) {
  step(all.graph, all.proto);
}
template <void (*step)(UnfoldingGraph &, GraphProto &, const Signature &)> static void ofProgram(Unfolding &all) {
  step(all.graph, all.proto, all.signature);
}
template <bool (*rule)(UnfoldingGraph &, const Evaluated &)>
static bool ofTensor(Unfolding &all, const Evaluated &evaluated) {
  return rule(all.graph, evaluated);
}

static void unfoldSingleBiases(Unfolding &all) {
  for (const NodeProto *node : map_to_vector(all.proto.node(), [](const NodeProto &n) { return &n; }))
    unfoldSingleBias(all.graph, *node);
}

static void unfoldConversions(Unfolding &all) {
  all.evaluated = findEvaluated(all.graph, all.signature, all.images);
  const int32_t type = findParameterType(all.graph, all.signature);
  llvm::erase_if(all.images, [&](const Evaluated &each) { return unfoldConversion(all.graph, each, type); });
  for (StringRef name : to_vector(all.evaluated.keys()))
    if (unfoldConversion(all.graph, all.evaluated[name], type))
      all.evaluated.erase(name);
}

static void readNotes(Unfolding &all) {
  for (const auto &value : all.proto.value_info())
    if (std::vector<std::string> names = findFoldedFrom(value); !names.empty())
      all.notes[value.name()] = std::move(names);
}

static void unfoldMovedImages(Unfolding &all) {
  llvm::erase_if(all.images, [&](const Evaluated &each) { return unfoldCopy(all.graph, each); });
  llvm::erase_if(all.images, [&](const Evaluated &each) { return unfoldMoved(all.graph, each); });
}

static void unfoldAllForms(Unfolding &all) {
  unfoldForms(all.graph, all.proto, [&](const TensorProto &tensor) { return all.isImage(tensor); });
}

/// Whether functions made parts of a tensor (`cat([w, -w])`), which are then neither numbers nor another parameter.
static bool joinsFunctions(const Unfolding &all, StringRef name) {
  const std::vector<std::string> made = all.notes.lookup(name);
  auto isGone = [&](StringRef from) {
    const SignatureEntry *entry = all.signature.findTarget(from);
    return entry && entry->kind == SignatureEntry::Parameter && !all.graph.find(from);
  };
  return none_of(made, isGone) && any_of(made, [&](StringRef from) {
           return !all.signature.findTarget(from) && isElementOperation(operationName(from));
         });
}

static void unfoldAllJoined(Unfolding &all) {
  unfoldJoined(
      all.graph, all.proto,
      [&](const TensorProto &tensor) { return all.isImage(tensor) && !joinsFunctions(all, tensor.name()); },
      [&](const TensorProto &tensor) -> std::optional<std::vector<std::string>> {
        if (!all.signature.isPresent())
          return std::nullopt;
        std::vector<std::string> gone = all.notes.lookup(tensor.name());
        llvm::erase_if(gone, [&](const std::string &name) {
          const SignatureEntry *entry = all.signature.findTarget(name);
          return !entry || entry->kind != SignatureEntry::Parameter || all.graph.find(name);
        });
        return gone;
      });
}

static void copyRepeated(Unfolding &all) {
  for (const auto &[copy, original] : all.copies)
    if (const TensorProto *tensor = all.graph.find(copy); all.graph.isRemoved(original)) {
      all.graph.addNode("Identity", {original}, copy);
      all.graph.remove(*tensor);
    }
}

/// Without notes: tensors with the names of operations, of tensors with names of parameters.
static void recoverNamedFunctions(Unfolding &all) {
  SmallVector<const TensorProto *> held, named;
  // Without its notes, what the current exporter evaluated goes by the operation's name.
  const bool isCurrent = isOfCurrentExporter(all.proto);
  for (const TensorProto &tensor : all.proto.initializer())
    if (!all.graph.isRemoved(tensor.name()) &&
        (isEvaluatedName(tensor.name()) || (isCurrent && isElementOperation(operationName(tensor.name())))))
      held.push_back(&tensor);
    else if (!all.graph.isRemoved(tensor.name()) && !isInventedName(tensor.name()))
      named.push_back(&tensor);
  recoverFunctions(all.graph, all.proto, held, named);
  for (const TensorProto *tensor : held)
    if (!all.graph.isRemoved(tensor->name()))
      unfoldFunction(all.graph, *tensor);
}

static const UnfoldingRule firstRules[] = {
    {ofProgram<unfoldHeldTensors>, Files::WithNotes,
     "copies of parameters that the program holds in a list or a dictionary as well (`lifted_tensor_3`), of which "
     "terms "
     "of the loss are made: penalties on weights, which have no gradient then",
     "the parameter that equals the copy bit by bit, if there is one; otherwise, and of what was evaluated, a warning. "
     "Other copies of parameters are warned about, and parameters that nothing reads where the file "
     "holds such tensors"},
    {ofProgram<unfoldMergedReaders>, Files::WithNotes,
     "layers, tokens and modulations of parameters that began equal (two tokens of zeros, a layer and its copy, "
     "adaLN-zero in every block): the nodes that read them became one, too. Where the notes of whoever reads the "
     "result name as many values as parameters are gone",
     "the others, with nodes of their own"},
    {ofProgram<unfoldMergedImages>, Files::WithNotes,
     "functions that began equal (`sigmoid(g)` of two gates, `sigmoid(g)` and `1 - sigmoid(g)` at one half, `exp(s)` "
     "and a scale of ones), where the reader's notes name another value",
     "the other parameter, or nodes that compute one minus it, with a warning. What nothing decides is refused, or "
     "warned about where the exporter may have dropped `x * 1`"},
    {ofProgram<unfoldAverages>, Files::WithNotes, "`m · avg` of a buffer that the program assigns a running average",
     "the buffer; m is one minus the factor of what is added, with a warning"},
    {ofGraph<restoreNamedBiases>, Files::WithoutNotes, "a product called after the sum that it was an operand of",
     "its bias of zeros, with a warning"},
    {ofGraph<restoreRewrittenBiases>, Files::WithoutNotes,
     "in cleaned files of the current exporter, `Gemm` and `Conv` that give what operations with a bias gave",
     "their biases of zeros, with a warning"},
    {ofGraph<unfoldMergedCopies>, Files::WithoutNotes,
     "a copy with an invented name of a tensor that is no transpose of itself",
     "at one half, one minus the parameter; at zero and read by `Exp`, its negative; otherwise the parameter; with a "
     "warning"},
    {ofGraph<joinRepeatedRecurrent>, Files::WithoutNotes,
     "tensors of a recurrent layer that runs again, evaluated for each run", "one set of tensors"},
    {ofGraph<joinCopiedWeights>, Files::WithoutNotes,
     "equal weights of a layer that runs again, one for each run (`/net/key_1/MatMul`, or with one bias), as onnxslim "
     "writes them",
     "one weight"},
    {ofGraph<unfoldNarrow>, Files::WithoutNotes, "what a layer reads next to a conversion to 16 bits of the same type",
     "the parameter, in the type of the other parameters (f32), and a cast; with a warning where it was rounded"},
    {ofGraph<unfoldNamelessStates>, Files::WithoutNotes,
     "first states of a recurrent layer, of invented names, that are not zero and equal for all samples",
     "one state, called as the layer, with a warning"},
    {unfoldSingleBiases, Files::OfTensorFlow, "the two biases of a recurrent layer, of which TensorFlow has one",
     "one bias, and zeros"},
    {ofProgram<forgetShapes>, Files::WithNotes,
     "numbers made of a parameter's shape alone (`zeros_like`, the scale and the causal mask of attention, the layout "
     "of a recurrent layer's weights by its first state)",
     "constants"},
    {ofProgram<unfoldHiddenRows>, Files::WithNotes,
     "a mask of attention by truth values that depend on no input, hidden by the lowest finite number",
     "−∞: a query that sees no key has zeros for weights"},
    {ofProgram<unfoldOperands>, Files::WithNotes,
     "steps of an operation: a learned query or key of `scaled_dot_product_attention`, times the root of its scale; "
     "w and 1 − w of `lerp(x, y, w)`; c · w of `addcmul(x, w, y, value=c)`, also where c is one, and of `add(x, w, "
     "alpha=c)`",
     "what the program reads there, and the steps: the parameter, or what was evaluated of it"},
    {ofProgram<unfoldAddedBuffers>, Files::WithNotes,
     "a buffer of one number plus a function of a parameter (`beta + softplus(alpha)`)", "the function's result"},
    {ofProgram<unfoldMaskedWeights>, Files::WithNotes,
     "a weight times a mask of its module (`weight * self.mask`), whose name says so",
     "the weight, zero where the mask hides it, and the product with zeros and ones, with a warning"},
    {ofProgram<unfoldComplexParts>, Files::WithNotes,
     "real and imaginary parts of a parameter that the program reads as complex numbers (`view_as_complex(w)`)",
     "the parameter, and slices of it"},
    {ofProgram<unfoldEqualStates>, Files::WithNotes,
     "first states of a recurrent layer that began equal, as of zeros, and were merged",
     "the parameters, by the operands of the program's operation; of one that no note names, with a warning"},
    {ofProgram<unfoldEqualParts>, Files::WithNotes,
     "parts of a parameter that began equal (`bias[i]`), read in turn with those of another (`kernels[i]`)",
     "as many parts as the other has, with a warning"},
    {unfoldConversions, Files::All,
     "a conversion of a parameter to another type (`torch.autocast`, `weight.half()`), also transposed",
     "the parameter, in the type of the other parameters (f32), and a cast; with a warning where the conversion "
     "rounded it"},
    {[](Unfolding &all) { all.copies = joinRepeated(all.graph, all.images, all.evaluated); }, Files::All,
     "a table that was read several times at the same positions, as relative positions are in each layer",
     "one table for all that read it"},
    {[](Unfolding &all) { unfoldRepeatedParts(all.graph, all.images); }, Files::WithNotes,
     "parts of a parameter (`k, v = self.mem_kv`), each repeated for every sample",
     "the parameter, and what takes and repeats its parts, with a warning"},
    {[](Unfolding &all) { all.stacked = stackParts(all.graph, all.images, all.evaluated); }, Files::WithNotes,
     "parts of a value that was made of a parameter once (`b[i]` of `b = table[:, positions]`, `g[i]` of `g = "
     "gate.sigmoid()`), of which the file holds only those",
     "the value, of which the rules below make the parameter, with a warning where the file does not tell which part "
     "is "
     "which"},
    {[](Unfolding &all) { splitMerged(all.graph, all.proto, all.signature, all.evaluated); }, Files::All,
     "evaluated tensors of equal value, read in modules that lack a parameter of that name", "a parameter for each"},
};

static const OperandRule operandRules[] = {
    {[](Unfolding &all, const NodeProto &node, int operand, const Evaluated *evaluated) {
       return unfoldRecurrent(all.graph, node, operand, evaluated);
     },
     Files::All, "weights of `LSTM`, `GRU`, `RNN`: gates in ONNX's order, directions stacked, both biases joined",
     "the four tensors of each layer and direction, gates in PyTorch's order (without notes, too: the operand tells)"},
    {[](Unfolding &all, const NodeProto &node, int, const Evaluated *evaluated) {
       return unfoldBilinear(all.graph, node, *evaluated);
     },
     Files::WithNotes, "the weight of a bilinear layer, as a matrix [left, outputs · right]",
     "the weight [outputs, left, right]"},
    {[](Unfolding &all, const NodeProto &node, int operand, const Evaluated *) {
       return unfoldPositions(all.graph, node, operand);
     },
     Files::WithoutNotes, "rows of a table of relative positions, which a node adds to scores",
     "the table, as below; of names other than `relative_position_bias_table` with a warning"},
    {[](Unfolding &all, const NodeProto &node, int operand, const Evaluated *) {
       return unfoldWeightNorm(all.graph, node, operand);
     },
     Files::WithoutNotes, "a layer's weight that was evaluated while its bias was not",
     "direction and length of a weight norm, with a warning, unless its numbers show another normalization, or its "
     "module calls others"},
    {[](Unfolding &all, const NodeProto &node, int operand, const Evaluated *) {
       return unfoldStandardized(all.graph, node, operand);
     },
     Files::WithoutNotes,
     "a layer's weight as a matrix that a batch norm standardizes, and once more turned, for its statistics",
     "the weight in the shape in which the layer reads the result, with a warning"},
};

static const TensorRule tensorRules[] = {
    {[](Unfolding &all, const Evaluated &evaluated) { return unfoldFunction(all.graph, evaluated); },
     "a function of one parameter that has an inverse: `exp`, `log`, `neg`, `sigmoid`, `tanh`, `softplus`, `sqrt`, "
     "`rsqrt`, `reciprocal`, two of them if their order is known",
     "the parameter, computed in f64 (of `softplus`, with beta 1 and a warning: the exporter writes it in steps)"},
    {ofTensor<unfoldShifted>, "1 + w of a norm's scale", "the difference from one"},
    {[](Unfolding &all, const Evaluated &evaluated) { return unfoldWeightNorm(all.graph, evaluated); },
     "g · v / \\|v\\| of a weight norm", "direction and length, as if \\|v\\| were g, with a warning"},
    {[](Unfolding &all, const Evaluated &evaluated) {
       return unfoldQueryBiases(all.graph, all.proto, all.signature, evaluated);
     },
     "biases of queries and values, joined around zeros (`q_bias`, `v_bias` of BEiT, EVA, Swin v2)",
     "both, and the zeros between them as a constant"},
    {[](Unfolding &all, const Evaluated &evaluated) {
       return unfoldSeveral(all.graph, &evaluated, countSamples(all.proto));
     },
     "functions of one parameter of which at least one has an inverse, also repeated for each sample "
     "(`Normal(u, s.exp()).log_prob(x)`: log(exp(s)) and 2 · exp(s)²)",
     "the parameter, and nodes that compute all of them; values that the program computes once go by one name in all, "
     "which tells the order; of repeated ones with a warning, for the shape of one sample is assumed"},
    {[](Unfolding &all, const Evaluated &evaluated) { return unfoldMixture(all.graph, &evaluated); },
     "the softmax of a parameter over all its elements (`w.softmax(0)`), also read one number after another (`[i]`, "
     "`unbind`), or over one dimension of a table (`w.softmax(-1)`)",
     "the parameter up to a number that is added to all elements of a distribution, which changes no gradient, and "
     "weight decay alone; with a warning"},
    {ofTensor<unfoldGathered>,
     "rows of a table gathered or repeated at constant positions (relative position biases, expanded tokens, a token "
     "that is assigned at several places), also under a mask (of a huge negative number, or of one number in some "
     "windows: a sum that is it bit by bit, with a "
     "warning); a token or table of one number everywhere: repeated for each sample (the first dimension of all "
     "inputs; a `…token` for each place, too), looked up at positions that are one number (`zeros`), or read as a "
     "table "
     "called `relative_position_bias_table` is",
     "the table: rows that agree bit by bit are one row (a column, where `table[:, positions]` read it). Rows follow "
     "the numbering of T5, Swin, BEiT or clipped "
     "distances if the positions do, and otherwise their first occurrence; the name tells which way distances are "
     "counted (`rel_pos_h`), or a warning does. Rows that no position reads are not in the file. Positions that a "
     "buffer held (`position_ids`) are taken to begin at 0, with a warning"},
};

static const UnfoldingRule lastRules[] = {
    {copyRepeated, Files::All, "", ""},
    {[](Unfolding &all) { takeStackedParts(all.graph, all.stacked); }, Files::All, "", ""},
    {readNotes, Files::WithNotes, "", ""},
    {unfoldMovedImages, Files::All,
     "elements of a parameter that is in the file as well, which operations moved or repeated (`w.flip(2)`, "
     "`w[[0, 0, 1]]`, `roll`, `expand`), if no two of them are equal",
     "nodes that take them; from where, the values tell"},
    {unfoldAllForms, Files::All, "another form of a parameter that is in the file as well, equal bit by bit",
     "nodes that compute it"},
    {unfoldAllJoined, Files::All,
     "one parameter next to another (a head of an embedding's transpose and columns of its own), where the file holds "
     "one of the two as well",
     "nodes that join them; which block is which, the values tell. Where several names are left for the other part, a "
     "warning asks for `--rename`"},
    {[](Unfolding &all) {
       llvm::erase_if(all.images, [&](const Evaluated &each) {
         return unfoldZeroLayer(all.graph, each) || unfoldZeroProduct(all.graph, each);
       });
     },
     Files::WithNotes,
     "what a layer without a bias made of zeros (a recurrence's first state), of a weight that is in the file as well; "
     "a product of such zeros and functions of parameters (`s * p.sigmoid()`)",
     "zeros, from which no gradient comes"},
    {[](Unfolding &all) { unfoldStates(all.graph, all.images); }, Files::WithNotes,
     "first states of recurrent layers, stacked in one parameter, of which each layer reads its own",
     "the parameter, and what takes the parts; of an `nn.RNN`, with a warning"},
    {[](Unfolding &all) { recoverAllFunctions(all.graph, all.images); }, Files::All,
     "a row or slice of a parameter that is in the file as well, a function of it (`1 - mix`, `scale · w`, "
     "`sigmoid(gate)`, `w ** 3`), a sum, mean or length of it along dimensions (`Σ e²` of a codebook, `w / \\|w\\|`), "
     "or a penalty on parameters in the loss (sums or means of squares, sizes and lengths, of each, of rows, of all "
     "joined, of the difference of two or of neighbours, of `w·wᵀ − 1`; cosines of two; the divergence of drawn "
     "weights from a standard normal distribution; entropies; with one factor, or one for each of two terms), "
     "or what up to 8 operations make of parameters that are there (`w · log w`, `w @ w @ w`, a cell's weights times "
     "its learned first state, or times a first token, one of 32 rows at either end of its table)",
     "nodes that take it, or compute it; numbers from the values: of several penalties that fit, the one with the "
     "plainest number; of several orders of operations, all that fit must agree on other values. Of a layer that "
     "read zeros (a recurrence's first step), its bias, repeated; a bias of zeros, dropped from all, is refused"},
    {[](Unfolding &all) { unfoldAllOfOne(all.graph, all.images); }, Files::All,
     "several tensors, all of which were evaluated of one parameter", "the parameter, as above"},
    {ofProgram<restoreBiases>, Files::WithNotes, "a bias of zeros, which the exporter's optimizer drops",
     "zeros, trained like any bias"},
    {[](Unfolding &all) { doubtLostOperations(all.graph, all.proto, all.signature); }, Files::WithNotes,
     "operations that are gone, for they did nothing to first values", ""},
    {ofGraph<unfoldSplitProducts>, Files::WithoutNotes,
     "weights of layers that read the same value (queries, keys and values), which onnx-simplifier joined (`_v_200`) "
     "to split the result",
     "a weight for each part, called as the bias that is added to it; of a layer without a bias after the part, with a "
     "warning"},
    {ofGraph<unfoldHalvedWeights>, Files::WithoutNotes,
     "the half of a GELU, which onnx-simplifier multiplied into the weight of the convolution that reads it (`_v_247`)",
     "the weight, and half of it"},
    {ofGraph<unfoldRepeatedRows>, Files::WithoutNotes,
     "by cleaners, what a module that does nothing else looked up in its table at constant positions "
     "(`/net/positions/Gather_output_0`), and what programs repeat (`/net/Expand_output_0`, `expand_1`; the same rows "
     "for each sample), but for tables that formulas wrote",
     "the table, of the rows that were read, under the module's name and with a warning; otherwise what was repeated, "
     "under the result's name. Elements that agree bit by bit are one, unless all numbers of a row are equal"},
    {ofGraph<unfoldNormScales>, Files::WithoutNotes,
     "1 + w of a norm's scale, or w that it converted to f32 (the exporter's numbers tell: one operation), and scales "
     "and biases with dimensions of one around them, also by onnxruntime and "
     "onnx-simplifier, which keep the value's name (`/net/norm/Unsqueeze_output_0`)",
     "the parameter of that module"},
    {recoverNamedFunctions, Files::WithoutNotes,
     "a function (`sqrt`, `exp`, `softmax`, `c − x`, a factor …) of a parameter that the file holds as well, or its "
     "lengths, sums, sums of sizes or squares along dimensions (what `F.normalize(w)` divides by); a difference, sum, "
     "product or quotient of two, several as one vector; of a single number, only `1 − x` or what is reduced to it, "
     "read in the parameter's "
     "own "
     "module; by cleaners, a number with the name of a function's result (`/Exp_output_0`)",
     "nodes that compute it, for each reader from the parameter of its module; the function is known by the numbers; "
     "of a number, the function's operand"},
};

static void applyOperandRules(Unfolding &all) {
  const int numNodes = all.proto.node_size();
  for (int i = 0; i != numNodes; ++i)
    for (int operand = 0; operand != all.proto.node(i).input_size(); ++operand) {
      // Adding nodes moves none of those that are there.
      const NodeProto &node = all.proto.node(i);
      auto found = all.evaluated.find(node.input(operand));
      const Evaluated *evaluated = found == all.evaluated.end() ? nullptr : &found->second;
      if (!evaluated && (all.signature.isPresent() || !isEvaluatedName(node.input(operand))))
        continue;
      for (const OperandRule &rule : operandRules)
        if (all.isFor(rule.files) && rule.apply(all, node, operand, evaluated))
          break;
    }
}

static void unfoldTensors(Unfolding &all) {
  for (const TensorProto *tensor : map_to_vector(all.proto.initializer(), [](const TensorProto &t) { return &t; }))
    if (auto found = all.evaluated.find(tensor->name());
        found != all.evaluated.end() && !all.graph.isRemoved(tensor->name()))
      for (const TensorRule &rule : tensorRules)
        if (rule.apply(all, found->second))
          break;
}

UnfoldedTensors lowtide::unfoldInitializers(GraphProto &proto, TensorReader read) {
  Unfolding all{UnfoldingGraph(proto, read), proto, Signature(proto)};
  auto apply = [&](ArrayRef<UnfoldingRule> rules) {
    for (const UnfoldingRule &rule : rules)
      if (all.isFor(rule.files))
        rule.apply(all);
  };
  apply(firstRules);
  applyOperandRules(all);
  unfoldTensors(all);
  apply(lastRules);
  return all.graph.finish();
}

static StringRef describeFiles(Files files) {
  switch (files) {
  case Files::All:
    return "all";
  case Files::WithNotes:
    return "with notes";
  case Files::WithoutNotes:
    return "without notes";
  case Files::OfTensorFlow:
    return "of TensorFlow";
  }
  return "";
}

void lowtide::printUnfoldings(raw_ostream &os) {
  auto print = [&](const auto &rule, StringRef files) {
    if (*rule.evaluated)
      os << "| " << files << " | " << rule.evaluated << " | " << (*rule.restores ? rule.restores : "nothing: a warning")
         << " |\n";
  };
  os << "| files | evaluated | what comes back |\n| --- | --- | --- |\n";
  for (const UnfoldingRule &rule : firstRules)
    print(rule, describeFiles(rule.files));
  for (const OperandRule &rule : operandRules)
    print(rule, describeFiles(rule.files));
  for (const TensorRule &rule : tensorRules)
    print(rule, describeFiles(Files::WithNotes));
  for (const UnfoldingRule &rule : lastRules)
    print(rule, describeFiles(rule.files));
}

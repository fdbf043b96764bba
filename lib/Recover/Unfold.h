//===- Unfold.h - parameters out of what an exporter evaluated -------------------===//
//
// Exporters evaluate what depends on no input, and drop the parameters that it was computed from. Where the file still
// tells how, the parameters are put back as initializers, and nodes compute the evaluated tensor from them, so that
// they are trained and not their image.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_UNFOLD_H
#define LOWTIDE_LIB_RECOVER_UNFOLD_H

#include "ModulePaths.h"

#include "lowtide/Recover/Recover.h"

namespace lowtide {

/// A parameter that is a part of an evaluated tensor.
struct UnfoldedPart {
  std::string name;
  llvm::SmallVector<int64_t> dims;
  /// For each element of the tensor, the parameter's element that it is; -1: none.
  std::vector<int64_t> map;
};

/// New nodes and initializers of a graph that is being changed.
class UnfoldingGraph {
public:
  UnfoldingGraph(::onnx::GraphProto &graph, TensorReader read);
  /// For who needs no values but of what it adds.
  explicit UnfoldingGraph(::onnx::GraphProto &graph);

  const ::onnx::GraphProto &getGraph() const { return graph; }
  const ModulePaths &getPaths() const { return paths; }
  /// The initializer `name`, or null.
  const ::onnx::TensorProto *find(llvm::StringRef name) const { return initializers.lookup(name); }
  std::optional<std::string> read(const ::onnx::TensorProto &tensor) const {
    return added.contains(tensor.name()) ? tensor.raw_data() : reader(tensor);
  }
  /// Nodes that are added from now on come from module `path`.
  void setModule(llvm::StringRef path) { module = path.str(); }

  /// Adds a node and returns the name of its result: `output`, or a new one.
  std::string addNode(llvm::StringRef op, llvm::ArrayRef<std::string> inputs, llvm::StringRef output = "");
  /// Sets an attribute of the last node.
  void setAttribute(llvm::StringRef name, int64_t value);
  void setAttribute(llvm::StringRef name, llvm::ArrayRef<int64_t> values);
  void setAttribute(llvm::StringRef name, llvm::StringRef text);
  /// Puts a whole node where the file's nodes are, at `position`.
  void insertNode(int position, ::onnx::NodeProto node);
  /// Adds a constant of integers and returns its name.
  std::string addIntegers(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> values);

  /// Adds a constant of type f32 and returns its name.
  std::string addNumbers(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<float> values);
  /// Adds a scalar constant of type f32 and returns its name.
  std::string addNumber(float value);
  /// Adds a scalar truth value and returns its name.
  std::string addTruth(bool value);

  /// Adds an initializer that the file does not hold.
  void addInitializer(llvm::StringRef name, llvm::ArrayRef<int64_t> dims, int32_t dataType, std::string bytes,
                      UnfoldedSource source);
  /// Says that initializer `name`, if it was added, may not be what it is taken for, and why.
  void assume(llvm::StringRef name, llvm::StringRef why);
  /// Adds another initializer with the values of `tensor`, evaluated from `to` instead of `from`.
  void addCopy(const ::onnx::TensorProto &tensor, llvm::StringRef name, std::string bytes, const std::string &from,
               const std::string &to);
  /// Adds a value of the program that the exporter could have evaluated, made of `foldedFrom`.
  void addEvaluated(llvm::StringRef name, llvm::ArrayRef<int64_t> dims, int32_t dataType, std::string bytes,
                    llvm::ArrayRef<std::string> foldedFrom);
  /// Takes `parts` out of `tensor`, whose data are `bytes`.
  void addParts(const ::onnx::TensorProto &tensor, llvm::StringRef bytes, llvm::ArrayRef<UnfoldedPart> parts,
                llvm::StringRef how, bool isAssumed);
  /// Takes `part` out of `tensor`, of which `converted` are the data as type `type`.
  void addConverted(const ::onnx::TensorProto &tensor, const UnfoldedPart &part, int32_t type,
                    llvm::StringRef converted, llvm::StringRef how, bool isAssumed);
  /// Adds the node that makes `tensor` of `value`, and of its own data where `map` is -1.
  void addMasked(const ::onnx::TensorProto &tensor, llvm::StringRef bytes, llvm::ArrayRef<int64_t> map,
                 const std::string &value);
  /// Says that the tensor at `finding` may not be what it is taken for; `isFatal`: that it cannot be.
  void addDoubt(Finding finding, bool isFatal = false) { doubts.push_back({std::move(finding), isFatal}); }
  /// `tensor` is computed by a node from now on.
  void remove(const ::onnx::TensorProto &tensor) { removed.insert(tensor.name()); }
  bool isRemoved(llvm::StringRef name) const { return removed.contains(name); }

  /// Puts new nodes in front and removes what was replaced.
  UnfoldedTensors finish();

private:
  std::string makeName();
  /// The file's tensors that nodes compute now.
  std::vector<ReplacedTensor> findReplaced() const;
  ::onnx::TensorProto &addConstant(llvm::ArrayRef<int64_t> dims, int32_t dataType, std::string &name);

  ::onnx::GraphProto &graph;
  ModulePaths paths;
  TensorReader reader;
  llvm::StringMap<const ::onnx::TensorProto *> initializers;
  llvm::StringSet<> names, added, removed;
  llvm::StringMap<UnfoldedSource> sources;
  /// Who read the file's initializers: a node's first output, and which operand.
  llvm::StringMap<std::vector<std::pair<std::string, int>>> reads;
  std::vector<UnfoldedDoubt> doubts;
  std::string module;
  int numOldNodes;
  unsigned counter = 0;
};

/// Elements of the largest tensor that the exporter merges with equal ones.
inline constexpr int64_t largestMerged = 1024;

/// An evaluated tensor and the parameters that it was computed from and that the file no longer holds.
struct Evaluated {
  const ::onnx::TensorProto *tensor;
  std::vector<std::string> foldedFrom;
  llvm::SmallVector<const SignatureEntry *> parameters;
};

/// TensorFlow's layers have one bias where ONNX's operators read two, and tf2onnx writes zeros for the other, which
/// nothing trains. Returns whether it took the bias apart.
bool unfoldSingleBias(UnfoldingGraph &graph, const ::onnx::NodeProto &node);
/// Operands of `LSTM`, `GRU` and `RNN`: gates in ONNX's order, both biases joined. `evaluated` is null in files without
/// notes. Each returns whether it took the tensor apart.
bool unfoldRecurrent(UnfoldingGraph &graph, const ::onnx::NodeProto &node, int operand, const Evaluated *evaluated);
/// In files without notes: recurrent layers that run again (`/net/rnn_1/GRU`) read the tensors of their first run,
/// where the exporter evaluated equal ones for each.
void joinRepeatedRecurrent(UnfoldingGraph &graph, ::onnx::GraphProto &proto);
/// In files without notes: weights of layers that run again, of which onnxslim wrote one for each run.
void joinCopiedWeights(UnfoldingGraph &graph, ::onnx::GraphProto &proto);
/// Rows of a table, gathered at constant positions, some of them several times.
bool unfoldGathered(UnfoldingGraph &graph, const Evaluated &evaluated);
/// The same in files without notes: a table of relative positions that `node` adds.
bool unfoldPositions(UnfoldingGraph &graph, const ::onnx::NodeProto &node, int operand);
/// A weight kept as direction and length.
bool unfoldWeightNorm(UnfoldingGraph &graph, const Evaluated &evaluated);
/// The same in files without notes: operand `operand` of `node`.
bool unfoldWeightNorm(UnfoldingGraph &graph, const ::onnx::NodeProto &node, int operand);
/// In files without notes: a layer's weight, which batch norm `node` reads in another shape.
bool unfoldStandardized(UnfoldingGraph &graph, const ::onnx::NodeProto &node, int operand);
/// The weight of a bilinear layer.
bool unfoldBilinear(UnfoldingGraph &graph, const ::onnx::NodeProto &node, const Evaluated &evaluated);
/// Biases of queries and values that were joined around zeros.
bool unfoldQueryBiases(UnfoldingGraph &graph, ::onnx::GraphProto &proto, const Signature &signature,
                       const Evaluated &evaluated);
/// Functions of one parameter, all that the file holds, perhaps repeated for each of `samples`: where one of them can
/// be inverted, or the file holds the parameter as well, all are computed from it.
bool unfoldSeveral(UnfoldingGraph &graph, llvm::ArrayRef<const Evaluated *> evaluated, int64_t samples);
/// c · a measure of how far a matrix's rows or columns are from orthogonal (|w·wᵀ − 1|), as programs add to their loss:
/// `image`, made by `operations` of `parameter`, which the file holds.
bool unfoldProducts(UnfoldingGraph &graph, const ::onnx::TensorProto &image, const ::onnx::TensorProto &parameter,
                    llvm::ArrayRef<llvm::StringRef> operations);
/// The softmax of one parameter over all its elements, or its numbers one by one, or over one dimension.
bool unfoldMixture(UnfoldingGraph &graph, llvm::ArrayRef<const Evaluated *> evaluated);
/// One function of one variable that can be inverted.
bool unfoldFunction(UnfoldingGraph &graph, const Evaluated &evaluated);
/// The same for a number, without notes: its name tells the function.
bool unfoldFunction(UnfoldingGraph &graph, const ::onnx::TensorProto &tensor);

/// Whether an operation of the exported program converts to another type.
bool isConversion(llvm::StringRef name);
/// The type of most parameters that the file holds as they are.
int32_t findParameterType(const UnfoldingGraph &graph, const Signature &signature);
/// A parameter of type `type`, converted to another, perhaps transposed.
bool unfoldConversion(UnfoldingGraph &graph, const Evaluated &evaluated, int32_t type);
/// The same in files without notes: weights and biases of layers that read what was converted as well.
void unfoldNarrow(UnfoldingGraph &graph, ::onnx::GraphProto &proto);

/// A function of parameters that the file holds as well; `moved`: evaluated tensors that only moved one's elements.
bool recoverFunctions(UnfoldingGraph &graph, const Evaluated &evaluated, llvm::ArrayRef<const Evaluated *> moved);
/// The same in files without notes, where the values alone tell: all of `evaluated` that are made of one of
/// `parameters`.
void recoverFunctions(UnfoldingGraph &graph, ::onnx::GraphProto &proto,
                      llvm::ArrayRef<const ::onnx::TensorProto *> evaluated,
                      llvm::ArrayRef<const ::onnx::TensorProto *> parameters);
/// The transpose of matrix `name`, where the file holds no other form of it, as after `run_decompositions`; null: none.
const ::onnx::TensorProto *findTurned(const UnfoldingGraph &graph, llvm::StringRef name);

/// What several operations made of parameters that the file holds as well: all ways to apply them are tried.
bool recoverExpression(UnfoldingGraph &graph, const Evaluated &evaluated);
/// A parameter that only a layer reads, whose weights the file holds: the layer's result gives it back. The tensor
/// itself is left, as an image of that.
bool unfoldLayerOperand(UnfoldingGraph &graph, const Evaluated &evaluated);
/// The same of all that was evaluated of a parameter, where each layer read a part of it: the parts, stacked.
bool unfoldLayerOperands(UnfoldingGraph &graph, llvm::ArrayRef<const Evaluated *> evaluated);
/// Learned first states of recurrent layers, stacked in one parameter, of which each layer reads a part.
void unfoldStates(UnfoldingGraph &graph, llvm::ArrayRef<Evaluated> images);
/// The same of those that began equal, which the exporter made one tensor.
void unfoldEqualStates(UnfoldingGraph &graph, ::onnx::GraphProto &proto, const Signature &signature);
/// A penalty on parameters that the file holds: what a program adds to its loss. `moved`: evaluated tensors that only
/// moved one's elements.
bool unfoldPenalty(UnfoldingGraph &graph, const Evaluated &evaluated, llvm::ArrayRef<llvm::StringRef> operations,
                   llvm::ArrayRef<const Evaluated *> moved);
/// The file's tensor that holds the elements of `entry`, each once, in some order; null: there is none.
const ::onnx::TensorProto *findElements(const UnfoldingGraph &graph, const SignatureEntry &entry,
                                        llvm::ArrayRef<const Evaluated *> moved);
/// All of these: functions of parameters, of which one gives a parameter back that is gone, and the others follow.
void recoverAllFunctions(UnfoldingGraph &graph, llvm::ArrayRef<Evaluated> images);
/// A part of a value that was put together again.
struct StackedPart {
  std::string tensor, whole, parameter;
  int64_t place; ///< of the value's first dimension
  bool isGuess;  ///< the file does not tell which part is which, or how many there are
};
/// Values made of a parameter once, of which the file holds one part for each reader, and neither them nor the
/// parameter: puts them together into `evaluated`.
std::vector<StackedPart> stackParts(UnfoldingGraph &graph, std::vector<Evaluated> &images,
                                    llvm::StringMap<Evaluated> &evaluated);
/// Parameters of which each part was repeated for every sample, and nothing else is in the file.
void unfoldRepeatedParts(UnfoldingGraph &graph, std::vector<Evaluated> &images);
/// Makes each of the parts of its value.
void takeStackedParts(UnfoldingGraph &graph, llvm::ArrayRef<StackedPart> parts);
/// Parameters of which every tensor that was evaluated is of it alone.
void unfoldAllOfOne(UnfoldingGraph &graph, std::vector<Evaluated> &images);
/// The first dimension of all inputs; 0: they differ, or it is open.
int64_t countSamples(const ::onnx::GraphProto &graph);

/// Operands of operations that the exporter wrote in steps, of which it evaluated some.
void unfoldOperands(UnfoldingGraph &graph, ::onnx::GraphProto &proto, const Signature &signature);
/// Reads parameters where penalties in the loss read copies, which the exporter wrote of what no module of the program
/// holds. Other such copies, and terms of the loss that are made of nothing else, are doubted.
void unfoldHeldTensors(UnfoldingGraph &graph, ::onnx::GraphProto &proto, const Signature &signature);
/// Products of a weight and a mask that its module keeps.
void unfoldMaskedWeights(UnfoldingGraph &graph, ::onnx::GraphProto &proto, const Signature &signature);
/// What a layer without a bias made of zeros: zeros, which train nothing. Returns whether the tensor is that.
bool unfoldZeroLayer(UnfoldingGraph &graph, const Evaluated &evaluated);
/// The same of a product of functions of parameters and zeros (`s * p.sigmoid()` in the first step of a recurrence).
bool unfoldZeroProduct(UnfoldingGraph &graph, const Evaluated &evaluated);
/// Sums of a buffer of one number and a function of a parameter, `beta + softplus(alpha)`.
void unfoldAddedBuffers(UnfoldingGraph &graph, ::onnx::GraphProto &proto, const Signature &signature);
/// Parameters that the program reads as complex numbers: real and imaginary parts.
void unfoldComplexParts(UnfoldingGraph &graph, ::onnx::GraphProto &proto, const Signature &signature);
/// Masks of truth values that depend on no input: a query that sees no key has zeros for weights (HiddenRows.h).
void unfoldHiddenRows(UnfoldingGraph &graph, ::onnx::GraphProto &proto, const Signature &signature);
/// Takes parameters out of the notes of numbers that were made of their shapes alone, and inputs out of all.
void forgetShapes(UnfoldingGraph &graph, ::onnx::GraphProto &proto, const Signature &signature);

/// Buffers that the program keeps as running averages.
void unfoldAverages(UnfoldingGraph &graph, ::onnx::GraphProto &proto, const Signature &signature);

/// A copy of a parameter, of which there are other images.
bool unfoldCopy(UnfoldingGraph &graph, const Evaluated &evaluated);
/// Elements of a parameter that the file holds as well, moved or repeated.
bool unfoldMoved(UnfoldingGraph &graph, const Evaluated &evaluated);
/// In files without notes: first states that are not zero and equal for all samples.
void unfoldNamelessStates(UnfoldingGraph &graph, ::onnx::GraphProto &proto);
/// Parts of a parameter that began equal, which the exporter made one tensor, as many as another parameter has.
void unfoldEqualParts(UnfoldingGraph &graph, ::onnx::GraphProto &proto, const Signature &signature);
/// A part of a parameter that the file holds as well.
bool unfoldPiece(UnfoldingGraph &graph, const Evaluated &evaluated);

/// A scale kept as its difference from one.
bool unfoldShifted(UnfoldingGraph &graph, const Evaluated &evaluated);
/// The f32 values of `tensor`, less one; empty where they cannot be read.
std::string withoutOne(const UnfoldingGraph &graph, const ::onnx::TensorProto &tensor);
/// Scales and biases of norms in files without notes.
void unfoldNormScales(UnfoldingGraph &graph, ::onnx::GraphProto &proto);

/// In files without notes: weights of layers that read the same value, which onnx-simplifier joined.
void unfoldSplitProducts(UnfoldingGraph &graph, ::onnx::GraphProto &proto);
/// In files without notes: weights that onnx-simplifier multiplied by the half of the activation before.
void unfoldHalvedWeights(UnfoldingGraph &graph, ::onnx::GraphProto &proto);
/// In files without notes: tables that were looked up at constant positions, and what was repeated.
void unfoldRepeatedRows(UnfoldingGraph &graph, ::onnx::GraphProto &proto);

/// Values of the program that the exporter merged because their parameters began equal.
void unfoldMergedReaders(UnfoldingGraph &graph, ::onnx::GraphProto &proto, const Signature &signature);

/// Sums, differences, products and quotients of the program that are gone, for they did nothing to the first values of
/// what they read; their names in the program.
std::vector<std::string> findLostOperations(const ::onnx::GraphProto &proto, const Signature &signature);
/// Doubts files in which operations are gone that did nothing to the first values of parameters.
void doubtLostOperations(UnfoldingGraph &graph, const ::onnx::GraphProto &proto, const Signature &signature);

/// Functions of parameters that the exporter merged because they began equal.
void unfoldMergedImages(UnfoldingGraph &graph, ::onnx::GraphProto &proto, const Signature &signature);
/// The same in files without notes.
void unfoldMergedCopies(UnfoldingGraph &graph, ::onnx::GraphProto &proto);

/// Makes tensors that are another form of a parameter, which the file holds as well, of that.
void unfoldForms(UnfoldingGraph &graph, ::onnx::GraphProto &proto,
                 llvm::function_ref<bool(const ::onnx::TensorProto &)> isEvaluated);

/// Makes evaluated tensors that hold a parameter of the file as a block of that and of what is left. `findGone`: the
/// parameters that the notes on a tensor name and the file does not hold; nullopt: there are no notes.
void unfoldJoined(UnfoldingGraph &graph, ::onnx::GraphProto &proto,
                  llvm::function_ref<bool(const ::onnx::TensorProto &)> isEvaluated,
                  llvm::function_ref<std::optional<std::vector<std::string>>(const ::onnx::TensorProto &)> findGone);

/// `slice_1` → `slice`: operations of the exported program are numbered.
llvm::StringRef operationName(llvm::StringRef name);
/// `slice_1` → 1; 0: it has none.
unsigned operationNumber(llvm::StringRef name);
/// Whether an operation of the exported program only moves elements.
bool movesElements(llvm::StringRef name);

/// Whether an operation of the exported program shows the same elements under another shape.
bool isView(llvm::StringRef name);
/// Whether it puts values next to each other.
bool isJoin(llvm::StringRef name);
/// Whether an operation of the exported program may hold an element several times.
bool isGather(llvm::StringRef name);

/// Whether an operation of the exported program takes some of the elements only.
bool takesPart(llvm::StringRef name);
/// Whether a step within the operation that `reader` was exported from may have done arithmetic on the tensor, which it
/// reads: `add(x, y, alpha=2)`, `logaddexp(x, y)`, and the keys and queries of attention, which products read scaled.
bool mayScale(llvm::StringRef tensor, const ::onnx::NodeProto &reader);

/// A step within `aten.softplus`, which exporters write as `where(βx > threshold, x, softplus(βx) / β)`.
bool isStepOfSoftplus(llvm::StringRef name);

/// Takes apart what can be, in `graph`.
UnfoldedTensors unfoldInitializers(::onnx::GraphProto &graph, TensorReader read);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_UNFOLD_H

//===- Evidence.h - what exporters write about themselves
//------------------------------===//
//
// PyTorch's exporters leave notes in a file: which inputs of the exported
// program were parameters, from which module each node came, what a constant
// was folded from. Here they are read; nothing is concluded.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_RECOVER_EVIDENCE_H
#define LOWTIDE_RECOVER_EVIDENCE_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

#include "onnx/onnx_pb.h"

#include <optional>
#include <string>
#include <vector>

namespace lowtide {

/// Under this key PyTorch's current exporter notes the modules that a node stands in, outermost first.
inline constexpr llvm::StringLiteral moduleScopesKey = "pkg.torch.onnx.name_scopes";

/// One input of the exported program
/// (`pkg.torch.export.ExportedProgram.graph_signature`).
struct SignatureEntry {
  enum Kind { Parameter, Buffer, Constant } kind;
  /// Its name within the program, `p_fc_weight`.
  std::string placeholder;
  /// The framework's name, `fc.weight`.
  std::string target;
  /// The program assigns it (running statistics).
  bool mutated = false;
  /// Of a buffer: `state_dict()` holds it.
  bool persistent = true;
  /// The program's name of the value that it assigns to the buffer or parameter; empty: none.
  std::string assigned;
  /// A parameter that the program assigns. Of kind `Buffer` where the value is made of another one, as a teacher's.
  bool isAssignedParameter = false;

  /// Whether the module's state dictionary has it.
  bool isSaved() const { return kind == Parameter || (kind == Buffer && persistent); }
};

class Signature {
public:
  explicit Signature(const ::onnx::GraphProto &graph);

  bool isPresent() const { return present; }
  llvm::ArrayRef<SignatureEntry> getEntries() const { return entries; }
  const SignatureEntry *findTarget(llvm::StringRef name) const;
  const SignatureEntry *findPlaceholder(llvm::StringRef name) const;
  /// What the program calls its results, in order.
  llvm::ArrayRef<std::string> getOutputs() const { return outputs; }
  /// Whether the program calls one of its inputs so.
  bool isInput(llvm::StringRef name) const { return inputs.contains(name); }
  /// Whether some entry belongs to the module itself.
  bool hasModule(llvm::StringRef path) const { return modules.contains(path); }
  /// Position in the framework's own order.
  size_t getOrder(llvm::StringRef target) const;

private:
  bool present = false;
  std::vector<SignatureEntry> entries;
  std::vector<std::string> outputs;
  llvm::StringMap<size_t> byTarget, byPlaceholder;
  llvm::StringSet<> modules, inputs;
};

/// `a.b` of `a.b.weight`; empty for a name without dots.
llvm::StringRef moduleOf(llvm::StringRef name);
/// `weight` of `a.b.weight`.
llvm::StringRef leafOf(llvm::StringRef name);

/// Path of the module that a node came from (`h.0.ln1`, empty for the root),
/// from `pkg.torch.onnx.name_scopes`, or from a TorchScript node name. nullopt:
/// nothing is known.
std::optional<std::string> findModulePath(const ::onnx::NodeProto &node);

/// The operator whose result is called `name` by PyTorch's old exporter, `Unsqueeze` of
/// `/net/norm/Unsqueeze_1_output_0`: optimizers (onnxruntime, onnx-simplifier) keep the name when they evaluate it.
/// Empty for other names.
llvm::StringRef findEvaluatedOperator(llvm::StringRef name);
/// The modules that were being called when PyTorch's old exporter gave a node or a value this name, `net.norm`; nullopt
/// for other names.
std::optional<std::string> findScope(llvm::StringRef name);
/// `blocks..ada` of `blocks.0.ada`: what layers of one kind have in common.
std::string withoutNumbers(llvm::StringRef name);

/// Whether PyTorch's current exporter wrote the graph: it calls nodes `node_…`, which cleaners keep.
bool isOfCurrentExporter(const ::onnx::GraphProto &graph);

/// Whether the node is called after the one value that it gives, as PyTorch's current exporter does: `node_linear_3`
/// gives `linear_3`.
bool namesItsValue(const ::onnx::NodeProto &node);

/// Whether an exporter or an optimizer gave the name to what it evaluated; not to a number of the program.
bool isEvaluatedName(llvm::StringRef name);

/// The node's original operation as text (`pkg.torch.onnx.fx_node`); empty if unknown.
llvm::StringRef findProgramNote(const ::onnx::NodeProto &node);

/// The program's own name of what the node's original operation gives (`linear_1`); empty: not known.
llvm::StringRef findProgramResult(const ::onnx::NodeProto &node);
/// How many operations of the program read the result of the one that the node was exported from, its outputs counted
/// as one; nullopt: not known.
std::optional<int64_t> findProgramUsers(const ::onnx::NodeProto &node);

/// Names that the node's original operation reads (`p_h_0_ln1_weight` …), from
/// `pkg.torch.onnx.fx_node`; of a sum that became one node with a product (`addmm`), in the node's order.
std::vector<std::string> findProgramOperands(const ::onnx::NodeProto &node);
/// Which dimensions the `aten.index` or `aten.index_put` that the node was exported from has an index for; those after
/// the last one have none. nullopt: the node was exported from something else, or nothing is known.
std::optional<llvm::SmallVector<bool>> findProgramIndices(const ::onnx::NodeProto &node);
/// By which number the `aten.addcmul` that the node was exported from multiplies its product; nullopt as above.
std::optional<double> findProgramFactor(const ::onnx::NodeProto &node);
/// The number c of the sum x + c · y, or the difference, that the node was exported from; nullopt: it names none.
std::optional<double> findProgramAlpha(const ::onnx::NodeProto &node);
/// The two dimensions of the `aten.diagonal` that the node was exported from, of `rank` dimensions; nullopt as above.
std::optional<std::pair<int64_t, int64_t>> findProgramDiagonal(const ::onnx::NodeProto &node, int64_t rank);
/// The dimension of the `aten.slice_scatter` that the node was exported from, of `rank`; nullopt as above.
std::optional<int64_t> findProgramSlicedDim(const ::onnx::NodeProto &node, int64_t rank);
/// Third operand of the `aten.embedding` that the node was exported from, -1 where it has none; nullopt: the node was
/// exported from something else, or nothing is known.
std::optional<int64_t> findProgramPaddingRow(const ::onnx::NodeProto &node);
/// Sixth operand of the `aten.cross_entropy_loss` that the node was exported from: the part of each label that goes to
/// all classes alike; nullopt: it has none, or nothing is known.
std::optional<double> findProgramSmoothing(const ::onnx::NodeProto &node);
/// Fifth operand of the `aten.scaled_dot_product_attention` that the node was exported from: the ratio of its dropout;
/// 0: it has none, or nothing is known.
double findProgramAttentionDropout(const ::onnx::NodeProto &node);
/// Whether the node was exported from an attention with a mask.
bool isOfMaskedAttention(const ::onnx::NodeProto &node);
/// Whether the node was exported from an attention in which several queries share a key (`enable_gqa`).
bool sharesKeys(const ::onnx::NodeProto &node);
/// Whether the node was exported from an embedding that shortens the rows it looks up (`max_norm`).
bool shortensRows(const ::onnx::NodeProto &node);
/// Whether the node was exported from an embedding that divides gradients by how often a row is looked up.
bool scalesGradientByFrequency(const ::onnx::NodeProto &node);
/// Whether the node was exported from a scatter that takes means, and puts one element in the place of another.
bool isMeanOfScatter(const ::onnx::NodeProto &node);
/// Whether the scatter that the node was exported from counts what was there before (`include_self`).
bool includesSelf(const ::onnx::NodeProto &node);
/// The number by which the pooling that the node was exported from divides (`divisor_override`), which ONNX has no word
/// for; nullopt: it has none, or nothing is known.
std::optional<int64_t> findProgramDivisor(const ::onnx::NodeProto &node);
/// Whether the node was exported from a pooling that takes the largest element of all places (`adaptive_max_pool2d` to
/// one), for which the exporter has `amax`: its stack trace or its module tells.
bool isOfMaximumPool(const ::onnx::NodeProto &node);
/// Where the program calls the operation that the node was exported from: `File "net.py", line 7, in forward`, and the
/// line of code. Both are empty if unknown.
struct ProgramLine {
  llvm::StringRef place, code;
};
ProgramLine findProgramLine(const ::onnx::NodeProto &node);
/// The block of the program that the exporter put in place of an operation with a mode (`torch.no_grad`, `autocast`):
/// the name of its code, `<eval_with_key>.42`; empty: none.
llvm::StringRef findProgramBlock(const ::onnx::NodeProto &node);
/// Whether the node was exported from the forward pass of a `torch.autograd.Function` of the program, which has a
/// backward pass of its own.
bool isOfOwnFunction(const ::onnx::NodeProto &node);
/// `aten.linear.default`, from `namespace` or `class_hierarchy`; empty if
/// unknown.
std::string findProgramOperator(const ::onnx::NodeProto &node);

/// Whether a rewriter of the exporter made the node: its notes are those of one of the nodes that it replaced.
bool isRewritten(const ::onnx::NodeProto &node);

/// Whether the exporter's optimizer took a bias of zeros from the layer.
bool isWithoutBias(const ::onnx::NodeProto &node);

/// Names that a constant was folded from
/// (`pkg.onnxscript.optimizer.folded_from`).
std::vector<std::string> findFoldedFrom(const ::onnx::ValueInfoProto &value);
/// Writes that note.
void setFoldedFrom(::onnx::ValueInfoProto &value, llvm::ArrayRef<std::string> names);

/// Strings of a Python list as text, `['a', "b"]`.
std::vector<std::string> parsePythonList(llvm::StringRef text);

} // namespace lowtide

#endif // LOWTIDE_RECOVER_EVIDENCE_H

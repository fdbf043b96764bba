//===- Initializers.h - who is a parameter
//--------------------------------------===//
//
// For every initializer of a file: what it is, why, and how sure we are.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_RECOVER_INITIALIZERS_H
#define LOWTIDE_RECOVER_INITIALIZERS_H

#include "lowtide/Recover/Findings.h"
#include "lowtide/Recover/RoleReasons.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace onnx {
class NodeProto;
} // namespace onnx

namespace lowtide {

enum class InitializerRole {
  /// Trained.
  Parameter,
  /// Updated by the step itself: running statistics.
  State,
  /// Neither.
  Constant,
};
llvm::StringRef stringifyRole(InitializerRole role);

/// Operand `operand` of `node` reads the initializer.
struct InitializerUse {
  const ::onnx::NodeProto *node;
  int operand;
};

/// An initializer that the file does not hold: the importer took it out of one that the exporter had evaluated.
struct UnfoldedSource {
  /// The file's initializer; empty: the exporter dropped the parameter.
  std::string tensor;
  /// What the exporter did: half a sentence.
  std::string how;
  /// Something about it was assumed, for the file does not tell.
  bool isAssumed = false;
};

/// A tensor that stands for values of the program that its file does not tell apart.
struct UnfoldedDoubt {
  Finding finding; ///< at the tensor
  /// It cannot be trained as it stands.
  bool isFatal = false;
};

/// A tensor of the file that nodes compute now, for some or for all that read it.
struct ReplacedTensor {
  std::string tensor;
  uint64_t bytes = 0;
  /// What they read now, each once. Of several, the tensor can hold only one.
  std::vector<std::string> values;
};

/// What the importer took apart.
struct UnfoldedTensors {
  /// The initializers that it added.
  llvm::StringMap<UnfoldedSource> sources;
  std::vector<ReplacedTensor> replaced;
  std::vector<UnfoldedDoubt> doubts;
};

/// One tensor of the model as the framework sees it. Exporters merge equal
/// tensors: several of these may then name one initializer of the file, each
/// with its own uses.
struct InitializerInfo {
  /// The initializer of the file that holds the data.
  std::string tensor;
  /// The framework's name; the initializer's own where no other is known.
  /// Unique among infos.
  std::string name;
  /// All names that the framework has for this tensor, if more than one (a
  /// tie).
  std::vector<std::string> tied;
  InitializerRole role = InitializerRole::Constant;
  Certainty certainty = Certainty::Assumed;
  Reason reason;

  /// Shape in the file, and element type as ONNX numbers it.
  llvm::SmallVector<int64_t> dims;
  int32_t dataType = 0;
  uint64_t bytes = 0;

  /// The tensor is the framework's parameter transposed by this permutation
  /// (empty: it is not).
  llvm::SmallVector<int64_t> transposed;
  /// Shape of the framework's parameter where it is known and differs.
  std::optional<llvm::SmallVector<int64_t>> sourceShape;
  /// The tensor holds these rows, [begin, end), of the framework's parameter.
  std::optional<std::pair<int64_t, int64_t>> sourceRows;

  /// Not a tensor of its own but the transpose of this info's, which the
  /// exporter evaluated; not transposed, that tensor in this one's shape.
  std::optional<size_t> viewOf;

  /// How the importer made it; null: the file holds it.
  const UnfoldedSource *unfolded = nullptr;

  std::vector<InitializerUse> uses;
  /// Small: becomes an `onnx.constant` and not an argument.
  bool inIR = false;

  int64_t getNumElements() const;
};

} // namespace lowtide

#endif // LOWTIDE_RECOVER_INITIALIZERS_H

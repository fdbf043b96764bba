//===- ProgramNames.h - what the exported program called what a node reads -------===//

#ifndef LOWTIDE_LIB_RECOVER_PROGRAMNAMES_H
#define LOWTIDE_LIB_RECOVER_PROGRAMNAMES_H

#include "lowtide/Recover/Evidence.h"

#include <set>

namespace lowtide {

/// Exporters merge nodes and tensors that are equal, and keep the notes of whoever reads them: two reads of one value
/// that the program calls `exp` and `sub` were two values.
class ProgramNames {
public:
  ProgramNames(const ::onnx::GraphProto &graph, const Signature &signature);

  /// What the program called operand `operand` of `node`; empty: the notes do not tell. A `detach` that was put back
  /// names nothing: where all that read the value are known, it read another one, `value@detach`, that was merged with
  /// it.
  std::string find(const ::onnx::NodeProto &node, int operand) const;
  /// Whether the file has no value, tensor or parameter of this name.
  bool isLost(llvm::StringRef name) const { return !known.contains(name) && !signature.findPlaceholder(name); }
  /// How many operations that read `value` in the program are not in the file; nullopt: not known.
  std::optional<int64_t> countLostReaders(llvm::StringRef value) const;
  /// Whether the program may have run `nodes` as often again before the operation of node `reader`: it numbers the
  /// results of each kind of operation in their order, and those that are missing before the reader's are enough.
  bool mayRunAgain(const std::set<int> &nodes, size_t times, int reader) const;
  /// Whether some node's operation reads the parameter.
  bool isMentioned(const SignatureEntry &entry) const { return mentioned.contains(entry.placeholder); }

private:
  /// An operation's result: how many of the program's operations read it, and which of those the file has.
  struct Readers {
    std::string name;
    int64_t inProgram = 0;
    llvm::StringSet<> inFile;
    unsigned numDetached = 0;
  };
  void countReaders(const ::onnx::GraphProto &graph);
  std::optional<size_t> countLostResults(llvm::StringRef kind, int reader) const;

  /// Results of one kind: the numbers, in order, and the first node of each.
  struct Results {
    std::vector<unsigned> numbers;
    std::vector<int> nodes;
    bool isInOrder = true;
  };
  /// By a result's name without its number.
  llvm::StringMap<Results> results;
  /// What the program calls the result of each node's operation; empty: not known, or a rewriter made the node.
  std::vector<std::string> resultOf;

  const Signature &signature;
  llvm::StringSet<> known, integers, mentioned;
  llvm::StringMap<Readers> readers;
};

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_PROGRAMNAMES_H

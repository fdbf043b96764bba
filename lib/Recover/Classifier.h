//===- Classifier.h - the steps of saying who is a parameter
//---------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_CLASSIFIER_H
#define LOWTIDE_LIB_RECOVER_CLASSIFIER_H

#include "lowtide/Recover/Evidence.h"
#include "lowtide/Recover/Recover.h"
#include "lowtide/Recover/TensorFacts.h"

namespace lowtide {

/// Whether the tensor only fills the operand of products that have no bias: one number without dimensions, 0. A layer's
/// bias has a number for each of its outputs.
bool fillsBias(const ModelView &file, const TensorFacts &facts);

/// What a module calls the tensor that an operator reads as operand `operand`:
/// `weight`, `bias`, `running_mean` …; empty where the operator does not tell.
llvm::StringRef operandLeaf(const ::onnx::NodeProto &node, int operand);
/// An operand that configures its operator: a bound, a scale list, a fill value.
bool isSetting(const InitializerUse &use);
/// Operand is a running statistic that the step updates.
bool isRunningStatistic(const InitializerUse &use);
/// Operand stands for a weight that the norm does not have: ones or zeros, as its running statistics began.
bool standsForWeight(const InitializerUse &use, const Signature &signature);

/// For files whose exporter wrote down the program's signature.
llvm::LogicalResult classifyBySignature(ModelView &file, const Signature &signature, llvm::ArrayRef<TensorFacts> facts,
                                        const RoleChoices &choices, std::vector<InitializerInfo> &infos);

/// Whether exporters and optimizers invent such names for constants of the graph.
bool isInventedName(llvm::StringRef name);

/// For all other files: names and the operators that read. `ofFewBits`: what weights in few bits are made of.
void classifyByName(ModelView &file, llvm::ArrayRef<TensorFacts> facts, const llvm::StringSet<> &ofFewBits,
                    std::vector<InitializerInfo> &infos);

/// A tied matrix that the exporter transposed for one of its readers, or that a cleaner wrote out again, would be
/// trained twice, apart: makes it a view.
void findTransposedTies(ModelView &file, std::vector<InitializerInfo> &infos);

/// Fills in how `info`, which holds (part of) parameter `target` in another
/// form, relates to it.
void describeFold(const TensorFacts &facts, const Signature &signature, InitializerInfo &info);
/// Which dimension of the parameter each dimension of a tensor folded from it is, where the notes of its readers, or
/// the program's transposition of a matrix, tell; nullopt: they do not.
std::optional<llvm::SmallVector<int64_t>> findFoldedOrder(const TensorFacts &facts, const Signature &signature);
/// The same where they do not, and a product reads what the program transposed: the last two are exchanged.
std::optional<llvm::SmallVector<int64_t>> assumeFoldedOrder(const TensorFacts &facts);
/// Whether an operation of the program, by the name of what it gives, changes the order of dimensions.
bool turnsDimensions(llvm::StringRef name);
/// Why training a folded tensor would differ from training the parameter; empty
/// if it does not.
std::string findFoldFault(const ModelView &file, const TensorFacts &facts, const Signature &signature);
/// Whether zeros are among what the exporter joined into the tensor, as between the blocks of a block-diagonal matrix.
bool joinsZeros(const TensorFacts &facts);

/// Warns about parameters in another shape, or of another order of dimensions, of which nothing tells their own, and
/// about tables of which the exporter evaluated the rows at positions that a buffer of the program holds: they
/// are taken to be the first ones.
void reportTakenRows(ModelView &file, llvm::ArrayRef<TensorFacts> facts, const Signature &signature,
                     std::vector<InitializerInfo> &infos);

/// Whether the tensors are parts of one parameter, of which none holds an element of another.
bool areDisjointPieces(const ModelView &file, llvm::ArrayRef<const TensorFacts *> tensors, const Signature &signature);

/// Whether the parameter of the entry was taken out of what the exporter evaluated, and began equal to the tensor, of
/// which all elements are equal.
bool hasEqualUnfolded(const ModelView &file, const TensorFacts &fact, const SignatureEntry &entry);

/// A parameter that lives in two tensors would be trained twice, apart. Where one is the other's transpose, or the same
/// again, it becomes a view of it; otherwise the file is refused, unless the user gave one of them another name.
llvm::LogicalResult checkClaims(ModelView &file, const Signature &signature, const RoleChoices &choices,
                                std::vector<InitializerInfo> &infos);

/// Whether whole numbers cannot be the entry: a parameter, a running statistic.
bool isOfFloats(const SignatureEntry *entry);

/// Reports an error: the tensor could be any of the entries of a module that it is read in.
void reportManyClaims(ModelView &file, const TensorFacts &fact, const std::optional<std::string> &module,
                      llvm::ArrayRef<const SignatureEntry *> entries);

/// Warns about tensors that the exporter evaluated, of numbers that differ, and that no note relates to the program: a
/// tool removed the notes of values alone. They are constants.
void reportUnnoted(ModelView &file, llvm::ArrayRef<TensorFacts> facts, llvm::ArrayRef<InitializerInfo> infos);

/// Refuses a parameter that the file holds by itself and that the exporter joined with others as well.
llvm::LogicalResult checkJoined(ModelView &file, const Signature &signature, llvm::ArrayRef<TensorFacts> facts,
                                llvm::ArrayRef<InitializerInfo> infos);

/// Applies `--params`, `--frozen`, `--rename`.
llvm::LogicalResult applyOverrides(ModelView &file, const RoleChoices &choices, std::vector<InitializerInfo> &infos);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_CLASSIFIER_H

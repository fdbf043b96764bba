//===- Findings.h - how a file differs from its program ---------------------------===//
//
// A finding is a kind, what it is about, and what stands at the places of the kind's words. Programs and rules ask for
// the kind. Words, certainty and what helps are in one table, of which docs/import.md prints what users read.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_RECOVER_FINDINGS_H
#define LOWTIDE_RECOVER_FINDINGS_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace lowtide {

/// How a role or a name was found, and how sure a finding is.
enum class Certainty {
  /// The exporter wrote it down, or the user said so.
  Stated,
  /// Follows from what the exporter wrote, or from the operator that reads it.
  Inferred,
  /// Nothing speaks against it.
  Assumed,
};
llvm::StringRef stringifyCertainty(Certainty certainty);

enum class FindingKind : uint8_t {
  // The file.
  NodesReordered,
  InputsDropped,
  TrainingsSkipped,
  InitializationSkipped,
  BatchAssumed,
  // What cleaners removed.
  SignatureRemoved,
  NotesRemoved,
  NamesOfValues,
  PerhapsMerged,
  DropoutRemoved,
  NormScalesRemoved,
  ArithmeticRemoved,
  LayersScaled,
  BiasesPerhapsRemoved,
  NormsFolded,
  NormsPerhapsFolded,
  ProjectionsJoined,
  ChannelsLast,
  // What names and values leave open.
  LayersApart,
  LayersTied,
  EvaluatedTrained,
  EvaluatedNotTrained,
  EvaluatedWeights,
  ConvolutionsFolded,
  NamesGuessed,
  FormulasNotTrained,
  SinusoidsNotTrained,
  CountsNotTrained,
  PowersNotTrained,
  ChoicesNotTrained,
  CodesNotTrained,
  ScalesNotTrained,
  BufferWordsNotTrained,
  LossWeightNotTrained,
  FrozenNormsNotTrained,
  CopiesTrained,
  BuffersTrained,
  // What the program lists, and the file lacks or holds in another form.
  ParametersLost,
  ParametersUnread,
  FoldedFromOne,
  FoldedFromSeveral,
  ParametersViewed,
  DimensionsExchanged,
  ParametersIndexed,
  RowsAtPositions,
  AssignmentsLost,
  AssignedEvaluated,
  ParametersFollow,
  ParametersAssigned,
  BuffersNotSaved,
  // What was taken apart.
  TakenApart,
  ElementsLost,
  OperationsLost,
  AverageFactorAssumed,
  JoinedPartAssumed,
  ReaderApart,
  CopyTrained,
  HeldParametersRestored,
  HeldParametersCopied,
  HeldParametersLost,
  LossTermConstant,
  RestAssumed,
  CopyAssumed,
  FunctionPerhapsMerged,
  FunctionMerged,
  // Operations.
  AttentionDropoutLost,
  BlockModeUnknown,
  BlockWithoutGradient,
  DetachLost,
  AssignedPartsDetached,
  DetachPerhapsAlias,
  DetachedApart,
  SelfDifferences,
  StraightThrough,
  NegativePositions,
  PaddingReadOutside,
  WindowsRestored,
  SignedDistances,
  NormsCumulative,
  StatisticsEarly,
  OwnBackwardLost,
  ScatterMeansRestored,
  PoolDivisorsRestored,
  ReductionsRestored,
  EpsilonsRestored,
  DrawsApart,
  DrawsUnknown,
  LookUpFrequencyRestored,
  LookUpFrequencyLost,
  DetachedTwins,
  LayersRepeated,
  DropoutEvaluated,
  LabelSmoothingRestored,
};
/// `label-smoothing-restored`: a key that stays when words change (`lowtide check --json`).
llvm::StringRef stringifyFindingKind(FindingKind kind);
Certainty getCertainty(FindingKind kind);

struct Finding {
  FindingKind kind;
  /// A node, a tensor or a graph; empty: the file.
  std::string where;
  /// The parameters, buffers, layers and values that it is about, as the program calls them.
  std::vector<std::string> names = {};
  /// What stands at the places of the kind's words, by the places' names. At `{names}` the names stand, if nothing else
  /// is said here.
  std::vector<std::pair<std::string, std::string>> places = {};

  Certainty getCertainty() const { return lowtide::getCertainty(kind); }
  /// What the file tells of the program.
  std::string describe() const;
  /// What helps; may be empty.
  std::string describeRemedy() const;

  bool operator==(const Finding &other) const = default;
};

/// The kinds as a table in Markdown.
void printFindings(llvm::raw_ostream &os);

} // namespace lowtide

#endif // LOWTIDE_RECOVER_FINDINGS_H

//===- RoleReasons.h - why an initializer has its role ----------------------------===//
//
// A reason is a kind and the names that its words hold. Rules decide by the kind. The words are in one table, for those
// who read.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_RECOVER_ROLEREASONS_H
#define LOWTIDE_RECOVER_ROLEREASONS_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lowtide {

enum class RoleReason : uint8_t {
  Unknown,
  // The user, or a step that says what its tensors are.
  UserSaid,
  StepUpdates,
  StepKeeps,
  // The exported program's signature.
  Listed,
  OfItsModule,
  InOtherForm,
  FoldedFrom,
  FoldedFromConstants,
  Joined,
  Combined,
  Piece,
  FoldedNormBias,
  MergedNumber,
  Unlisted,
  // What the importer took apart.
  TakenApart,
  ReadByOperator,
  ReadInScope,
  ReadInModule,
  ReadElsewhere,
  KeptByCopy,
  SameValues,
  TransposedValues,
  // Operators that read it, and its type.
  RunningStatistic,
  NoFloat,
  Unread,
  Setting,
  OfFewBits,
  FillsBias,
  ReadByLayer,
  UnreadByLayers,
  FourierFactor,
  RepeatedFilter,
  WeighsLosses,
  FrozenNorm,
  // Names.
  Variable,
  MovedVariable,
  FoldedNorm,
  BufferName,
  ParameterName,
  InventedName,
  FoldedWeight,
  ListedAfterBuffer,
  // Numbers.
  Sinusoids,
  Counts,
  Powers,
  Choices,
  Codes,
  Mask,
  Formula,
  EvaluatedParameter,
  SingleNumber,
  NumberWithoutModule,
  NothingAgainst,
  // What is said after another reason.
  Tied,
  OthersMerged,
  ViewOf,
  SameAs,
  Fault,
  AtBufferPositions,
  LastDimensionsExchanged,
};

/// A kind, the names in its words, and what else there is to say.
class Reason {
public:
  Reason() = default;
  /// `names`: as many as the kind's words hold places ({0}, {1}).
  Reason(RoleReason kind, std::vector<std::string> names = {}) : kind(kind), names(std::move(names)) {}

  bool is(RoleReason other) const { return kind == other; }
  /// Says more; what was decided by the kind stands.
  void add(Reason more) { others.push_back(std::move(more)); }
  /// Half a sentence.
  std::string describe() const;

private:
  RoleReason kind = RoleReason::Unknown;
  std::vector<std::string> names;
  std::vector<Reason> others;
};

} // namespace lowtide

#endif // LOWTIDE_RECOVER_ROLEREASONS_H

//===- RoleReasons.cpp - why an initializer has its role, in words ----------------===//

#include "lowtide/Recover/RoleReasons.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace lowtide;

namespace {
struct Words {
  RoleReason kind;
  /// Half a sentence, with {0} and {1} for names.
  const char *text;
};
} // namespace

static constexpr Words words[] = {
    {RoleReason::Unknown, ""},
    {RoleReason::UserSaid, "{0}"},
    {RoleReason::StepUpdates, "the training step says so"},
    {RoleReason::StepKeeps, "the training step does not update it"},
    {RoleReason::Listed, "the exported program lists it as {0}"},
    {RoleReason::OfItsModule, "{0} of its module, merged by the exporter with {1}"},
    {RoleReason::InOtherForm, "{0} that the operation reads, in another form"},
    {RoleReason::FoldedFrom, "the exporter folded it from {0}"},
    {RoleReason::FoldedFromConstants, "the exporter folded it from constants and buffers"},
    {RoleReason::Joined, "the exporter joined {0}"},
    {RoleReason::Combined, "the exporter combined it from {0}"},
    {RoleReason::Piece, "a part of {0}, which the exporter took out of it"},
    {RoleReason::FoldedNormBias, "bias that a folded batch norm left"},
    {RoleReason::MergedNumber, "a number of the graph, merged by the exporter with {0}"},
    {RoleReason::Unlisted, "the exported program does not list it"},
    {RoleReason::TakenApart, "{0}"},
    {RoleReason::ReadByOperator, "read by an operator of its own; merged with {0} by the exporter"},
    {RoleReason::ReadInScope, "read in a scope of its own; merged with {0} by the exporter"},
    {RoleReason::ReadInModule, "read in a module of its own; merged with {0} by the exporter"},
    {RoleReason::ReadElsewhere, "merged by the exporter with {0}, another module reads it"},
    {RoleReason::KeptByCopy, "merged by the exporter with {0}, its name is kept by a copy"},
    {RoleReason::SameValues, "the same as {0}, value for value"},
    {RoleReason::TransposedValues, "the transpose of {0}, value for value"},
    {RoleReason::RunningStatistic, "batch normalization reads it as running statistic"},
    {RoleReason::NoFloat, "is not of a float type"},
    {RoleReason::Unread, "nothing reads it"},
    {RoleReason::Setting, "configures the operator that reads it"},
    {RoleReason::OfFewBits, "makes numbers of codes, as the scales of a weight in few bits do"},
    {RoleReason::FillsBias, "fills the place of a bias"},
    {RoleReason::ReadByLayer, "a layer reads it as {0}"},
    {RoleReason::UnreadByLayers, "no layer reads it"},
    {RoleReason::FourierFactor,
     "sine and cosine of what it is multiplied with are features, whose frequencies are seldom trained"},
    {RoleReason::RepeatedFilter, "is one filter for all channels"},
    {RoleReason::WeighsLosses, "only weighs losses: a parameter there would have no least loss"},
    {RoleReason::FrozenNorm, "its module normalizes by running statistics without a norm's operator: a frozen norm"},
    {RoleReason::Variable, "is a variable of the program"},
    {RoleReason::MovedVariable, "is a variable of the program in another shape"},
    {RoleReason::FoldedNorm, "the scale and bias of a folded batch normalization"},
    {RoleReason::BufferName, "buffers go by this name"},
    {RoleReason::ParameterName, "is named as one"},
    {RoleReason::InventedName, "the exporter invented its name"},
    {RoleReason::FoldedWeight, "folded by the exporter; the module that reads it gives the name"},
    {RoleReason::ListedAfterBuffer, "a buffer of its module is listed before it, and parameters come first"},
    {RoleReason::Sinusoids, "holds sinusoids, which programs keep as they are"},
    {RoleReason::Counts, "counts 0, 1, 2 … along its inputs, which programs keep as it is"},
    {RoleReason::Powers, "holds powers of positions, which programs keep as they are"},
    {RoleReason::Choices, "holds the zeros and ones of a mask or a permutation, which programs keep as they are"},
    {RoleReason::Codes, "holds whole multiples of one number in each line, as the numbers of codes are"},
    {RoleReason::Mask, "holds a mask"},
    {RoleReason::Formula, "holds {0}"},
    {RoleReason::EvaluatedParameter,
     "evaluated by the exporter; its numbers, or what reads it, are not those of a program's constants"},
    {RoleReason::SingleNumber, "is a single number"},
    {RoleReason::NumberWithoutModule, "is a single number without a module's name"},
    {RoleReason::NothingAgainst, "is of a float type, and nothing speaks against it"},
    {RoleReason::Tied, "; tied"},
    {RoleReason::OthersMerged, "; other tensors were merged with it"},
    {RoleReason::ViewOf, "; a view of {0}"},
    {RoleReason::SameAs, "; the same as {0}"},
    {RoleReason::Fault, ", {0}"},
    {RoleReason::AtBufferPositions, ", at positions that a buffer of the program held; they are taken to begin at 0"},
    {RoleReason::LastDimensionsExchanged, ", which exchanges two dimensions; they are taken to be the last two"},
};

/// Whether the table has each kind, in the order of the enumeration.
static constexpr bool isComplete() {
  for (size_t i = 0; i != std::size(words); ++i)
    if (size_t(words[i].kind) != i)
      return false;
  return std::size(words) == size_t(RoleReason::LastDimensionsExchanged) + 1;
}
static_assert(isComplete());

std::string Reason::describe() const {
  std::vector<std::string> places = names;
  places.resize(2);
  std::string text = llvm::formatv(words[size_t(kind)].text, places[0], places[1]).str();
  for (const Reason &more : others)
    text += more.describe();
  return text;
}

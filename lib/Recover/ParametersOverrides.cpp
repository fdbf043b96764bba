//===- ParametersOverrides.cpp - what the user says about initializers
//--------------------===//

#include "Classifier.h"
#include "lowtide/OnnxModel/NodeNames.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "lowtide/Support/NameList.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lowtide;

namespace {

/// Applies the rules of `--params` and `--frozen` one after the other.
class Selector {
public:
  Selector(ModelView &file, std::vector<InitializerInfo> &infos) : file(file), infos(infos) {
    const Signature signature(file.getModel().graph());
    for (const InitializerInfo &info : infos) {
      stated.push_back(info.role);
      const SignatureEntry *entry = signature.findTarget(info.name);
      const bool isListed = entry && entry->kind == SignatureEntry::Parameter;
      buffers.push_back(info.role == InitializerRole::Constant && !isListed && isBufferReason(info.reason));
      listed.push_back(entry && entry->kind == SignatureEntry::Buffer);
    }
  }

  /// `frozenBy`: why nothing else is trained; may be empty.
  LogicalResult apply(ArrayRef<RoleChoices::Selection> selections, StringRef frozenBy);

private:
  LogicalResult applyRule(const RoleChoices::Selection &selection, StringRef text);
  LogicalResult applyItem(const RoleChoices::Selection &selection, const NameItem &item);
  LogicalResult fail(const Twine &message, const Twine &remedy = "") {
    file.getReport().error(FailureKind::Usage, message, remedy);
    return failure();
  }
  static bool matches(const NamePattern &pattern, const InitializerInfo &info) {
    return pattern.matches(info.name) || pattern.matches(info.tensor) ||
           llvm::any_of(info.tied, [&](const std::string &name) { return pattern.matches(name); });
  }
  /// Whether evidence says that no optimizer sees it.
  static bool isBufferReason(const Reason &reason) {
    static constexpr RoleReason kinds[] = {RoleReason::Listed,
                                           RoleReason::OfItsModule,
                                           RoleReason::InOtherForm,
                                           RoleReason::Unlisted,
                                           RoleReason::FoldedFrom,
                                           RoleReason::FoldedFromConstants,
                                           RoleReason::MergedNumber,
                                           RoleReason::FourierFactor,
                                           RoleReason::RepeatedFilter,
                                           RoleReason::WeighsLosses,
                                           RoleReason::FrozenNorm,
                                           RoleReason::BufferName,
                                           RoleReason::ListedAfterBuffer,
                                           RoleReason::Mask,
                                           RoleReason::Formula};
    return llvm::any_of(kinds, [&](RoleReason kind) { return reason.is(kind); });
  }
  /// Whether a glob means it: what is trained anyway, and constants that somebody named. Statistics are meant by their
  /// names only, numbers of the graph's arithmetic by a part of them (not by a glob of wildcards alone), and buffers
  /// where the last part of their name is said (`*.mask`). Tables that may have been trained are numbers of the
  /// program.
  bool isMeantByGlob(size_t number, StringRef glob) const {
    const InitializerInfo &info = infos[number];
    const bool saysName = glob.find_first_not_of("*?") != StringRef::npos;
    const bool isTable = info.reason.is(RoleReason::Sinusoids) || info.reason.is(RoleReason::Counts) ||
                         info.reason.is(RoleReason::Powers) || info.reason.is(RoleReason::Choices);
    if (isTable && !saysName && stated[number] == InitializerRole::Constant)
      return false;
    if (buffers[number] &&
        (!glob.contains('.') || glob.rsplit('.').second.find_first_of("*?[]{}\\") != StringRef::npos))
      return false;
    return stated[number] == InitializerRole::Parameter ||
           (stated[number] == InitializerRole::Constant && isFloatType(info.dataType) &&
            (saysName || info.getNumElements() > 1) && !isInventedName(info.name));
  }
  void set(InitializerInfo &info, InitializerRole role, const Twine &words) {
    if (info.role == role)
      return;
    info.role = role;
    info.certainty = Certainty::Stated;
    info.reason = {RoleReason::UserSaid, {words.str()}};
  }
  std::string suggest(StringRef word) const {
    std::vector<StringRef> known;
    for (const InitializerInfo &info : infos)
      known.push_back(info.name);
    return suggestName(word, known);
  }

  ModelView &file;
  std::vector<InitializerInfo> &infos;
  /// Roles before any rule.
  std::vector<InitializerRole> stated;
  /// Whether it is taken for a buffer, and whether the program says that it is one.
  std::vector<bool> buffers, listed;
};

} // namespace

LogicalResult Selector::apply(ArrayRef<RoleChoices::Selection> selections, StringRef frozenBy) {
  if (frozenBy.empty() && !selections.empty() && selections.front().trains &&
      !StringRef(selections.front().text).starts_with("+"))
    frozenBy = "--params trains others only";
  if (!frozenBy.empty())
    for (InitializerInfo &info : infos)
      if (info.role == InitializerRole::Parameter)
        set(info, InitializerRole::Constant, frozenBy);
  for (const RoleChoices::Selection &selection : selections) {
    StringRef text = selection.text;
    if (selection.trains)
      text.consume_front("+");
    if (failed(applyRule(selection, text)))
      return failure();
  }
  return success();
}

LogicalResult Selector::applyRule(const RoleChoices::Selection &selection, StringRef text) {
  const StringRef flag = selection.trains ? "--params" : "--frozen";
  // A name that holds the signs of a list is a name first.
  const NamePattern whole(text, /*isLiteral=*/true);
  if (llvm::any_of(infos, [&](const InitializerInfo &info) { return matches(whole, info); }))
    return applyItem(selection, {text.str(), 0, /*isQuoted=*/true});
  SmallVector<NameItem> items;
  if (std::optional<TextFault> fault = splitNames(text, ',', items))
    return fail(flag + " " + quoteName(text) + ": " + fault->message + " (column " +
                    Twine(countColumns(text, fault->column)) + ")",
                "names and globs stand between commas; a name with a comma is put into quotes");
  for (const NameItem &item : items)
    if (failed(applyItem(selection, item)))
      return failure();
  return success();
}

LogicalResult Selector::applyItem(const RoleChoices::Selection &selection, const NameItem &item) {
  const StringRef flag = selection.trains ? "--params" : "--frozen";
  const NamePattern literal(item.text, /*isLiteral=*/true);
  const bool isName =
      item.isQuoted || llvm::any_of(infos, [&](const InitializerInfo &info) { return matches(literal, info); });
  const NamePattern pattern = isName ? literal : NamePattern(item.text);
  bool found = false;
  SmallVector<StringRef> passedOver;
  for (auto [number, info] : llvm::enumerate(infos)) {
    if (!matches(pattern, info))
      continue;
    if (pattern.isGlob() && selection.trains && !isMeantByGlob(number, item.text)) {
      if (buffers[number])
        passedOver.push_back(info.name);
      continue;
    }
    found = true;
    if (selection.trains && !isFloatType(info.dataType)) {
      file.getReport().errorAt(FailureKind::Usage, info.tensor,
                               flag + ": " + quoteName(info.name) + " has type " + elementTypeName(info.dataType) +
                                   " and cannot be trained");
      return failure();
    }
    // Freezing keeps what the step itself updates.
    if (!selection.trains && info.role == InitializerRole::State)
      continue;
    if (selection.trains && listed[number] && info.role == InitializerRole::Constant)
      file.getReport().add(
          {FindingKind::BuffersTrained, info.tensor, {info.name}, {{"flag", (flag + "=" + selection.text).str()}}});
    set(info, selection.trains ? InitializerRole::Parameter : InitializerRole::Constant, flag + " " + selection.text);
  }
  if (found)
    return success();
  if (!passedOver.empty())
    return fail(flag + ": " + quoteName(item.text) + " matches no parameter, only " +
                    (passedOver.size() == 1 ? "a buffer" : "buffers") + ": " + llvm::join(passedOver, ", "),
                "what is taken for a buffer is trained where it is named: " + flag + "=+" + passedOver.front());
  return fail(flag + ": no initializer matches " + quoteName(item.text) +
                  (pattern.getFault().empty() ? suggest(item.text) : ", which is no glob: " + pattern.getFault().str()),
              "lowtide check lists them");
}

/// Two infos of one tensor that the user gives one name are one: a tie.
static void join(std::vector<InitializerInfo> &infos, size_t from, size_t to) {
  llvm::append_range(infos[to].uses, infos[from].uses);
  for (InitializerInfo &info : infos) {
    if (info.viewOf == from)
      info.viewOf = to;
    if (info.viewOf && *info.viewOf > from)
      --*info.viewOf;
  }
  infos.erase(infos.begin() + ptrdiff_t(from));
}

LogicalResult lowtide::applyOverrides(ModelView &file, const RoleChoices &choices,
                                      std::vector<InitializerInfo> &infos) {
  for (const auto &[from, to] : choices.renames) {
    // `tensor@module` was used where the tensor's uses were assigned.
    if (StringRef(from).contains('@'))
      continue;
    auto info = llvm::find_if(infos, [&, from = StringRef(from)](const InitializerInfo &info) {
      return info.tensor == from || info.name == from;
    });
    if (info == infos.end()) {
      file.getReport().error(FailureKind::Usage, "--rename: the model has no initializer " + quoteName(from),
                             "lowtide check lists them");
      return failure();
    }
    auto twin = llvm::find_if(infos, [&, to = StringRef(to)](const InitializerInfo &other) {
      return &other != &*info && other.name == to && other.tensor == info->tensor;
    });
    info->name = to;
    if (twin != infos.end())
      join(infos, size_t(info - infos.begin()), size_t(twin - infos.begin()));
  }
  return Selector(file, infos).apply(choices.selections, choices.frozenBy);
}

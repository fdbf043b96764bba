//===- TiedTables.cpp - lookup tables under a name that nothing calls -------------===//

#include "TiedTables.h"

#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace lowtide;

InitializerInfo *lowtide::findTiedTable(const Signature &signature, const SignatureEntry &entry,
                                        MutableArrayRef<InitializerInfo> infos) {
  StringRef module = moduleOf(entry.target);
  std::string name = leafOf(module).lower();
  auto isTable = [&](StringRef part) { return StringRef(name).contains(part); };
  if (leafOf(entry.target) != "weight" || llvm::none_of(ArrayRef<StringRef>{"shared", "embed", "wte"}, isTable) ||
      llvm::any_of(signature.getEntries(), [&](const SignatureEntry &other) {
        return moduleOf(other.target) == module && other.target != entry.target;
      }))
    return nullptr;
  InitializerInfo *found = nullptr;
  for (InitializerInfo &info : infos)
    if (llvm::count_if(info.tied, [&](StringRef tied) {
          return tied.starts_with(moduleOf(module)) && leafOf(tied) == "weight";
        }) > 1) {
      if (found && found->name != info.name)
        return nullptr;
      found = &info;
    }
  if (found || name != "shared")
    return found;
  // An encoder of its own has one name for it.
  for (InitializerInfo &info : infos) {
    if (info.role != InitializerRole::Parameter || !StringRef(info.name).starts_with(moduleOf(module)) ||
        !StringRef(info.name).ends_with(".embed_tokens.weight") || info.uses.empty() ||
        !llvm::all_of(info.uses, [](const InitializerUse &use) { return use.node->op_type() == "Gather"; }))
      continue;
    if (found)
      return nullptr;
    found = &info;
  }
  return found;
}

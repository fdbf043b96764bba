//===- RoleChoices.h - what the user says of initializers -------------------------===//

#ifndef LOWTIDE_RECOVER_ROLECHOICES_H
#define LOWTIDE_RECOVER_ROLECHOICES_H

#include <string>
#include <utility>
#include <vector>

namespace lowtide {

struct RoleChoices {
  /// What `--params` and `--frozen` say, in their order: of the rules that match an initializer, the last one counts.
  /// Where the first rule trains, everything else is frozen; a list that begins with `+` trains what it matches besides
  /// what the file says.
  struct Selection {
    bool trains;
    /// A framework's or initializer's name, or a list of names and globs.
    std::string text;
  };
  std::vector<Selection> selections;
  /// Why nothing is trained but what `selections` name; empty: what the file says is.
  std::string frozenBy;
  /// Framework name by initializer name: `--rename val_9=h.0.qkv.weight`;
  /// `tensor@module=name` for one module's use.
  std::vector<std::pair<std::string, std::string>> renames;
};

} // namespace lowtide

#endif // LOWTIDE_RECOVER_ROLECHOICES_H

//===- ExportNames.h - what goes back into a model file ---------*- C++ -*-===//
//
// What the entries are called that compute what a model file holds of parameters in another form (images), and their
// results. Compiler and runtime agree on it.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RT_EXPORTNAMES_H
#define LOWTIDE_RT_EXPORTNAMES_H

#include <string>
#include <string_view>

namespace lowtide {

inline constexpr std::string_view exportEntry = "export";
/// A result goes by the initializer's name and this, for a parameter may go by that name alone.
inline constexpr std::string_view imageSuffix = "@image";

/// `export`, `export_2`, …
inline std::string exportEntryName(unsigned number) {
  return std::string(exportEntry) + (number == 1 ? "" : "_" + std::to_string(number));
}
constexpr bool isExportEntry(std::string_view entry) {
  if (!entry.starts_with(exportEntry))
    return false;
  entry.remove_prefix(exportEntry.size());
  return entry.empty() || (entry.size() > 1 && entry.front() == '_' &&
                           entry.find_first_not_of("0123456789", 1) == std::string_view::npos);
}

inline std::string imageName(std::string_view initializer) { return std::string(initializer).append(imageSuffix); }
/// The initializer whose image is called so; empty: none.
constexpr std::string_view imageInitializer(std::string_view name) {
  return name.ends_with(imageSuffix) ? name.substr(0, name.size() - imageSuffix.size()) : std::string_view();
}

} // namespace lowtide

#endif // LOWTIDE_RT_EXPORTNAMES_H

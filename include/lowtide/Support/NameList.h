//===- NameList.h - lists of names and patterns in flags --------*- C++ -*-===//
//
// How every flag that takes a list is read: items between separators, brackets and quotes kept whole, nothing
// swallowed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/GlobPattern.h"
#include <memory>
#include <optional>
#include <string>

namespace lowtide {

/// What is wrong with a text, and at which byte.
struct TextFault {
  size_t column;
  std::string message;
};

/// One item of a list.
struct NameItem {
  std::string text;  ///< without blanks around it and without quotes
  size_t column = 0; ///< of its first byte in the list
  bool isQuoted = false;
};

/// The items of `text` between `separator`s that stand outside quotes and brackets. An item may be quoted as a whole
/// ('a, b' or "a, b"; a backslash keeps the quote after it). An empty item is a fault.
std::optional<TextFault> splitNames(llvm::StringRef text, char separator, llvm::SmallVectorImpl<NameItem> &items);

/// A name, or a glob over names. A name matches itself, whatever signs it holds; where the glob matches nothing that is
/// meant, brackets may stand for themselves ("layers[0].*").
class NamePattern {
public:
  /// `isLiteral`: no sign means anything but itself.
  explicit NamePattern(llvm::StringRef text, bool isLiteral = false);

  bool matches(llvm::StringRef name) const;
  /// Holds a sign that matches others: `*`, `?`, `[`, `{`, `\`.
  bool isGlob() const { return parsed->hasSigns; }
  /// Why it is no glob; empty if it is one. It matches its own text all the same.
  llvm::StringRef getFault() const { return parsed->fault; }
  llvm::StringRef getText() const { return parsed->text; }

private:
  /// Stays where it is: a GlobPattern points into its text.
  struct Parsed {
    std::string text, fault;
    bool hasSigns;
    std::optional<llvm::GlobPattern> glob;
    /// The same with brackets that stand for themselves.
    std::string literalText;
    std::optional<llvm::GlobPattern> literal;
  };
  std::shared_ptr<const Parsed> parsed;
};

/// "; did you mean 'x'?" with the nearest of `known`, empty where none is near. Case does not count.
std::string suggestName(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> known);

/// `text`, and below it a caret at byte `column`, as a note has them: the second line begins where the first one does
/// after `note: `.
std::string pointInto(llvm::StringRef text, size_t column);
/// The column of byte `column` as people count: characters, from 1.
size_t countColumns(llvm::StringRef text, size_t column);

} // namespace lowtide

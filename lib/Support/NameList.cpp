//===- NameList.cpp - lists of names and patterns in flags ------*- C++ -*-===//
//
// One reader for all flags, so that a name that one of them takes is taken by the others.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Support/NameList.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"

#include <limits>

using namespace lowtide;
using llvm::StringRef;

/// Takes quotes off an item that is quoted as a whole.
static NameItem makeItem(StringRef list, size_t begin, size_t end) {
  StringRef raw = list.slice(begin, end), text = raw.ltrim();
  NameItem item;
  item.column = begin + (raw.size() - text.size());
  text = text.rtrim();
  item.text = text.str();
  if (text.size() < 2 || (text[0] != '\'' && text[0] != '"'))
    return item;
  std::string inside;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == text[0]) {
      // Quotes around a part of it are the part's.
      if (i + 1 == text.size()) {
        item.isQuoted = true;
        item.text = std::move(inside);
      }
      return item;
    }
    i += text[i] == '\\' && i + 1 < text.size();
    inside += text[i];
  }
  return item;
}

/// Whether a quote may open at `at`: an apostrophe within a word is a letter.
static bool mayOpen(StringRef text, size_t at) { return at == 0 || StringRef(" \t=:,;([{").contains(text[at - 1]); }

std::optional<TextFault> lowtide::splitNames(StringRef text, char separator, llvm::SmallVectorImpl<NameItem> &items) {
  size_t begin = 0, opened = 0;
  llvm::SmallVector<size_t> open;
  char quote = 0;
  for (size_t at = 0; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : separator;
    const bool isEnd = at == text.size();
    if (quote && isEnd)
      return TextFault{opened, "a quote that is opened is not closed"};
    if (quote) {
      if (c == '\\' && at + 1 < text.size())
        ++at;
      else if (c == quote)
        quote = 0;
    } else if ((c == '\'' || c == '"') && mayOpen(text, at)) {
      quote = c;
      opened = at;
    } else if (StringRef("([{").contains(c)) {
      open.push_back(at);
    } else if (StringRef(")]}").contains(c)) {
      if (!open.empty())
        open.pop_back();
    } else if (c == separator && (open.empty() || isEnd)) {
      items.push_back(makeItem(text, begin, at));
      if (items.back().text.empty())
        return TextFault{begin, "an item is empty"};
      begin = at + 1;
    }
  }
  return std::nullopt;
}

NamePattern::NamePattern(StringRef text, bool isLiteral) {
  auto made = std::make_shared<Parsed>();
  made->text = text.str();
  made->hasSigns = !isLiteral && text.find_first_of("*?[{\\") != StringRef::npos;
  auto make = [](StringRef pattern, std::string &fault) -> std::optional<llvm::GlobPattern> {
    llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(pattern, /*MaxSubPatterns=*/64);
    if (glob)
      return std::move(*glob);
    fault = llvm::toString(glob.takeError());
    return std::nullopt;
  };
  if (made->hasSigns)
    made->glob = make(made->text, made->fault);
  if (made->hasSigns && text.contains('[')) {
    for (char c : text)
      made->literalText += (c == '[' || c == ']' ? "\\" : "") + std::string(1, c);
    std::string ignored;
    made->literal = make(made->literalText, ignored);
  }
  parsed = std::move(made);
}

bool NamePattern::matches(StringRef name) const {
  return name == parsed->text || (parsed->glob && parsed->glob->match(name)) ||
         (parsed->literal && parsed->literal->match(name));
}

std::string lowtide::suggestName(StringRef word, llvm::ArrayRef<StringRef> known) {
  StringRef nearest;
  const std::string wanted = word.lower();
  // What was begun is meant before what looks like it: 'cuda:a100' is cuda:a100-40gb rather than cuda:a10.
  for (StringRef name : known)
    if (nearest.empty() && word.size() > 2 && name.lower().starts_with(wanted + "-"))
      nearest = name;
  if (!nearest.empty())
    return ("; did you mean '" + nearest + "'?").str();
  // Of few letters few may differ.
  unsigned best = std::numeric_limits<unsigned>::max();
  for (StringRef name : known) {
    const unsigned most = std::max<unsigned>(1, unsigned(std::min(word.size(), name.size()) + 1) / 3);
    if (unsigned distance = StringRef(wanted).edit_distance(name.lower(), true, most + 1);
        distance <= most && distance < best) {
      best = distance;
      nearest = name;
    }
  }
  return nearest.empty() ? "" : ("; did you mean '" + nearest + "'?").str();
}

size_t lowtide::countColumns(StringRef text, size_t column) {
  // Bytes that continue a character have no column.
  return 1 + size_t(llvm::count_if(text.take_front(column),
                                   [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string lowtide::pointInto(StringRef text, size_t column) {
  std::string shown = text.str();
  std::replace_if(shown.begin(), shown.end(), [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
  return shown + "\n" + std::string(StringRef("note: ").size() + countColumns(text, column) - 1, ' ') + "^";
}

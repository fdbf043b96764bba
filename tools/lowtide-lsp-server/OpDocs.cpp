//===- OpDocs.cpp - what the records say of an op ---------------*- C++ -*-===//
//
// MLIR registers no documentation with an op. The table is what `mlir-tblgen -gen-op-doc` writes of our records.
//
//===----------------------------------------------------------------------===//

#include "OpDocs.h"
#include "lowtide/Support/TextPlaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

using namespace lowtide;
using llvm::StringRef;

static const char text[] =
#include "OpDocs.inc"
    ;

/// Of a page, the paragraphs that someone who writes an op needs: not its C++ side.
static std::string keepWanted(StringRef page) {
  std::string kept;
  llvm::SmallVector<StringRef> paragraphs;
  page.split(paragraphs, "\n\n");
  for (StringRef paragraph : paragraphs) {
    StringRef shown = paragraph.trim('\n');
    if (shown.empty() || shown.starts_with("Traits:") || shown.starts_with("Interfaces:") ||
        shown.starts_with("Effects:"))
      continue;
    kept += (kept.empty() ? "" : "\n\n") + shown.str();
  }
  return kept;
}

/// Markdown by op.
static const std::map<std::string, std::string, std::less<>> &getDocs() {
  static const auto docs = [] {
    std::map<std::string, std::string, std::less<>> found;
    StringRef rest = StringRef(text).split("\n### `").second;
    while (!rest.empty()) {
      auto [section, next] = rest.split("\n### `");
      auto [name, body] = section.split('`');
      found[name.str()] = keepWanted(body.split('\n').second);
      rest = next;
    }
    return found;
  }();
  return docs;
}

StringRef lowtide::findOpDoc(StringRef name) {
  auto found = getDocs().find(name);
  return found == getDocs().end() ? StringRef() : StringRef(found->second);
}

StringRef lowtide::findOp(StringRef mnemonic) {
  StringRef only;
  for (const auto &[name, doc] : getDocs())
    if (StringRef(name).split('.').second == mnemonic) {
      if (!only.empty())
        return "";
      only = name;
    }
  return only;
}

std::string lowtide::addOpDocs(StringRef message) {
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(message);
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return message.str();
  }
  llvm::json::Object *reply = parsed->getAsObject(), *result = reply ? reply->getObject("result") : nullptr;
  bool isChanged = false;
  llvm::json::Object *offered = result ? result->getObject("capabilities") : nullptr;
  if (llvm::json::Object *kept = offered ? offered->getObject("textDocumentSync") : nullptr) {
    (*kept)["change"] = 1; // TextDocumentSyncKind.Full
    isChanged = true;
  }
  // `"nn.exp"`, a line, and what MLIR says of this one.
  if (llvm::json::Object *contents = result ? result->getObject("contents") : nullptr)
    if (auto value = contents->getString("value"); value && value->starts_with("\"")) {
      auto [name, after] = value->drop_front().split('"');
      if (StringRef doc = findOpDoc(name); !doc.empty()) {
        (*contents)["value"] = ("\"" + name + "\"\n\n" + doc + after).str();
        isChanged = true;
      }
    }
  if (llvm::json::Array *items = result ? result->getArray("items") : nullptr)
    for (llvm::json::Value &item : *items) {
      llvm::json::Object *fields = item.getAsObject();
      if (!fields || fields->getString("detail") != StringRef("operation"))
        continue;
      auto label = fields->getString("label");
      StringRef name = !label ? "" : label->contains('.') ? *label : findOp(*label);
      if (StringRef doc = findOpDoc(name); !doc.empty()) {
        (*fields)["documentation"] = llvm::json::Object{{"kind", "markdown"}, {"value", doc}};
        isChanged = true;
      }
    }
  if (!isChanged)
    return message.str();
  std::string written;
  llvm::raw_string_ostream(written) << *parsed;
  return written;
}

/// Bounds the member `text` of an object; whether it changed.
static bool boundText(llvm::json::Object *holder) {
  auto given = holder ? holder->getString("text") : std::nullopt;
  if (!given || !findHugeResultNumber(*given))
    return false;
  std::string text = given->str();
  boundResultNumbers(text);
  (*holder)["text"] = std::move(text);
  return true;
}

std::string lowtide::boundTexts(StringRef message) {
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(message);
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return message.str();
  }
  llvm::json::Object *request = parsed->getAsObject(), *params = request ? request->getObject("params") : nullptr;
  if (!params)
    return message.str();
  bool isChanged = boundText(params->getObject("textDocument"));
  if (llvm::json::Array *changes = params->getArray("contentChanges"))
    for (llvm::json::Value &change : *changes)
      isChanged |= boundText(change.getAsObject());
  if (!isChanged)
    return message.str();
  std::string written;
  llvm::raw_string_ostream(written) << *parsed;
  return written;
}

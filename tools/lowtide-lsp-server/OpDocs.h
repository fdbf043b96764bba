//===- OpDocs.h - what the records say of an op -----------------*- C++ -*-===//
#pragma once

#include "llvm/ADT/StringRef.h"
#include <string>

namespace lowtide {

/// Summary, assembly format, description, operands and results of "nn.exp" as Markdown; empty for an op that is none of
/// ours.
llvm::StringRef findOpDoc(llvm::StringRef name);

/// The name of the only op of ours that is called so in its dialect: "exp" → "nn.exp"; empty: none, or several.
llvm::StringRef findOp(llvm::StringRef mnemonic);

/// A message of the language server with what the records say: hover over an op shows it, and so do completions. The
/// editor is asked for whole texts, not for changes: only a whole text can be looked at before it is parsed.
std::string addOpDocs(llvm::StringRef message);

/// A message to the language server with texts whose numbers of results its parser can refuse (Support/TextPlaces.h).
std::string boundTexts(llvm::StringRef message);

} // namespace lowtide

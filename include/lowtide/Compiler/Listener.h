//===- Listener.h - what the compiler says while it works -------*- C++ -*-===//
//
// The library prints nothing: whoever calls it hears errors, warnings, remarks, progress and the log, and shows them as
// it likes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lowtide {

enum class Severity { Error, Warning, Remark, Note };

/// One thing that was said.
struct Message {
  Severity severity = Severity::Error;
  std::string text;
  /// The layer that it is about: "h.0/attn/MatMul", as the model names it; empty: none.
  std::string layer = {};
  /// Where in a stage's text it is; line 0: nowhere, for it came from a model.
  std::string file = {};
  unsigned line = 0, column = 0;
  /// That line of the text, where it is known.
  std::optional<std::string> sourceLine = {};
  /// The stage that said it: "import", "nn", "train", "fitted", "plan".
  std::string area = {};
  std::vector<Message> notes = {};
  /// What the text says in numbers, by name: "saved_bytes"; empty: nothing that is to be read by programs.
  std::map<std::string, uint64_t> figures = {};
};

enum class LogLevel { Info, Debug };

/// Hears the compiler. Nothing is asked of one thread: a compile calls its listener from the thread that it runs on.
class Listener {
public:
  virtual ~Listener();

  /// An error, a warning (each once) or a remark, with its notes.
  virtual void hear(const Message &message) {}
  /// Whether lines of the log are wanted; if not, they are not written.
  virtual bool wantsLog(LogLevel level, const std::string &area) { return false; }
  virtual void log(LogLevel level, const std::string &area, const std::string &text) {}
  /// What a long search does now; `isNews`: a result that stays true.
  virtual void progress(const std::string &text, bool isNews) {}
  /// Nothing more is searched.
  virtual void endProgress() {}
};

} // namespace lowtide

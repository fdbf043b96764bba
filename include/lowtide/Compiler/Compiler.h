//===- Compiler.h - the compiler as a library -------------------*- C++ -*-===//
//
// A model and a request become an artifact. Nothing is printed, no process ends, and no state outlives the objects
// here: several compilers live in one process, each in any thread.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Compiler/Figures.h"
#include "lowtide/Compiler/Listener.h"
#include "lowtide/Compiler/Request.h"
#include "lowtide/Support/Failure.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/LogicalResult.h"
#include "llvm/Support/raw_ostream.h"
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lowtide {

class Compilation;
namespace codegen {
class KernelTrials;
}

/// What is compiled, and where its weights come from.
struct Sources {
  /// The ONNX file or, with `Request::from`, a stage's text ("-": standard input). Messages name it, and external data
  /// are looked for next to it.
  std::string model;
  /// The same in memory; nothing: the file is read.
  std::optional<std::string> bytes = {};
  /// With `Request::from`: the ONNX file that the text was made of, whose weights go into the artifact.
  std::string weights = {};
  /// Streams the first values of an initializer, little endian, dense and row-major, instead of the file's; fails where
  /// there are none. Empty: the file's.
  std::function<llvm::LogicalResult(llvm::StringRef initializer, llvm::function_ref<void(llvm::ArrayRef<char>)> sink)>
      reader = {};
};

/// What went into a file.
struct Written {
  size_t kernels = 0;
  uint64_t planBytes = 0, paramsBytes = 0, codeBytes = 0; ///< of an artifact
  unsigned keptKernels = 0;                               ///< whose code an earlier compile has kept
  uint64_t nodes = 0, weightBytes = 0;                    ///< of an ONNX model
  bool isExternal = false;                                ///< its weights are in a file of their own
};

/// What a compile came to. It holds the step until it is destroyed; its listener has to live as long.
class Result {
public:
  explicit Result(std::unique_ptr<Compilation> compilation);
  Result(Result &&);
  Result &operator=(Result &&);
  ~Result();

  /// Why there is nothing to write.
  Failure failure;
  /// All errors, warnings and remarks, in their order.
  llvm::ArrayRef<Message> getDiagnostics() const;
  /// Names of the entries, in their order.
  std::vector<std::string> listEntries() const;
  /// The passes that were run, as lowtide-opt's --pass-pipeline takes them.
  std::string describePasses() const;
  /// Numbers of what was made, or refused. Computed at the first call; entries are there when a plan is.
  const Figures &getFigures();

  /// Whether the request asks for a file (artifact, onnx-model) and not for text.
  bool isFile() const;
  /// Writes the artifact or the ONNX model. The file appears under its name when it is complete.
  Failure write(const std::string &path, Written *written = nullptr);
  /// Prints the stage, the kernels or their PTX.
  Failure print(llvm::raw_ostream &os);

private:
  std::unique_ptr<Compilation> compilation;
  std::optional<Figures> figures;
};

/// What `Compiler::fit` found.
struct FitResult {
  Failure failure;
  /// The step as it is keeps the room that was asked for.
  bool fits = false;
  /// A table, or an answer, and the same as JSON.
  std::string text, json;
};

/// How `Compiler::check` reports.
struct CheckOptions {
  bool json = false;
  bool strict = false; ///< whatever the file leaves open is a failure
};

/// Compiles steps, and remembers what it has learnt of kernels. Several threads may use one.
class Compiler {
public:
  Compiler();
  ~Compiler();
  Compiler(const Compiler &) = delete;
  Compiler &operator=(const Compiler &) = delete;

  /// Whether the target exists, and the machine has what the options need: what can be said without the model.
  Failure checkTarget(const Request &request, Listener *listener = nullptr);
  /// Goes from `request.from` to `request.emit`.
  Result compile(const Request &request, const Sources &sources, Listener *listener = nullptr);
  /// Writes to `os` what is in a model and what stands in the way; compiles nothing.
  Failure check(const Request &request, const Sources &sources, const CheckOptions &options, llvm::raw_ostream &os,
                Listener *listener = nullptr);
  /// Says what the step costs at which budget, or whether it fits one; needs no weights and no device.
  FitResult fit(const FitRequest &request, const Sources &sources, Listener *listener = nullptr);

private:
  std::shared_ptr<codegen::KernelTrials> trials;
};

} // namespace lowtide

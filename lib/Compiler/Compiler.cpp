//===- Compiler.cpp - the compiler as a library -----------------*- C++ -*-===//
//
// One Compilation each call; all of them share what is known of kernels.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Compiler/Compiler.h"
#include "Compilation.h"
#include "lowtide/Dialect/Train/ScheduleOptions.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace lowtide;
using llvm::StringRef;

int lowtide::getStageNumber(StringRef name) {
  return llvm::StringSwitch<int>(name)
      .Case("onnx", 0)
      .Case("nn", 1)
      .Case("train", 2)
      .Case("fitted", 3)
      .Case("plan", 4)
      .Cases({"artifact", "kernels", "ptx"}, 5)
      .Default(-1);
}

std::vector<std::string> lowtide::listSchedules() {
  auto schedules = train::listSchedules();
  return {schedules.begin(), schedules.end()};
}

/// A failure that says what the first error said.
static Failure explain(Failure failure, const Compilation &compilation) {
  if (failure && failure.message.empty())
    failure.message = compilation.getDiagnostics().getFirstError();
  return failure;
}

Result::Result(std::unique_ptr<Compilation> compilation) : compilation(std::move(compilation)) {}
Result::Result(Result &&) = default;
Result &Result::operator=(Result &&) = default;
Result::~Result() = default;

llvm::ArrayRef<Message> Result::getDiagnostics() const { return compilation->getDiagnostics().getMessages(); }
std::vector<std::string> Result::listEntries() const { return compilation->listEntries(); }
std::string Result::describePasses() const {
  return "builtin.module(" + llvm::join(compilation->getPipeline(), ",") + ")";
}
bool Result::isFile() const { return compilation->isFile(); }

const Figures &Result::getFigures() {
  if (!figures)
    figures = compilation->findFigures();
  return *figures;
}

Failure Result::write(const std::string &path, Written *written) {
  Written ignored;
  return explain(failure ? failure : compilation->write(path, written ? *written : ignored), *compilation);
}

Failure Result::print(llvm::raw_ostream &os) {
  return explain(failure ? failure : compilation->print(os), *compilation);
}

Compiler::Compiler() : trials(std::make_shared<codegen::KernelTrials>()) {}
Compiler::~Compiler() = default;

Failure Compiler::checkTarget(const Request &request, Listener *listener) {
  Compilation compilation(request, {}, listener, trials);
  return explain(compilation.checkTarget(), compilation);
}

Result Compiler::compile(const Request &request, const Sources &sources, Listener *listener) {
  auto compilation = std::make_unique<Compilation>(request, sources, listener, trials);
  Failure failure = explain(compilation->compile(), *compilation);
  Result result(std::move(compilation));
  result.failure = std::move(failure);
  return result;
}

Failure Compiler::check(const Request &request, const Sources &sources, const CheckOptions &options,
                        llvm::raw_ostream &os, Listener *listener) {
  Compilation compilation(request, sources, listener, trials);
  return explain(compilation.check(options, os), compilation);
}

FitResult Compiler::fit(const FitRequest &request, const Sources &sources, Listener *listener) {
  FitRequest single = request;
  const FitColumns columns = FitColumns::take(single);
  Compilation compilation(single, sources, listener, trials);
  FitResult result;
  result.failure = explain(compilation.fit(single, columns, result), compilation);
  return result;
}

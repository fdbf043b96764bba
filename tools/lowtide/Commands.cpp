//===- Commands.cpp - the commands that compile -----------------*- C++ -*-===//
//
// The compiler is a library; what it prints and where it writes is said here.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Diagnostics.h"
#include "StepSummary.h"
#include "lowtide/Compiler/Compiler.h"
#include "lowtide/Interfaces/TargetInfo.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace lowtide;
using namespace lowtide::driver;

static Sources sourcesOf(const Options &options) { return {options.input, {}, options.weightsFrom}; }

static void addVariants(const Options &options, Request &request) {
  if (options.lastBatch)
    request.variants.push_back({"last", options.lastBatch});
}

static Request requestOf(const Options &options) {
  Request request = options;
  addVariants(options, request);
  return request;
}

/// Nothing says where to write; what is wrong with the target comes first.
static int refuseNowhere(const Options &options, const llvm::Twine &message, const llvm::Twine &note) {
  DiagnosticPrinter printer(options.verbosity, options.log);
  if (Failure failure = Compiler().checkTarget(requestOf(options), &printer))
    return getExitCode(failure.kind);
  printError(message);
  printNote(note);
  return exitUsage;
}

/// Writes a text where --output says; `print` says whether there is one.
static int writeText(const std::string &path, llvm::function_ref<Failure(llvm::raw_ostream &)> print) {
  std::error_code error;
  llvm::ToolOutputFile out(path.empty() ? "-" : path, error, llvm::sys::fs::OF_Text);
  if (!error) {
    if (Failure failure = print(out.os()))
      return getExitCode(failure.kind);
    out.os().flush();
  }
  if (error || out.os().has_error()) {
    printError("cannot write '" + path + "': " + (error ? error : out.os().error()).message());
    out.os().clear_error();
    return exitIo;
  }
  out.keep();
  return exitOk;
}

static void printWritten(const Options &options, const Written &written, Result &result) {
  llvm::errs() << "wrote " << options.output << ": ";
  if (options.emit == "onnx-model") {
    llvm::errs() << written.nodes << " nodes, weights " << written.weightBytes << " bytes"
                 << (written.isExternal ? " beside it" : "") << "\n";
    return;
  }
  llvm::errs() << written.kernels << " kernels, plan " << written.planBytes << " bytes, params " << written.paramsBytes
               << " bytes, code " << written.codeBytes << " bytes\n";
  printStepSummary(result.getFigures(), llvm::errs());
}

/// Writes the numbers of a compile, whatever came of it.
static int writeFigures(const std::string &path, Result &result, const Failure &failure) {
  return writeText(path, [&](llvm::raw_ostream &os) -> Failure {
    os << result.getFigures().toJson(failure) << "\n";
    return {};
  });
}

/// `isQuiet`: what was written is not said.
static int compile(const Options &options, bool isQuiet) {
  DiagnosticPrinter printer(options.verbosity, options.log);
  Compiler compiler;
  Result result = compiler.compile(requestOf(options), sourcesOf(options), &printer);
  Failure failure = result.failure;
  int code = getExitCode(failure.kind);
  if (!code && !result.isFile())
    code = writeText(options.output, [&](llvm::raw_ostream &os) { return failure = result.print(os); });
  if (!code && result.isFile()) {
    Written written;
    failure = result.write(options.output, &written);
    code = getExitCode(failure.kind);
    if (!code && options.verbosity >= 0 && !isQuiet)
      printWritten(options, written, result);
  }
  if (!options.figures.empty())
    if (int other = writeFigures(options.figures, result, failure); !code)
      code = other;
  if (!code && options.dumpPassPipeline)
    llvm::errs() << result.describePasses() << "\n";
  return code;
}

int driver::compileModel(const Options &options) {
  // "-" is where text goes; here it would be the name of a file.
  const bool isNowhere = options.output.empty() || options.output == "-";
  if (options.emit == "artifact" && isNowhere)
    return refuseNowhere(options, "where should the artifact go?",
                         "for example -o step.tide; or stop at a stage with --emit=nn");
  if (options.emit == "onnx-model" && isNowhere)
    return refuseNowhere(options, "where should the model go?", "for example -o step.onnx");
  return compile(options, /*isQuiet=*/false);
}

int driver::compileQuietly(const Options &options) { return compile(options, /*isQuiet=*/true); }

int driver::checkModel(const Options &options) {
  DiagnosticPrinter printer(options.verbosity, options.log);
  return getExitCode(
      Compiler()
          .check(requestOf(options), sourcesOf(options), {options.json, options.strict}, llvm::outs(), &printer)
          .kind);
}

int driver::fitModel(const Options &options) {
  FitRequest request = options;
  addVariants(options, request);
  if (const Card *card = options.card.empty() ? nullptr : findCard(options.card)) {
    request.room = ByteSize{card->getBytes(), -1};
    request.roomTitle = llvm::formatv("{0}: {1} MiB, of which context and libraries take about {2} MiB", card->title,
                                      card->totalMiB, card->takenMiB)
                            .str();
  } else if (options.asksWhetherFits) {
    request.room = llvm::cantFail(parseByteSize(options.deviceBudget));
    request.roomTitle = "budget " + options.deviceBudget;
  }
  DiagnosticPrinter printer(options.verbosity, options.log);
  const FitResult result = Compiler().fit(request, sourcesOf(options), &printer);
  if (result.failure)
    return getExitCode(result.failure.kind);
  llvm::outs() << (options.json ? result.json : result.text);
  return request.room && !result.fits ? exitBudget : exitOk;
}

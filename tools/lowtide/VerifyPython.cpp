//===- VerifyPython.cpp - the user's module, run by the user's Python -*- C++ -*-===//
//
// The script is part of the program: it is written to a temporary file and told by JSON what to do.
//
//===----------------------------------------------------------------------===//

#include "Diagnostics.h"
#include "VerifyModel.h"
#include "VerifyScripts.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace lowtide::driver;
namespace json = llvm::json;

/// "0.9,0.999" as a list, "0.01" as a number, "nesterov" as true or false.
static json::Value settingOf(llvm::StringRef key, llvm::StringRef text) {
  if (key == "nesterov")
    return text != "0";
  json::Array numbers;
  for (llvm::StringRef part : llvm::split(text, ',')) {
    double value;
    if (part.getAsDouble(value))
      return text.str();
    numbers.push_back(value);
  }
  return numbers.size() == 1 ? numbers[0] : json::Value(std::move(numbers));
}

static json::Object request(const Options &options, const FileNames &names, llvm::StringRef module,
                            llvm::StringRef function, const std::string &path) {
  json::Object settings;
  settings["lr"] = settingOf("lr", options.lr);
  for (const auto &[key, value] : options.optimizerOptions)
    settings[key] = settingOf(key, value);
  return json::Object{{"module", module},
                      {"function", function},
                      {"inputs", json::Array(names.inputs)},
                      {"outputs", json::Array(names.outputs)},
                      {"loss", options.loss},
                      {"optimizer", options.optimizer},
                      {"options", std::move(settings)},
                      {"clip_norm", options.clipNorm},
                      {"clip_value", options.clipValue},
                      {"steps", options.proofSteps},
                      {"record", path}};
}

static bool writeFile(const std::string &path, llvm::StringRef text) {
  std::error_code error;
  llvm::ToolOutputFile file(path, error, llvm::sys::fs::OF_None);
  if (!error)
    file.os() << text, file.os().flush();
  if (error || file.os().has_error()) {
    printError("cannot write '" + path + "'" + (error ? ": " + error.message() : ""));
    file.os().clear_error();
    return false;
  }
  file.keep();
  return true;
}

/// Runs a script of ours with the user's Python. It says what is wrong, and leaves with an exit code of ours.
static int runScript(const Options &options, llvm::StringRef program, json::Object request) {
  llvm::ErrorOr<std::string> python = llvm::sys::findProgramByName(options.python);
  if (!python) {
    printError("--python=" + options.python + ": " + python.getError().message());
    printNote("name the Python that has torch: --python=path/to/python");
    return exitUsage;
  }
  llvm::SmallString<128> script;
  if (std::error_code error = llvm::sys::fs::createTemporaryFile("lowtide-verify", "py", script)) {
    printError("cannot make a temporary file: " + error.message());
    return exitIo;
  }
  llvm::scope_exit remove([&] { llvm::sys::fs::remove(script); });
  if (!writeFile(script.str().str(), program))
    return exitIo;
  std::string text, fault;
  llvm::raw_string_ostream(text) << json::Value(std::move(request));
  const int code = llvm::sys::ExecuteAndWait(*python, {*python, "-B", script, text}, std::nullopt, {}, 0, 0, &fault);
  if (code >= 0)
    return code;
  printError("--python=" + options.python + ": " + (fault.empty() ? "it was stopped" : fault));
  return exitDevice;
}

int lowtide::driver::makeRecord(const Options &options, const FileNames &names, const std::string &path) {
  auto [module, function] = llvm::StringRef(options.against).rsplit(':');
  if (!module.ends_with(".py") || function.empty()) {
    printError("--against='" + options.against + "' is neither a record (.npz) nor a function of a Python file");
    printNote("for example --against=record.npz, or --against=module.py:make");
    return exitUsage;
  }
  if (!llvm::sys::fs::exists(module)) {
    printError("cannot read '" + module + "': no such file");
    return exitIo;
  }
  if (options.verbosity >= 0)
    printNote("running " + options.against + " in f64 for " + llvm::Twine(options.proofSteps) + " steps");
  return runScript(options, recordScript, request(options, names, module, function, path));
}

int lowtide::driver::makeValues(const Options &options, const std::string &path) {
  if (options.data.empty()) {
    printError("--against=onnxruntime needs a batch: --data=FILE.npz");
    printNote("an array for each input of the model, by name; 'lowtide check' prints them");
    return exitUsage;
  }
  return runScript(options, nodesScript,
                   json::Object{{"model", options.input},
                                {"data", options.data},
                                {"batch", options.batch ? options.batch : 8},
                                {"record", path}});
}

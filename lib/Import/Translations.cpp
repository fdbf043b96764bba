//===- Translations.cpp - the importer as translations of MLIR's driver
//----------------===//

#include "lowtide/Import/Translations.h"

#include "OnnxLibrary.h"

#include "lowtide/Dialect/ONNX/ONNX.h"
#include "lowtide/Import/Check.h"
#include "lowtide/Import/ImportFlags.h"
#include "lowtide/Recover/Recover.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace lowtide;

namespace {
struct Flags {
  llvm::cl::OptionCategory category{"ONNX import"};
  llvm::cl::list<std::string> dims{"dim", llvm::cl::desc("Size of a symbolic dimension"),
                                   llvm::cl::value_desc("name=size"), llvm::cl::cat(category)};
  llvm::cl::list<std::string> shapes{"shape", llvm::cl::desc("Shape of an input"), llvm::cl::value_desc("input=8x64"),
                                     llvm::cl::cat(category)};
  llvm::cl::opt<int64_t> batch{"batch", llvm::cl::desc("First dimension of all inputs"), llvm::cl::init(0),
                               llvm::cl::cat(category)};
  llvm::cl::list<std::string> params{"params", llvm::cl::desc("Initializers to train"), llvm::cl::value_desc("glob"),
                                     llvm::cl::cat(category)};
  llvm::cl::list<std::string> frozen{"frozen", llvm::cl::desc("Initializers not to train"),
                                     llvm::cl::value_desc("glob"), llvm::cl::cat(category)};
  llvm::cl::list<std::string> fixed{"set", llvm::cl::desc("An input that is a constant, and its value"),
                                    llvm::cl::value_desc("input=value"), llvm::cl::cat(category)};
  llvm::cl::list<std::string> renames{"rename", llvm::cl::desc("The framework's name of an initializer"),
                                      llvm::cl::value_desc("initializer=name"), llvm::cl::cat(category)};
};
} // namespace

static Flags &flags() {
  static Flags instance;
  return instance;
}

/// The options as given; `fault` says what is wrong with them.
static ImportOptions readOptions(std::string &fault) {
  ImportOptions options;
  for (const std::string &text : flags().dims)
    fault += parseDimFlag(text, options);
  for (const std::string &text : flags().shapes)
    fault += parseShapeFlag(text, options);
  for (const std::string &text : flags().renames)
    fault += parseRenameFlag(text, options);
  for (const std::string &text : flags().fixed)
    fault += parseSetFlag(text, options);
  if (flags().batch)
    options.batch = flags().batch;
  // In the order of the command line.
  std::vector<std::pair<unsigned, ImportOptions::Selection>> rules;
  for (auto [i, text] : llvm::enumerate(flags().params))
    rules.push_back({flags().params.getPosition(i), {true, text}});
  for (auto [i, text] : llvm::enumerate(flags().frozen))
    rules.push_back({flags().frozen.getPosition(i), {false, text}});
  llvm::sort(rules, [](const auto &a, const auto &b) { return a.first < b.first; });
  for (auto &[position, rule] : rules)
    options.selections.push_back(std::move(rule));
  return options;
}

static OwningOpRef<ModuleOp> importBuffer(llvm::SourceMgr &sources, MLIRContext *context, bool isText) {
  std::string fault;
  ImportOptions options = readOptions(fault);
  if (!fault.empty()) {
    emitError(UnknownLoc::get(context)) << fault;
    return nullptr;
  }
  const llvm::MemoryBuffer *buffer = sources.getMemoryBuffer(sources.getMainFileID());
  OnnxFile file(*context, buffer->getBufferIdentifier());
  StringRef bytes = buffer->getBuffer();
  if (failed(isText ? file.loadText(bytes) : file.loadBytes(ArrayRef<char>(bytes.data(), bytes.size()))))
    return nullptr;
  FailureOr<OwningOpRef<ModuleOp>> module = importOnnx(file, options);
  return succeeded(module) ? std::move(*module) : OwningOpRef<ModuleOp>();
}

static LogicalResult writeBytes(llvm::SourceMgr &sources, llvm::raw_ostream &os, MLIRContext *context) {
  ::onnx::ModelProto model;
  std::string error = parseModelText(sources.getMemoryBuffer(sources.getMainFileID())->getBuffer().str(), model);
  if (!error.empty())
    return emitError(UnknownLoc::get(context)) << error;
  std::string bytes;
  if (!model.SerializeToString(&bytes))
    return emitError(UnknownLoc::get(context)) << "the model cannot be written";
  os << bytes;
  return success();
}

/// The report of `lowtide check`, with every operator taken as supported.
static LogicalResult describeModel(llvm::SourceMgr &sources, llvm::raw_ostream &os, MLIRContext *context) {
  std::string fault;
  ImportOptions options = readOptions(fault);
  if (!fault.empty())
    return emitError(UnknownLoc::get(context)) << fault;
  const llvm::MemoryBuffer *buffer = sources.getMemoryBuffer(sources.getMainFileID());
  OnnxFile file(*context, buffer->getBufferIdentifier());
  StringRef bytes = buffer->getBuffer();
  if (failed(file.loadBytes(ArrayRef<char>(bytes.data(), bytes.size()))))
    return failure();
  return success(reportModel(file, options, {}, os) == FailureKind::None);
}

void lowtide::registerImportTranslations() {
  (void)flags();
  auto registerDialects = [](DialectRegistry &registry) { registry.insert<onnx::ONNXDialect, func::FuncDialect>(); };
  static TranslateToMLIRRegistration binary(
      "import-onnx", "import an ONNX model",
      [](llvm::SourceMgr &sources, MLIRContext *context) { return importBuffer(sources, context, false); },
      registerDialects);
  static TranslateToMLIRRegistration text(
      "import-onnx-text", "import a model in ONNX's text format",
      [](llvm::SourceMgr &sources, MLIRContext *context) { return importBuffer(sources, context, true); },
      registerDialects);
  static TranslateRegistration describe("describe-onnx", "say what an ONNX model holds and who is a parameter",
                                        [](const std::shared_ptr<llvm::SourceMgr> &sources, llvm::raw_ostream &os,
                                           MLIRContext *context) { return describeModel(*sources, os, context); });
  static TranslateRegistration recoveries(
      "print-recoveries", "print the rules that put back what exporters lost, whatever the input",
      [](const std::shared_ptr<llvm::SourceMgr> &, llvm::raw_ostream &os, MLIRContext *) {
        printRecoveries(os);
        return success();
      });
  static TranslateRegistration findings(
      "print-findings", "print the kinds of differences between files and their programs, whatever the input",
      [](const std::shared_ptr<llvm::SourceMgr> &, llvm::raw_ostream &os, MLIRContext *) {
        printFindings(os);
        return success();
      });
  static TranslateRegistration unfoldings(
      "print-unfoldings", "print the rules that take parameters out of what exporters evaluated, whatever the input",
      [](const std::shared_ptr<llvm::SourceMgr> &, llvm::raw_ostream &os, MLIRContext *) {
        printUnfoldings(os);
        return success();
      });
  static TranslateRegistration bytes("onnx-text-to-onnx", "write a model in ONNX's text format as .onnx",
                                     [](const std::shared_ptr<llvm::SourceMgr> &sources, llvm::raw_ostream &os,
                                        MLIRContext *context) { return writeBytes(*sources, os, context); });
}

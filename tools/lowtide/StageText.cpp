//===- StageText.cpp - stages as text, in both directions -------*- C++ -*-===//
//
// A stage's text says all that the stages after it need: layers by the operations' locations, the model by its digest.
//
//===----------------------------------------------------------------------===//

#include "Compile.h"
#include "OptionChecks.h"
#include "PlanLower.h"
#include "StepPass.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::driver;

/// A location with the place of the text that it stands for at the end of its names: messages show the line and name
/// the layer.
static Location addPlace(Location loc, Location place) {
  if (isa<UnknownLoc>(loc))
    return place;
  if (auto name = dyn_cast<NameLoc>(loc))
    return NameLoc::get(name.getName(), addPlace(name.getChildLoc(), place));
  if (auto fused = dyn_cast<FusedLoc>(loc); fused && !fused.getLocations().empty()) {
    SmallVector<Location> parts(fused.getLocations());
    parts.front() = addPlace(parts.front(), place);
    return FusedLoc::get(loc.getContext(), parts, fused.getMetadata());
  }
  return loc;
}

/// A location without the places of a text: names are the model's, lines are those of one text.
static Location removePlace(Location loc, StringRef text) {
  if (auto place = dyn_cast<FileLineColLoc>(loc); place && place.getFilename() == text)
    return UnknownLoc::get(loc.getContext());
  if (auto name = dyn_cast<NameLoc>(loc))
    return NameLoc::get(name.getName(), removePlace(name.getChildLoc(), text));
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    auto parts = llvm::map_to_vector(fused.getLocations(), [&](Location part) { return removePlace(part, text); });
    return FusedLoc::get(loc.getContext(), parts, fused.getMetadata());
  }
  return loc;
}

static void removePlaces(ModuleOp module, StringRef text) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](LocationAttr loc) -> std::optional<std::pair<Attribute, WalkResult>> {
    return std::pair<Attribute, WalkResult>(removePlace(loc, text), WalkResult::skip());
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/false, /*replaceLocs=*/true);
}

/// The module that a text is or that its operations are put into; null, with an error, where it cannot be read.
static OwningOpRef<ModuleOp> parseText(const llvm::SourceMgr &sources, MLIRContext &context) {
  Block block;
  AsmParserState state;
  if (failed(parseAsmSourceFile(sources, &block, ParserConfig(&context, /*verifyAfterParse=*/false), &state)))
    return {};
  StringRef file = sources.getMemoryBuffer(1)->getBufferIdentifier();
  for (const AsmParserState::OperationDefinition &definition : state.getOpDefs()) {
    auto [line, column] = sources.getLineAndColumn(definition.loc.Start);
    Location place = FileLineColLoc::get(&context, file, line, column);
    definition.op->setLoc(addPlace(definition.op->getLoc(), place));
  }
  if (llvm::hasSingleElement(block))
    if (auto module = dyn_cast<ModuleOp>(block.front())) {
      module->remove();
      return module;
    }
  OwningOpRef<ModuleOp> module = ModuleOp::create(FileLineColLoc::get(&context, file, 1, 1));
  module->getBody()->getOperations().splice(module->getBody()->end(), block.getOperations());
  return module;
}

int Compilation::parse() {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(options.input);
  if (!buffer) {
    printError("cannot read '" + options.input + "': " + buffer.getError().message());
    return exitIo;
  }
  sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  diagnostics.setSource(sources->getMemoryBuffer(1));
  module = parseText(*sources, context);
  if (!module || failed(verify(*module)) || failed(checkStepShape(*module)))
    return exitBadInput;
  diagnostics.setModel(module->getLoc());
  // A file that holds its step is legalized to nothing but @train.
  holdsStep = options.from == "nn" && module->lookupSymbol("train") && !module->lookupSymbol("forward");
  return checkWeightsFile();
}

bool Compilation::isText() const { return stageNumber(options.from) >= 0; }

/// SHA-256 of a file, hexadecimal; empty if it cannot be read.
static std::string digestOf(const std::string &path) {
  auto bytes = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!bytes)
    return "";
  auto hash = llvm::SHA256::hash(llvm::arrayRefFromStringRef((*bytes)->getBuffer()));
  return llvm::toHex(hash, /*LowerCase=*/true);
}

void Compilation::noteDigest() {
  if (digest.empty())
    digest = digestOf(options.input);
  (*module)->setAttr(modelDigestAttrName, StringAttr::get(&context, digest));
}

int Compilation::checkWeightsFile() const {
  auto digest = (*module)->getAttrOfType<StringAttr>(modelDigestAttrName);
  if (options.weightsFrom.empty() || !digest)
    return exitOk;
  const std::string found = digestOf(options.weightsFrom);
  if (found.empty()) {
    printError("--weights-from: cannot read '" + options.weightsFrom + "'");
    return exitIo;
  }
  if (digest.getValue() == found)
    return exitOk;
  printError("'" + options.weightsFrom + "' is not the model that '" + options.input + "' was made of");
  printNote("the text names a file with the digest " + digest.getValue().take_front(16) + "…; this one's is " +
            StringRef(found).take_front(16) + "…");
  return exitUsage;
}

int Compilation::openWeights() {
  if (options.weightsFrom.empty())
    return exitOk;
  file = std::make_unique<OnnxFile>(context, options.weightsFrom);
  return failed(file->load()) ? file->getExitCode() : int(exitOk);
}

int Compilation::print() {
  std::error_code error;
  llvm::ToolOutputFile out(options.output.empty() ? "-" : options.output, error, llvm::sys::fs::OF_Text);
  if (error) {
    printError("cannot write '" + options.output + "': " + error.message());
    return exitIo;
  }
  if (sources)
    removePlaces(*module, sources->getMemoryBuffer(1)->getBufferIdentifier());
  OpPrintingFlags flags;
  flags.enableDebugInfo(options.emitLocations == "on");
  module->print(out.os(), flags);
  out.os() << "\n";
  out.os().flush();
  if (out.os().has_error()) {
    printError("cannot write '" + options.output + "': " + out.os().error().message());
    out.os().clear_error();
    return exitIo;
  }
  out.keep();
  return exitOk;
}

std::string Compilation::describePipeline(OpPassManager &passes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  passes.printAsTextualPipeline(os);
  // "any(…)": what runs in a row is one pipeline.
  return StringRef(text).split('(').second.drop_back().str();
}

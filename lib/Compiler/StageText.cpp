//===- StageText.cpp - stages as text, in both directions -------*- C++ -*-===//
//
// A stage's text says all that the stages after it need: layers by the operations' locations, the model by its digest.
//
//===----------------------------------------------------------------------===//

#include "Compilation.h"
#include "PlanLower.h"
#include "StepPass.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace lowtide;

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

Failure Compilation::parse() {
  auto buffer = sources.bytes ? llvm::MemoryBuffer::getMemBufferCopy(*sources.bytes, sources.model)
                              : llvm::MemoryBuffer::getFileOrSTDIN(sources.model);
  if (!buffer)
    return refuse(FailureKind::Io, "cannot read '" + sources.model + "': " + buffer.getError().message());
  text = std::make_unique<llvm::SourceMgr>();
  text->AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  diagnostics.setSource(text->getMemoryBuffer(1));
  module = parseText(*text, context);
  if (!module || failed(verify(*module)) || failed(checkStepShape(*module)))
    return FailureKind::BadInput;
  diagnostics.setModel(module->getLoc());
  // A file that holds its step is legalized to nothing but @train.
  holdsStep = options.from == "nn" && module->lookupSymbol("train") && !module->lookupSymbol("forward");
  return checkWeightsFile();
}

bool Compilation::isText() const { return getStageNumber(options.from) >= 0; }

/// SHA-256, hexadecimal.
static std::string digestOf(ArrayRef<uint8_t> bytes) {
  return llvm::toHex(llvm::SHA256::hash(bytes), /*LowerCase=*/true);
}

/// The same of a file; empty if it cannot be read.
static std::string digestOf(const std::string &path) {
  auto bytes = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!bytes)
    return "";
  return digestOf(llvm::arrayRefFromStringRef((*bytes)->getBuffer()));
}

void Compilation::noteDigest() {
  if (digest.empty())
    digest = sources.bytes ? digestOf(llvm::arrayRefFromStringRef(*sources.bytes)) : digestOf(sources.model);
  (*module)->setAttr(modelDigestAttrName, StringAttr::get(&context, digest));
}

Failure Compilation::checkWeightsFile() {
  auto digest = (*module)->getAttrOfType<StringAttr>(modelDigestAttrName);
  if (sources.weights.empty() || !digest)
    return {};
  const std::string found = digestOf(sources.weights);
  if (found.empty())
    return refuse(FailureKind::Io, "--weights-from: cannot read '" + sources.weights + "'");
  if (digest.getValue() == found)
    return {};
  return refuse(FailureKind::Usage,
                "'" + sources.weights + "' is not the model that '" + sources.model + "' was made of",
                {("the text names a file with the digest " + digest.getValue().take_front(16) + "…; this one's is " +
                  StringRef(found).take_front(16) + "…")
                     .str()});
}

Failure Compilation::openWeights() {
  if (sources.weights.empty())
    return {};
  file = std::make_unique<OnnxFile>(context, sources.weights);
  return failed(file->load()) ? Failure(file->getFailure()) : Failure();
}

void Compilation::printStage(llvm::raw_ostream &os) {
  if (text)
    removePlaces(*module, text->getMemoryBuffer(1)->getBufferIdentifier());
  OpPrintingFlags flags;
  flags.enableDebugInfo(options.emitLocations == "on");
  module->print(os, flags);
  os << "\n";
}

std::string Compilation::describePipeline(OpPassManager &passes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  passes.printAsTextualPipeline(os);
  // "any(…)": what runs in a row is one pipeline.
  return StringRef(text).split('(').second.drop_back().str();
}

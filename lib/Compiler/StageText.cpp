//===- StageText.cpp - stages as text, in both directions -------*- C++ -*-===//
//
// A stage's text says all that the stages after it need: layers by the operations' locations, the model by its digest.
//
//===----------------------------------------------------------------------===//

#include "Compilation.h"
#include "PlanLower.h"
#include "StepPass.h"
#include "lowtide/Support/TextPlaces.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace lowtide;

Failure Compilation::parse() {
  auto buffer = sources.bytes ? llvm::MemoryBuffer::getMemBufferCopy(*sources.bytes, sources.model)
                              : llvm::MemoryBuffer::getFileOrSTDIN(sources.model);
  if (!buffer)
    return refuse(FailureKind::Io, "cannot read '" + sources.model + "': " + buffer.getError().message());
  text = std::make_unique<llvm::SourceMgr>();
  text->AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  diagnostics.setSource(text->getMemoryBuffer(1));
  module = parseWithPlaces(*text, context);
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

//===- TextPlaces.cpp - places in a text, for messages about it -*- C++ -*-===//

#include "lowtide/Support/TextPlaces.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace lowtide {

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

OwningOpRef<ModuleOp> parseWithPlaces(const llvm::SourceMgr &sources, MLIRContext &context) {
  const llvm::MemoryBuffer *buffer = sources.getMemoryBuffer(sources.getMainFileID());
  auto placeOf = [&, file = buffer->getBufferIdentifier()](const char *at) -> Location {
    auto [line, column] = sources.getLineAndColumn(llvm::SMLoc::getFromPointer(at));
    return FileLineColLoc::get(&context, file, line, column);
  };
  if (const char *at = findHugeResultNumber(buffer->getBuffer())) {
    emitError(placeOf(at), hugeResultNumber);
    return {};
  }
  Block block;
  AsmParserState state;
  if (failed(parseAsmSourceFile(sources, &block, ParserConfig(&context, /*verifyAfterParse=*/false), &state)))
    return {};
  for (const AsmParserState::OperationDefinition &definition : state.getOpDefs())
    definition.op->setLoc(addPlace(definition.op->getLoc(), placeOf(definition.loc.Start.getPointer())));
  if (llvm::hasSingleElement(block))
    if (auto module = dyn_cast<ModuleOp>(block.front())) {
      module->remove();
      return module;
    }
  OwningOpRef<ModuleOp> module = ModuleOp::create(placeOf(buffer->getBufferStart()));
  module->getBody()->getOperations().splice(module->getBody()->end(), block.getOperations());
  return module;
}

void addPlaces(Operation *root, const llvm::SourceMgr &sources) {
  OwningOpRef<ModuleOp> described = parseWithPlaces(sources, *root->getContext());
  if (!described)
    return;
  auto opsOf = [](Operation *root) {
    SmallVector<Operation *> ops;
    root->walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
    return ops;
  };
  SmallVector<Operation *> ops = opsOf(root), places = opsOf(described->getOperation());
  if (!llvm::equal(ops, places, [](Operation *op, Operation *place) { return op->getName() == place->getName(); }))
    return;
  for (auto [op, place] : llvm::zip_equal(ops, places))
    op->setLoc(place->getLoc());
}

void removePlaces(Operation *root, StringRef text) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](LocationAttr loc) -> std::optional<std::pair<Attribute, WalkResult>> {
    return std::pair<Attribute, WalkResult>(removePlace(loc, text), WalkResult::skip());
  });
  replacer.recursivelyReplaceElementsIn(root, /*replaceAttrs=*/false, /*replaceLocs=*/true);
}

constexpr static size_t mostDigits = 7; // 9,999,999 results: megabytes

const char *findHugeResultNumber(StringRef text) {
  for (size_t at = text.find('#'); at != StringRef::npos; at = text.find('#', at + 1)) {
    // Only a value has results: `%name#1`.
    StringRef value = text.take_front(at);
    value = value.take_back(
        at - value.find_last_not_of("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$.-") - 1);
    const bool isValue = value.data() != text.data() && value.data()[-1] == '%' && !value.empty();
    const StringRef number = text.substr(at + 1).take_while(llvm::isDigit).ltrim('0');
    if (isValue && number.size() > mostDigits)
      return text.data() + at;
  }
  return nullptr;
}

bool printHugeResultNumber(llvm::MemoryBufferRef text) {
  const char *at = findHugeResultNumber(text.getBuffer());
  if (!at)
    return false;
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(text, /*RequiresNullTerminator=*/false), llvm::SMLoc());
  sources.PrintMessage(llvm::SMLoc::getFromPointer(at), llvm::SourceMgr::DK_Error, hugeResultNumber);
  return true;
}

void boundResultNumbers(std::string &text) {
  while (const char *at = findHugeResultNumber(text)) {
    const size_t first = at + 1 - text.data(), end = std::min(text.find_first_not_of("0123456789", first), text.size());
    std::fill(text.begin() + first, text.begin() + (end - mostDigits), '0');
    std::fill(text.begin() + (end - mostDigits), text.begin() + end, '9');
  }
}

} // namespace lowtide

//===- LayerNames.cpp - which layers an op belongs to ---------------------===//

#include "LayerNames.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

SmallVector<std::string> lowtide::getLayerNames(Location loc) {
  SmallVector<std::string> names;
  loc->walk([&](Location part) {
    if (auto name = dyn_cast<NameLoc>(part)) {
      std::string text = name.getName().getValue().ltrim('/').str();
      llvm::replace(text, '/', '.');
      names.push_back(std::move(text));
    }
    return WalkResult::advance();
  });
  return names;
}

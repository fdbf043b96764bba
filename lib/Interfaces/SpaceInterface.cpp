//===- SpaceInterface.cpp - memories that tensors lie in --------*- C++ -*-===//
//
// Names of memories, and the one that a type says.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Interfaces/SpaceInterface.h"
#include "llvm/ADT/STLExtras.h"

using namespace lowtide;

#include "lowtide/Interfaces/SpaceInterface.cpp.inc"

static constexpr std::pair<Space, llvm::StringLiteral> names[] = {
    {Space::Device, "device"}, {Space::HostPinned, "host_pinned"}, {Space::Host, "host"}, {Space::File, "file"}};

llvm::StringRef lowtide::getSpaceName(Space space) {
  return llvm::find_if(names, [&](const auto &row) { return row.first == space; })->second;
}

std::optional<Space> lowtide::findSpace(llvm::StringRef name) {
  const auto *found = llvm::find_if(names, [&](const auto &row) { return row.second == name; });
  return found == std::end(names) ? std::nullopt : std::optional(found->first);
}

Space lowtide::getSpace(mlir::Type type) {
  auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
  auto space = tensor ? mlir::dyn_cast_or_null<SpaceInterface>(tensor.getEncoding()) : SpaceInterface();
  return space ? space.getSpace() : Space::Device;
}

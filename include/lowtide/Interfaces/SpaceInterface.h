//===- SpaceInterface.h - memories that tensors lie in ----------*- C++ -*-===//
//
// Where the bytes of a tensor are: on the device, where steps compute, or in a memory that copies alone reach.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace lowtide {

/// A memory; the numbers are those of runtime/plan.proto.
enum class Space : uint32_t { Device = 1, HostPinned, Host, File };

/// "device", "host_pinned", "host", "file".
llvm::StringRef getSpaceName(Space space);
std::optional<Space> findSpace(llvm::StringRef name);

} // namespace lowtide

#include "lowtide/Interfaces/SpaceInterface.h.inc"

namespace lowtide {

/// Where a tensor of the type lies.
Space getSpace(mlir::Type type);

} // namespace lowtide

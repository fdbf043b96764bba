//===- ExchangeArenas.h - arenas that are the runtime's own -----*- C++ -*-===//
//
// Through which a GPU gets its batches and hands metrics back, as the runtime asks for them
// (runtime/ExchangeBlocks.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/Plan/Plan.h"
#include "lowtide/Interfaces/BindingInterface.h"

#include <memory>
#include <string>
#include <vector>

namespace lowtide {

/// One of them.
struct RuntimeArena {
  plan::ArenaRole role;
  plan::ArenaSpace space;
  std::string name;
  uint64_t bytes, alignment;
};

/// Memory of a CPU through which values pass on their way to a file and back, the largest of which has so many bytes.
RuntimeArena getFileStaging(uint64_t largestBytes);

/// Collects what the entries of a plan bind.
class ExchangeArenas {
public:
  ExchangeArenas();
  ~ExchangeArenas();

  /// Of the entry that is read now; `type` is static.
  void addBinding(plan::BindingKind kind, llvm::StringRef name, mlir::RankedTensorType type);
  /// Fails where its batch arrays or metrics take more than 2^46 bytes.
  mlir::LogicalResult endEntry();
  std::vector<RuntimeArena> list() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace lowtide

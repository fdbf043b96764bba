//===- MemoryProfile.h - whose bytes are alive when -------------*- C++ -*-===//
//
// The memory of a fitted step, instruction by instruction: how many bytes, what
// they are, and which layer of the model is responsible.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Analysis/StepProblem.h"
#include "lowtide/Solve/Packing.h"

#include <array>

namespace lowtide {

/// What bytes are.
enum class MemoryComponent : uint8_t {
  Saved,      ///< made before the loss, read after it
  Recomputed, ///< made again
  Gradient,   ///< read by an instruction that updates a parameter
  Temporary,  ///< everything else that an instruction makes
  Output,     ///< kept to the end for the user
  Workspace,  ///< scratch of kernels, workspaces of libraries
};
inline constexpr unsigned numMemoryComponents = 6;
/// "saved activations", "recomputed values", …
llvm::StringRef getName(MemoryComponent component);

/// Attribute of a step that was fitted into a budget: what it needed before, as `sampleLive` gives it.
inline constexpr llvm::StringLiteral beforeBudgetAttrName = "train.before_budget";

/// Bytes in the transient arena that live from instruction `begin` to `end - 1`.
struct MemoryTenant {
  uint64_t bytes;
  uint32_t begin, end;
  MemoryComponent component;
  /// The value there; null for workspaces.
  mlir::Value value;
  /// What makes it or works in it; null for copies.
  mlir::Operation *op;
};

/// The memory of one entry. Transient bytes are those that plan-place packs:
/// the same buffers, in the same order.
class MemoryProfile {
public:
  /// `facts` holds every instruction of the step.
  static mlir::FailureOr<MemoryProfile> compute(mlir::func::FuncOp step, const FactsTable &facts);

  llvm::ArrayRef<MemoryTenant> getTenants() const { return tenants; }
  /// Bytes alive at each instruction, by component; the last entry is the end.
  llvm::ArrayRef<std::array<uint64_t, numMemoryComponents>> getLive() const { return live; }
  /// Most bytes alive at once, buffers rounded up to 64, and where.
  uint64_t getPeakBytes() const { return peakBytes; }
  unsigned getPeakAt() const { return peakAt; }
  /// Who is alive at an instruction, largest first.
  llvm::SmallVector<const MemoryTenant *> getAlive(unsigned instruction) const;
  /// The same bytes as a packing problem: values that share a place are one buffer.
  llvm::ArrayRef<solve::Buffer> getBuffers() const { return buffers; }
  /// Instructions that run again.
  unsigned getNumRecomputed() const { return numRecomputed; }
  /// At most `limit` rows of getLive(), each the fullest of as many instructions as the others stand for: what a
  /// picture needs, as an attribute.
  mlir::DenseIntElementsAttr sampleLive(mlir::MLIRContext *context, unsigned limit = 400) const;

private:
  llvm::SmallVector<MemoryTenant> tenants;
  std::vector<solve::Buffer> buffers;
  llvm::SmallVector<std::array<uint64_t, numMemoryComponents>> live;
  uint64_t peakBytes = 0;
  unsigned peakAt = 0, numRecomputed = 0;
};

/// The ONNX node or module path that a location stands for; several, separated
/// by commas, for a kernel.
std::string getResponsiblePlace(mlir::Location loc, unsigned limit = 3);

} // namespace lowtide

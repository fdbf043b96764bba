//===- MemoryProfile.h - whose bytes are alive when -------------*- C++ -*-===//
//
// The memory of a fitted step, instruction by instruction: how many bytes, what
// they are, and which layer of the model is responsible.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Analysis/StepProblem.h"
#include "lowtide/Solve/Packing/Packing.h"

#include <array>

namespace lowtide {

/// What bytes are.
enum class MemoryComponent : uint8_t {
  Saved,      ///< made before the loss, read after it
  Recomputed, ///< recomputed
  Gradient,   ///< read by an instruction that updates a parameter
  Temporary,  ///< everything else that an instruction makes
  Output,     ///< kept to the end for the user
  Workspace,  ///< scratch of kernels, workspaces of libraries
  // From here on, what is there from the first instruction to the last.
  Parameter, ///< parameters, constants of the file
  State,     ///< optimizer state, running statistics
  Batch,     ///< batch arrays, scalars, metrics
};
inline constexpr unsigned numTransientComponents = 6, numMemoryComponents = 9;
/// "saved activations", "recomputed values", …
llvm::StringRef getName(MemoryComponent component);

/// Transient bytes by component.
using LiveBytes = std::array<uint64_t, numTransientComponents>;
uint64_t sumBytes(const LiveBytes &live);

/// Bytes of the device that outlive the steps of all entries together, as plan-lower lays them out.
struct StaticBytes {
  uint64_t parameters = 0, state = 0, batch = 0;
  /// GPU: blocks through which batches and metrics travel.
  uint64_t exchange = 0;

  uint64_t sum() const { return parameters + state + batch + exchange; }
};

/// Attribute of a program: a MemoryComponent for each value number; numMemoryComponents and more: not known.
inline constexpr llvm::StringLiteral componentsAttrName = "train.components";

/// Attribute of a step that was fitted into a budget: what it needed before, as `sampleLive` gives it.
inline constexpr llvm::StringLiteral beforeBudgetAttrName = "train.before_budget";

/// What the values of a step are to it, and when they are there.
class MemoryRoles {
public:
  /// `storage` is the step's.
  MemoryRoles(mlir::func::FuncOp step, const StepStorage &storage);

  /// Of the value number `position` in a transient storage; a storage without values holds an output.
  MemoryComponent classify(const Storage &place, unsigned position) const;
  /// The instructions from which and up to which it is there.
  unsigned getBegin(const Storage &place, unsigned position) const {
    return position ? findBegin(place.values[position]) : place.begin;
  }
  unsigned getEnd(const Storage &place, unsigned position) const {
    return position + 1 < place.values.size() ? findBegin(place.values[position + 1]) : place.end;
  }

private:
  unsigned findBegin(mlir::Value value) const;

  ForwardPart forward;
  llvm::DenseMap<mlir::Operation *, unsigned> indexOf;
  llvm::DenseSet<mlir::Value> gradients;
  /// Of each block the last instruction that the loss needs and that serves what comes after it too.
  llvm::DenseMap<mlir::Block *, unsigned> lossAt;
};

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
  /// `facts` holds every instruction of the step, `statics` what lies next to it.
  static mlir::FailureOr<MemoryProfile> compute(mlir::func::FuncOp step, const FactsTable &facts,
                                                StaticBytes statics = {});

  /// Transient bytes alive at each instruction, by component; the last entry is the end.
  llvm::ArrayRef<LiveBytes> getLive() const { return live; }
  /// Bytes of a component at an instruction.
  uint64_t getBytes(MemoryComponent component, unsigned instruction) const;
  /// Of all saved activations.
  uint64_t getSavedBytes() const;
  /// Of arguments that the step overwrites and returns all the same: their copies are there from first to last
  /// instruction. Rounded up to 64 each.
  uint64_t getSnapshotBytes() const;
  /// Most transient bytes alive at once, buffers rounded up to 64, and where.
  uint64_t getPeakBytes() const { return peakBytes; }
  unsigned getPeakAt() const { return peakAt; }
  const StaticBytes &getStatics() const { return statics; }
  /// Most bytes at once, all told.
  uint64_t getDeviceBytes() const { return statics.sum() + peakBytes; }
  /// Who is alive at an instruction, largest first.
  llvm::SmallVector<const MemoryTenant *> getAlive(unsigned instruction) const;
  llvm::ArrayRef<MemoryTenant> getTenants() const { return tenants; }
  /// The same bytes as a packing problem: values that share a place are one buffer.
  llvm::ArrayRef<solve::Buffer> getBuffers() const { return buffers; }
  /// At most `limit` rows of getLive(), each the fullest of as many instructions as the others stand for: what a
  /// picture needs, as an attribute.
  mlir::DenseIntElementsAttr sampleLive(mlir::MLIRContext *context, unsigned limit = 400) const;

private:
  llvm::SmallVector<MemoryTenant> tenants;
  std::vector<solve::Buffer> buffers;
  llvm::SmallVector<LiveBytes> live;
  StaticBytes statics;
  uint64_t peakBytes = 0;
  unsigned peakAt = 0;
};

/// "tensor<8x64xf32> of 2.00 KiB from 'h.0.mlp'": type, bytes and the layer that makes it.
std::string describeTensor(mlir::Value value);
/// Bytes at the peak by component, and the largest values that are alive there, at most `limit`.
std::string describePeak(const MemoryProfile &profile, unsigned limit = 4);

/// The ONNX node or module path that a location stands for; several, separated
/// by commas, for a kernel.
std::string getResponsiblePlace(mlir::Location loc, unsigned limit = 3);

} // namespace lowtide

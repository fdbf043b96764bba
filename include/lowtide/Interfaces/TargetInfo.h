//===- TargetInfo.h - what a step is compiled for ---------------*- C++ -*-===//
//
// A target as an object: its kind, instruction set, memory and rates. Passes read it from the module
// (lowtide/Dialect/Train/Target.h), which has it as the attribute `train.target`; lib/Interfaces/Targets.inc is the
// table of those that have a name.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lowtide {

/// What executes a step.
enum class TargetKind : uint8_t {
  Cpu,          ///< x86-64 with vectors
  Cuda,         ///< a GPU of NVIDIA
  CudaEmulated, ///< a GPU's kernels on the CPU, a fiber for every thread
  Reference,    ///< scalar code of baseline x86-64 without libraries
};

/// "cpu", "cuda", "cuda-emulated", "reference".
llvm::StringRef getTargetKindName(TargetKind kind);
std::optional<TargetKind> findTargetKind(llvm::StringRef name);

/// A memory that a step's bytes may be in.
struct MemorySpace {
  std::string name;           ///< "device", "host", "file"
  uint64_t bytes = 0;         ///< that a process sees as a whole; 0: not known
  uint64_t reservedBytes = 0; ///< of them, what the driver and its libraries take: an estimate
  double bytesPerSecond = 0;  ///< read and written together; 0: not known
};

/// A way between two memories, in one direction.
struct MemoryLink {
  std::string from, to; ///< names of spaces; "peer": the device memory of another GPU
  double bytesPerSecond = 0;
  double latencySeconds = 0; ///< 0: not known
};

/// Peak rate of multiplications and additions of matrices in a type.
struct DTypeRate {
  std::string dtype; ///< "bf16", "f16", "tf32", "f32", "f64"
  double flopsPerSecond = 0;
};

/// Every figure that a compile takes from its target.
struct TargetInfo {
  std::string name; ///< as --target takes it: "cuda:sm_90", "cuda:h200"
  TargetKind kind = TargetKind::Cpu;
  std::string chip;         ///< instruction set: "sm_90", "x86-64-v3"; empty: the kind has one only
  std::string title;        ///< the machines, for people: "H100, H200"
  uint32_t processors = 0;  ///< multiprocessors that grids and split products are sized for; 0: a CPU
  uint32_t vectorBits = 0;  ///< of a CPU's vectors; 0: a GPU, or scalar code
  uint32_t threadsMax = 64; ///< threads of a CPU that scratch is planned for

  /// What the planner counts with (Analysis/CostModel): operations per second of library calls and of generated
  /// kernels, bytes per second of memory, seconds to start an instruction. Rounded; what counts is their ratio.
  double libraryFlops = 0, kernelFlops = 0, bytesPerSecond = 0, launchSeconds = 0;

  /// What its vendor states. Empty: not known.
  std::vector<MemorySpace> memory;
  std::vector<MemoryLink> links;
  std::vector<DTypeRate> rates;
  std::vector<std::string> libraries; ///< that compute contractions: "cublaslt", "cudnn", "lowtide-cpu"

  /// Whether kernels are those of a GPU, wherever they run.
  bool isGpu() const { return kind == TargetKind::Cuda || kind == TargetKind::CudaEmulated; }
  bool hasLibraries() const { return !libraries.empty(); }
  const MemorySpace *findMemory(llvm::StringRef space) const;

  /// The target that an artifact names: "cpu:x86-64-v3", "cuda:sm_90", "cuda-emulated", "reference".
  std::string getArtifactTarget() const;
  /// What is wrong with the figures, in words that name the field; nothing: they can be compiled for.
  std::optional<std::string> findFault() const;
};

/// The most threads that scratch memory is planned for.
inline constexpr unsigned mostThreads = 1024;

/// The most multiprocessors of a GPU: kernels with 32-bit indices leave room for one round of the grid of that many.
inline constexpr unsigned mostProcessors = 256;

/// The row of a target, by its name or a short one ("cpu", "cuda"); nothing: there is none. "cpu" is the best row that
/// the machine of the compile has the instructions of.
std::optional<TargetInfo> findTarget(llvm::StringRef name);
/// What a module without a target is for, on any machine: cpu:x86-64-v3.
const TargetInfo &getDefaultTarget();
/// All names, the short ones too: cpu, cpu:x86-64-v4, cuda, cuda:sm_90, cuda:h200, ….
std::vector<std::string> listTargetNames();
/// What to say of a name that `findTarget` does not know.
std::string describeUnknownTarget(llvm::StringRef name);

/// A GPU that kernels can be compiled for.
struct Chip {
  llvm::StringRef name;
  llvm::StringRef ptx;   ///< NVPTX feature of the PTX that is written; drivers of its age read it
  llvm::StringRef cards; ///< in words, for messages
  llvm::StringRef card;  ///< row of the card whose figures stand for it; empty: figures of cuda:sm_90
};
/// All chips, oldest first. Below sm_80 there are no bf16 numbers.
llvm::ArrayRef<Chip> listChips();
/// Null: none of that name.
const Chip *findChip(llvm::StringRef name);

/// A GPU as it is sold.
struct Card {
  llvm::StringRef name; ///< as --card takes it, and --target=cuda:NAME: "rtx4090"
  llvm::StringRef chip;
  llvm::StringRef title; ///< "GeForce RTX 4090, 24 GB"
  /// Memory that a process sees as a whole, in MiB, and what the driver's context and the kernels of cuBLAS and cuDNN
  /// take of it: an estimate.
  uint64_t totalMiB, takenMiB;
  /// Of the data sheet; 0: not looked up. Links count one direction.
  uint32_t processors = 0;
  double memoryRate = 0, hostLinkRate = 0, peerLinkRate = 0;
  double f64 = 0, f32 = 0, tf32 = 0, f16 = 0, bf16 = 0;
  /// As in `TargetInfo`; 0: those of cuda:sm_90.
  double libraryFlops = 0, kernelFlops = 0, bytesPerSecond = 0, launchSeconds = 0;

  uint64_t getBytes() const { return (totalMiB - takenMiB) << 20; }
};
llvm::ArrayRef<Card> listCards();
/// By name, whatever its capitals, blanks and dashes; null: none.
const Card *findCard(llvm::StringRef name);

} // namespace lowtide

//===- TrialTable.h - what writing kernels has shown ------------*- C++ -*-===//
//
// Trials depend on the kernel's text alone, and many steps and budgets share kernels, as do the blocks of one step.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Codegen/KernelModule.h"
#include "lowtide/Codegen/KernelTrials.h"
#include "mlir/IR/AsmState.h"
#include "llvm/Support/xxhash.h"
#include <map>
#include <mutex>

namespace lowtide::codegen {

inline std::pair<uint64_t, uint64_t> numberText(llvm::function_ref<void(llvm::raw_ostream &)> print) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  print(stream);
  llvm::XXH128_hash_t hash = llvm::xxh3_128bits(llvm::arrayRefFromStringRef(text));
  return {hash.high64, hash.low64};
}

/// Everything that a kernel's code depends on, but for the target.
inline void printBody(llvm::raw_ostream &os, nn::KernelOp kernel) {
  os << stringifyEmitter(kernel.getEmitter()) << " " << kernel.getBlock()->getArgumentTypes() << "\n";
  mlir::AsmState names(kernel, mlir::OpPrintingFlags().useLocalScope().printGenericOpForm());
  for (mlir::Operation &op : *kernel.getBlock()) {
    op.print(os, names);
    os << "\n";
  }
}

/// What writing a kernel's function for the CPU has shown.
struct KernelModule::CpuTrial {
  KernelInfo info;
  bool isStaged = false;
  /// Of the function: equal text, equal code.
  TextNumber text;
};

/// The same of one of a kernel's functions for a GPU.
struct GpuTrial {
  KernelInfo info;
  std::pair<uint64_t, uint64_t> text;
  /// The form is not the kernel's; the one that was written has a domain, or is narrow.
  bool isFailed = false, hasDomain = false, isNarrow = false;
};

struct KernelTrials::Table {
  std::mutex mutex;
  std::map<KernelModule::TextNumber, KernelModule::CpuTrial> known;
  std::map<KernelModule::TextNumber, GpuTrial> knownOfGpu;
};

} // namespace lowtide::codegen

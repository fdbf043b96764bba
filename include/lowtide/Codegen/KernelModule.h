//===- KernelModule.h - kernel ops become machine code ----------*- C++ -*-===//
//
// Collects the kernels of an artifact, gives equal ones one function, and
// compiles all of them to one shared object.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/NN/NN.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace lowtide::codegen {

/// What code is generated for.
struct CodegenOptions {
  /// "x86-64-v3", "x86-64-v4" or another CPU name of LLVM; "reference":
  /// baseline x86-64, scalar, library math.
  std::string cpu = "x86-64-v3";

  bool isReference() const { return cpu == "reference"; }
};

/// How to launch a kernel: `void symbol(void *const *args, int64_t begin,
/// int64_t end)`, args = operands, results, then scratch (if any). See `Kernel`
/// and `Launch` in runtime/plan.proto.
struct KernelInfo {
  std::string symbol;
  /// The iteration space is [0, extent), handed out in ranges that begin at
  /// multiples of `grain`.
  int64_t extent = 1, grain = 1;
  /// Bytes of scratch per executing thread; on CUDA per launch.
  uint64_t scratchBytes = 0;
  /// CUDA only, else 0: threads of a block, bytes of its shared memory. `extent` is the number of blocks then.
  uint64_t threads = 0, sharedBytes = 0;
  /// Per result: the operands whose bytes it may overwrite. The planner picks at most one, and no operand twice.
  llvm::SmallVector<llvm::SmallVector<int, 4>> inPlace;
  /// What the kernel computes, in words for profiles.
  std::string description;
};

class KernelModule {
public:
  KernelModule(mlir::MLIRContext *context, CodegenOptions options);
  /// The dialects that generated code is made of; a pass that makes kernels
  /// depends on them.
  static void registerDialects(mlir::DialectRegistry &registry);

  /// Generates the kernel (or finds an equal one). The op is not changed. Emits
  /// an error at the op if one of its body's ops has no element description.
  mlir::FailureOr<KernelInfo> add(nn::KernelOp kernel);
  /// Compiles everything added so far into an ELF shared object (bytes of the
  /// file). The code needs nothing but functions of the C and math libraries.
  /// `add` must not be called afterwards.
  mlir::FailureOr<std::vector<char>> link();
  /// The kernels before lowering, as text.
  void print(llvm::raw_ostream &os);
  size_t getNumKernels() const { return symbols.size(); }

private:
  CodegenOptions options;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// Symbol by text of the function.
  llvm::StringMap<std::string> symbols;
};

} // namespace lowtide::codegen

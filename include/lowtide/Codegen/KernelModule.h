//===- KernelModule.h - kernel ops become machine code ----------*- C++ -*-===//
//
// Collects the kernels of an artifact, gives equal ones one function, and
// compiles all of them to one shared object.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Codegen/KernelTrials.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Interfaces/TargetInfo.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lowtide::codegen {

/// What code is generated for.
struct CodegenOptions {
  /// "x86-64-v3", "x86-64-v4" or another CPU name of LLVM; "reference":
  /// baseline x86-64, scalar, library math.
  std::string cpu = "x86-64-v3";
  /// Length of the CPU's vectors; 0: LLVM's choice.
  unsigned vectorBits = 0;
  /// A GPU: "sm_90", "sm_80", or "emulated", whose threads run on `cpu`. Empty: no GPU.
  std::string chip = "";
  /// Multiprocessors of the GPU that grids are sized for.
  unsigned processors = 0;
  /// Machine code as it comes, without optimization: for tests of plans, which make much code and run it seldom.
  bool isPlain = false;
  /// Where objects of a CPU's kernels are kept from compile to compile; empty: nowhere.
  std::string cacheFolder = "";

  bool isReference() const { return cpu == "reference"; }
  bool isGpu() const { return !chip.empty(); }
  bool isEmulated() const { return chip == "emulated"; }

  static CodegenOptions get(const TargetInfo &target);
};

/// The folder of objects that `flag` means: itself; "off", none; "auto", `lowtide/kernels` in the user's folder for
/// caches ($XDG_CACHE_HOME, ~/.cache), none where there is no such folder.
std::string findKernelCache(llvm::StringRef flag);

/// The code of an artifact. For the CPU and for emulation `object`; for a GPU `ptx` and, where ptxas was found,
/// `cubin`.
struct KernelCode {
  /// An ELF shared object that needs nothing but functions of the C and math libraries.
  std::vector<char> object;
  std::string ptx;
  std::vector<char> cubin;
  /// Kernels whose code an earlier compile has kept.
  unsigned numKept = 0;
};

/// How to launch a kernel. On the CPU `void symbol(void *const *args, int64_t begin,
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
  /// Operands that the function takes and results that it writes, ascending; nothing: all of them.
  std::optional<llvm::SmallVector<unsigned>> reads = std::nullopt, writes = std::nullopt;
  /// A GPU only: a kernel that runs before. Its last result is `partialBytes` long and is this kernel's last operand.
  std::shared_ptr<KernelInfo> partial = nullptr;
  uint64_t partialBytes = 0;
};

/// What kernels that one launch can do together have in common, as text; empty: this one goes alone.
std::string getBatchForm(nn::KernelOp kernel);

struct GpuForm;

class KernelModule {
public:
  KernelModule(mlir::MLIRContext *context, CodegenOptions options);
  /// Kernels that `release` gave away, `numKernels` of them; none can be added.
  KernelModule(mlir::OwningOpRef<mlir::ModuleOp> functions, size_t numKernels, CodegenOptions options);
  /// The dialects that generated code is made of; a pass that makes kernels
  /// depends on them.
  static void registerDialects(mlir::DialectRegistry &registry);

  /// Generates the kernel (or finds an equal one). The op is not changed. Emits
  /// an error at the op if one of its body's ops has no element description.
  mlir::FailureOr<KernelInfo> add(nn::KernelOp kernel);
  /// What `add` would say of the kernel, its symbol aside, without code for it. On the CPU kernels of earlier modules
  /// are known, if the context's KernelTrials have seen them.
  mlir::FailureOr<KernelInfo> query(nn::KernelOp kernel);
  /// One launch for the second kernels of `count` kernels whose second kernels have the code of `kernel`'s, which `one`
  /// tells of: it reads what each of them reads, the totals last, one after the other, and writes what each writes.
  /// Fails, silently, where it cannot.
  mlir::FailureOr<KernelInfo> addTotals(nn::KernelOp kernel, const KernelInfo &one, unsigned count);
  /// Compiles everything added so far. `add` must not be called afterwards. `statements`: what the code is to say of
  /// its kernels (runtime/KernelStatements.h), in lines.
  mlir::FailureOr<KernelCode> link(llvm::StringRef statements = {});
  /// The kernels before lowering, as text.
  void print(llvm::raw_ostream &os);
  /// The functions as `add` has written them, before lowering.
  mlir::ModuleOp getModule() { return *module; }
  /// Gives these functions away; nothing can be added or linked after that.
  mlir::OwningOpRef<mlir::ModuleOp> release() { return std::move(module); }
  size_t getNumKernels() const { return numGiven + symbols.size(); }

private:
  mlir::FailureOr<KernelInfo> addGpu(nn::KernelOp kernel);
  mlir::FailureOr<KernelInfo> addGpuForm(nn::KernelOp kernel, GpuForm form);
  mlir::FailureOr<KernelInfo> addGpuBatch(nn::KernelOp kernel);
  /// Fails, silently, where the kernel is no rows with sums over their columns.
  mlir::FailureOr<KernelInfo> addGpuCross(nn::KernelOp kernel);
  /// The second kernel of a column kernel that takes two.
  mlir::FailureOr<KernelInfo> addGpuTotals(nn::KernelOp kernel);
  /// A hash of text, wide enough that no two texts share one.
  using TextNumber = std::pair<uint64_t, uint64_t>;
  friend class KernelTrials;
  struct CpuTrial;
  CpuTrial tryCpu(nn::KernelOp kernel);
  /// The symbol of a kernel whose function has this text, and whether it is new.
  std::pair<std::string, bool> getSymbol(nn::Emitter emitter, TextNumber text);
  std::pair<std::string, bool> getSymbol(nn::Emitter emitter, mlir::ModuleOp trial);

  CodegenOptions options;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::shared_ptr<KernelTrials> trials;
  size_t numGiven = 0;
  /// Symbol by text of the function.
  std::map<TextNumber, std::string> symbols;
};

} // namespace lowtide::codegen

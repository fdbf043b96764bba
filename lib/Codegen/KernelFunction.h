//===- KernelFunction.h - the function that a kernel becomes ----*- C++ -*-===//
//
// Memory access, loops and local arrays of a kernel under construction:
// everything that emitters need to know about the target's code. Pointers are
// opaque, indices are `index`.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/ScalarBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace lowtide::codegen {

/// Bytes that one element takes in memory: booleans take one.
uint64_t elementBytes(mlir::Type elementType);
/// Type that scalar code uses for an element: unsigned integers are held as
/// signless.
mlir::Type scalarType(mlir::Type elementType);

/// What is known about the iterations of a loop.
enum class LoopKind {
  Sequential,
  /// Iterations touch memory independently of one another: may be vectorized
  /// without further proof.
  Parallel,
  /// As Parallel, of exactly 16 iterations that are to become vector code as a
  /// whole.
  Lanes,
};

/// On an array in shared memory: its offset in the shared memory of the kernel.
inline constexpr llvm::StringLiteral kSharedOffsetAttrName = "lowtide.shared_offset";

/// On a kernel of a GPU whose one parameter is the array of all its pointers.
inline constexpr llvm::StringLiteral kPointerTableAttrName = "lowtide.pointer_table";

/// On the body of a kernel of a CPU that takes tables: for each, the numbers of its pointers, and its starts.
inline constexpr llvm::StringLiteral kTablesAttrName = "lowtide.tables";
/// On the same: the number of the kernel's pointer that each remaining pointer argument is.
inline constexpr llvm::StringLiteral kPointersAttrName = "lowtide.pointers";

/// The threads of a kernel's launch: x = `blocks` blocks of x = `threads` threads.
struct Grid {
  int64_t blocks = 1, threads = 1;
};

class KernelFunction {
public:
  /// A function `name(pointers…, begin, end)` at the end of `module`.
  /// `mayAlias[i]`: pointer i may be equal to another such pointer; the bytes
  /// of all others are reached through their own pointer only.
  KernelFunction(mlir::ModuleOp module, llvm::StringRef name, llvm::ArrayRef<bool> mayAlias, bool hasScratch);
  /// A kernel `name(pointers…)` of a GPU at the end of `module`. Pointers are at multiples of 16 bytes.
  KernelFunction(mlir::gpu::GPUModuleOp module, llvm::StringRef name, llvm::ArrayRef<bool> mayAlias, bool hasScratch,
                 Grid grid);
  /// The same with its `numPointers` pointers in a table: a thread may compute which of them it takes.
  KernelFunction(mlir::gpu::GPUModuleOp module, llvm::StringRef name, unsigned numPointers, Grid grid);

  mlir::OpBuilder builder;
  mlir::Location loc;
  mlir::FunctionOpInterface function;
  /// On the CPU: the tasks of this call.
  mlir::Value begin, end;
  /// On a GPU: the launch, and the place of the thread that executes the function.
  Grid grid;
  mlir::Value block, thread;

  bool isGpu() const { return static_cast<bool>(thread); }
  mlir::Value getPointer(unsigned i) { return pointers[i]; }
  unsigned getNumPointers() const { return pointers.size(); }
  /// From now on these are the kernel's pointers.
  void setPointers(llvm::ArrayRef<mlir::Value> table) { pointers.assign(table.begin(), table.end()); }
  /// Pointer number `number` of the table.
  mlir::Value loadPointer(mlir::Value number);
  /// Arrays that lie one after the other along a dimension: which of them holds `position` is looked up in a table that
  /// the entry point fills, so that the code is the same for any number of them. CPU only.
  struct Piece {
    /// First element of the array; its first position and its number of positions (index).
    mlir::Value pointer, start, extent;
  };
  /// `starts`: the first position of each array of `arrays` (pointers of the kernel), then the end of the last.
  Piece lookUpPiece(llvm::ArrayRef<mlir::Value> arrays, llvm::ArrayRef<int64_t> starts, mlir::Value position);
  /// Writes down what the entry point fills tables with; drops pointers that are reached through them alone.
  void finishTables();
  mlir::Value getScratch() { return function.getArgument(function.getNumArguments() - (isGpu() ? 1 : 3)); }

  /// Runs `body` once for each of `count` tasks: on the CPU those of this call; on a GPU every thread of the grid takes
  /// one, then the next that nothing has.
  void forEachTask(int64_t count, LoopKind kind, llvm::function_ref<void(mlir::Value task)> body);

  /// Element `offset` (index) of an array of `elementType`, as a scalar.
  mlir::Value load(mlir::Value pointer, mlir::Type elementType, mlir::Value offset);
  void store(mlir::Value pointer, mlir::Type elementType, mlir::Value offset, mlir::Value scalar);
  /// An uninitialized array on the stack, 64-byte aligned; lives as long as the
  /// function.
  mlir::Value local(mlir::Type elementType, int64_t count);
  /// GPU: an uninitialized array of the block, 64-byte aligned.
  mlir::Value shared(mlir::Type elementType, int64_t count);
  /// Bytes of all such arrays.
  uint64_t sharedBytes = 0;
  /// GPU: waits for all threads of the block; what they wrote before is seen after.
  void barrier();
  /// GPU: `value` as lane `own ^ operand` (XOR) or lane `operand` (IDX) of the warp has it. All lanes take part.
  mlir::Value shuffle(mlir::Value value, mlir::gpu::ShuffleMode mode, mlir::Value operand);
  /// A constant array.
  mlir::Value global(mlir::DenseElementsAttr elements);

  mlir::Value index(int64_t value);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value min(mlir::Value x, mlir::Value y);
  /// Row-major position of `index` in `shape`.
  mlir::Value linearize(mlir::ValueRange index, llvm::ArrayRef<int64_t> shape);
  llvm::SmallVector<mlir::Value> delinearize(mlir::Value linear, llvm::ArrayRef<int64_t> shape);
  /// States that `parts` is position `linear` in `shape`, as if delinearize had found it.
  void remember(mlir::Value linear, mlir::ValueRange parts, llvm::ArrayRef<int64_t> shape);

  /// for (i = lower; i < upper; i += step) accumulators = body(i,
  /// accumulators). A loop over exactly one iteration of constant bounds is
  /// written without a loop.
  llvm::SmallVector<mlir::Value>
  loop(mlir::Value lower, mlir::Value upper, int64_t step, LoopKind kind, mlir::ValueRange initial,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value i, mlir::ValueRange accumulators)> body);
  void loop(mlir::Value lower, mlir::Value upper, int64_t step, LoopKind kind,
            llvm::function_ref<void(mlir::Value i)> body);
  /// Whether a value is the same in all rounds of the innermost loop; false where that cannot be told.
  bool isFixed(mlir::Value value) const { return llvm::is_contained(aroundLoops, value.getParentBlock()); }
  /// GPU: from now on a loop's body may stand so many times in a row at most; 0: as often as LLVM likes.
  int64_t maxRounds = 0;

private:
  mlir::Value address(mlir::Value pointer, mlir::Type memoryType, mlir::Value offset);
  mlir::LLVM::LoopAnnotationAttr annotation(LoopKind kind);
  mlir::LLVM::LoopAnnotationAttr keepRolled();
  mlir::LLVM::LoopAnnotationAttr unrollTo(int64_t rounds);

  /// What `delinearize` took apart; dimensions of extent 1 left out.
  struct Delinearized {
    mlir::Value linear;
    llvm::SmallVector<mlir::Value> parts;
    llvm::SmallVector<int64_t> extents;
  };

  void start(llvm::ArrayRef<bool> mayAlias, bool hasScratch);
  /// Makes the kernel and the ids of its thread.
  void createKernel(mlir::gpu::GPUModuleOp module, llvm::StringRef name, unsigned numParameters);

  llvm::SmallVector<mlir::Value> pointers;
  llvm::SmallVector<Delinearized> delinearized;
  /// Access group of the innermost parallel loop.
  mlir::ArrayAttr accessGroup;
  /// The blocks that the loops stand in whose bodies are being written, outermost first.
  llvm::SmallVector<mlir::Block *> aroundLoops;
  unsigned numGlobals = 0;
  llvm::SmallVector<mlir::Attribute> tables;
};

/// Adds `symbol(args, …)`, which reads `numPointers` pointers from `args` and calls `body` with them, with tables of
/// them where it asks for some, and with its own further arguments.
void addEntryPoint(mlir::ModuleOp module, llvm::StringRef symbol, mlir::func::FuncOp body, unsigned numPointers);

} // namespace lowtide::codegen

//===- Emitters.h - loop nests for kernels ----------------------*- C++ -*-===//
//
// One function per emitter. Each reads the kernel's body only through the
// evaluator; docs/rationale/kernels.md says what each does on a CPU and on a
// GPU.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "ReductionOrder.h"
#include "lowtide/Dialect/NN/NN.h"

namespace lowtide::codegen {

/// What an emitter decides before it writes code.
struct LaunchShape {
  int64_t extent = 1, grain = 1;
  uint64_t scratchBytes = 0;
};
/// Blocks of a GPU's grid at most, where threads go on to further work, by its number of processors: eight of 256
/// threads on each.
inline int64_t getMostBlocks(unsigned processors) { return int64_t(8) * processors; }

/// A kernel under construction. Operands are bound to their arrays.
struct KernelContext {
  nn::KernelOp kernel;
  KernelFunction &function;
  RegionEvaluator &evaluator;

  mlir::ValueRange getYielded() { return kernel.getYield().getOperands(); }
  mlir::Value getResultPointer(unsigned i) { return function.getPointer(kernel.getNumOperands() + i); }
};

/// The kernel's emitter and first ops, in words for profiles.
std::string describe(nn::KernelOp kernel);

/// Whether all values have one number of elements (or a single one) and
/// position i depends on position i only: then the kernel is one loop over
/// positions, whatever the shape.
bool isFlat(nn::KernelOp kernel);
/// Whether dimensions `d` and `e` of `tensor`, between which all extents are 1, travel together down to what is in
/// memory, where `endsAtReductions` to what reductions made: their positions are then one, and neighbours stay
/// neighbours.
bool isGlued(mlir::Value tensor, int64_t d, int64_t e, bool endsAtReductions);
/// How many trailing dimensions of values of `shape` always travel together in the body: one position stands for them.
unsigned countGluedDims(nn::KernelOp kernel, llvm::ArrayRef<int64_t> shape);

/// Results of one shape.
struct LoopNest {
  llvm::SmallVector<int64_t> shape;
  llvm::SmallVector<unsigned> results;
  /// Trailing dimensions that make up the vectorized loop; the leading ones are the rows.
  unsigned numInner = 0;
  int64_t rows = 1, inner = 1;
};
llvm::SmallVector<LoopNest> getLoopNests(nn::KernelOp kernel);

/// Any body: a loop nest over the elements of each result. Iteration space:
/// rows (positions, when flat).
LaunchShape getLoopShape(nn::KernelOp kernel);
void emitLoop(KernelContext &context);
/// The same on a GPU: a thread per 16 bytes of the results' smallest elements; `narrow`: per element.
Grid getGpuLoopGrid(nn::KernelOp kernel, bool narrow, unsigned processors);
void emitGpuLoop(KernelContext &context, bool narrow);

/// A body of values over one shape and its reductions over one set of dimensions (emitters "row" and "column").
/// Dimensions of extent 1 are left out.
struct StagedDomain {
  llvm::SmallVector<int64_t> extents;
  /// Dimensions that every reduction reduces.
  llvm::SmallVector<int64_t> reduced, kept;
  llvm::SmallVector<int64_t> keptExtents;
  /// Kept elements of one row (trailing reductions: 1) or one tile of columns.
  int64_t columns = 1, tile = 1;
  /// Neighbouring columns that are neighbours in everything that is read: all, or those over so many last dimensions,
  /// and then no tile goes beyond them.
  int64_t run = 1;
  unsigned numRunDims = 0;

  ReductionShape getShape() const { return ReductionShape::get(extents, reduced); }

  /// Fails, silently, when the body has another form.
  static mlir::FailureOr<StagedDomain> get(nn::KernelOp kernel);
};
/// Extents without the ones that are 1.
llvm::SmallVector<int64_t> dropUnitExtents(mlir::Value tensor);

LaunchShape getStagedShape(nn::KernelOp kernel, const StagedDomain &domain);
/// Fails, silently, when a reduction is needed in another row than its own. The function is unusable then.
mlir::LogicalResult emitStaged(KernelContext &context, const StagedDomain &domain);
/// The same on a GPU: a team of threads per row, or a block per 32 columns; a kernel that is alone and over many
/// columns has up to eight times as many in a block.
Grid getGpuStagedGrid(const StagedDomain &domain, unsigned processors);
Grid getGpuStagedGrid(nn::KernelOp kernel, const StagedDomain &domain, unsigned processors);
/// The former where rows are reduced into columns: a block per 32 of them, however many processors there are.
Grid getGpuColumnGrid(const StagedDomain &domain);
mlir::LogicalResult emitGpuRow(KernelContext &context, const StagedDomain &domain);
mlir::LogicalResult emitGpuColumn(KernelContext &context, const StagedDomain &domain);
/// Many rows over few columns, or few long rows: a first kernel writes the totals of blocks of rows, or of segments of
/// a row, and a second one adds them up. Bytes of those totals; 0: one kernel does it all.
uint64_t getPartialBytes(nn::KernelOp kernel, const StagedDomain &domain);
Grid getGpuPartialGrid(nn::KernelOp kernel, const StagedDomain &domain);
/// The totals go to the function's last pointer.
mlir::LogicalResult emitGpuPartials(KernelContext &context, const StagedDomain &domain);
/// The totals come from the pointer after the operands.
mlir::LogicalResult emitGpuTotals(KernelContext &context, const StagedDomain &domain);

/// Where a thread stands in the teams of its block, each of which takes a row.
struct TeamPlace {
  Team team;
  mlir::Value number;
};
int64_t getGpuTeamSize(const StagedDomain &domain);
/// Teams of more than a warp are whole blocks.
TeamPlace enterTeams(KernelFunction &function, int64_t size);
/// Rows `base` + the numbers of the teams; some may be after the last one.
mlir::LogicalResult emitGpuRowsAt(KernelContext &context, const StagedDomain &domain, const TeamPlace &place,
                                  mlir::Value base, bool mayBeNone);
/// Whether positions in some array, and one round of the largest grid beyond, need more than 31 bits.
bool needsWideIndex(nn::KernelOp kernel);
/// Operands of whose pointers `function` makes use.
llvm::SmallVector<unsigned> findReads(KernelFunction &function, unsigned numOperands);

/// The op of a kernel that is one transpose of an operand, or null.
nn::TransposeOp getSoleTranspose(nn::KernelOp kernel);
/// The same where it reads memory crosswise, in lines long enough for tiles; or null. CPU only.
nn::TransposeOp getCrosswiseTranspose(nn::KernelOp kernel);
LaunchShape getTransposeShape(nn::TransposeOp op);
void emitTranspose(KernelContext &context, nn::TransposeOp op);

/// The running sum of a kernel that is one and what elementwise ops make of it; null if it is more.
nn::CumSumOp getRunningSum(nn::KernelOp kernel);
LaunchShape getRunningSumShape(nn::CumSumOp sum);
void emitRunningSum(KernelContext &context, nn::CumSumOp sum);
/// Whether a GPU had better go along its lines, a thread for each, than add up for each element on its own.
bool isGpuRunningSumByLines(nn::CumSumOp sum);
Grid getGpuRunningSumGrid(nn::CumSumOp sum, unsigned processors);
void emitGpuRunningSum(KernelContext &context, nn::CumSumOp sum);

/// The op of a kernel that is one scatter (constants aside), or null.
ScatterInterface getScatter(nn::KernelOp kernel);
/// The op of a kernel that is one scatter and what makes its operands, element by element; null if it is more.
ScatterInterface getFedScatter(nn::KernelOp kernel);
LaunchShape getScatterShape(ScatterInterface op);
Grid getGpuScatterGrid(ScatterInterface op, unsigned processors);
void emitScatter(KernelContext &context, ScatterInterface op);

/// Per result, the operands that it may overwrite element by element. In a staged kernel reductions may read such
/// an operand too: they are finished before the results of their row are written.
llvm::SmallVector<llvm::SmallVector<int, 4>> findInPlace(nn::KernelOp kernel, bool staged);

} // namespace lowtide::codegen

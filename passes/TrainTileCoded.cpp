//===- TrainTileCoded.cpp - matrices of few bits, a tile at a time -*- C++ -*-===//
//
// 1. A product whose operand is computed of codes of few bits is cut along that operand's outputs: each part of the
//    result is the product with one tile, in which nothing is added in another order.
// 2. A tile is computed of its part of the codes alone (ValueBoxes), next to the product that reads it.
//
//===----------------------------------------------------------------------===//

#include "StepPass.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/ValueBoxes.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Support/DiagnosticFigures.h"

namespace lowtide {
#define GEN_PASS_DEF_TRAINTILECODED
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;
using namespace lowtide;

/// Numbers of a matrix that is worth a cut; bytes of a tile at most; tiles at least and at most.
static constexpr int64_t smallestMatrix = 4096, largestTile = int64_t(8) << 20, fewestTiles = 4, mostTiles = 64;

static uint64_t bytesOf(Value value) { return getTensorBytes(value.getType()).value_or(0); }
static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Whether a matrix is computed of constants that take fewer bytes, codes among them.
static bool isDecoded(func::FuncOp step, Value matrix) {
  if (isa<BlockArgument>(matrix) || typeOf(matrix).getRank() != 2 || typeOf(matrix).getNumElements() < smallestMatrix)
    return false;
  std::optional<SmallVector<BlockArgument>> sources = nn::findBoxSources(matrix);
  if (!sources)
    return false;
  uint64_t bytes = 0;
  bool hasCodes = false;
  for (BlockArgument source : *sources) {
    if (source.getOwner() != &step.getBody().front() ||
        !isa_and_nonnull<train::ConstantAttr>(train::getArgBinding(step, source.getArgNumber())))
      return false;
    bytes += bytesOf(source);
    hasCodes |= isa<IntegerType>(typeOf(source).getElementType());
  }
  return hasCodes && bytes < bytesOf(matrix);
}

/// Whether the matrix can be computed in so many tiles along `dim`.
static bool fallsInto(Value matrix, int64_t dim, int64_t tiles) {
  const int64_t size = typeOf(matrix).getDimSize(dim) / tiles;
  Block scratch;
  OpBuilder builder(matrix.getContext());
  builder.setInsertionPointToEnd(&scratch);
  // What can be done for the second tile can be done for all.
  const bool isCut = static_cast<bool>(
      nn::buildBox(builder, matrix.getLoc(), matrix, nn::ValueBox::along(typeOf(matrix).getShape(), dim, size, size)));
  while (!scratch.empty())
    scratch.back().erase();
  return isCut;
}

/// The fewest tiles of a size that is no more than `largestTile`, nor a quarter of the matrix; else as many as it falls
/// into, 0: it does not.
static int64_t chooseTiles(Value matrix, int64_t dim) {
  const int64_t extent = typeOf(matrix).getDimSize(dim);
  const int64_t wanted = std::max<int64_t>(fewestTiles, llvm::divideCeil(bytesOf(matrix), largestTile));
  for (int64_t tiles = wanted; tiles <= std::max(mostTiles, wanted) && tiles <= extent; ++tiles)
    if (extent % tiles == 0 && fallsInto(matrix, dim, tiles))
      return tiles;
  for (int64_t tiles = std::min(wanted - 1, extent); tiles > 1; --tiles)
    if (extent % tiles == 0 && fallsInto(matrix, dim, tiles))
      return tiles;
  return 0;
}

namespace {
struct TrainTileCoded : StepPass<lowtide::impl::TrainTileCodedBase<TrainTileCoded>> {
  using StepPass::StepPass;

  void runOnSteps() override {
    func::FuncOp step = getOperation();
    SmallVector<nn::DotOp> dots;
    step.walk([&](nn::DotOp dot) { dots.push_back(dot); });
    unsigned tiled = 0, whole = 0;
    for (nn::DotOp dot : dots)
      for (unsigned operand : {0U, 1U})
        if (isDecoded(step, dot->getOperand(operand))) {
          tile(dot, operand) ? ++tiled : ++whole;
          break;
        }
    numTiled += tiled;
    if (tiled || whole)
      step.emitRemark("@") << step.getSymName() << ": " << tiled << " products read a matrix in codes tile by tile, "
                           << whole << " as a whole";
  }

private:
  bool tile(nn::DotOp dot, unsigned operand) {
    Value matrix = dot->getOperand(operand);
    const bool isTransposed = operand == 0 ? dot.getTransposeA() : dot.getTransposeB();
    const int64_t dim = operand == 0 ? isTransposed : !isTransposed;
    const int64_t tiles = chooseTiles(matrix, dim);
    if (!tiles)
      return false;
    const int64_t size = typeOf(matrix).getDimSize(dim) / tiles;
    SmallVector<int64_t> shape(typeOf(matrix).getShape()), part(typeOf(dot.getY()).getShape());
    shape[dim] = size;
    part[operand] = size;
    OpBuilder builder(dot);
    SmallVector<nn::Expr> parts;
    for (int64_t i = 0; i < tiles; ++i) {
      nn::Expr cut = nn::buildBox(builder, dot.getLoc(), matrix,
                                  nn::ValueBox::along(typeOf(matrix).getShape(), dim, i * size, size));
      Operation *product = builder.clone(*dot);
      product->setOperand(operand, nn::reshape(cut, shape));
      product->getResult(0).setType(typeOf(dot.getY()).clone(part));
      parts.push_back(cut.with(product->getResult(0)));
    }
    dot.getY().replaceAllUsesWith(nn::concat(parts, operand).get());
    dot.erase();
    return true;
  }
};
} // namespace

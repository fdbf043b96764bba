//===- TrainChunkLossHead.h - a loss without its logits ---------*- C++ -*-===//
#pragma once

#include <memory>

namespace mlir {
class Pass;
}

namespace lowtide {

struct TrainChunkLossHeadOptions;

/// train-chunk-loss-head for a GPU: tiles of four times as many rows, since there a tile's sum of the size of the
/// weight takes longer to read and write than a product of so few rows takes to compute.
std::unique_ptr<mlir::Pass> createWideChunkLossHead(const TrainChunkLossHeadOptions &options);

} // namespace lowtide

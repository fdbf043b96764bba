// The passes, in pipeline order: this file reads as the life of a training step.
//
// Each pass states its class in its summary:
//   exact        not one bit of one loss may change (order, rematerialize, place)
//   real-equal   equal in real arithmetic, checked in f64 (fold, fuse, differentiate)
//   approximate  opt-in, with a stated error model (autocast, quantize)
#ifndef LOWTIDE_PASSES
#define LOWTIDE_PASSES

include "mlir/Pass/PassBase.td"

#endif

// All records of the train dialect.
#ifndef LOWTIDE_TRAIN_OPS
#define LOWTIDE_TRAIN_OPS

include "lowtide/Dialect/Train/TrainAttrs.td"
include "lowtide/Dialect/Train/Accumulate.td"
include "lowtide/Dialect/Train/LossScaling.td"
include "lowtide/Dialect/Train/Optimizers.td"
include "lowtide/Dialect/Train/ElementwiseOptimizers.td"
include "lowtide/Dialect/Train/TensorOptimizers.td"
include "lowtide/Dialect/Train/Move.td"
include "lowtide/Dialect/Train/Remat.td"

#endif

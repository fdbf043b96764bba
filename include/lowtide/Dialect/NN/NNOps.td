// All records of the nn dialect, by family.
#ifndef LOWTIDE_NN_OPS
#define LOWTIDE_NN_OPS

include "lowtide/Dialect/NN/Elementwise.td"
include "lowtide/Dialect/NN/Math.td"
include "lowtide/Dialect/NN/Activation.td"
include "lowtide/Dialect/NN/Binary.td"
include "lowtide/Dialect/NN/Movement.td"
include "lowtide/Dialect/NN/Slicing.td"
include "lowtide/Dialect/NN/Indexing.td"
include "lowtide/Dialect/NN/Reduction.td"
include "lowtide/Dialect/NN/Ordering.td"
include "lowtide/Dialect/NN/Contraction.td"
include "lowtide/Dialect/NN/Convolution.td"
include "lowtide/Dialect/NN/Pooling.td"
include "lowtide/Dialect/NN/Normalization.td"
include "lowtide/Dialect/NN/Loss.td"
include "lowtide/Dialect/NN/LossHead.td"
include "lowtide/Dialect/NN/Random.td"
include "lowtide/Dialect/NN/Kernel.td"

#endif

// All records of the nn dialect, by family.
#ifndef LOWTIDE_NN_OPS
#define LOWTIDE_NN_OPS

include "lowtide/Dialect/NN/Elementwise.td"
include "lowtide/Dialect/NN/Movement.td"
include "lowtide/Dialect/NN/Reduction.td"
include "lowtide/Dialect/NN/Contraction.td"
include "lowtide/Dialect/NN/Kernel.td"

#endif

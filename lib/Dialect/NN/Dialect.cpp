//===- Dialect.cpp - registers the nn dialect -------------------*- C++ -*-===//
//
// The dialect, its generated op classes and the interfaces' definitions.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/ElementwiseGradients.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/GradientBuilder.h"
#include "lowtide/Dialect/NN/LibraryForms.h"
#include "lowtide/Dialect/NN/RecordSupport.h"
#include "lowtide/Dialect/NN/Scan.h"
#include "lowtide/Dialect/NN/Scatter.h"
#include "lowtide/Dialect/NN/Storage.h"
#include "lowtide/Interfaces/ScalarBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

#include "lowtide/Dialect/NN/NNDialect.cpp.inc"
#include "lowtide/Dialect/NN/NNEnums.cpp.inc"
#include "lowtide/Dialect/NN/ScatterEnums.cpp.inc"
#include "lowtide/Dialect/NN/StorageEnums.cpp.inc"

#define GET_OP_CLASSES
#include "lowtide/Dialect/NN/NNOps.cpp.inc"
#define GET_OP_CLASSES
#include "lowtide/Dialect/NN/Library.cpp.inc"
#define GET_OP_CLASSES
#include "lowtide/Dialect/NN/Scatter.cpp.inc"
#define GET_OP_CLASSES
#include "lowtide/Dialect/NN/Storage.cpp.inc"
#define GET_OP_CLASSES
#include "lowtide/Dialect/NN/Scan.cpp.inc"

void lowtide::nn::NNDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "lowtide/Dialect/NN/NNOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "lowtide/Dialect/NN/Library.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "lowtide/Dialect/NN/Scatter.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "lowtide/Dialect/NN/Storage.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "lowtide/Dialect/NN/Scan.cpp.inc"
      >();
  registerAttentionCall(getContext());
  registerStridedCalls(getContext());
}

Operation *lowtide::nn::NNDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  if (auto elements = dyn_cast<ElementsAttr>(value))
    return ConstantOp::create(builder, loc, type, elements);
  return nullptr;
}

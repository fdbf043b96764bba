//===- Dialect.cpp - registers the train dialect ----------------*- C++ -*-===//
//
// The dialect and its attributes.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/Train/Train.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "lowtide/Dialect/Train/TrainDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "lowtide/Dialect/Train/TrainAttrs.cpp.inc"

void lowtide::train::TrainDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "lowtide/Dialect/Train/TrainAttrs.cpp.inc"
      >();
}

//===- NN.h - the nn dialect: pure tensor mathematics -----------*- C++ -*-===//
//
// Declares the dialect and its ops. Passes ask interfaces and do not include this file; record implementations,
// legalization and patterns do.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/OpInterfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "lowtide/Dialect/NN/NNDialect.h.inc"
#include "lowtide/Dialect/NN/NNEnums.h.inc"

#define GET_OP_CLASSES
#include "lowtide/Dialect/NN/NNOps.h.inc"

//===- Failure.cpp - kinds of failure of the compiler -----------*- C++ -*-===//
//
// A pass can only fail; the kind travels as an attribute of the module that it fails on.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Support/Failure.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

using namespace lowtide;
using llvm::StringRef;

static constexpr llvm::StringLiteral failureAttrName = "lowtide.failure";
static constexpr FailureKind allKinds[] = {FailureKind::None,        FailureKind::Usage,   FailureKind::BadInput,
                                           FailureKind::Unsupported, FailureKind::Budget,  FailureKind::Verification,
                                           FailureKind::Io,          FailureKind::Internal};

StringRef lowtide::getName(FailureKind kind) {
  switch (kind) {
  case FailureKind::None:
    return "none";
  case FailureKind::Usage:
    return "usage";
  case FailureKind::BadInput:
    return "bad-input";
  case FailureKind::Unsupported:
    return "unsupported";
  case FailureKind::Budget:
    return "budget";
  case FailureKind::Verification:
    return "verification";
  case FailureKind::Io:
    return "io";
  case FailureKind::Internal:
    return "internal";
  }
  return "";
}

void lowtide::setFailure(mlir::Operation *module, FailureKind kind) {
  module->setAttr(failureAttrName, mlir::StringAttr::get(module->getContext(), getName(kind)));
}

FailureKind lowtide::getFailure(mlir::Operation *module) {
  if (auto name = module->getAttrOfType<mlir::StringAttr>(failureAttrName))
    for (FailureKind kind : allKinds)
      if (getName(kind) == name.getValue())
        return kind;
  return FailureKind::None;
}

//===- ElementBytes.h - elements as files store them ------------*- C++ -*-===//
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include <string>

namespace lowtide {

/// The bytes of all elements, little endian; a boolean takes one.
std::string getElementBytes(mlir::DenseElementsAttr values);

} // namespace lowtide

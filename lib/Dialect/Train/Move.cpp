//===- Move.cpp - values in other memories ----------------------*- C++ -*-===//
//
// Syntax of a memory, and what a move must keep.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/Train/Train.h"

using namespace mlir;
using namespace lowtide;

Attribute train::SpaceAttr::parse(AsmParser &parser, Type) {
  StringRef name;
  const SMLoc at = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&name))
    return {};
  const std::optional<Space> space = findSpace(name);
  if (!space || *space == Space::Device) {
    parser.emitError(at) << "'" << name << "' names no other memory than the device: host_pinned, host, file";
    return {};
  }
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), *space);
}

void train::SpaceAttr::print(AsmPrinter &printer) const { printer << "<" << getSpaceName(getSpace()) << ">"; }

LogicalResult train::MoveOp::verify() {
  RankedTensorType from = getValue().getType(), to = getMoved().getType();
  if (from.getShape() != to.getShape() || from.getElementType() != to.getElementType())
    return emitOpError("changes ") << from << " to " << to << "; a move keeps shape and element type";
  const Space here = lowtide::getSpace(from), there = lowtide::getSpace(to);
  if ((here == Space::Device) == (there == Space::Device))
    return emitOpError("moves from space ") << getSpaceName(here) << " to space " << getSpaceName(there)
                                            << "; one of the two, and only one, is the device";
  return success();
}

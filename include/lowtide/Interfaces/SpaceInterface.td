// The memory that a tensor lies in, as analyses and passes may ask its type.
#ifndef LOWTIDE_INTERFACES_SPACEINTERFACE
#define LOWTIDE_INTERFACES_SPACEINTERFACE

include "mlir/IR/Interfaces.td"

def SpaceInterface : AttrInterface<"SpaceInterface"> {
  let description = [{The memory of a tensor, as the encoding of its type. A tensor without one lies on the device.}];
  let cppNamespace = "::lowtide";
  let methods = [InterfaceMethod<"The memory.", "::lowtide::Space", "getSpace", (ins)>];
}

#endif

// What a codec's ops tell the pass that lays state out.
#ifndef LOWTIDE_TRAIN_LAYOUTINTERFACE
#define LOWTIDE_TRAIN_LAYOUTINTERFACE

include "mlir/IR/OpBase.td"

def CodecInterface : OpInterface<"CodecInterface"> {
  let description = [{
    One direction of a codec. The static method describes the codec before any op of it exists, so that a pass can build
    one by name.
  }];
  let cppNamespace = "::lowtide::train";
  let methods = [
    StaticInterfaceMethod<"What the record says about the codec.", "const ::lowtide::train::CodecInfo &", "getCodec",
      (ins)>,
  ];
}

#endif

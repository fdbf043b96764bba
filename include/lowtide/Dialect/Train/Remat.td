// The anchor of a recomputation.
#ifndef LOWTIDE_TRAIN_REMAT
#define LOWTIDE_TRAIN_REMAT

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "lowtide/Interfaces/OpInterfaces.td"
include "lowtide/Dialect/Train/TrainAttrs.td"

def Train_RematOp : Op<Train_Dialect, "remat",
    [Pure, AllTypesMatch<["value", "again"]>, DeclareOpInterfaceMethods<FactsInterface>]> {
  let summary = "a value, to be read again when a cotangent is there";
  let description = [{
    The result is the operand, byte for byte: a view. What reads it is computed again, not before `cotangent` exists: as
    an operand of its own it keeps a recomputation from being merged with the first computation and from being moved up.

    ```mlir
    %x1 = train.remat %x after(%dy) : tensor<8x64xf32>, tensor<8x64xf32>
    ```
  }];
  let arguments = (ins AnyTensor:$value, AnyTensor:$cotangent);
  let results = (outs AnyTensor:$again);
  let assemblyFormat = "$value `after` `(` $cotangent `)` attr-dict `:` type($value) `,` type($cotangent)";
  let extraClassDefinition = [{
    const ::lowtide::OpFacts &$cppClass::getFacts() {
      static const ::lowtide::OpFacts facts{::lowtide::OpFamily::Movement, ::lowtide::PrecisionPolicy::Follow,
          ::lowtide::Aliasing::View, ::lowtide::BatchRule::Pointwise, 0, ""};
      return facts;
    }
    uint64_t $cppClass::getFlops() { return 0; }
  }];
}

#endif

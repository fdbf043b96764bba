// Values that wait in another memory than the device's.
#ifndef LOWTIDE_TRAIN_MOVE
#define LOWTIDE_TRAIN_MOVE

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "lowtide/Interfaces/OpInterfaces.td"
include "lowtide/Interfaces/SpaceInterface.td"
include "lowtide/Dialect/Train/TrainAttrs.td"

def Train_SpaceAttr : AttrDef<Train_Dialect, "Space", [SpaceInterface]> {
  let mnemonic = "space";
  let summary = "the memory that a tensor lies in: host_pinned, host, file";
  let description = [{
    The encoding of a tensor's type: `tensor<8x64xf32, #train.space<file>>`. A tensor without one lies on the device.
    What kernels and libraries read and write is there; `train.move` alone reaches other memories.
  }];
  let parameters = (ins "::lowtide::Space":$space);
  let hasCustomAssemblyFormat = 1;
}

def Train_MoveOp : Op<Train_Dialect, "move", [Pure, DeclareOpInterfaceMethods<FactsInterface>]> {
  let summary = "the same numbers in another memory: a copy from the device, or back to it";
  let description = [{
    The spaces of the two types say in which direction the copy goes; one of them is the device. A plan has a copy on a
    lane of its own for it (`plan-assign-streams`).

    ```mlir
    %stored = train.move %x : tensor<8x64xf32> to tensor<8x64xf32, #train.space<file>>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$value);
  let results = (outs AnyRankedTensor:$moved);
  let assemblyFormat = "$value attr-dict `:` type($value) `to` type($moved)";
  let hasVerifier = 1;
  let extraClassDefinition = [{
    const ::lowtide::OpFacts &$cppClass::getFacts() {
      static const ::lowtide::OpFacts facts{::lowtide::OpFamily::Movement, ::lowtide::PrecisionPolicy::Follow,
          ::lowtide::Aliasing::Moved, ::lowtide::BatchRule::Pointwise, 0, ""};
      return facts;
    }
    uint64_t $cppClass::getFlops() { return 0; }
  }];
}

#endif

// train: the loop over parts of a batch, or over the steps of a sequence.
#ifndef LOWTIDE_TRAIN_ACCUMULATE
#define LOWTIDE_TRAIN_ACCUMULATE

include "mlir/Interfaces/SideEffectInterfaces.td"
include "lowtide/Dialect/Train/TrainAttrs.td"
include "lowtide/Interfaces/OpInterfaces.td"

def Train_AccumulateOp : Op<Train_Dialect, "accumulate", [RecursiveMemoryEffects, SingleBlock, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<FactsInterface>, DeclareOpInterfaceMethods<RepeatInterface>]> {
  let summary = "runs its body once for each part of a batch or step of a sequence, adding up on the way";
  let description = [{
    Round k of `rounds` sees part k of dimension 0 of every sliced tensor. A carried tensor holds its first value in the
    first round, and in each further round what `train.next` carried on. Results: what the last round carries on, then the
    rows of all rounds one after another. Parameters and whatever else is the same in every round are read from outside.
    A `reversed` loop sees the last part first, and its rows lie where their parts do.

    ```mlir
    %loss, %dw, %y = train.accumulate 4 slices(%xk = %x) carries(%sum = %zero, %dwk = %zeros)
        : (tensor<8x3xf32>, tensor<f32>, tensor<3xf32>) -> (tensor<f32>, tensor<3xf32>, tensor<8xf32>) {
      …                                                      // %xk : tensor<2x3xf32>
      train.next carries(%s, %d) rows(%yk) : …               // %yk : tensor<2xf32>
    }
    ```
  }];
  let arguments = (ins I64Attr:$rounds, UnitAttr:$reversed, Variadic<AnyType>:$sliced, Variadic<AnyType>:$carried);
  let results = (outs Variadic<AnyType>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let builders = [
    // The body gets one block with its arguments, and no terminator; `rows`: types of one round's.
    OpBuilder<(ins "int64_t":$rounds, "::mlir::ValueRange":$sliced, "::mlir::ValueRange":$carried,
                   "::mlir::TypeRange":$rows, CArg<"bool", "false">:$reversed)>,
  ];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block *getBlock() { return &getBody().front(); }
    NextOp getNext();
    /// The type of all rounds' parts one after another, and of one round's part.
    static ::mlir::RankedTensorType getWhole(::mlir::RankedTensorType part, int64_t rounds);
    static ::mlir::RankedTensorType getPart(::mlir::RankedTensorType whole, int64_t rounds);
  }];
}

def Train_NextOp : Op<Train_Dialect, "next", [Pure, Terminator, AttrSizedOperandSegments, HasParent<"AccumulateOp">]> {
  let summary = "ends a round: what the next one is handed, and this one's rows";
  let arguments = (ins Variadic<AnyType>:$carried, Variadic<AnyType>:$rows);
  let assemblyFormat = [{
    (`carries` `(` $carried^ `:` type($carried) `)`)? (`rows` `(` $rows^ `:` type($rows) `)`)? attr-dict
  }];
}

#endif

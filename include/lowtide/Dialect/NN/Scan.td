// nn: the loop over the steps of a sequence.
#ifndef LOWTIDE_NN_SCAN
#define LOWTIDE_NN_SCAN

include "lowtide/Dialect/NN/NNBase.td"

def NN_ScanOp : NN_Op<"scan", [IsolatedFromAbove, SingleBlock, AttrSizedOperandSegments, RepeatInterface,
    DeclareOpInterfaceMethods<DifferentiableInterface>]> {
  let split = "Scan";
  let summary = "runs its body once for each step of a sequence";
  let description = [{
    Round k of `rounds` sees part k of dimension 0 of every sliced tensor. A carried tensor holds its first value in the
    first round, and in each further round what `nn.next` carried on. What is the same in every round is read. Results:
    what the last round carries on, then the rows of all rounds one after another along dimension 0. A `reversed` scan
    sees the last part first, and its rows lie where their parts do.

    ```mlir
    %last, %ys = nn.scan 16 slices(%x = %xs) carries(%h = %first) reads(%w = %weight)
        : (tensor<16x2x3xf32>, tensor<2x3xf32>, tensor<3x3xf32>) -> (tensor<2x3xf32>, tensor<16x2x3xf32>) {
      …                                                      // %x : tensor<1x2x3xf32>
      nn.next carries(%next : tensor<2x3xf32>) rows(%y : tensor<1x2x3xf32>)
    }
    ```

    Its derivative is a scan that walks the other way: each round computes its step again, from the state that the step
    started with, and goes back through it. Sums over all steps that are products or reductions are made after it, of
    the rows of all rounds. The fit stage makes `train.accumulate` of it.
  }];
  let family = "Repeat";
  let precision = "High";
  let resultPrecision = "High";
  let onnx = "Scan,LSTM,GRU,RNN";
  let arguments = (ins I64Attr:$rounds, UnitAttr:$reversed, Variadic<NN_Tensor>:$sliced, Variadic<NN_Tensor>:$carried,
    Variadic<NN_Tensor>:$captured);
  let results = (outs Variadic<NN_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let builders = [
    // The body gets one block with its arguments, and no terminator; `rows`: types of one round's.
    OpBuilder<(ins "int64_t":$rounds, "bool":$reversed, "::mlir::ValueRange":$sliced, "::mlir::ValueRange":$carried,
                   "::mlir::ValueRange":$captured, "::mlir::TypeRange":$rows)>,
  ];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCanonicalizer = 1;
  let flops = [{ return ::lowtide::nn::scanFlops(*this); }];
  let extraClassDeclaration = [{
    ::mlir::Block *getBlock() { return &getBody().front(); }
    NextOp getNext();
    unsigned getNumSliced() { return getSliced().size(); }
    unsigned getNumCarried() { return getCarried().size(); }
    /// Makes the body of a clone compute `1 / parts` of the samples; `required`: where its operands count them. The
    /// operands and the results have their types already.
    void takeSamples(::llvm::ArrayRef<std::optional<::lowtide::BatchPosition>> required, int64_t samples, int64_t parts);
  }];
}

def NN_NextOp : Op<NN_Dialect, "next", [Pure, Terminator, AttrSizedOperandSegments, HasParent<"ScanOp">]> {
  let summary = "ends a round of a scan: what the next one is handed, and this one's rows";
  let arguments = (ins Variadic<NN_Tensor>:$carried, Variadic<NN_Tensor>:$rows);
  let assemblyFormat = [{
    (`carries` `(` $carried^ `:` type($carried) `)`)? (`rows` `(` $rows^ `:` type($rows) `)`)? attr-dict
  }];
}

#endif

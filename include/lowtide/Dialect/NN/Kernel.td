// nn: the unit of code generation: a group of ops that becomes one machine kernel.
#ifndef LOWTIDE_NN_KERNEL
#define LOWTIDE_NN_KERNEL

include "lowtide/Dialect/NN/NNBase.td"

// Which loop nest code generation builds. `row`, `column`: reductions over a set of dimensions with or without the last
// one; `single`: one op with code of its own; `batch`, `cross`: launches of a GPU alone; `library`: a call.
def NN_Emitter : I32EnumAttr<"Emitter", "loop nest of a kernel", [
    I32EnumAttrCase<"loop", 0>, I32EnumAttrCase<"row", 1>, I32EnumAttrCase<"column", 2>, I32EnumAttrCase<"scatter", 3>,
    I32EnumAttrCase<"single", 4>, I32EnumAttrCase<"batch", 5>, I32EnumAttrCase<"cross", 6>,
    I32EnumAttrCase<"library", 7>]> {
  let cppNamespace = "::lowtide::nn";
}

def NN_KernelOp : NN_Op<"kernel", [IsolatedFromAbove, SingleBlock]> {
  let summary = "ops that are computed together, in one machine kernel";
  let description = [{
    The body computes the results from the operands, which it sees as block arguments of the same types. `emitter` names
    the loop nest that code generation builds: `loop`, `row`, `column`, `scatter` or `single`, and, in the launches of a
    GPU alone, `batch` or `cross` (docs/rationale/kernels.md). A kernel of emitter `library` is no code of ours but one
    call: its body holds an `nn.attention` or an `nn.attention_grad` and, around it, the slices, reshapes, transposes and
    paddings that strides of the call stand for.

    ```mlir
    %r:2 = nn.kernel loop (%a = %x, %b = %w) : (tensor<8x4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<f32>) {
      …
      nn.yield %u, %v : tensor<8x4xf32>, tensor<f32>
    }
    ```
  }];
  let family = "Fusion";
  let arguments = (ins NN_Emitter:$emitter, Variadic<AnyType>:$captures);
  let results = (outs Variadic<AnyType>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let builders = [
    // The body gets one block with an argument per operand, and no terminator.
    OpBuilder<(ins "::lowtide::nn::Emitter":$emitter, "::mlir::ValueRange":$operands, "::mlir::TypeRange":$results)>,
  ];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let flops = [{ return ::lowtide::nn::countFlops(getBody()); }];
  let extraClassDeclaration = [{
    ::mlir::Block *getBlock() { return &getBody().front(); }
    YieldOp getYield();
    /// Whether no result has an element: there is nothing to compute.
    bool isEmpty();
  }];
}

def NN_YieldOp : Op<NN_Dialect, "yield", [Pure, Terminator, HasParent<"KernelOp">]> {
  let summary = "names the results of a kernel";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif

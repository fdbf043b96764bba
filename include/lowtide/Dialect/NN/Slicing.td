// nn: ops that take tensors apart and put them together.
#ifndef LOWTIDE_NN_SLICING
#define LOWTIDE_NN_SLICING

include "lowtide/Dialect/NN/Movement.td"

def NN_SliceOp : NN_Movement<"slice"> {
  let split = "Slice";
  let order = "Slice";
  let summary = "y[i] = x[starts + i · strides]; the result's shape says how many";
  let description = [{Strides are positive. Derivative: nn.pad, with zeros between and around.}];
  let onnx = "Slice,Split";
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$strides);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$x `starts` `=` $starts `strides` `=` $strides attr-dict `:` type($x) `->` type($y)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def NN_PadOp : NN_Movement<"pad"> {
  let split = "Pad";
  let order = "Pad";
  let summary = "puts `value` before (low), after (high) and between (interior) the elements of each dimension";
  let description = [{low, high and interior are not negative. Derivative: nn.slice.}];
  let onnx = "Pad";
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high, DenseI64ArrayAttr:$interior,
                       DefaultValuedAttr<F64Attr, "0.0">:$value);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat =
      "$x `low` `=` $low `high` `=` $high `interior` `=` $interior attr-dict `:` type($x) `->` type($y)";
  let hasVerifier = 1;
}

def NN_ReverseOp : NN_Movement<"reverse"> {
  let split = "Reverse";
  let summary = "turns the order of elements around in the dimensions `dims`";
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$dims);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$x `dims` `=` $dims attr-dict `:` type($x) `->` type($y)";
  let hasVerifier = 1;
}

def NN_ConcatOp : NN_Movement<"concat"> {
  let split = "Concat";
  let order = "Concat";
  let summary = "puts tensors one after another along `dim`";
  let onnx = "Concat";
  let arguments = (ins Variadic<NN_Tensor>:$xs, I64Attr:$dim);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$xs `dim` `=` $dim attr-dict `:` functional-type($xs, $y)";
  let hasVerifier = 1;
}

def NN_IotaOp : NN_Op<"iota", [DeclareOpInterfaceMethods<ElementInterface>]> {
  let split = "Constant";
  let summary = "each element is its index along `dim`";
  let family = "Constant";
  let batch = "Movement";
  let arguments = (ins I64Attr:$dim);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "`dim` `=` $dim attr-dict `:` type($y)";
  let hasVerifier = 1;
}

#endif

// nn: convolution and its two transposes, closed under differentiation.
#ifndef LOWTIDE_NN_CONVOLUTION
#define LOWTIDE_NN_CONVOLUTION

include "lowtide/Dialect/NN/NNBase.td"

// input: [N, C, d…]; filter: [O, C/groups, k…]; output: [N, O, e…], 1 to 3 spatial dimensions;
// `channels_last`: each of them has its dimension 1 as the last one instead.
// e = ⌊(d + pads_begin + pads_end - dilation·(k-1) - 1) / stride⌋ + 1.
class NN_ConvolutionLike<string mnemonic>
    : NN_Op<mnemonic, [DeclareOpInterfaceMethods<ElementInterface>, DeclareOpInterfaceMethods<DifferentiableInterface>,
                       DeclareOpInterfaceMethods<LibraryCallInterface>]> {
  let family = "Convolution";
  let precision = "Low";
  let order = "Windowed";
  let arguments = (ins NN_FloatTensor:$a, NN_FloatTensor:$b_, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads_begin,
                       DenseI64ArrayAttr:$pads_end, DenseI64ArrayAttr:$dilations, I64Attr:$groups, UnitAttr:$channels_last);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = [{
    $a `,` $b_ `strides` `=` $strides `pads` `=` $pads_begin `,` $pads_end `dilations` `=` $dilations `groups` `=`
    $groups attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let flops = [{ return ::lowtide::nn::convolutionFlops(getOperation()); }];
  let definitions = [{
    ::llvm::StringRef $cppClass::getCallee() {
      return ::lowtide::nn::convolutionCallee(getOperation(), "}] # mnemonic # [{");
    }
    ::mlir::DictionaryAttr $cppClass::getCallAttributes() {
      return ::lowtide::nn::convolutionAttributes(getOperation());
    }
    ::llvm::LogicalResult $cppClass::verify() { return ::lowtide::nn::verifyConvolution(getOperation()); }
  }];
}

def NN_ConvOp : NN_ConvolutionLike<"conv"> {
  let split = "Convolution";
  let summary = "convolution (cross-correlation) of input a with filter b_";
  let batch = "Pointwise";
  let onnx = "Conv";
}
def NN_ConvInputGradOp : NN_ConvolutionLike<"conv_input_grad"> {
  let split = "Convolution";
  let summary = "input that a convolution with filter b_ takes the cotangent a back to: transposed convolution";
  let batch = "Pointwise";
  let onnx = "ConvTranspose";
}
def NN_ConvFilterGradOp : NN_ConvolutionLike<"conv_filter_grad"> {
  let split = "FilterGrad";
  let summary = "cotangent of the filter of a convolution with input a and cotangent b_ of the output";
  let batch = "Contract";
}

#endif

// nn: numbers as they are stored in fewer bits, and back. One record holds the scalar rule; layouts of a step's state
// (Dialect/Train/Layouts.td) are made of them.
#ifndef LOWTIDE_NN_STORAGE
#define LOWTIDE_NN_STORAGE

include "lowtide/Dialect/NN/NNBase.td"

// --- blocks ---

def NN_RegroupOp : NN_Op<"regroup", [DeclareOpInterfaceMethods<ElementInterface>]> {
  let summary = "the same elements in row-major order under another shape, where arithmetic is to see that shape";
  let description = [{
    A view, as nn.reshape is. Canonical form moves reshapes past arithmetic until they meet and vanish; it leaves this
    where it stands, so that what works on blocks of a tensor becomes one kernel with what makes the tensor.
  }];
  let family = "Movement";
  let aliasing = "View";
  let flopsPerElement = 0;
  let arguments = (ins NN_Tensor:$x);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($y)";
  let hasVerifier = 1;
}

// --- bits ---

def NN_BitCastOp : NN_Elementwise<"bit_cast", ["x"], [""], [SameOperandsAndResultShape]> {
  let summary = "the bits of a float number as an integer, or an integer's bits as a float number";
  let description = [{
    The integer has 32 or 64 bits, and the rule is of f32 or f64 by that: other numbers are rounded to it first, and a
    result of another type is rounded from it.
  }];
  let onnx = "BitCast";
  let resultPrecision = "High";
  let flopsPerElement = 0;
  let arguments = (ins NN_Tensor:$x);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($y)";
  let hasVerifier = 1;
  let body = [{ return ::lowtide::nn::emitBitCast(b, x, scalarType(getY())); }];
}

// --- 16 bits ---

def NN_HighHalfOp : NN_Elementwise<"high_half", ["x"], [""], [SameOperandsAndResultShape]> {
  let summary = "f32 rounded to the nearest bf16, ties away from zero";
  let description = [{
    The upper 16 bits of bits(x) + 0x8000. What is nearer to 2^128 than to the largest bf16 becomes infinity, as in any
    rounding; infinities stay. Of NaN the upper 16 bits, made quiet. The rule is of f32: other numbers are rounded to it
    first.
  }];
  let resultPrecision = "High";
  let flopsPerElement = 4;
  let arguments = (ins NN_FloatTensor:$x);
  let results = (outs NN_FloatTensor:$y);
  let body = [{ return ::lowtide::nn::emitHighHalf(b, x); }];
}
def NN_LowHalfOp : NN_Elementwise<"low_half", ["x"], [""], [SameOperandsAndResultShape]> {
  let summary = "what nn.high_half leaves of an f32 number: the difference of their bits, from -2^15 to 2^15 - 1";
  let description = [{
    Of NaN the lower 16 bits. Where nn.high_half is infinity and x is not, the difference is below zero.
  }];
  let resultPrecision = "High";
  let flopsPerElement = 4;
  let arguments = (ins NN_FloatTensor:$x);
  let results = (outs StaticShapeTensorOf<[I16]>:$y);
  let body = [{ return ::lowtide::nn::emitLowHalf(b, x); }];
}
def NN_JoinHalvesOp : NN_Elementwise<"join_halves", ["high", "low"], ["", ""], [SameOperandsAndResultShape]> {
  let summary = "the f32 number whose nn.high_half and nn.low_half these are, bit for bit";
  let description = [{
    The bits of `high` as the upper half of an f32 number, plus `low`. Where `high` is NaN, `low` is the lower half: every
    number and every quiet NaN comes back; a signalling NaN is quiet then.
  }];
  let resultPrecision = "High";
  let flopsPerElement = 4;
  let arguments = (ins NN_FloatTensor:$high, StaticShapeTensorOf<[I16]>:$low);
  let results = (outs NN_FloatTensor:$y);
  let body = [{ return ::lowtide::nn::emitJoinedHalves(b, high, low); }];
}

def NN_StochasticHalfOp : NN_Elementwise<"stochastic_half", ["x", "draw"], ["", ""], [SameOperandsAndResultShape]> {
  let summary = "f32 rounded to bf16 by a draw from [0, 2^16): up as often as what is cut off says";
  let description = [{
    The upper 16 bits of bits(x) + draw: the mean over all draws is x. Infinities and NaN stay what they are. The rule is
    of f32: other numbers are rounded to it first.
  }];
  let resultPrecision = "High";
  let flopsPerElement = 4;
  let arguments = (ins NN_FloatTensor:$x, StaticShapeTensorOf<[I32]>:$draw);
  let results = (outs NN_FloatTensor:$y);
  let body = [{ return ::lowtide::nn::emitStochasticHalf(b, x, draw); }];
}

// --- numbers of at most 1 as codes of 8 bits ---

def NN_CodeMap : I32EnumAttr<"CodeMap", "which numbers the codes from 0 to 255 stand for", [
    I32EnumAttrCase<"dynamic_signed", 0>, I32EnumAttrCase<"dynamic_unsigned", 1>, I32EnumAttrCase<"e4m3", 2>,
    I32EnumAttrCase<"nf4", 3>]> {
  let cppNamespace = "::lowtide::nn";
}
def NN_ToCodeOp : NN_Elementwise<"to_code", ["x"], [""], [SameOperandsAndResultShape]> {
  let summary = "the code whose number is nearest";
  let description = [{
    `dynamic_signed`, `dynamic_unsigned`: the dynamic maps of 8-bit optimizers (Dettmers et al., arXiv 2110.02861, as
    bitsandbytes and torchao have them), ascending; of two equally near the upper one; NaN: code 0. `e4m3`: the bits of
    float8_e4m3fn, ties to even, what is beyond 448 is 448, NaN is 0x7F or 0xFF. `nf4`: codes from 0 to 15 (QLoRA, arXiv
    2305.14314, appendix E), ascending; of two equally near the lower one, as bitsandbytes has it; NaN: code 0.
  }];
  let resultPrecision = "High";
  let flopsPerElement = 40;
  let arguments = (ins NN_CodeMap:$map, NN_FloatTensor:$x);
  let results = (outs StaticShapeTensorOf<[UI8]>:$y);
  let assemblyFormat = "$map $x attr-dict `:` type($x) `->` type($y)";
  let body = [{ return ::lowtide::nn::emitCode(b, getMap(), x); }];
}
def NN_FromCodeOp : NN_Elementwise<"from_code", ["code"], [""], [SameOperandsAndResultShape]> {
  let summary = "the number of a code";
  let resultPrecision = "High";
  let flopsPerElement = 2;
  let arguments = (ins NN_CodeMap:$map, StaticShapeTensorOf<[UI8]>:$code);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$map $code attr-dict `:` type($code) `->` type($y)";
  let body = [{ return ::lowtide::nn::emitCodeNumber(b, getMap(), code); }];
}

#endif

// How a step stores what stays between steps: one record per codec, with stored types, block size, exactness and both
// scalar rules.
#ifndef LOWTIDE_TRAIN_LAYOUTS
#define LOWTIDE_TRAIN_LAYOUTS

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "lowtide/Interfaces/OpInterfaces.td"
include "lowtide/Dialect/Train/TrainAttrs.td"
include "lowtide/Dialect/Train/LayoutInterface.td"

// A tensor that is stored for an f32 one, called `<tensor><suffix>` in checkpoints. `initialCode` is C++ over the f32
// tensor's first value `initial` and `nonNegative`. One element per element, or per block.
class Part<string variableName, string nameSuffix, string elementType, int elementBytes, string initialCode,
           bit perBlock = 0> {
  string variable = variableName;
  string suffix = nameSuffix;
  string element = elementType;
  int bytes = elementBytes;
  string initial = initialCode;
  bit ofBlock = perBlock;
}

// What both directions of a codec say. Codecs with blocks see tensors of [blocks, block size].
class Train_CodecOp<string mnemonic, string codec, string use, string exactness, int block, int smallest, string said,
                    list<Part> parts, string inModel> : Op<Train_Dialect, mnemonic, [Pure,
    DeclareOpInterfaceMethods<FactsInterface>, DeclareOpInterfaceMethods<DecomposableInterface>,
    DeclareOpInterfaceMethods<CodecInterface, ["getCodec"]>]> {
  let hasVerifier = 1;
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  code rule = "";
  let extraClassDefinition = [{
    const ::lowtide::OpFacts &$cppClass::getFacts() {
      static const ::lowtide::OpFacts facts{::lowtide::OpFamily::Optimizer, ::lowtide::PrecisionPolicy::High,
          ::lowtide::Aliasing::InPlace, ::lowtide::BatchRule::Unknown, 4, ""};
      return facts;
    }
    uint64_t $cppClass::getFlops() { return ::lowtide::train::countCodecFlops(getOperation()); }
    const ::lowtide::train::CodecInfo &$cppClass::getCodec() {
      using ::mlir::Builder;
      using ::mlir::Type;
      using ::lowtide::train::initialCode;
      static const ::std::vector<::lowtide::train::StoredPart> parts{}] # !interleave(!foreach(p, parts,
          "{\"" # p.suffix # "\", [](Builder &b) -> Type { return " # p.element #
          "; }, []([[maybe_unused]] double initial, [[maybe_unused]] bool nonNegative) -> double { return "
          # p.initial # "; }, " # !if(p.ofBlock, "true, ", "false, ") # p.bytes # "}"), ",\n") # [{};
      static const ::lowtide::train::CodecInfo info{"}] # codec # [{", "}] # said # [{", ::lowtide::train::CodecUse::}]
          # use # ", ::lowtide::train::Exactness::" # exactness # ", " # block # ", " # smallest # ", parts, \""
          # inModel # [{"};
      return info;
    }
    ::llvm::LogicalResult $cppClass::verify() { return ::lowtide::train::verifyCodec(getOperation(), getCodec()); }
    ::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>> $cppClass::decompose(::mlir::OpBuilder &builder) {
      using namespace ::lowtide::nn;
      [[maybe_unused]] const bool nonNegative = getNonNegative();
      [[maybe_unused]] auto elementOf = [](::mlir::Value value) { return ::mlir::getElementTypeOrSelf(value); };
  }] # rule # [{
    }
  }];
}

// `decode` assigns `x` from the parts' variables, `encode` the parts' variables from `x`: nn::Expr both. `draws`: encode
// reads `draw` too, i32 numbers from [0, 2^16) that depend on seed, stream, step and the element's number alone.
// `inModel`: the codec of the same numbers whose parts a model file can name; empty: this one.
multiclass Train_Codec<string codec, string use, string exactness, int block, int smallest, string said,
                       list<Part> parts, code decode, code encode, bit draws = 0, string inModel = ""> {
  def DecodeOp : Train_CodecOp<"decode_" # codec, codec, use, exactness, block, smallest, said, parts, inModel> {
    let summary = "the f32 tensor that is stored as " # said;
    let arguments = (ins Variadic<AnyTensor>:$stored, UnitAttr:$non_negative);
    let results = (outs AnyTensor:$x);
    let rule = !interleave(!foreach(i, !range(!size(parts)),
        "[[maybe_unused]] Expr " # parts[i].variable # "(builder, getLoc(), getStored()[" # i # "]);"), "\n")
        # "\nExpr x;\n" # decode # "\nreturn ::llvm::SmallVector<::mlir::Value>{x};";
  }
  def EncodeOp : Train_CodecOp<"encode_" # codec, codec, use, exactness, block, smallest, said, parts, inModel> {
    let summary = "an f32 tensor, to be stored as " # said;
    let arguments = !con((ins AnyTensor:$x), !if(draws, (ins AnyTensor:$seed, AnyTensor:$step, I64Attr:$stream), (ins)),
                         (ins UnitAttr:$non_negative));
    let results = (outs Variadic<AnyTensor>:$stored);
    let rule = "Expr x(builder, getLoc(), getX()), "
        # !interleave(!foreach(p, parts, p.variable), ", ") # ";\n"
        # !if(draws, "Expr draw = ::lowtide::train::drawHalves(x, x.with(getSeed()), x.with(getStep()), getStream());\n", "")
        # encode # "\nreturn ::llvm::SmallVector<::mlir::Value>{"
        # !interleave(!foreach(p, parts, p.variable), ", ") # "};";
  }
}

// --- moments ---

defm Train_BF16 : Train_Codec<"bf16", "Moments", "Rounding", 0, 0, "bf16, rounded to nearest",
    [Part<"stored", "", "b.getBF16Type()", 2, "initial">],
    [{ x = nn::cast(stored, elementOf(getX())); }], [{ stored = nn::cast(x, elementOf(getStored()[0])); }]>;

// torchao's OptimState8bit: code for code on a CPU.
defm Train_Int8 : Train_Codec<"int8", "Moments", "Lossy", 256, 4096,
    "8-bit codes of a dynamic map and an f32 scale per 256 elements",
    [Part<"codes", "", "b.getIntegerType(8, false)", 1, "initialCode(initial, nonNegative)">,
     Part<"scale", ".scale", "b.getF32Type()", 4, "std::max(initial, 1e-12)", 1>],
    [{
      const CodeMap map = nonNegative ? CodeMap::dynamic_unsigned : CodeMap::dynamic_signed;
      Expr number = fromCode(map, codes, elementOf(getX()));
      x = number * broadcast(scale, number.shape(), {0});
    }],
    [{
      const CodeMap map = nonNegative ? CodeMap::dynamic_unsigned : CodeMap::dynamic_signed;
      scale = nn::max(maximum(nn::abs(x), {1}), 1e-12);
      codes = toCode(map, x / broadcast(scale, x.shape(), {0}));
    }]>;

// torchao's OptimStateFp8: code for code on a CPU.
defm Train_FP8 : Train_Codec<"fp8", "Moments", "Lossy", 256, 4096,
    "float8_e4m3fn and an f32 scale per 256 elements",
    [Part<"codes", "", "b.getIntegerType(8, false)", 1, "initial == 0.0 ? 0.0 : 126.0">,
     Part<"scale", ".scale", "b.getF32Type()", 4, "std::max(initial, 1e-12) / 448.0", 1>],
    [{
      Expr number = fromCode(CodeMap::e4m3, codes, elementOf(getX()));
      x = number * broadcast(scale, number.shape(), {0});
    }],
    [{
      scale = nn::max(maximum(nn::abs(x), {1}), 1e-12) / 448.0;
      codes = toCode(CodeMap::e4m3, x / broadcast(scale, x.shape(), {0}));
    }]>;

// --- parameters ---

// Integer sums of bits: exact for every number. Ties away from zero: with ties to even an even half would have 65,537
// numbers, and 16 bits tell 65,536 apart.
defm Train_Split : Train_Codec<"split", "Master", "Exact", 0, 0,
    "a bf16 half, which products read, and the 16 bits that it lacks of f32",
    [Part<"high", "", "b.getBF16Type()", 2, "initial">, Part<"low", ".low_half", "b.getIntegerType(16)", 2, "0.0">],
    [{ x = joinHalves(high, low, elementOf(getX())); }],
    [{ high = highHalf(x, elementOf(getStored()[0])); low = lowHalf(x); }], 0, "whole">;

defm Train_Whole : Train_Codec<"whole", "Master", "Exact", 0, 0,
    "f32, of which products read the bf16 half that split stores",
    [Part<"stored", "", "b.getF32Type()", 4, "initial">], [{ x = stored; }], [{ stored = x; }]>;

defm Train_SR : Train_Codec<"sr", "Master", "Rounding", 0, 0, "bf16, rounded up or down by chance",
    [Part<"stored", "", "b.getBF16Type()", 2, "initial">],
    [{ x = nn::cast(stored, elementOf(getX())); }], [{ stored = stochasticHalf(x, draw, elementOf(getStored()[0])); }], 1>;

#endif

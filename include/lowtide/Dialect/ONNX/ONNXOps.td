// The `onnx` dialect: what the file said, one generic operation per node.
#ifndef LOWTIDE_DIALECT_ONNX_ONNXOPS_TD
#define LOWTIDE_DIALECT_ONNX_ONNXOPS_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def ONNX_Dialect : Dialect {
  let name = "onnx";
  let cppNamespace = "::lowtide::onnx";
  let summary = "what the file said";
  let description = [{
    A model as its `.onnx` file states it, in SSA form. The operator is data (`onnx.node "Gemm"`), so that the importer
    knows no operator: legalization into `nn` gives meaning, and names every node that it cannot.

    A model is a `func.func`. Its arguments are the graph inputs, then one argument per initializer whose data stay
    outside of the IR. Argument attributes:

    | attribute | on | meaning |
    | --- | --- | --- |
    | `onnx.input` | graph input | its name |
    | `onnx.initializer` | initializer | name of the tensor that holds the data |
    | `onnx.batch_dim` | input | the dimension that counts samples, −1: none does; absent where all inputs begin with their samples |
    | `onnx.role` | initializer | `parameter` (trained), `state` (updated by the step, not trained), `constant` |
    | `onnx.parameter` | initializer | the framework's name; several arguments may name one initializer: an exporter merged equal values |
    | `onnx.tied` | initializer | all names that the framework has for this one tensor |
    | `onnx.transposed` | initializer | the tensor holds the framework's parameter transposed by this permutation |
    | `onnx.source_shape` | initializer | shape of the framework's parameter, when it is known and differs |
    | `onnx.source_rows` | initializer | `[begin, end)` of the framework's parameter along dimension 0 that the tensor holds |
    | `onnx.use_nodes`, `onnx.use_operands` | initializer | of one that several arguments share, or that the exporter dropped: the reads that are this argument's, by each node's first named output |
    | `onnx.image_initializers` | initializer | initializers of the file that the exporter evaluated from this one and perhaps others; the model computes them now |

    Results carry `onnx.output`, their name. Functions `@export`, `@export_2`, … compute what the file holds of parameters in
    another form: result `name@image` is the initializer `name`, as @model computes it. A model that holds a whole training step has `onnx.step` (settings of its
    optimizer and schedule as text) on the function and `onnx.binding` (`kind`, `name`, `initial`, `batch_dim`) on
    arguments and results. Function attributes `onnx.opset`, `onnx.opsets`, `onnx.ir_version`,
    `onnx.producer` and `onnx.graph` tell of the file.
  }];
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
}

def ONNX_ValueType : TypeDef<ONNX_Dialect, "Value"> {
  let mnemonic = "value";
  let summary = "a value whose type the file does not state statically";
}

class ONNX_Op<string mnemonic, list<Trait> traits = []> : Op<ONNX_Dialect, mnemonic, traits>;

def ONNX_NodeOp : ONNX_Op<"node", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "one node of the graph";
  let description = [{
    `op_type` and `domain` name the operator, `version` is the version of the operator set that the file imports for that
    domain. `attrs` holds the node's attributes: integers as `i64`, floats as `f32`, strings, lists as
    `array<i64: …>`, `array<f32: …>` or lists of strings, tensors as `dense` elements. Graph-valued attributes are
    regions, `subgraphs` has their names; each region ends in `onnx.yield`. An absent optional operand is `onnx.none`;
    `outputs` has the graph-level names of the results, `""` for one that nothing may use.

    ```mlir
    %0 = onnx.node "Gemm"(%x, %w, %b) {attrs = {transB = 1 : i64}, domain = "", outputs = ["h"], version = 20 : i64}
       : (tensor<8x64xf32>, tensor<10x64xf32>, tensor<10xf32>) -> !onnx.value
    ```
  }];
  let arguments = (ins
    StrAttr:$op_type,
    StrAttr:$domain,
    I64Attr:$version,
    DictionaryAttr:$attrs,
    StrArrayAttr:$outputs,
    OptionalAttr<StrArrayAttr>:$subgraphs,
    Variadic<AnyType>:$inputs);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region VariadicRegion<SizedRegion<1>>:$bodies);
  let assemblyFormat = [{
    $op_type `(` $inputs `)` attr-dict `:` functional-type($inputs, $results) (`graphs` $bodies^)?
  }];
  let extraClassDeclaration = [{
    /// The node's attribute `name`, or null.
    ::mlir::Attribute getNodeAttr(::llvm::StringRef name) { return getAttrs().get(name); }
    /// Whether operand `index` is there: in range and not `onnx.none`.
    bool hasInput(unsigned index);
    /// The name that messages use for this node: its first named output.
    ::llvm::StringRef getNodeLabel();
  }];
  let hasVerifier = 1;
}

def ONNX_ConstantOp : ONNX_Op<"constant", [Pure, ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "a small initializer or the value of a `Constant` node";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "attr-dict $value";
  let builders = [OpBuilder<(ins "::mlir::ElementsAttr":$value), [{
    build($_builder, $_state, value.getShapedType(), value);
  }]>];
  let hasFolder = 1;
  let extraClassDeclaration = [{
    static bool isBuildableWith(::mlir::Attribute value, ::mlir::Type type);
  }];
}

def ONNX_NoneOp : ONNX_Op<"none", [Pure, ConstantLike]> {
  let summary = "an absent optional operand";
  let results = (outs NoneType:$result);
  let assemblyFormat = "attr-dict";
  let hasFolder = 1;
}

def ONNX_YieldOp : ONNX_Op<"yield", [Pure, Terminator, ParentOneOf<["NodeOp"]>]> {
  let summary = "the outputs of a subgraph";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif // LOWTIDE_DIALECT_ONNX_ONNXOPS_TD

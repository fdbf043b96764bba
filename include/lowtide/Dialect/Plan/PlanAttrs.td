// The plan dialect, its slices and its enumerations.
#ifndef LOWTIDE_PLAN_ATTRS
#define LOWTIDE_PLAN_ATTRS

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::lowtide::plan";
  let summary = "what the machine does in one step, byte by byte";
  let description = [{
    A flat imperative program over slices of arenas, one to one with `runtime/plan.proto`. Every write gives its bytes a
    new value number and every read repeats the number that it expects.

    Before `plan-place`, a slice may lie in a `plan.buffer`, which has no address yet.
  }];
  let useDefaultAttributePrinterParser = 1;
}

def Plan_SliceAttr : AttrDef<Plan_Dialect, "Slice"> {
  let mnemonic = "slice";
  let summary = "a range of an arena (or of a buffer without address) that holds one value";
  let description = [{`@arena[offset + bytes] : value`. Bytes are counted from the start of the arena or buffer.}];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$arena, "uint64_t":$offset, "uint64_t":$bytes, "uint64_t":$value);
  let hasCustomAssemblyFormat = 1;
}

def Plan_CarryAttr : AttrDef<Plan_Dialect, "Carry"> {
  let mnemonic = "carry";
  let summary = "bytes through which a round of a repeat hands a value to the next one";
  let description = [{`@arena[offset + bytes] : value -> next`: they hold `value` when a round starts, `next` when it ends.}];
  let parameters = (ins "::lowtide::plan::SliceAttr":$slice, "uint64_t":$next);
  let hasCustomAssemblyFormat = 1;
}

def Plan_FootprintAttr : AttrDef<Plan_Dialect, "Footprint"> {
  let mnemonic = "footprint";
  let summary = "what a kernel reads and writes in a launch of one extent";
  let description = [{
    `extent by grain : [operands] -> [results]`: all elements of each, at a multiple of the element's size, and no other
    byte. Tensors are flat, of rank 1. `in_place 0 on 1`: result 0 may lie where operand 1 does; others may not.
  }];
  let parameters = (ins "int64_t":$extent, "int64_t":$grain, "::mlir::ArrayAttr":$reads, "::mlir::ArrayAttr":$writes,
      OptionalArrayRefParameter<"int64_t", "a result, an operand, and so on">:$inPlace);
  let assemblyFormat = "`<` $extent `by` $grain `:` $reads `->` $writes (`in_place` custom<InPlace>($inPlace)^)? `>`";
  let builders = [AttrBuilderWithInferredContext<(ins "int64_t":$extent, "int64_t":$grain,
      "::mlir::TypeRange":$reads, "::mlir::TypeRange":$writes, "::llvm::ArrayRef<int64_t>":$inPlace,
      "::mlir::MLIRContext *":$context)>];
}

def Plan_CarryArray : TypedArrayAttrBase<Plan_CarryAttr, "carries">;
def Plan_FootprintArray : TypedArrayAttrBase<Plan_FootprintAttr, "footprints">;
def Plan_SliceArray : TypedArrayAttrBase<Plan_SliceAttr, "slices">;

class Plan_Enum<string name, string text, list<I32EnumAttrCase> cases> : I32EnumAttr<name, text, cases> {
  let cppNamespace = "::lowtide::plan";
}

// Numbers as in plan.proto.
def Plan_ArenaRole : Plan_Enum<"ArenaRole", "what an arena is for", [
  I32EnumAttrCase<"Params", 1, "params">, I32EnumAttrCase<"State", 2, "state">,
  I32EnumAttrCase<"Transient", 3, "transient">, I32EnumAttrCase<"IO", 4, "io">,
  I32EnumAttrCase<"ExchangeIn", 5, "exchange_in">, I32EnumAttrCase<"ExchangeOut", 6, "exchange_out">,
  I32EnumAttrCase<"Staging", 7, "staging">]>;

def Plan_ArenaSpace : Plan_Enum<"ArenaSpace", "the memory that an arena lies in", [
  I32EnumAttrCase<"Device", 1, "device">, I32EnumAttrCase<"HostPinned", 2, "host_pinned">,
  I32EnumAttrCase<"Host", 3, "host">, I32EnumAttrCase<"File", 4, "file">]>;

def Plan_BindingKind : Plan_Enum<"BindingKind", "what a bound tensor is", [
  I32EnumAttrCase<"Param", 1, "param">, I32EnumAttrCase<"State", 2, "state">,
  I32EnumAttrCase<"Constant", 3, "constant">, I32EnumAttrCase<"Batch", 4, "batch">,
  I32EnumAttrCase<"Scalar", 5, "scalar">, I32EnumAttrCase<"Metric", 6, "metric">,
  I32EnumAttrCase<"Output", 7, "output">, I32EnumAttrCase<"Gradient", 8, "gradient">]>;

#endif

// The plan dialect's ops: one per message of runtime/plan.proto, and `plan.buffer`.
#ifndef LOWTIDE_PLAN_OPS
#define LOWTIDE_PLAN_OPS

include "lowtide/Dialect/Plan/PlanAttrs.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;

def Plan_ModuleOp : Plan_Op<"module", [IsolatedFromAbove, SymbolTable, NoTerminator, SingleBlock]> {
  let summary = "everything that an artifact does: arenas, kernels, sources, programs";
  let arguments = (ins I64Attr:$format_version, StrAttr:$producer, StrAttr:$target, I64Attr:$threads_max,
    StrAttr:$model_digest, OptionalAttr<DictionaryAttr>:$schedule, OptionalAttr<DictionaryAttr>:$optimizer,
    OptionalAttr<DictArrayAttr>:$adapters);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block &getBlock() { return getBody().front(); }
  }];
}

def Plan_ArenaOp : Plan_Op<"arena", [HasParent<"ModuleOp">, Symbol]> {
  let summary = "one allocation of the runtime, made when an artifact is bound";
  let description = [{
    What it is for, the memory that it lies in, and its size. `device` is where kernels compute, and what a device budget
    counts; other spaces are reached by `plan.copy` alone, whose direction the spaces of its two slices say.
    `exchange_in`, `exchange_out` and `staging` are the runtime's own: batches and metrics of a GPU travel through them, and
    no slice lies there.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_ArenaRole:$role, Plan_ArenaSpace:$space, I64Attr:$bytes,
    I64Attr:$alignment, DefaultValuedAttr<I64Attr, "0">:$image_bytes);
  let assemblyFormat = [{
    $sym_name $role `in` $space `bytes` $bytes `align` $alignment (`image` $image_bytes^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_KernelOp : Plan_Op<"kernel", [HasParent<"ModuleOp">, Symbol]> {
  let summary = "a generated kernel of the artifact's code section";
  let description = [{
    `scratch_bytes` are needed per executing thread. A kernel for CUDA has `threads` per block and `shared` bytes of shared
    memory; its scratch is per launch. `footprints` are the launches that it may serve.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$reads, I64Attr:$writes,
    DefaultValuedAttr<I64Attr, "0">:$scratch_bytes, DefaultValuedAttr<StrAttr, "\"\"">:$description,
    DefaultValuedAttr<I64Attr, "0">:$threads, DefaultValuedAttr<I64Attr, "0">:$shared,
    OptionalAttr<Plan_FootprintArray>:$footprints);
  let assemblyFormat = [{
    $sym_name `reads` $reads `writes` $writes (`scratch` $scratch_bytes^)? (`threads` $threads^)? (`shared` $shared^)?
    ($description^)? (`footprints` $footprints^)? attr-dict
  }];
  let extraClassDeclaration = [{
    /// States one more launch that the kernel may serve; one that it states already is not stated again.
    void addFootprint(::lowtide::plan::FootprintAttr footprint);
  }];
  let hasVerifier = 1;
}

def Plan_SourceOp : Plan_Op<"source", [HasParent<"ModuleOp">]> {
  let summary = "where a parameter came from in the user's file";
  let description = [{
    `fields`: initializer, original_dims, permutation, tied_names, module_path, slice_axis, slice_start, slice_size,
    random_init, use_nodes, use_operands, image_initializers; codec, scales, coded_dims, coded_transposed of a frozen matrix in few bits;
    keeps_original of one in 16 bits whose f32 numbers the artifact has; absent ones are empty or zero. `saved` marks an entry of the module's state
    dictionary that is neither a parameter nor a state: a constant, or `value`, to which a counter adds
    updates_per_step for every step.
  }];
  let arguments = (ins StrAttr:$name, DictionaryAttr:$fields);
  let assemblyFormat = "$name $fields attr-dict";
  let hasVerifier = 1;
}

def Plan_ProgramOp : Plan_Op<"program", [HasParent<"ModuleOp">, Symbol, NoTerminator, SingleBlock]> {
  let summary = "a named entry: bindings, then instructions in order of execution";
  let arguments = (ins SymbolNameAttr:$sym_name, DefaultValuedAttr<I64Attr, "0">:$batch,
    DefaultValuedAttr<I64Attr, "0">:$peak_live_bytes, DefaultValuedAttr<I64Attr, "1">:$streams,
    DefaultValuedAttr<I64Attr, "0">:$events);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `batch` $batch `peak` $peak_live_bytes (`streams` $streams^)? (`events` $events^)?
    attr-dict-with-keyword $body
  }];
  let extraClassDeclaration = [{
    ::mlir::Block &getBlock() { return getBody().front(); }
  }];
}

def Plan_BufferOp : Plan_Op<"buffer", [HasParent<"ProgramOp">]> {
  let summary = "bytes of a transient arena that have no address yet; `plan-place` gives one";
  let description = [{
    Slices name the buffer where they would name an arena. `kept` buffers hold their value to the end of the program.
  }];
  let arguments = (ins StrAttr:$name, FlatSymbolRefAttr:$arena, I64Attr:$bytes, UnitAttr:$kept);
  let assemblyFormat = "$name `in` $arena `bytes` $bytes (`kept` $kept^)? attr-dict";
}

def Plan_BindingOp : Plan_Op<"binding", [HasParent<"ProgramOp">]> {
  let summary = "a named tensor that the user binds, reads or saves";
  let description = [{
    The slice carries the value number at the start of the program (0: undefined until written); `final_value` is the one
    at its end. `initial` fills a state that has no image. A `pending` state is left for an update that the next step makes.
  }];
  let arguments = (ins Plan_BindingKind:$kind, StrAttr:$name, TypeAttrOf<AnyRankedTensor>:$type, Plan_SliceAttr:$slice,
    I64Attr:$final_value, DefaultValuedAttr<F64Attr, "0.0">:$initial, UnitAttr:$from_image,
    DefaultValuedAttr<I64Attr, "-1">:$batch_dim, DefaultValuedAttr<StrAttr, "\"\"">:$group, UnitAttr:$pending);
  let assemblyFormat = [{
    $kind $name $type custom<Slice>($slice) `->` $final_value (`initial` $initial^)? (`from_image` $from_image^)?
    (`batch_dim` $batch_dim^)? (`group` $group^)? (`pending` $pending^)? attr-dict
  }];
  let hasVerifier = 1;
}

// Instructions carry their stream, the ONNX node or module path responsible for them, and their cost.
class Plan_Instruction<string mnemonic, dag extra, list<Trait> traits = []>
    : Plan_Op<mnemonic, !listconcat(traits, [ParentOneOf<["ProgramOp", "RepeatOp"]>])> {
  let arguments = !con(extra, (ins DefaultValuedAttr<I64Attr, "0">:$stream, DefaultValuedAttr<StrAttr, "\"\"">:$where,
    DefaultValuedAttr<I64Attr, "0">:$flops));
}

defvar instructionTail = " (`stream` $stream^)? (`flops` $flops^)? (`at` $where^)? attr-dict";

def Plan_LaunchOp : Plan_Instruction<"launch", (ins FlatSymbolRefAttr:$kernel, Plan_SliceArray:$reads,
    Plan_SliceArray:$writes, I64Attr:$extent, I64Attr:$grain, OptionalAttr<Plan_SliceAttr>:$scratch)> {
  let summary = "runs a generated kernel over its iteration space";
  let assemblyFormat = !strconcat("$kernel `reads` custom<Slices>($reads) `writes` custom<Slices>($writes) `extent` $extent `grain` "
    "$grain custom<Scratch>($scratch)", instructionTail);
}

def Plan_CallOp : Plan_Instruction<"call", (ins StrAttr:$callee, DictionaryAttr:$options, Plan_SliceArray:$reads,
    Plan_SliceArray:$writes, OptionalAttr<Plan_SliceAttr>:$workspace)> {
  let summary = "calls a library routine; `options` are i64, f64, string or i64-array attributes";
  let assemblyFormat = !strconcat("$callee $options `reads` custom<Slices>($reads) `writes` custom<Slices>($writes) "
    "custom<Workspace>($workspace)", instructionTail);
  let hasVerifier = 1;
}

def Plan_CopyOp : Plan_Instruction<"copy", (ins Plan_SliceAttr:$source, Plan_SliceAttr:$target,
    DefaultValuedAttr<I64Attr, "0">:$source_step, DefaultValuedAttr<I64Attr, "0">:$target_step)> {
  let summary = "copies bytes, also between the device and another memory space";
  let description = [{Directly in a repeat, a range may move on by `step` bytes from round to round, or back.}];
  let assemblyFormat = !strconcat("custom<Slice>($source) (`step` $source_step^)? `to` custom<Slice>($target) "
    "(`step` $target_step^)?", instructionTail);
}

def Plan_FillOp : Plan_Instruction<"fill", (ins Plan_SliceAttr:$target, I64Attr:$pattern, I64Attr:$pattern_bytes)> {
  let summary = "writes a pattern of 1, 2, 4 or 8 bytes over a slice";
  let assemblyFormat = !strconcat("custom<Slice>($target) `pattern` $pattern `of` $pattern_bytes", instructionTail);
}

def Plan_RecordOp : Plan_Instruction<"record", (ins I64Attr:$event)> {
  let summary = "marks a point of the stream";
  let assemblyFormat = !strconcat("$event", instructionTail);
}

def Plan_WaitOp : Plan_Instruction<"wait", (ins I64Attr:$event)> {
  let summary = "makes the stream wait for a recorded point of another";
  let assemblyFormat = !strconcat("$event", instructionTail);
}

def Plan_RepeatOp : Plan_Instruction<"repeat", (ins I64Attr:$count, OptionalAttr<Plan_CarryArray>:$carries),
    [NoTerminator, SingleBlock]> {
  let summary = "runs its body several times";
  let description = [{
    `carries` name the bytes through which a round hands a value to the next one: with the number that they hold when a
    round starts, and the number that the round leaves there.
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = !strconcat("$count custom<Carries>($carries) $body", instructionTail);
}

#endif

// The passes, in pipeline order: this file reads as the life of a training step.
//
// Each pass states its class in its summary:
//   exact        not one bit of one loss may change (order, rematerialize, place)
//   real-equal   equal in real arithmetic, checked in f64 (fold, fuse, differentiate)
//   approximate  opt-in, with a stated error model (autocast, quantize)
#ifndef LOWTIDE_PASSES
#define LOWTIDE_PASSES

include "lowtide/Support/DeclaredOptions.td"
include "mlir/Pass/PassBase.td"

// An option that a flag of the driver sets: all of it is the flag's.
class FlagOption<DeclaredOption flag>
    : Option<flag.Member, flag.Name, "std::string", "\"" # flag.Default # "\"", flag.text> {
  string kind = flag.Type.kind;
}

// A pass whose options are the flags that name it in their record, and further ones of its own.
class StepPass<string flag, string operation> : Pass<flag, operation> {
  list<DeclaredOption> flags = !filter(option, !instances<DeclaredOption>(),
                                       !not(!empty(!filter(reader, option.Passes, !eq(reader, flag)))));
  list<Option> ownOptions = [];
  let options = !listconcat(!foreach(option, flags, FlagOption<option>), ownOptions);
}

// --- the machine ---

def TrainSetTarget : StepPass<"train-set-target", "::mlir::ModuleOp"> {
  let summary = "say what a module is compiled for: the attribute train.target (changes nothing else)";
  let description = [{
    Every pass that decides something by the machine reads this attribute: which contractions a library computes, which
    kernels are formed, what they need and cost. Without it a module is for `cpu:x86-64-v3`. `target` is a row of
    lib/Interfaces/Targets.inc. Comes before any pass that reads it: what was decided for another target is not undone.
  }];
  let dependentDialects = ["::lowtide::train::TrainDialect"];
}

// --- onnx: what the file said ---

def ONNXLegalize : StepPass<"onnx-legalize", "::mlir::ModuleOp"> {
  let summary = "turn the imported @model into a forward function of nn ops (real-equal)";
  let description = [{
    One walk over the nodes: each operator's rule writes its meaning in nn ops on static shapes. What depends on nothing
    but constants is folded on the way, so that the shape arithmetic of exporters leaves nothing behind. Arguments and
    results get the bindings of a step; the loss is found or added. In `train` mode dropout and batch norm take their
    training form, and running statistics become updates of state.
    Everything that cannot be legalized is reported together; the module then carries `lowtide.failure`
    ("unsupported", "bad-input" or "usage"), from which the driver takes its exit code.
  }];
  let dependentDialects = ["::lowtide::nn::NNDialect", "::lowtide::train::TrainDialect", "::mlir::func::FuncDialect"];
  let ownOptions = [
    Option<"model", "model", "std::string", "\"model\"", "Function to legalize">,
    Option<"entry", "entry", "std::string", "\"forward\"", "Name of the function that is made">,
    Option<"requireLoss", "require-loss", "bool", "false", "Refuse a model without a loss">,
    Option<"keepModel", "keep-model", "bool", "false", "Keep the imported function">,
  ];
}

// --- nn: the forward graph ---

def VerifyLegal : StepPass<"verify-legal", "::mlir::ModuleOp"> {
  let summary = "check that only nn on static shapes is left (exact)";
  let description = [{
    Every op of every function belongs to `nn`, `train` or is a function or its return; every tensor has a static shape
    of at most 2^40 elements. Each violation is an error at the op's place in the model file.
  }];
}

def TrainAdapt : StepPass<"train-adapt", "::mlir::ModuleOp"> {
  let summary = "add low-rank pairs to products with frozen weights (real-equal as long as a pair is zero; asked for)";
  let description = [{
    Every layer that a rule names gets two parameters, A of `r` rows and B of `r` columns: wherever a product reads its
    weight, scale · B(A(dropout(input))) is added to the result. The weight itself stays a constant, so that nothing is
    kept for its gradient. Weights are found through transposes, reshapes, slices and joins; the pair's factors go the
    same way. Convolutions get a convolution of `r` filters and one of single points, tables rows of `r` numbers and a
    product. Names, shapes and first values are PEFT's (LoRA). The attribute `train.adapters` lists the pairs.

    With `dora` a layer also gets one magnitude m for each output, and a constant, the norm of what the weight has for it.
    The output is multiplied with m / ‖W + scale · B · A‖, computed where the function begins; to the backward pass the
    norm is a constant. Its square is ‖W‖² + scale · ⟨2 W Aᵀ + scale · B A Aᵀ, B⟩: no matrix of the weight's size is made.
    Where the dropout draws, products are computed of the dropped input a second time, as in PEFT. Both start as the norms.

    All functions of the module get the same pairs, @forward alone the dropout.
  }];
  let dependentDialects = ["::lowtide::nn::NNDialect", "::lowtide::train::TrainDialect"];
  let statistics = [Statistic<"numPairs", "pairs", "Layers that got a pair">];
}

def TrainEncodeFrozen : StepPass<"train-encode-frozen", "::mlir::ModuleOp"> {
  let summary = "hold frozen matrices in codes of few bits (approximate; asked for)";
  let description = [{
    A constant f32 matrix of at least 4096 numbers in whole blocks of 64, which every function that binds it only reads in
    products, directly or through movements, becomes two constants: codes, and one f32 scale for each block of the matrix
    in row-major order, as the exporting framework has it. Functions compute the numbers from them: `int8`: code ·
    scale; `nf4`: the number of a code of four bits · scale; `fp8`: the number of a float8_e4m3fn · scale. What is trained,
    tables, norms, biases, filters, and the matrix of a model's head, after which no product comes, stay as they are.
    runtime/FewBits.h has the rules of encoding.

    The argument attribute `train.coded` says what the artifact's image holds. A pair of low rank can no longer be merged
    into such a matrix: `train.adapters` names it no more.
  }];
  let dependentDialects = ["::lowtide::nn::NNDialect", "::lowtide::train::TrainDialect"];
  let statistics = [Statistic<"numCoded", "coded", "Matrices that are held in codes">];
}

def NNFusePatterns : StepPass<"nn-fuse-patterns", "::mlir::func::FuncOp"> {
  let summary = "recognise activations, normalizations, attention and losses that exporters write out (real-equal)";
  let description = [{
    Exporters break GELU, SiLU, layer norm, RMS norm, attention and cross-entropy into parts. As one op each, their
    derivative saves a few numbers for each row instead of every intermediate tensor. Rounds that compute alike on slices of
    one tensor become as many ops as one round has, or a loop where each reads the one before. Expects canonical form.
  }];
  let ownOptions = [
    Option<"activations", "activations", "bool", "true", "GELU and SiLU">,
    Option<"losses", "losses", "bool", "true", "Cross-entropy of labels that pick from a log-softmax">,
    Option<"recurrences", "recurrences", "bool", "true", "Steps that read what the step before made">,
    Option<"pieces", "pieces", "bool", "true", "Rounds of an unrolled loop whose results are put one after another">,
    Option<"normalizations", "normalizations", "bool", "true", "Layer norm and RMS norm">,
    Option<"attention", "attention", "bool", "true", "Scaled dot-product attention">,
    Option<"lossHead", "loss-head", "bool", "true", "Cross-entropy of a product with a weight, where its logits are large">,
    Option<"lossHeadAlways", "loss-head-always", "bool", "false", "The same, where its logits are small too">,
  ];
  let statistics = [Statistic<"numChanged", "changed", "Functions in which a pattern fired">];
  let dependentDialects = ["::lowtide::nn::NNDialect"];
}

def NNSplitSums : StepPass<"nn-split-sums", "::mlir::func::FuncOp"> {
  let summary = "compute stacked parts of a wide sum one after the other (real-equal)";
  let description = [{
    A stack of parameters whose entries are computed with alike, such as the experts of a mixture, and added up: what lies
    between is written once for each entry (at most 16 parts), and the parts' sums are added in order, with and without a
    budget. A plan then may hold one at a time. Only where something between has `min-bytes` and nothing else reads it.
  }];
  let dependentDialects = ["::lowtide::nn::NNDialect", "::lowtide::train::TrainDialect"];
  let ownOptions = [
    Option<"minBytes", "min-bytes", "uint64_t", "1048576", "Bytes of the widest value from which on a sum is split">,
  ];
  let statistics = [Statistic<"numSplit", "split", "Stacks of parameters that are taken apart">];
}

def NNWiden : StepPass<"nn-widen", "::mlir::ModuleOp"> {
  let summary = "compute everything in a wider float type (approximate)";
  let description = [{
    Turns every tensor of the module whose element type is one of `from` into `to`. For checks in f64, where all floats
    become f64: the result is nearer to the exact value than what was asked, and differs from it by the rounding of f32,
    or of 16 bits where the model has them. Constants keep their values, except that one number for all elements which
    stands for 1/n, as the factor of a mean, is 1/n in f64, too.
  }];
  let ownOptions = [
    ListOption<"from", "from", "std::string", "Element types to replace: f32 (the default), f16 and bf16">,
    Option<"to", "to", "std::string", "\"f64\"", "Element type to compute in: f32 or f64">,
  ];
}

// --- train: one step ---

def TrainWeighLoss : StepPass<"train-weigh-loss", "::mlir::ModuleOp"> {
  let summary = "state what the loss of an evaluation is a mean over (real-equal)";
  let description = [{
    Adds the metric `loss_weight` to a forward function whose samples do not meet, as BatchTracking shows: the sum over
    samples that its loss is divided by (labels that count, or their weights), else the number of samples. Where samples
    meet, a remark says where, and nothing is added.
  }];
  let dependentDialects = ["::lowtide::nn::NNDialect", "::lowtide::train::TrainDialect"];
  let ownOptions = [Option<"function", "function", "std::string", "\"eval\"", "The function; none of that name: nothing">];
}

def NNSegmentScans : StepPass<"nn-segment-scans", "::mlir::ModuleOp"> {
  let summary = "long loops over steps become loops over segments of steps (real-equal)";
  let description = [{
    A scan of T steps becomes a scan of segments whose round is a scan of about √T steps, where what the steps leave for
    their derivative has at least `min-bytes`. What slices are made of step by step (products with the input) is made, and
    gradients of weights are added up, segment by segment, with and without a budget: no budget changes a bit. What is
    kept between the passes is a choice (`train-recompute-scans`). Who reads the last row of a state reads the state.
  }];
  let dependentDialects = ["::lowtide::nn::NNDialect"];
  let ownOptions = [
    Option<"function", "function", "std::string", "\"forward\"", "The function whose scans are cut">,
    Option<"minBytes", "min-bytes", "uint64_t", "1048576", "Bytes of slices and states of all steps from which on">,
  ];
  let statistics = [Statistic<"numSegmented", "segmented", "Scans in segments">];
}

def TrainDifferentiate : StepPass<"train-differentiate", "::mlir::ModuleOp"> {
  let summary = "turn @forward into @gradient: loss and the gradient of every parameter (real-equal)";
  let description = [{
    Reverse-mode differentiation from the metric `loss` to every floating-point `#train.param` argument, by asking each
    op on the way for its derivative. Contributions to a value are added in reverse program order; an operand whose
    derivative the op leaves unset gets none. Each gradient becomes a result `#train.gradient<"NAME">`, in the order of
    the parameters. A parameter that the loss does not depend on gets a zero gradient, the mark `train.unreached` and a
    warning. Where a library of the target computes an attention in `precision`, its derivative is one op, too
    (`nn.attention_grad`). docs/rationale/differentiation.md has the rules and the reasons.
  }];
  let dependentDialects = ["::lowtide::nn::NNDialect", "::lowtide::train::TrainDialect"];
  let ownOptions = [
    Option<"function", "function", "std::string", "\"forward\"", "Function to differentiate">,
  ];
  let statistics = [
    Statistic<"numGradients", "gradients", "Parameters with a gradient">,
    Statistic<"numUnreached", "unreached", "Parameters that the loss does not depend on">,
    Statistic<"numForwardOps", "forward-ops", "Ops before differentiation">,
    Statistic<"numBackwardOps", "backward-ops", "Ops added by differentiation">,
    Statistic<"numWhole", "whole", "Derivatives that are one op, for a library">,
  ];
}

def TrainAutocast : StepPass<"train-autocast", "::mlir::ModuleOp"> {
  let summary = "keep values in 16 bits where their ops' records allow it (approximate)";
  let description = [{
    Contractions take 16-bit operands and add up in f32; every other op computes in f32; what is stored between kernels
    and until the backward pass is rounded once, to nearest even. Parameters, gradients and state stay f32 (`mixed-…`), or
    parameters are 16-bit too, gradients and optimizer state f32 (`bf16`, `f16`). Frozen weights that every step only reads
    rounded are bound in 16 bits, unless `frozen-weights` says f32; where parameters stay f32, the artifact keeps their f32
    numbers for checkpoints (`train.coded = {keeps_original}`). Works on any function: forward, with its
    backward pass, or an imported training step. docs/numerics.md has the error model, docs/rationale/precision.md the
    reasons.
  }];
  let dependentDialects = ["::lowtide::nn::NNDialect"];
  let statistics = [
    Statistic<"numNarrowed", "narrowed", "Values rounded to 16 bits">,
    Statistic<"numWidened", "widened", "16-bit values widened">,
    Statistic<"numRemade", "remade", "Values that the backward pass recomputes from 16-bit ones">,
  ];
}

def TrainScaleLoss : StepPass<"train-scale-loss", "::mlir::ModuleOp"> {
  let summary = "unscale, check and clip the gradients of @gradient (real-equal; clipping is asked for)";
  let description = [{
    After the backward pass, whose seed is the loss scale (train-differentiate): all gradients are divided by the scale
    and checked for infinities and NaN, limited by value, then by global norm; scale, growth tracker and the count of
    skipped steps become state. The output `finite` tells train-optimize to commit updates only when it is true. All of it
    is inside the step.

    A step that came with its updates (@train alone) says by its bound gradients what its updates read: with a loss
    scale the gradients are derived anew from the loss, and the updates are written again for what is made of them.
  }];
  let dependentDialects = ["::lowtide::nn::NNDialect", "::lowtide::train::TrainDialect"];
}

def TrainOptimize : StepPass<"train-optimize", "::mlir::ModuleOp"> {
  let summary = "build @train from @gradient: every parameter's update, as soon as it may be (real-equal)";
  let description = [{
    Adds one optimizer op per parameter that has a gradient, after its gradient and the last use of the parameter, so
    that the update may be in place and the gradient's bytes are free early. Optimizer state becomes arguments and
    results `#train.state<"NAME.slot">`; the learning rate (`lr`, f32, or f64 in an f64 graph) and the step (`step`, i64,
    from 0) are `#train.scalar` arguments. The module gets `train.optimizer` and `train.schedule`.
    @gradient stays as an entry point that changes no state, unless `keep-gradient=false`.
  }];
  let dependentDialects = ["::lowtide::nn::NNDialect", "::lowtide::train::TrainDialect"];
  let ownOptions = [
    Option<"scheduleSettings", "schedule-options", "std::string", "\"\"",
           "What else the schedule has, separated by ';': step_size=30;gamma=0.1">,
    Option<"settings", "options", "std::string", "\"\"",
           "Options of the optimizer, separated by ';': weight_decay=0.1;betas=0.9,0.95;nesterov">,
    Option<"keepGradient", "keep-gradient", "bool", "true", "Keep @gradient as an entry point">,
  ];
  let statistics = [Statistic<"numUpdates", "updates", "Parameters that are updated">];
}

def TrainAccumulate : StepPass<"train-accumulate", "::mlir::ModuleOp"> {
  let summary = "compute every step in micro-batches, adding up their gradients (real-equal)";
  let description = [{
    Follows the samples of the batch through every function, op by op (BatchInterface), and puts all that has one row for
    each sample into `train.accumulate`: the loop sees a part of the batch per round, and adds up what is a sum over the
    samples: losses, gradients, counts. A sum that the rows need before they can be computed, such as the number of labels
    that are not ignored, is made by a loop before: a mean is over what counts in the whole batch, whatever the parts hold.
    Updates, clipping and unscaling come after the loop; random numbers are those of the whole batch.
    Batch norm takes its statistics over each part, with a warning. An op that combines samples is an error at its place
    in the model.
  }];
  let dependentDialects = ["::lowtide::nn::NNDialect", "::lowtide::train::TrainDialect"];
  let statistics = [
    Statistic<"numLoops", "loops", "Loops made">,
    Statistic<"numSums", "sums", "Values that loops add up">,
  ];
}

def TrainStateLayouts : StepPass<"train-state-layouts", "::mlir::ModuleOp"> {
  let summary = "store optimizer state in fewer bits (approximate; codecs say how far)";
  let description = [{
    The state of each parameter's updates is stored by the codec that its group, or `moments`, asks for: updates read what
    `train.decode_<codec>` makes of the arguments, and `train.encode_<codec>` makes what they return. The arithmetic of an
    update stays that of f32: the new parameter comes of the state as it was before it was encoded. Codecs with blocks
    take tensors that are large enough and made of whole blocks; the rest stays f32, which a remark counts. Parameters are
    stored by the codec that their group, or `master`, asks for: `split` keeps an f32 master as a bf16 half, which
    whatever had read the parameter rounded to bf16 reads now, and an i16 state `<parameter>.low_half`; `whole` keeps it in
    f32 and rounds it as `split` does. Comes after
    `train-optimize` and before anything takes parameters to pieces: blocks are those of the whole tensor.
  }];
  let dependentDialects = ["::lowtide::nn::NNDialect", "::lowtide::train::TrainDialect"];
}

def TrainAverageWeights : StepPass<"train-average-weights", "::mlir::ModuleOp"> {
  let summary = "keep an exponential moving average of the trained weights (real-equal)";
  let description = [{
    Every parameter that a step writes gets a state `<parameter>.ema` of f32 (of f64 where it is wider): after the update
    it moves to `decay` · average + (1 - decay) · new value, as `torch.lerp` computes that. The first update copies, which
    the state `ema_updates` counts. A step that is not committed leaves both. Nothing else changes. Comes after
    `train-state-layouts`: of a split master the average is that of the f32 number.
  }];
  let dependentDialects = ["::lowtide::nn::NNDialect", "::lowtide::train::TrainDialect"];
}

def TrainDeferUpdates : StepPass<"train-defer-updates", "::mlir::ModuleOp"> {
  let summary = "make the updates of a step in the next one, before its parameters are read (real-equal)";
  let description = [{
    With `updates=deferred` @train begins with the updates of the step before it, each before the first op that reads its
    parameter, and leaves what its own need: gradients as they are before unscaling and clipping, and the numbers that go
    with them (learning rate, step, norm, whether all is finite), as state `pending`. The flag `pending` says that there is
    something to do: it is false before the first step, and updates are committed only if it is true. @flush makes the
    updates alone and clears it; the runtime runs it before anything but @train reads parameters or state. Not a bit of a
    loss or of a checkpoint changes. What value graphs prove of one step they cannot say of two, so that the pass is not
    among those that are looked at in every compile.
  }];
  let dependentDialects = ["::lowtide::nn::NNDialect", "::lowtide::train::TrainDialect"];
  let statistics = [Statistic<"numDeferred", "deferred", "Updates that wait for the next step">];
}

def TrainSparseUpdates : StepPass<"train-sparse-updates", "::mlir::ModuleOp"> {
  let summary = "update tables in the rows that a batch names (exact; lazy rules are asked for)";
  let description = [{
    The gradient of a large table that rows are looked up in is made, and used, as one row for each place of the batch:
    duplicates are added up first, in the order in which the whole gradient would add them. Where an optimizer leaves rows
    without a gradient as they are (SGD and Adagrad, without weight decay), not a bit changes. `lazy` does the same to the
    others, which is another algorithm: momentum and the moments of Adam decay in the steps that name their row
    (PyTorch's SparseAdam). Where the gradient stays whole, a remark says why.
  }];
  let dependentDialects = ["::lowtide::nn::NNDialect", "::lowtide::train::TrainDialect"];
  let statistics = [Statistic<"numTables", "tables", "Tables that are updated in rows">];
}

def VerifyStep : StepPass<"verify-step", "::mlir::ModuleOp"> {
  let summary = "check the bindings of every entry point (exact)";
  let description = [{
    Every argument and result has a binding; names are unique; a result bound to a parameter or state has its argument, of
    equal type; there is exactly one loss, a float scalar (@flush has none); a tensor that two entry points share has one type.
  }];
}

def TrainTileCoded : StepPass<"train-tile-coded", "::mlir::func::FuncOp"> {
  let summary = "compute matrices of few bits tile by tile, in front of the products that read them (real-equal)";
  let description = [{
    A product whose operand is a matrix that elementwise ops and movements make of constants in fewer bytes, codes among
    them, is cut along the outputs of that operand, in four tiles or as many as make tiles of 8 MiB at most: each tile is
    computed of its part of the codes, and its product is a part of the result. So the forward pass never holds more than
    tiles, and neither does the derivative with respect to the input, which is cut along its own outputs. Each number is
    the sum of the same terms; a library may add them up in another order where it multiplies fewer columns. Matrices of
    fewer than 4096 numbers, batched products, and what cannot be cut there without cutting a block, stay whole.
  }];
  let dependentDialects = ["::lowtide::nn::NNDialect", "::lowtide::train::TrainDialect"];
  let statistics = [Statistic<"numTiled", "tiled", "Products that read a matrix tile by tile">];
}

def TrainChunkLossHead : StepPass<"train-chunk-loss-head", "::mlir::func::FuncOp"> {
  let summary = "compute loss and gradients of many classes without holding their logits (real-equal)";
  let description = [{
    A loss of a linear layer and its gradients become one op, then a loop over chunks of rows: a chunk's logits are made,
    its loss and gradients taken, and the logits are gone. Gradients of weight and bias are added up tile after tile, of
    32 to 256 rows: as many as have logits of a quarter of the weight's bytes, or of 1 MiB. Chunks are whole tiles, so that
    bits do not depend on their number. Where cotangents are made of losses or log-sum-exps of the same rows, loss and gradients stay two ops of one
    loop; where they depend on all losses, logits are computed twice. Without `chunks`, a chunk's logits are at most as
    large as the weight, or 1 MiB.

    The same is done where more lies between a product and its loss. The rows of a product that is at least 1 MiB and four
    times as large as its matrix are followed op by op (BatchInterface, Analysis/RowRegion). Where all that reads something
    as large treats rows one by one until it is small again (soft caps, temperatures, masks, scales, any loss, and their
    gradients), it becomes such a loop, forward and backward pass together; with a number of `chunks`, small products too.
    Logits that stay whole are reported with their reason: more than 64 MiB as a warning.
  }];
  let dependentDialects = ["::lowtide::nn::NNDialect", "::lowtide::train::TrainDialect"];
  let ownOptions = [Option<"chunks", "chunks", "int64_t", "0", "Chunks of rows; 0 chooses, -1: one for each tile">];
  let statistics = [
    Statistic<"numMerged", "merged", "Losses that are computed with their gradients">,
    Statistic<"numChunked", "chunked", "Loops made">,
  ];
}

def TrainRecomputeScans : StepPass<"train-recompute-scans", "::mlir::func::FuncOp"> {
  let summary = "rounds of a derivative compute what the forward pass would keep (exact, round by round)";
  let description = [{
    What a loop over segments of steps lays down as rows, and only loops of as many rounds read part by part, is computed
    by them instead. `products`: what is made of a segment's input alone, such as its products with the weights. `all`:
    the segment's steps run once more, from the state that they started with, and only those states are kept.
  }];
  let dependentDialects = ["::lowtide::nn::NNDialect"];
  let ownOptions = [Option<"recompute", "recompute", "std::string", "\"all\"", "none, products or all">];
  let statistics = [Statistic<"numRecomputed", "recomputed", "Rows that are no longer kept">];
}

def TrainDistributeLoops : StepPass<"train-distribute-loops", "::mlir::func::FuncOp"> {
  let summary = "all parts of a batch pass a block of the model before the next (exact, part by part)";
  let description = [{
    A loop over the parts of a batch becomes one for each block of the model, forward and backward; the last block's is
    both. A block reads at most one of `blocks` shares of the parameters, and ends where the fewest bytes cross. Its
    derivative computes its forward part once more, from what entered it; that, and cotangents between blocks, are rows of
    all parts. What is cheap and made of the batch, counters or small tensors runs wherever it is read. A loop with a
    state that several blocks read stays whole, with a remark.
  }];
  let dependentDialects = ["::lowtide::nn::NNDialect", "::lowtide::train::TrainDialect"];
  let ownOptions = [Option<"blocks", "blocks", "unsigned", "8", "Shares of the parameters">];
  let statistics = [Statistic<"numBlocks", "blocks", "Blocks of loops that were cut">];
}

// --- code generation ---

def NNDecompose : StepPass<"nn-decompose", "::mlir::func::FuncOp"> {
  let summary = "real-equal: replace compound ops by the primitives that emitters read";
  let description = [{
    Asks DecomposableInterface until nothing decomposes. Ops that a library of the target computes as they are stay
    (`lowtide-bench --libraries`); a remark says why others do not. Scans become loops, `train.accumulate`, likewise.
  }];
  let ownOptions = [
    Option<"library", "library", "bool", "true", "leave ops that a library computes as they are">,
    Option<"mergeReductions", "merge-reductions", "bool", "true", "a reduction of a reduction to one number is one; GPU">,
    Option<"chainScatters", "chain-scatters", "bool", "true", "each scatter of a sum adds to the term before it; CPU">,
    Option<"pickLabels", "pick-labels", "bool", "true", "rows that compare columns with a label pick its element; GPU">,
  ];
  let statistics = [Statistic<"numDecomposed", "num-decomposed", "ops replaced by their decomposition">];
}

def NNConvLayout : StepPass<"nn-conv-layout", "::mlir::func::FuncOp"> {
  let summary = "real-equal: store images and filters channels last where a GPU's library wants them so";
  let description = [{
    A library that computes channels last transposes what it is given otherwise, through its workspace. Which values are
    stored channels last is a minimum cut: on one side those transposes, on the other the ones at borders, both priced by
    the target's bytes per second. What lies between follows by OrderInterface: elementwise ops, reductions, broadcasts,
    pooling, slices, concatenations and views; their transposes vanish. Values at borders are transposed once.
  }];
  let statistics = [
    Statistic<"numCalls", "calls", "calls that have their channels last">,
    Statistic<"numFollowing", "following", "other ops on tensors stored so">,
    Statistic<"numTransposes", "transposes", "transposes at borders">,
  ];
  let dependentDialects = ["::lowtide::nn::NNDialect"];
}

def NNLibraryForms : StepPass<"nn-library-forms", "::mlir::func::FuncOp"> {
  let summary = "real-equal: contractions as the libraries of a GPU take them, declined ones to generated kernels";
  let description = [{
    Asks the written table of libraries (`lowtide-bench --libraries`) about every contraction. What is declined is left to
    a generated kernel, with a remark. Products take a bias, another sum, ReLU, GELU or its derivative along as their
    epilogue; 16-bit products then round once where they rounded twice. Needed for CUDA targets alone.
  }];
  let ownOptions = [Option<"epilogues", "epilogues", "bool", "true", "form epilogues">];
  let statistics = [
    Statistic<"numEpilogues", "epilogues", "products with an epilogue">,
    Statistic<"numNarrowed", "narrowed", "calls whose f32 result became a cast of a 16-bit one">,
    Statistic<"numDeclined", "declined", "calls left to generated kernels">,
  ];
  let dependentDialects = ["::lowtide::nn::NNDialect"];
}

def NNCluster : StepPass<"nn-cluster", "::mlir::func::FuncOp"> {
  let summary = "exact: group ops into kernels";
  let description = [{
    Every op that generated code computes ends up in an nn.kernel. Constants and cheap movements are cloned into their
    readers; views and library calls stay outside. What only the backward pass reads is computed there, unless less is
    kept until then when the forward pass computes it.
  }];
  let ownOptions = [
    Option<"library", "library", "bool", "true", "leave ops that a library computes to the library">,
    Option<"without", "without", "std::string", "\"\"",
           "steps that are left out, with commas: prepare-sums, clone-cheap-producers, recompute-after-loss, "
           "join-scatters, join-sole-readers, join-earliest-readers, join-sibling-reductions">,
  ];
  let statistics = [Statistic<"numKernels", "num-kernels", "kernels formed">];
  let dependentDialects = ["::lowtide::nn::NNDialect"];
}

def TrainInlineSaved : StepPass<"train-inline-saved", "::mlir::func::FuncOp"> {
  let summary = "exact: kernels compute cheap saved values themselves, where that costs no byte read";
  let description = [{
    Where a kernel reads a tensor that elementwise ops make of values that are kept until then in any case, the ops go
    into the kernel, and the tensor is not kept from its earlier readers on: of normalized value, activation's input and
    activation's output, only two are saved. Values that are smaller than the tensor are kept in its place: 16-bit scores
    instead of those scaled and masked in f32. What is read no longer is not written either, and what its kernel writes for
    others may be kept in its place: a residual stream and its mean instead of the normalized value. Comes after
    nn-cluster; reads no more bytes and so costs no time.
  }];
  let ownOptions = [Option<"minGap", "min-gap", "unsigned", "4", "instructions by which a value must live shorter">];
  let statistics = [
    Statistic<"numValues", "values", "values kept no longer than their early readers need">,
    Statistic<"numReaders", "readers", "kernels that compute such a value">,
  ];
}

// --- the budget: order and recomputation change no bit ---

def TrainOrder : StepPass<"train-order", "::mlir::ModuleOp"> {
  let summary = "choose the order in which a step needs the fewest bytes (exact)";
  let description = [{
    Several orders of the same instructions, judged by the exact count of bytes alive; the one with the lowest peak
    stays. Weights are updated as soon as their gradient is final and nothing reads the old ones. Nothing is recomputed.
  }];
  let statistics = [Statistic<"numReordered", "reordered", "Steps that got another order">];
  let dependentDialects = ["::lowtide::nn::NNDialect", "::lowtide::train::TrainDialect"];
}

def TrainRematerialize : StepPass<"train-rematerialize", "::mlir::ModuleOp"> {
  let summary = "make every step fit a budget: recompute what does not fit (exact)";
  let description = [{
    The budget is everything that the runtime allocates for a step: parameters, state, batch and the transient arena.
    Values that do not fit are recomputed where they are needed, as late as possible, with whatever they need
    themselves; the schedule with the least estimated time is taken. What runs again reads through `train.remat`, which
    ties it to the cotangent that wakes it. A budget that cannot be met is an error that says what forces it.

    With a budget for another memory, values may wait there as well: `train.move` stores them when they are made and
    brings them back before they are read. Both are weighed against each other by the time that the lanes of computation
    and of copies take together.
  }];
  let statistics = [
    Statistic<"numRecomputed", "recomputed", "Instructions that run again">,
    Statistic<"numLoaded", "loaded", "Values that come back from another memory">,
  ];
  let dependentDialects = ["::lowtide::nn::NNDialect", "::lowtide::train::TrainDialect"];
}

def ProfileMemory : StepPass<"profile-memory", "::mlir::ModuleOp"> {
  let summary = "say what is alive at the peak of every step, and of which layer (changes nothing)";
}

def VerifyEquivalence : StepPass<"verify-equivalence", "::mlir::ModuleOp"> {
  let summary = "two functions compute the same values, graph for graph (changes nothing)";
  let description = [{
    The proof that exact passes rest on: results of equal binding have equal value graphs. Kernels are transparent, order does
    not matter, recomputation does not matter; anything else does. With `rounds`, nor does it which loops over steps, in
    loops or not, lay down the same rows: they are numbered round by round. So are, with `parts`, loops over the parts of a
    batch.
  }];
  let ownOptions = [
    Option<"rounds", "rounds", "bool", "false", "number the rounds of loops over steps one by one">,
    Option<"parts", "parts", "bool", "false", "number the rounds of loops over parts of a batch one by one">,
    Option<"before", "before", "std::string", "\"before\"", "first function">,
    Option<"after", "after", "std::string", "\"after\"", "second function">,
  ];
}

// --- launches of a GPU ---

def NNBatchLaunches : StepPass<"nn-batch-launches", "::mlir::ModuleOp"> {
  let summary = "many small kernels in one launch (exact)";
  let description = [{
    Kernels of one form, such as the updates of many parameters, become one kernel of the emitter `batch`, where they may
    wait for one another: nothing needs their results meanwhile, and the step takes no more bytes (where no budget is
    given, a thousandth more). Before that, sums over columns move into kernels that read or write the same values row by
    row. A GPU's fitted step goes through it before it becomes a plan; a CPU has no launches to save.
  }];
  let ownOptions = [Option<"cross", "cross", "bool", "true", "move sums over columns into kernels of rows">];
  let statistics = [
    Statistic<"numBatches", "batches", "launches of several kernels">,
    Statistic<"numKernels", "kernels", "kernels in them">,
  ];
  let dependentDialects = ["::lowtide::nn::NNDialect", "::lowtide::train::TrainDialect"];
}

// --- plan ---

def PlanLower : StepPass<"plan-lower", "::mlir::ModuleOp"> {
  let summary = "steps on tensors become programs on bytes (exact)";
  let description = [{
    Input: functions @train, @eval, @gradient (any of them) of `nn.kernel` ops, library calls and views, with bindings on
    arguments and results; textual order is execution order. Output: one `plan.module` with a program per function.
    Parameters, state and input/output have addresses; transient values are buffers, which `plan-place` places. Next to it
    a module `@kernels` holds the kernels' functions, from which their machine code is made.
  }];
}

def PlanPlace : StepPass<"plan-place", "::mlir::ModuleOp"> {
  let summary = "every buffer gets an address (exact)";
  let ownOptions = [Option<"effort", "effort", "uint64_t", "100000000", "work of the search, in looked-at neighbours">];
  let statistics = [Statistic<"numBuffers", "buffers", "buffers placed">];
}

def PlanAssignStreams : StepPass<"plan-assign-streams", "::mlir::ModuleOp"> {
  let summary = "copies between memories run next to computation, in the order that events keep (exact)";
  let description = [{
    Stream 0 computes; copies from the device have a stream, copies to it another. `plan.record` and `plan.wait` let each
    instruction come after those of other streams that wrote what it reads, or touched what it overwrites, wherever no earlier
    wait says so already. A program without copies between memories stays as it is, and so does the inside of a repeat.
  }];
  let statistics = [Statistic<"numEvents", "events", "events recorded">];
}

def VerifyBudget : StepPass<"verify-budget", "::mlir::ModuleOp"> {
  let summary = "check that the arenas together stay within the budget (changes nothing)";
  let description = [{
    The budget is the attribute `train.device_budget` that train-rematerialize left on the module; without it everything
    passes.
  }];
}

def VerifyPlan : StepPass<"verify-plan", "::mlir::ModuleOp"> {
  let summary = "prove the plan: bounds, alignment, value numbers, order (changes nothing)";
  let description = [{
    Runs the verifier that the runtime runs at every load, and compares the declared peak with the one that it counts.
  }];
}

#endif

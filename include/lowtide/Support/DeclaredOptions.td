// Options: name, type, default, help, check and readers of each, once.
//
// lowtide-tblgen makes of a record the member of OptionValues that holds its value, its row in the table of options (flag,
// key of the configuration file, schema, reference) and what hands the value to the passes that it names, which have an
// option of the same name (passes/Passes.td). Records stand in the order of the help.
#ifndef LOWTIDE_SUPPORT_DECLAREDOPTIONS
#define LOWTIDE_SUPPORT_DECLAREDOPTIONS

include "llvm/TableGen/SearchableTable.td"

// What a value is. In passes all are texts: pipelines print numbers with every digit, and what is none is refused in the
// words of the flag, not in those of whoever reads a pipeline.
class OptionType<string word, string type> {
  // For whoever makes up options (tools/devkit/mutants.py).
  string kind = word;
  // Of the member; empty: it has none of its own.
  string cppType = type;
  // A list whose texts are taken apart at commas; other lists are taken apart by whoever reads them.
  bit isSplit = false;
}
def Text : OptionType<"text", "std::string">;
def Number : OptionType<"number", "double">;
// Kept as it is written.
def NumberText : OptionType<"number", "std::string">;
def Whole : OptionType<"whole", "int64_t">;
def Switch : OptionType<"switch", "bool">;
// May repeat; passes get them with ; between.
def Rules : OptionType<"text", "std::vector<std::string>">;
def List : OptionType<"text", "std::vector<std::string>"> {
  let isSplit = true;
}
// One of many that share a member, under its name.
def Value : OptionType<"text", "">;

// "conv-layout" → "convLayout".
class CamelCase<string name> {
  string value = !foldl(!substr(name, 0, 1), !range(1, !size(name)), text, i,
                        text # !cond(!eq(!substr(name, i, 1), "-") : "",
                                     !eq(!substr("-" # name, i, 1), "-") : !toupper(!substr(name, i, 1)),
                                     true : !substr(name, i, 1)));
}

// `check` is a function of passes/DeclaredChecks.cpp. `readBy<PARSER>` checks nothing before: PARSER, which the driver
// and the pass call, says more than one line, or asks the model.
class DeclaredOption<string optionName, OptionType optionType, string initial, string help, code check = "unchecked"> {
  string Name = optionName;
  OptionType Type = optionType;
  string Default = initial;
  string text = help;
  // Texts hold quotes.
  code Help = "R\"help(" # help # ")help\"";
  code Check = check;
  // In the help and in the configuration file.
  string Group;
  // The last stage that it shapes; empty: none, or all.
  string Stage = "";
  // What it decides, of a model whose file may decide that already: None, Forward, Update, Rate.
  string Role = "None";
  // Of OptionValues; empty: `setOption` knows what becomes of it.
  string Member = CamelCase<optionName>.value;
  // The passes that read it.
  list<string> Passes = [];
  // It takes no value, and has this one where it is given.
  string SwitchValue = "";
  // A value is optional, and this one where there is none.
  string ImplicitValue = "";
}

// What optimizers and schedules take; their records have names and defaults of their own, and train-optimize checks them.
class OptimizerValue<string optionName, string help> : DeclaredOption<optionName, Value, "", help> {
  let Stage = "train";
  let Role = "Update";
  let Member = "optimizerOptions";
}
class OptimizerSwitch<string optionName, string help> : OptimizerValue<optionName, help> {
  let SwitchValue = "1";
}
class ScheduleValue<string optionName, string help> : DeclaredOption<optionName, Value, "", help> {
  let Stage = "train";
  let Role = "Rate";
  let Member = "scheduleOptions";
}

// --- the model ---

let Group = "model" in {
def DimOption : DeclaredOption<"dim", Rules, "",
  "Binds symbolic dimensions: NAME=VALUE[,NAME=VALUE]; a name as the exporter writes it (2*h) binds its symbol"> {
  let Stage = "onnx";
  let Member = "dims";
}
def ShapeOption : DeclaredOption<"shape", Rules, "", "Shapes of inputs: INPUT=8x64[,INPUT=scalar]"> {
  let Stage = "onnx";
  let Member = "shapes";
}
def BatchOption : DeclaredOption<"batch", Whole, "",
  "Samples per step: binds the symbol in dimension 0 of every input; where no input begins with one, the only one",
  "positive"> {
  let Stage = "onnx";
}
def LastBatchOption : DeclaredOption<"last-batch", Value, "",
  "Further entries for a batch of so many samples: what no whole batch holds", "positive"> {
  let Member = "";
  let Stage = "train";
}
def ModeOption : DeclaredOption<"mode", Text, "train",
  "train: batch norm and dropout in training form; eval: as they evaluate; as-is: as the file says",
  "words<trainingModes>"> {
  let Stage = "nn";
  let Role = "Forward";
  let Passes = ["onnx-legalize"];
}
def DropoutOption : DeclaredOption<"dropout", Number, "-1", "Overrides every dropout rate; -1: none", "rate"> {
  let Stage = "nn";
  let Role = "Forward";
  let Passes = ["onnx-legalize", "train-adapt"];
}
def FreezeNormOption : DeclaredOption<"freeze-norm", Rules, "",
  "Batch norms that keep their running statistics, as module.eval() has it: names and globs of layers, with "
  "commas. Their scale and bias are trained unless --frozen names them"> {
  let Stage = "nn";
  let Role = "Forward";
  let Member = "freezeNorms";
}
def LossOption : DeclaredOption<"loss", Text, "",
  "Adds a loss: \"cross_entropy(LOGITS, LABELS, label_smoothing=0.1) + 0.3*mse(OUTPUT, TARGET)\", or names an "
  "output that is one. Kinds and options are PyTorch's: cross_entropy (weight, ignore_index, reduction, "
  "label_smoothing); nll of PROBABILITIES and nll_loss of LOG_PROBABILITIES (weight, ignore_index, reduction); "
  "mse, l1 (weight, reduction); smooth_l1 (beta, reduction); huber (delta, weight, reduction); bce of "
  "PROBABILITIES (weight, reduction); bce_with_logits (weight, pos_weight, reduction); kl_div of LOG_PROBABILITIES "
  "(log_target, reduction). A weight is a number, a list [0.5, 1] or an array. Names with spaces, commas or "
  "brackets are put into quotes", "readBy<parseLoss>"> {
  let Stage = "nn";
  let Role = "Forward";
  let Passes = ["onnx-legalize"];
}
def OutputsOption : DeclaredOption<"outputs", List, "",
  "Outputs of the file that train and gradient compute too, by name, or all; eval has them unless none. Without it "
  "a training step computes its loss and no other output"> {
  let Stage = "nn";
}
def SetOption : DeclaredOption<"set", Rules, "",
  "Makes inputs constants: INPUT=VALUE[,INPUT=VALUE], a number, true or false"> {
  let Stage = "onnx";
}
}

// --- its parameters ---

let Group = "parameters" in {
def ParamsOption : DeclaredOption<"params", Value, "",
  "Trains only these: names and globs, with commas. --frozen and --params are applied in their order, and the last "
  "one that matches counts; +GLOB trains it besides what the file says"> {
  let Member = "";
  let Stage = "onnx";
  let Role = "Forward";
}
def FrozenOption : DeclaredOption<"frozen", Value, "", "Keeps these as they are: names and globs, with commas"> {
  let Member = "";
  let Stage = "onnx";
  let Role = "Forward";
}
def LoraOption : DeclaredOption<"lora", Rules, "",
  "Trains low-rank pairs instead of weights: LAYER[,LAYER]:r=16[,alpha=32][,dropout=0.05][,rslora][,dora], names "
  "and globs of layers; several rules with ; or by repeating, the first that matches counts. Everything else is "
  "frozen but what --params names. Without alpha it is r, a scale of 1", "adapters"> {
  let Stage = "nn";
  let Role = "Forward";
  let Passes = ["train-adapt"];
}
def RenameOption : DeclaredOption<"rename", Rules, "", "Parameter names: NAME_IN_FILE=NAME"> {
  let Stage = "onnx";
}
}

// --- updates ---

let Group = "optimizer" in {
def OptimizerOption : DeclaredOption<"optimizer", Text, "adamw", "Update rule", "optimizers"> {
  let Stage = "train";
  let Role = "Update";
  let Passes = ["train-optimize"];
}
def FallbackOption : DeclaredOption<"fallback", Text, "",
  "muon: optimizer of all but hidden matrices, with its options (adamw): adamw:lr=3e-4,weight_decay=0.01", "fallbacks"> {
  let Stage = "train";
  let Role = "Update";
  let Passes = ["train-optimize"];
}
def ConventionOption : DeclaredOption<"convention", Text, "torch",
  "Whose formula: PyTorch's, or ONNX's ai.onnx.preview.training", "words<conventions>"> {
  let Stage = "train";
  let Role = "Update";
  let Passes = ["train-optimize"];
}
def LrOption : DeclaredOption<"lr", NumberText, "0.001", "Learning rate", "nonNegative"> {
  let Stage = "train";
  let Role = "Rate";
  let Passes = ["train-optimize"];
}
def BetasOption : OptimizerValue<"betas",
  "Two decay rates: adam, adamw, nadam, radam, adamax, lamb (0.9,0.999), lion (0.9,0.99)">;
def EpsOption : OptimizerValue<"eps",
  "Added to the denominator (1e-8; adagrad: 1e-10, adadelta and lamb: 1e-6, muon: 1e-7)">;
def WeightDecayOption : OptimizerValue<"weight-decay",
  "adamw (0.01), muon (0.1), lion, lamb, adafactor (0): decoupled; others: L2 in the gradient (0)">;
def MomentumOption : OptimizerValue<"momentum", "sgd, rmsprop: momentum factor (0); muon: decay of the buffer (0.95)">;
def DampeningOption : OptimizerValue<"dampening", "sgd: part of the gradient kept out of the momentum buffer (0)">;
def LrDecayOption : OptimizerValue<"lr-decay", "adagrad: learning rate / (1 + step * lr_decay) (0)">;
def InitialAccumulatorValueOption : OptimizerValue<"initial-accumulator-value", "adagrad: first sum of squares (0)">;
def NesterovOption : OptimizerSwitch<"nesterov", "sgd: Nesterov momentum; muon: on, unless it is false">;
def AmsgradOption : OptimizerSwitch<"amsgrad", "adam, adamw: divide by the largest second moment so far">;
def MaximizeOption : OptimizerSwitch<"maximize", "Step along the gradient, not against it">;
def AlphaOption : OptimizerValue<"alpha",
  "rmsprop: decay of the average of squares (0.99); asgd: power of the rate's decay (0.75)">;
def CenteredOption : OptimizerSwitch<"centered", "rmsprop: divide by the root of the variance">;
def MomentumDecayOption : OptimizerValue<"momentum-decay", "nadam: how fast the momentum's warm-up ends (0.004)">;
def DecoupledWeightDecayOption : OptimizerSwitch<"decoupled-weight-decay",
  "nadam, radam, lamb: weight decay as in AdamW">;
def RhoOption : OptimizerValue<"rho", "adadelta: decay of both averages (0.9)">;
def LambdOption : OptimizerValue<"lambd", "asgd: decay (1e-4)">;
def T0Option : OptimizerValue<"t0", "asgd: step from which parameters are averaged (1e6)">;
def EtasOption : OptimizerValue<"etas", "rprop: factors on a step size (0.5,1.2)">;
def StepSizesOption : OptimizerValue<"step-sizes", "rprop: smallest and largest step size (1e-6,50)">;
def Beta2DecayOption : OptimizerValue<"beta2-decay",
  "adafactor: power of the step that the averages' weight falls with (-0.8)">;
def Eps1Option : OptimizerValue<"eps1", "adafactor: root of the smallest variance (-1: epsilon of the type)">;
def Eps2Option : OptimizerValue<"eps2", "adafactor: smallest root mean square of a parameter (1e-3)">;
def ClipThresholdOption : OptimizerValue<"clip-threshold",
  "adafactor: root mean square from which a step is scaled down (1)">;
def NsStepsOption : OptimizerValue<"ns-steps", "muon: Newton-Schulz iterations (5)">;
def NsCoefficientsOption : OptimizerValue<"ns-coefficients", "muon: of the iteration (3.4445,-4.775,2.0315)">;
def AdjustLrFnOption : OptimizerValue<"adjust-lr-fn",
  "muon: original, match_rms_adamw or spectral_unclamped (original)">;
def GroupOption : DeclaredOption<"group", Rules, "",
  "Parameter group: PATTERN[,PATTERN]:lr=X,weight_decay=Y,optimizer=NAME; may repeat, or several with ;", "groups"> {
  let Stage = "train";
  let Role = "Update";
  let Member = "groups";
  let Passes = ["train-optimize", "train-state-layouts"];
}
def SparseUpdatesOption : DeclaredOption<"sparse-updates", Text, "exact",
  "Tables without weight decay in the rows that a batch names: exact (where no bit changes: sgd and adagrad), lazy "
  "(also momentum, adam and adamw: state of other rows waits, as in PyTorch's SparseAdam), off",
  "words<sparseUpdateRules>"> {
  let Stage = "train";
  let Role = "Update";
  let ImplicitValue = "lazy";
  let Passes = ["train-sparse-updates"];
}
def MomentsOption : DeclaredOption<"moments", Text, "f32",
  "How optimizer state is stored: f32; bf16 (rounded); int8, fp8 (a byte for an element and a scale for 256; "
  "lossy). Updates compute in f32", "codecs<train::CodecUse::Moments>"> {
  let Stage = "train";
  let Role = "Update";
  let Passes = ["train-state-layouts"];
}
def MasterOption : DeclaredOption<"master", Text, "f32",
  "How parameters are stored: f32 (as --precision has them); split (with --precision=bf16 or mixed-bf16: an f32 "
  "master as a bf16 half, which products read, and 16 bits more; exact); whole (the same in f32, with the same "
  "bits); sr (with --precision=bf16: bf16, rounded up or down by chance)", "codecs<train::CodecUse::Master>"> {
  let Stage = "train";
  let Role = "Update";
  let Passes = ["train-state-layouts"];
}
def EmaOption : DeclaredOption<"ema", Number, "0",
  "Keeps an exponential moving average of the trained weights, with this decay: 0.999 (PyTorch's AveragedModel "
  "with get_ema_multi_avg_fn); lowtide-run --ema evaluates it", "decay"> {
  let Stage = "train";
  let Role = "Update";
  let Passes = ["train-average-weights"];
}
}

// --- the learning rate ---

let Group = "schedule" in {
def ScheduleOption : DeclaredOption<"schedule", Text, "constant", "Learning-rate schedule", "schedules"> {
  let Stage = "train";
  let Role = "Rate";
  let Passes = ["train-optimize"];
}
def WarmupStepsOption : DeclaredOption<"warmup-steps", NumberText, "0", "Steps of linear warm-up", "steps"> {
  let Stage = "train";
  let Role = "Rate";
  let Passes = ["train-optimize"];
}
def TotalStepsOption : DeclaredOption<"total-steps", NumberText, "0", "Step at which a decay ends", "steps"> {
  let Stage = "train";
  let Role = "Rate";
  let Passes = ["train-optimize"];
}
def MinLrOption : DeclaredOption<"min-lr", NumberText, "0", "Where a decay ends", "nonNegative"> {
  let Stage = "train";
  let Role = "Rate";
  let Passes = ["train-optimize"];
}
def PowerOption : ScheduleValue<"power", "polynomial: of the part that is left (1)">;
def GammaOption : ScheduleValue<"gamma", "step, multistep, exponential: factor on the rate (0.1)">;
def StepSizeOption : ScheduleValue<"step-size", "step: steps between two factors">;
def MilestonesOption : ScheduleValue<"milestones", "multistep: steps at which the rate falls, with commas">;
def TimescaleOption : ScheduleValue<"timescale", "inverse-sqrt: steps (--warmup-steps, or 10000)">;
def PctStartOption : ScheduleValue<"pct-start", "one-cycle: part of the steps until --lr is reached (0.3)">;
def DivFactorOption : ScheduleValue<"div-factor", "one-cycle: --lr over the first rate (25)">;
def FinalDivFactorOption : ScheduleValue<"final-div-factor", "one-cycle: first rate over the last (1e4)">;
def CurveOption : ScheduleValue<"curve", "one-cycle: cosine or linear; wsd: cosine, linear or 1-sqrt (cosine)">;
def RestartStepsOption : ScheduleValue<"restart-steps", "cosine-restarts: steps of the first half cosine">;
def RestartMultOption : ScheduleValue<"restart-mult",
  "cosine-restarts: length of each over that of the one before (1)">;
def DecayStepsOption : ScheduleValue<"decay-steps", "wsd: steps of the decay, which ends at --total-steps">;
}

// --- memory ---

let Group = "memory" in {
def MicroBatchesOption : DeclaredOption<"micro-batches", Whole, "1",
  "Computes a step in so many equal parts of the batch", "range<1, int64_t(1) << 30>"> {
  let Stage = "train";
  let Passes = ["train-accumulate"];
}
def MicroBatchBlocksOption : DeclaredOption<"micro-batch-blocks", Text, "auto",
  "Blocks of the model that all parts of the batch pass, one block after the other: auto (where that is faster within the "
  "budget), a number, off (each part passes all of the model before the next)", "countOrAuto"> {
  let Stage = "fitted";
}
def UpdatesOption : DeclaredOption<"updates", Text, "now",
  "When a step's updates are made: now, in it; deferred, in the next one, each before its parameter is read (exact; "
  "with clipping or loss scaling, copies of state in another memory then overlap the forward pass)",
  "words<updateTimes>"> {
  let Stage = "train";
  let Role = "Update";
  let Member = "updateTime";
  let Passes = ["train-defer-updates"];
}
def LossHeadChunksOption : DeclaredOption<"loss-head-chunks", Text, "auto",
  "Pieces of the logits of a loss head: auto (where they are large), a number, off", "countOrAuto"> {
  let Stage = "fitted";
}
}

// --- the machine ---

let Group = "target" in {
def TargetOption : DeclaredOption<"target", Text, "cpu",
  "cpu: this machine, cpu:x86-64-v3: any with AVX2, cpu:x86-64-v4, cuda[:sm_90], and cuda: with sm_80, sm_86, "
  "sm_87, sm_88, sm_89, sm_90a, sm_100, sm_103, sm_110, sm_120, sm_121, or with a card of 'lowtide fit --card=list': cuda:h200; cuda-emulated, "
  "reference", "readBy<describeUnknownTarget>"> {
  let Stage = "plan";
  let Passes = ["train-set-target"];
}
def TargetFileOption : DeclaredOption<"target-file", Text, "",
  "JSON of a machine that has no name here: kind, chip, and figures where they differ from the chip's"> {
  let Stage = "plan";
}
def PrecisionOption : DeclaredOption<"precision", Text, "f32",
  "f32; mixed-bf16, mixed-f16: 16-bit activations, f32 parameters; bf16, f16: parameters too; f64 on a "
  "CPU", "words<precisions>"> {
  let Stage = "train";
  let Passes = ["train-differentiate", "train-autocast"];
}
def PrecisionOverrideOption : DeclaredOption<"precision-override", Rules, "",
  "Layers by name that differ: PATTERN[,PATTERN]=f32, or =bf16 (f16); may repeat, or several with ;",
  "precisionOverrides"> {
  let Stage = "train";
  let Member = "precisionOverrides";
  let Passes = ["train-autocast"];
}
def FrozenWeightsOption : DeclaredOption<"frozen-weights", Text, "auto",
  "How weights are held that are not trained and that products read: f32, --precision's bf16 or f16, or matrices "
  "in codes of int8, nf4 or fp8; auto: as products read them", "words<frozenStorages>"> {
  let Stage = "train";
  let Passes = ["train-encode-frozen", "train-autocast"];
}
}

// --- updates ---

let Group = "optimizer" in {
def LossScaleOption : DeclaredOption<"loss-scale", Text, "none",
  "none, a number, or dynamic[,init=65536][,growth=2][,backoff=0.5][,interval=2000]", "lossScale"> {
  let Stage = "train";
  let Passes = ["train-differentiate", "train-scale-loss"];
}
def ClipNormOption : DeclaredOption<"clip-norm", Number, "0",
  "Largest global norm of the gradients; 0: not limited", "nonNegative"> {
  let Stage = "train";
  let Passes = ["train-scale-loss"];
}
def ClipValueOption : DeclaredOption<"clip-value", Number, "0",
  "Largest size of a gradient's element; 0: not limited", "nonNegative"> {
  let Stage = "train";
  let Passes = ["train-scale-loss"];
}
}

// --- the machine ---

let Group = "target" in {
def EntriesOption : DeclaredOption<"entries", Rules, "train,eval", "Programs in the artifact: train, eval, gradient"> {
  let Stage = "train";
}
def FuseOption : DeclaredOption<"fuse", Switch, "true", "Fuse elementwise and reduction ops into kernels", "onOrOff"> {
  let Stage = "plan";
  let Passes = ["nn-cluster"];
}
def ConvLayoutOption : DeclaredOption<"conv-layout", Text, "auto",
  "How a GPU stores what convolutions read and write: auto (channels last where that is estimated to be faster), "
  "nchw, nhwc", "words<convLayouts>"> {
  let Stage = "fitted";
  let Passes = ["nn-conv-layout"];
}
def KernelCacheOption : DeclaredOption<"kernel-cache", Text, "auto",
  "Folder that keeps machine code of the CPU's kernels from compile to compile; off; auto: lowtide/kernels in "
  "$XDG_CACHE_HOME or ~/.cache, at most 512 MiB">;
def ThreadsMaxOption : DeclaredOption<"threads-max", Whole, "64",
  "Threads for which scratch memory is planned", "range<1, mostThreads>"> {
  let Stage = "plan";
  let Passes = ["train-set-target"];
}
}

// --- memory ---

let Group = "memory" in {
def DeviceBudgetOption : DeclaredOption<"device-budget", Text, "",
  "Bytes that the step may take, all told: 8MiB, 1.5GiB, 800MB, or 50% of what it takes without", "byteSize"> {
  let Stage = "fitted";
  let Passes = ["train-rematerialize"];
}
def HostBudgetOption : DeclaredOption<"host-budget", Text, "",
  "Bytes of pinned host memory in which values of a GPU's step may wait: 32GiB. Needs --device-budget; with "
  "--disk-budget, too, what this memory has no room for may wait in the file. 'lowtide fit' makes a table of a list: "
  "0,16GiB,32GiB", "byteCounts"> {
  let Stage = "fitted";
  let Passes = ["train-rematerialize"];
}
def DiskBudgetOption : DeclaredOption<"disk-budget", Text, "",
  "Bytes of a file in which values of a step may wait: 100GiB. Needs --device-budget; lowtide-run --spill says where "
  "the file lies. 'lowtide fit' makes a table of a list: 0,10GiB,100GiB", "byteCounts"> {
  let Stage = "fitted";
  let Passes = ["train-rematerialize"];
}
def RematStrategyOption : DeclaredOption<"remat-strategy", Text, "fit",
  "How recomputations are chosen: fit; the others are published methods, to compare", "words<rematStrategies>"> {
  let Stage = "fitted";
  let Passes = ["train-rematerialize"];
}
def WithoutMethodsOption : DeclaredOption<"without-methods", Text, "",
  "Methods that do not look for recomputations, to see what each contributes: NAME[,NAME] of the table in "
  "docs/memory-model.md", "methods"> {
  let Stage = "fitted";
  let Passes = ["train-rematerialize"];
}
def BoundOption : DeclaredOption<"bound", Switch, "false",
  "Say how much any plan in this order recomputes at least, by linear programming (HiGHS; minutes)", "onOrOff"> {
  let Stage = "fitted";
  let Passes = ["train-rematerialize"];
}
def FlipsOption : DeclaredOption<"flips", Switch, "false",
  "Plan 32 more budgets, so that lowtide explain says where a tensor is recomputed or stored instead of kept", "onOrOff"> {
  let Stage = "fitted";
  let Passes = ["train-rematerialize"];
}
}

// --- stages ---

let Group = "stages" in {
def EmitOption : DeclaredOption<"emit", Text, "artifact",
  "Last stage", "anyOf<\"onnx,nn,train,fitted,plan,kernels,ptx,artifact,onnx-model\">">;
def FromOption : DeclaredOption<"from", Text, "",
  "First stage: the input is that stage's text", "anyOf<\"onnx,nn,train,fitted,plan\">">;
def EmitLocationsOption : DeclaredOption<"emit-locations", Text, "on",
  "on: a stage's text says of every operation which layer it belongs to, and --from reads that back; off: shorter "
  "lines", "anyOf<\"on,off\">">;
def OnnxStageOption : DeclaredOption<"onnx-stage", Text, "fitted",
  "--emit=onnx-model: the stage that is written as a model", "anyOf<\"nn,train,fitted\">">;
def OnnxFormOption : DeclaredOption<"onnx-form", Text, "step",
  "--emit=onnx-model: step, one graph whose inputs and outputs are all that is kept; training-info, an inference "
  "graph with a TrainingInfoProto", "anyOf<\"step,training-info\">">;
def OnnxBf16Option : DeclaredOption<"onnx-bf16", Text, "cast-pairs",
  "--emit=onnx-model: bf16 as f32 between casts, or as it is", "anyOf<\"cast-pairs,native\">">;
def OnnxOptimizersOption : DeclaredOption<"onnx-optimizers", Text, "standard",
  "--emit=onnx-model: updates written out, or with --convention=onnx as ai.onnx.preview.training",
  "anyOf<\"standard,preview\">">;
def OnnxRoundsOption : DeclaredOption<"onnx-rounds", Text, "auto",
  "--emit=onnx-model: micro-batches and pieces of a loss head written out one after the other, as a Loop, or as a "
  "Loop where there are more than 8", "anyOf<\"auto,unrolled,loop\">">;
def OnnxWeightsOption : DeclaredOption<"onnx-weights", Switch, "true", "--emit=onnx-model: weights as default inputs">;
def WeightsOption : DeclaredOption<"weights", Switch, "true",
  "Weights in the artifact; without them a run starts from --init=random:SEED or from a checkpoint", "onOrOff"> {
  let Stage = "plan";
  let Passes = ["plan-lower"];
}
}

// What DeclaredOptions.h has of each.
def DeclaredOptions : GenericTable {
  let FilterClass = "DeclaredOption";
  let CppTypeName = "DeclaredOption";
  let Fields = ["Name", "Default", "Help", "SwitchValue"];
  string TypeOf_Help = "code";
}

// How passes/DeclaredChecks.cpp checks each.
def OptionChecks : GenericTable {
  let FilterClass = "DeclaredOption";
  let CppTypeName = "CheckedOption";
  let Fields = ["Name", "Check"];
  string TypeOf_Check = "code";
}

#endif // LOWTIDE_SUPPORT_DECLAREDOPTIONS

// Options that are flags of the driver and options of passes: name, type, default, help and check of each, once.
//
// Passes take them by `FlagOption` (passes/Passes.td), rows of the driver by `declaredOption` (Compiler/OptionTable.cpp),
// and fields that hold a value begin with the default that is declared here (DeclaredOptions.h).
#ifndef LOWTIDE_SUPPORT_DECLAREDOPTIONS
#define LOWTIDE_SUPPORT_DECLAREDOPTIONS

include "llvm/TableGen/SearchableTable.td"

// What texts say. In passes all are texts: pipelines print numbers with every digit, and what is none is refused in the
// words of the flag, not in those of whoever reads a pipeline.
class OptionType<string word> {
  // For whoever makes up options (tools/devkit/mutants.py).
  string kind = word;
}
def Text : OptionType<"text">;
def Number : OptionType<"number">;
def Whole : OptionType<"whole">;
def Switch : OptionType<"switch">;

// `check` is a function of passes/DeclaredChecks.cpp. `readBy<PARSER>` checks nothing before: PARSER, which the driver
// and the pass call, says more than one line, or asks the model.
class DeclaredOption<string optionName, OptionType optionType, string initial, string help, code check> {
  string Name = optionName;
  OptionType Type = optionType;
  string Default = initial;
  string text = help;
  // Texts hold quotes.
  code Help = "R\"help(" # help # ")help\"";
  code Check = check;
}

// --- the model ---

def ModeOption : DeclaredOption<"mode", Text, "train",
  "train: batch norm and dropout in training form; eval: as they evaluate; as-is: as the file says",
  "words<trainingModes>">;
def DropoutOption : DeclaredOption<"dropout", Number, "-1", "Overrides every dropout rate; -1: none", "rate">;
def LossOption : DeclaredOption<"loss", Text, "",
  "Adds a loss: \"cross_entropy(LOGITS, LABELS, label_smoothing=0.1) + 0.3*mse(OUTPUT, TARGET)\", or names "
  "an output that is one. Kinds and options are PyTorch's: cross_entropy (weight, ignore_index, reduction, "
  "label_smoothing); nll of PROBABILITIES and nll_loss of LOG_PROBABILITIES (weight, ignore_index, "
  "reduction); mse, l1 (weight, reduction); smooth_l1 (beta, reduction); huber (delta, weight, reduction); "
  "bce of PROBABILITIES (weight, reduction); bce_with_logits (weight, pos_weight, reduction); kl_div of "
  "LOG_PROBABILITIES (log_target, reduction). A weight is a number, a list [0.5, 1] or an array. Names "
  "with spaces, commas or brackets are put into quotes", "readBy<parseLoss>">;
def LoraOption : DeclaredOption<"lora", Text, "",
  "Trains low-rank pairs instead of weights: LAYER[,LAYER]:r=16[,alpha=32][,dropout=0.05][,rslora], names and "
  "globs of layers; several rules with ; or by repeating, the first that matches counts. Everything else is "
  "frozen but what --params names. Without alpha it is r, a scale of 1", "adapters">;

// --- updates ---

def OptimizerOption : DeclaredOption<"optimizer", Text, "adamw", "Update rule", "optimizers">;
def FallbackOption : DeclaredOption<"fallback", Text, "",
  "muon: optimizer of all but hidden matrices, with its options (adamw): adamw:lr=3e-4,weight_decay=0.01", "fallbacks">;
def ConventionOption : DeclaredOption<"convention", Text, "torch",
  "Whose formula: PyTorch's, or ONNX's ai.onnx.preview.training", "words<conventions>">;
def LrOption : DeclaredOption<"lr", Number, "0.001", "Learning rate", "nonNegative">;
def GroupOption : DeclaredOption<"group", Text, "",
  "Parameter group: PATTERN[,PATTERN]:lr=X,weight_decay=Y,optimizer=NAME; may repeat, or several with ;",
  "groups">;
def SparseUpdatesOption : DeclaredOption<"sparse-updates", Text, "exact",
  "Tables without weight decay in the rows that a batch names: exact (where no bit changes: sgd and adagrad), "
  "lazy (also momentum, adam and adamw: state of other rows waits, as in PyTorch's SparseAdam), off",
  "words<sparseUpdateRules>">;
def MomentsOption : DeclaredOption<"moments", Text, "f32",
  "How optimizer state is stored: f32; bf16 (rounded); int8, fp8 (a byte for an element and a scale for "
  "256; lossy). Updates compute in f32", "codecs<train::CodecUse::Moments>">;
def MasterOption : DeclaredOption<"master", Text, "f32",
  "How parameters are stored: f32 (as --precision has them); split (with --precision=bf16 or mixed-bf16: an f32 "
  "master as a bf16 half, which products read, and 16 bits more; exact); whole (the same in f32, with the same "
  "bits); sr (with --precision=bf16: bf16, rounded up or down by chance)", "codecs<train::CodecUse::Master>">;
def EmaOption : DeclaredOption<"ema", Number, "0",
  "Keeps an exponential moving average of the trained weights, with this decay: 0.999 (PyTorch's "
  "AveragedModel with get_ema_multi_avg_fn); lowtide-run --ema evaluates it", "decay">;
def ScheduleOption : DeclaredOption<"schedule", Text, "constant", "Learning-rate schedule", "schedules">;
def WarmupStepsOption : DeclaredOption<"warmup-steps", Number, "0", "Steps of linear warm-up", "steps">;
def TotalStepsOption : DeclaredOption<"total-steps", Number, "0", "Step at which a decay ends", "steps">;
def MinLrOption : DeclaredOption<"min-lr", Number, "0", "Where a decay ends", "nonNegative">;
def LossScaleOption : DeclaredOption<"loss-scale", Text, "none",
  "none, a number, or dynamic[,init=65536][,growth=2][,backoff=0.5][,interval=2000]", "lossScale">;
def ClipNormOption : DeclaredOption<"clip-norm", Number, "0", "Largest global norm of the gradients; 0: not limited",
  "nonNegative">;
def ClipValueOption : DeclaredOption<"clip-value", Number, "0", "Largest size of a gradient's element; 0: not limited",
  "nonNegative">;

// --- the machine ---

def TargetOption : DeclaredOption<"target", Text, "cpu",
  "cpu[:x86-64-v3|:x86-64-v4|:native], cuda[:sm_90], and cuda: with sm_80, sm_86, sm_87, sm_88, sm_89, sm_90a, "
  "sm_100, sm_103, sm_110, sm_120, sm_121, or with a card of 'lowtide fit --card=list': cuda:h200; "
  "cuda-emulated, reference", "readBy<describeUnknownTarget>">;
def ThreadsMaxOption : DeclaredOption<"threads-max", Whole, "64", "Threads for which scratch memory is planned",
  "range<1, mostThreads>">;
def PrecisionOption : DeclaredOption<"precision", Text, "f32",
  "f32; mixed-bf16, mixed-f16: 16-bit activations, f32 parameters; bf16, f16: parameters too; f64 with "
  "--target=reference", "words<precisions>">;
def PrecisionOverrideOption : DeclaredOption<"precision-override", Text, "",
  "Layers by name that differ: PATTERN[,PATTERN]=f32, or =bf16 (f16); may repeat, or several with ;",
  "precisionOverrides">;
def FrozenWeightsOption : DeclaredOption<"frozen-weights", Text, "auto",
  "How weights are held that are not trained and that products read: f32, --precision's bf16 or f16, or matrices in "
  "codes of int8 or nf4; auto: as the trained ones", "words<frozenStorages>">;
def FuseOption : DeclaredOption<"fuse", Switch, "true", "Fuse elementwise and reduction ops into kernels",
  "onOrOff">;
def ConvLayoutOption : DeclaredOption<"conv-layout", Text, "auto",
  "How a GPU stores what convolutions read and write: auto (channels last where that is estimated to be "
  "faster), nchw, nhwc", "words<convLayouts>">;
def WeightsOption : DeclaredOption<"weights", Switch, "true",
  "Weights in the artifact; without them a run starts from --init=random:SEED or from a checkpoint",
  "onOrOff">;

// --- memory ---

def MicroBatchesOption : DeclaredOption<"micro-batches", Whole, "1",
  "Computes a step in so many equal parts of the batch", "range<1, int64_t(1) << 30>">;
def DeviceBudgetOption : DeclaredOption<"device-budget", Text, "",
  "Bytes that the step may take, all told: 8MiB, 1.5GiB, 800MB, or 50% of what it takes without", "byteSize">;
def HostBudgetOption : DeclaredOption<"host-budget", Text, "",
  "Bytes of pinned host memory in which values of a GPU's step may wait: 32GiB. Needs --device-budget", "byteCount">;
def DiskBudgetOption : DeclaredOption<"disk-budget", Text, "",
  "Bytes of a file in which values of a CPU's step may wait: 100GiB. Needs --device-budget; lowtide-run --spill says "
  "where the file lies", "byteCount">;
def RematStrategyOption : DeclaredOption<"remat-strategy", Text, "fit",
  "How recomputations are chosen: fit; the others are published methods, to compare", "words<rematStrategies>">;
def WithoutMethodsOption : DeclaredOption<"without-methods", Text, "",
  "Methods that do not look for recomputations, to see what each contributes: NAME[,NAME] of the table in "
  "docs/memory-model.md", "methods">;
def BoundOption : DeclaredOption<"bound", Switch, "false",
  "Say how much any plan in this order recomputes at least, by linear programming (HiGHS; minutes)",
  "onOrOff">;

// What DeclaredOptions.h has of each.
def DeclaredOptions : GenericTable {
  let FilterClass = "DeclaredOption";
  let CppTypeName = "DeclaredOption";
  let Fields = ["Name", "Default", "Help"];
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

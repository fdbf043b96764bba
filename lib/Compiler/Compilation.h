//===- Compilation.h - from a model to an artifact --------------*- C++ -*-===//
//
// The compiler's main road, one member per stage.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Diagnostics.h"
#include "FitColumns.h"
#include "FitOffload.h"
#include "StepForm.h"
#include "lowtide/Analysis/StoredBytes.h"
#include "lowtide/Codegen/KernelModule.h"
#include "lowtide/Compiler/Compiler.h"
#include "lowtide/Dialect/Plan/Plan.h"
#include "lowtide/Import/Check.h"
#include "lowtide/Import/Import.h"
#include "lowtide/Interfaces/TargetInfo.h"
#include "lowtide/Legalize/Legalize.h"
#include "lowtide/Pipeline.h"
#include "lowtide/Serialize/OnnxModel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/SourceMgr.h"
#include <memory>

namespace lowtide {

/// What one step takes. What it computes is unknown while sizes are examples, which do not change what it stores.
struct StepCost {
  std::optional<uint64_t> forwardFlops, stepFlops;
  StoredBytes stored;
};

/// One model on its way, in a context of its own. What goes wrong is said to the listener and returned.
class Compilation {
public:
  Compilation(const Request &options, const Sources &sources, Listener *listener,
              std::shared_ptr<codegen::KernelTrials> trials);
  ~Compilation();

  /// Whether there is such a target, and what the options need of the machine. `comparesMethods`: other strategies,
  /// too.
  Failure checkTarget(bool comparesMethods = false);
  /// To the last stage that is asked for.
  Failure compile();
  /// Writes what is in the model to `os`.
  Failure check(const CheckOptions &how, llvm::raw_ostream &os);
  /// Says what the step costs at which budget; with `columns`, also at which of another memory.
  Failure fit(const FitRequest &request, const FitColumns &columns, FitResult &result);

  /// After `compile`: what it was asked for as text, and as a file.
  Failure print(llvm::raw_ostream &os);
  Failure write(const std::string &path, Written &written) {
    return isModel() ? writeModel(path, written) : writeArtifact(path, written);
  }
  bool isFile() const { return isModel() || options.emit == "artifact"; }
  Figures findFigures();
  std::vector<std::string> listEntries() const;
  llvm::ArrayRef<std::string> getPipeline() const { return pipeline; }
  const DiagnosticCollector &getDiagnostics() const { return diagnostics; }

private:
  /// Reports an error that no operation stands for.
  Failure refuse(FailureKind kind, const llvm::Twine &message, llvm::ArrayRef<std::string> notes = {});
  /// The step is to be written as an ONNX model.
  bool isModel() const { return options.emit == "onnx-model"; }
  /// Reads the ONNX file and the flags of its import.
  Failure open(ImportOptions &import);
  /// Reads the ONNX file and says who is a parameter.
  Failure load();
  /// Reads the model, from memory or from its file; values that are watched become outputs.
  llvm::LogicalResult loadModel();
  Failure import();
  /// Weights beside the model: whether they can be read, before everything else is done.
  Failure checkWeightFiles();
  /// Reads a stage's text instead.
  Failure parse();
  /// Whether the input is a stage's text.
  bool isText() const;
  /// Writes the model's digest on the module: texts of all stages say of which file they were made.
  void noteDigest();
  /// Whether the file of --weights-from is the one that the text was made of.
  Failure checkWeightsFile();
  /// Whether an artifact that is made of text has a file that its weights come from, or needs none.
  Failure checkWeightsKnown();
  /// Opens the file of --weights-from.
  Failure openWeights();
  /// onnx → nn: @forward, and @eval if that entry is wanted.
  Failure legalize();
  /// Makes entries of what computes the file's images of parameters.
  Failure makeExports();
  /// Of the outputs of the file, an entry computes those that the options name; one that trains no others.
  Failure keepOutputs(llvm::StringRef entry);
  /// onnx → nn, with what exporters write out recognised.
  Failure makeGraph();
  /// nn → train; `microBatches`: parts of the batch; `precision` instead of the options' where it is not empty.
  Failure makeSteps(int64_t microBatches, llvm::StringRef precision = "", llvm::StringRef moments = "");
  /// Runs a pipeline that was built for a phase, which is the log's `area`; a failure of it means `otherwise`,
  /// unless a pass knows better.
  Failure run(llvm::StringRef area, llvm::function_ref<void(mlir::OpPassManager &)> build, FailureKind otherwise);
  /// fitted → plan; a plan that was given is proved.
  Failure makePlan();
  /// Takes the plan apart for what is made of it: its kernels, its weights.
  Failure openPlan();
  /// Whether the plan is for a GPU, if its PTX is asked for.
  Failure checkPtx(const TargetInfo &machine);
  /// Streams the first values of an initializer.
  llvm::LogicalResult readWeights(llvm::StringRef initializer, llvm::function_ref<void(llvm::ArrayRef<char>)> sink);
  Failure writeArtifact(const std::string &path, Written &written);
  /// The passes of a manager as lowtide-opt takes them, with commas.
  static std::string describePipeline(mlir::OpPassManager &passes);
  /// Finds the target that the options name or describe.
  Failure findOptionsTarget();
  /// Between the options and a stage's text: what was fitted for one target cannot become a plan for another.
  Failure agreeOnTarget();
  /// A whole step from a file keeps its forward pass and its updates: flags that would make others are refused. The
  /// former before the step is legalized, for which parameters count.
  Failure checkForwardFlags();
  /// `changes`: flags that have an effect on such a step, for the note; may be empty.
  Failure refuseFlag(llvm::StringRef flag, llvm::StringRef reason, const llvm::Twine &changes);
  Failure checkStepFlags();
  /// A whole step from a file brings the first values of its parameters.
  Failure checkStepWeights();
  /// Optimizer and schedule that such a file was written with; the command line overrules the schedule.
  llvm::Error setStepSettings(mlir::DictionaryAttr settings);
  /// The stage that stands now as an ONNX model.
  Failure exportModel();
  Failure writeModel(const std::string &path, Written &written);
  /// Nothing where the model does not compile that far. `module` is as before.
  std::optional<StepCost> measureCost(const ImportOptions &bound, bool areExamples);
  /// Of @train; empty without one.
  StoredBytes countStored();
  /// All stages up to number `last`, which is not after `fitted`.
  Failure lowerTo(int last, const std::string &budget);
  /// Which forms of a step a budget is asked of.
  enum class FormsAsked {
    ForPlan,    ///< all: the fastest stays, or the refusal of the one that needs the least
    ForSeconds, ///< all, but a failure says nothing of what is lacking
    ForFirst,   ///< up to the first that fits
  };
  /// train → fitted, in the best form under the stage's budget.
  Failure fitSteps(FitStageOptions stage, FormsAsked asked = FormsAsked::ForPlan);
  /// Chunk counts of loss heads that are worth a plan next to their rule's, the finest first; none where tiles allow no
  /// more chunks than the rule makes, or where the options name a count.
  std::vector<StepForm> listFurtherParts(FitStageOptions stage);
  /// What segments of steps can compute once more, the most first; none where no loop has segments.
  std::vector<RecomputedSteps> listRecomputedSteps(FitStageOptions stage);
  /// Whether loops over parts of the batch can be cut into blocks that all parts pass, by so many shares of the
  /// parameters.
  bool mayCutLoops(FitStageOptions stage, unsigned blocks);
  /// Says so where blocks were asked for and no loop over parts has any.
  void warnOfWholeLoops(const FitStageOptions &stage);
  /// Forms that are worth a plan besides the one without a budget.
  std::vector<StepForm> listFurtherForms(const FitStageOptions &stage);
  Failure runFitStage(const FitStageOptions &stage);
  FitStageOptions fitStageOptions() const;
  /// The same step in another batch, in parts, in another precision or with state in another codec: a way to fit.
  struct Variation : EntryVariant {
    std::string moments = {}; ///< codec of optimizer state; empty: as the options have it
  };
  /// What a variation needs before anything is planned.
  struct Needs {
    uint64_t wholeBytes = 0;  ///< alive at once at most, without recomputation
    uint64_t leastBytes = 0;  ///< no plan of the forms that were asked is below
    uint64_t trainBytes = 0;  ///< of `wholeBytes`, what is left with @train alone; 0: there is none
    std::string largest;      ///< the entry that needs `wholeBytes`
    uint64_t staticBytes = 0; ///< of `wholeBytes`, what lies there from step to step
    double seconds = 0;       ///< of @train, as the cost model estimates it
    bool isLowered = false;   ///< it was compiled this far
  };
  /// Adds the entries of `of` again in another batch, other parts or another precision, as `train_NAME` and
  /// `eval_NAME`.
  Failure addVariant(const EntryVariant &variant, const Variation &of);
  /// Those of the options, of which a batch that is no smaller than that of `of` has no use.
  Failure addVariants(const Variation &of);
  /// Imports and lowers a variation to `train`.
  Failure lowerVariation(const Variation &variation);
  /// First in the form without a budget; in a further one, which may need less, while `isEnough` says no.
  Needs findNeeds(const Variation &variation, llvm::function_ref<bool(const Needs &)> isEnough);
  /// What the steps that stand now need in the form of the stage.
  Needs countNeeds(const FitStageOptions &stage);
  /// A plan within a budget.
  struct Planned {
    std::optional<double> seconds; ///< nothing: none was found
    uint64_t smallestBytes = 0;    ///< then about what the smallest takes, where that is known
  };
  /// Plans the variation within `budget` bytes, all told.
  Planned planWithin(const Variation &variation, uint64_t budget, FormsAsked asked);
  /// Whether the step fits `budget` bytes, and what makes it fit. `title` says whose bytes they are.
  Failure answerFit(const ByteSize &budget, llvm::StringRef title, FitResult &result);
  friend class FitAnswer;
  /// Whether the options name another memory that the target has a use for.
  Failure checkOtherMemory(const FitColumns &columns);
  /// Whether the request has a use for columns, if there are any.
  Failure checkColumns(const FitRequest &request, const FitColumns &columns);
  /// "--host-budget=32GiB --disk-budget=100GiB", of those that were given.
  std::string describeOtherMemory() const;
  /// The table of steps at `train` with that memory, from the smallest plan that it lets them have; without it that is
  /// `smallestBytes`.
  llvm::FailureOr<OtherMemoryTable> fitOtherMemory(mlir::ModuleOp steps, uint64_t smallestBytes, uint64_t largestBytes,
                                                   const FitRequest &request);
  /// The table over both budgets of steps at `train`, which take `largestBytes` without recomputation.
  llvm::FailureOr<ColumnTable> fitColumns(mlir::ModuleOp steps, uint64_t largestBytes, const FitRequest &request,
                                          const FitColumns &columns);
  /// Of `check`: the frozen matrices that --frozen-weights holds in codes, with their errors. `bound`: with sizes for
  /// all dimensions.
  Failure measureFrozen(const ImportOptions &bound, std::vector<CodedWeight> &found);
  /// Whether all ops between parameters and loss have a derivative, if there is a loss.
  Failure checkDerivatives();
  /// A loss that `forward` lacks; nothing: it has one, empty: none was found. Then `forward` becomes the function with
  /// it.
  std::optional<std::string> findMissingLoss(mlir::func::FuncOp model, mlir::func::FuncOp &forward);
  /// "labels [N] i64, x [N,8] f32": the arrays that a function reads.
  static std::string describeData(mlir::func::FuncOp forward);
  /// What is missing and what to type: dimensions with an example (`unbound`), a loss as `findMissingLoss` has it, the
  /// data.
  CheckAdvice advise(llvm::ArrayRef<std::string> unbound, const std::optional<std::string> &loss,
                     llvm::StringRef data) const;
  /// Of `check --strict`: an error where the file leaves something open.
  Failure refuseGuesses(llvm::ArrayRef<InitializerInfo> infos);
  /// What the options say about legalization; `mode` as --mode has it.
  LegalizeOptions legalizeOptions(llvm::StringRef mode) const;
  void printStage(llvm::raw_ostream &os);
  ImportOptions importOptions(Failure &failure);

  const Request options;
  const Sources sources;
  /// What the module is compiled for.
  TargetInfo target = getDefaultTarget();
  mlir::MLIRContext context;
  DiagnosticCollector diagnostics;
  /// The text that was read; null for a model.
  std::unique_ptr<llvm::SourceMgr> text;
  /// The passes that have made what stands now, as `describePipeline` says them.
  std::vector<std::string> pipeline;
  /// SHA-256 of the model file, once it was asked for.
  std::string digest;
  std::unique_ptr<OnnxFile> file;
  /// Outputs that the file does not have (Request::watched).
  std::vector<std::string> addedOutputs;
  std::vector<InitializerInfo> initializers;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// Of `answerFit`: the steps as the options have them, at `train`.
  mlir::OwningOpRef<mlir::ModuleOp> given;
  /// Samples of the entries that are made now, when they are not those of the command line, which has `wholeSamples`.
  int64_t samples = 0, wholeSamples = 0;
  /// The file holds gradients and updates already.
  bool holdsStep = false;
  /// The order of the steps, and what runs again in them, are decided.
  bool isFitted = false;
  /// Something is written or printed of what is made.
  bool isWritten = false;
  /// Of `openPlan`.
  plan::ModuleOp plan;
  std::unique_ptr<codegen::KernelModule> kernels;
  /// Of `exportModel`.
  mlir::func::FuncOp model;
  OnnxModelOptions modelOptions;
};

/// Samples in a batch of the steps; 0 if no array counts them.
int64_t countSamples(mlir::ModuleOp module);

} // namespace lowtide

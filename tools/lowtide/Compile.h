//===- Compile.h - from a model to an artifact ------------------*- C++ -*-===//
//
// The driver's main road, one member per stage.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Diagnostics.h"
#include "Options.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Import/Check.h"
#include "lowtide/Import/Import.h"
#include "lowtide/Legalize/Legalize.h"
#include "lowtide/Pipeline.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include <memory>

namespace lowtide::driver {

/// One run of `lowtide compile` or `lowtide check`. Every member returns an exit code.
class Compilation {
public:
  explicit Compilation(const Options &options);

  int compile();
  int check();
  /// Prints what the step costs at which budget.
  int fit();

private:
  /// A number of chunks that loss heads may be parted into.
  struct HeadParts {
    int64_t option; ///< as `FitStageOptions::lossHeadChunks` has it
    int64_t chunks; ///< of the head with the most
  };

  /// Reads the ONNX file and the flags of its import; returns the exit code.
  int open(ImportOptions &import);
  /// Reads the ONNX file and says who is a parameter.
  int load();
  int import();
  /// Weights beside the model: whether they can be read, before everything else is done.
  int checkWeightFiles();
  /// Reads a stage's text instead.
  int parse();
  /// Whether the input is a stage's text.
  bool isText() const;
  /// Writes the model's digest on the module: texts of all stages say of which file they were made.
  void noteDigest();
  /// Whether the file of --weights-from is the one that the text was made of.
  int checkWeightsFile() const;
  /// Whether an artifact that is made of text has a file that its weights come from, or needs none.
  int checkWeightsKnown() const;
  /// Opens the file of --weights-from.
  int openWeights();
  /// onnx → nn: @forward, and @eval if that entry is wanted.
  int legalize();
  /// Of the outputs of the file, an entry computes those that the options name; one that trains no others.
  int keepOutputs(llvm::StringRef entry);
  /// onnx → nn, with what exporters write out recognised.
  int makeGraph();
  /// nn → train; `microBatches`: parts of the batch; `precision` instead of the options' where it is not empty.
  int makeSteps(int64_t microBatches, llvm::StringRef precision = "");
  /// Adds the entries again for the samples that no whole batch holds, as `train_last` and `eval_last`.
  int addLastBatch();
  /// Runs a pipeline that was built for a phase, which is the log's `area`; a failure of it means `code`.
  int run(llvm::StringRef area, llvm::function_ref<void(mlir::OpPassManager &)> build, int code);
  /// fitted → plan; a plan that was given is proved.
  int makePlan();
  /// The same, and the artifact unless --emit=plan.
  int planAndWrite();
  /// Prints the kernels, or their PTX (--emit=kernels, --emit=ptx).
  int printKernels(codegen::KernelModule &kernels, llvm::StringRef target);
  /// The passes of a manager as lowtide-opt takes them, with commas.
  static std::string describePipeline(mlir::OpPassManager &passes);
  int checkTarget() const;
  /// A whole step from a file keeps its forward pass and its updates: flags that would make others are refused. The
  /// former before the step is legalized, for which parameters count.
  int checkForwardFlags();
  int checkStepFlags();
  /// A whole step from a file brings the first values of its parameters.
  int checkStepWeights();
  /// Optimizer and schedule that such a file was written with; the command line overrules the schedule.
  llvm::Error setStepSettings(mlir::DictionaryAttr settings);
  /// The stage that stands now as an ONNX model.
  int writeModel();
  /// Prints how much one step computes, when all sizes are known and the model compiles that far.
  void reportCost();
  /// All stages up to number `last`, which is not behind `fitted`.
  int lowerTo(int last, const std::string &budget);
  /// train → fitted, in the best parts of loss heads under the stage's budget.
  int fitSteps(FitStageOptions stage);
  /// Chunk counts of loss heads that are worth a plan beside their rule's, the finest first; none where tiles allow no
  /// more chunks than the rule makes, or where the options name a count.
  std::vector<HeadParts> listFurtherParts(FitStageOptions stage);
  int runFitStage(const FitStageOptions &stage);
  FitStageOptions fitStageOptions() const;
  GraphStageOptions graphStageOptions() const;
  /// The same step in another batch (0: as given), in parts, in another precision (empty: as given): a way to fit.
  struct Variation {
    int64_t batch = 0, parts = 1;
    std::string precision;
  };
  /// What a variation needs before anything is planned.
  struct Needs {
    uint64_t wholeBytes = 0; ///< alive at once at most, without recomputation
    uint64_t leastBytes = 0; ///< no plan is below
    double seconds = 0;      ///< of @train, as the cost model estimates it
    bool isLowered = false;  ///< it was compiled this far
  };
  /// Imports and lowers a variation to `train`; returns an exit code.
  int lowerVariation(const Variation &variation);
  Needs findNeeds(const Variation &variation);
  /// Plans the variation within `budget` bytes, all told; its seconds, or nothing where none fits.
  std::optional<double> planWithin(const Variation &variation, uint64_t budget);
  /// Whether the step fits `budget` bytes, and what makes it fit. `title` says whose bytes they are.
  int answerFit(const ByteSize &budget, llvm::StringRef title);
  friend class FitAnswer;
  /// Whether all ops between parameters and loss have a derivative, if there is a loss.
  int checkDerivatives();
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
  int refuseGuesses(llvm::ArrayRef<InitializerInfo> infos) const;
  /// What the options say about legalization; `mode` as --mode has it.
  LegalizeOptions legalizeOptions(llvm::StringRef mode) const;
  /// Prints the module to the output.
  int print();
  ImportOptions importOptions(int &code) const;

  const Options &options;
  mlir::MLIRContext context;
  DiagnosticPrinter diagnostics;
  /// The text that was read; null for a model.
  std::shared_ptr<llvm::SourceMgr> sources;
  /// The passes that have made what stands now, as `describePipeline` says them.
  std::vector<std::string> pipeline;
  /// SHA-256 of the model file, once it was asked for.
  std::string digest;
  std::unique_ptr<OnnxFile> file;
  std::vector<InitializerInfo> initializers;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// Of `answerFit`: the steps as the options have them, at `train`.
  mlir::OwningOpRef<mlir::ModuleOp> given;
  /// Samples of the entries that are made now, when they are not those of the command line.
  int64_t samples = 0;
  /// The file holds gradients and updates already.
  bool holdsStep = false;
};

/// Samples in a batch of the steps; 0 if no array counts them.
int64_t countSamples(mlir::ModuleOp module);

} // namespace lowtide::driver

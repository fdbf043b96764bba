//===- lowtide-execute.cpp - executed examples of ops -----------*- C++ -*-===//
//
// Runs every function of a file on the inputs that its arguments state and
// compares its results with those that its result attributes state, on the
// reference target in f64 (one scalar kernel per op) and on the CPU target
// (fused, vectorized, types as written; once more unfused, and once more on an emulated GPU, for equal bits):
//
//   func.func @case(%x: tensor<2xf32> {test.value = dense<[0.0, 1.0]> :
//   tensor<2xf32>})
//       -> (tensor<2xf32> {test.value = dense<[1.0, 2.718281828]> :
//       tensor<2xf32>, test.tolerance = 1.0e-6}) { … }
//
// An argument without `test.value` gets pseudo-random elements: floats in [test.low, test.high) (default [-2, 2)),
// integers in [test.low, test.high) (default [0, 8)).
//
// |result − expected| ≤ tolerance × max(1, |expected|); the default tolerance
// is 1e-6, integers are exact. A result without `test.value` is compared
// between the two targets only.
//
//===----------------------------------------------------------------------===//

#include "Breakage.h"
#include "FunctionRunner.h"
#include "lowtide/InitAll.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"

#include <cmath>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace lowtide;
using namespace lowtide::test;

static llvm::cl::opt<std::string> inputFile(llvm::cl::Positional, llvm::cl::desc("<file>"), llvm::cl::init("-"));
static llvm::cl::opt<std::string> cpu("cpu", llvm::cl::desc("CPU of the fused run"), llvm::cl::init("x86-64-v3"));
static llvm::cl::opt<bool> printResults("print-results", llvm::cl::desc("print what the CPU target computes"));

static llvm::cl::opt<bool> emulated("emulated", llvm::cl::desc("compare with an emulated GPU"), llvm::cl::init(true));
static llvm::cl::list<std::string> breakages(
    "break", llvm::cl::CommaSeparated,
    llvm::cl::desc("put mistakes into the kernels of the GPU, one at a time (KIND:NUMBER, KIND:all): each must be "
                   "noticed"));
static llvm::cl::opt<std::string> only("only", llvm::cl::desc("execute this function alone"));
static llvm::cl::opt<std::string> chip("chip", llvm::cl::desc("GPU that --print means"), llvm::cl::init("sm_90"));
static llvm::cl::opt<Listing> listing("print", llvm::cl::desc("print the code of the fused kernels, execute nothing"),
                                      llvm::cl::values(clEnumValN(Listing::Cpu, "cpu", "as func.func"),
                                                       clEnumValN(Listing::Functions, "gpu", "as gpu.func"),
                                                       clEnumValN(Listing::Ptx, "ptx", "as PTX")),
                                      llvm::cl::init(Listing::None));

static llvm::cl::opt<bool> timing("time", llvm::cl::desc("report the time of each fused kernel, compare nothing"));
static llvm::cl::opt<std::string> saveKernels("save-kernels", llvm::cl::desc("leave the fused shared object here"));

static bool agree(double value, double expected, double tolerance) {
  if (std::isnan(expected) || std::isinf(expected))
    return std::isnan(expected) ? std::isnan(value) : value == expected;
  return std::abs(value - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

/// Compares one result; reports the first wrong element.
static LogicalResult compare(func::FuncOp function, unsigned result, StringRef run, const Buffer &actual,
                             Type actualType, const Buffer &expected, Type expectedType) {
  auto type = cast<RankedTensorType>(function.getResultTypes()[result]);
  double tolerance = isa<FloatType>(type.getElementType()) ? 1e-6 : 0;
  if (auto stated = function.getResultAttrOfType<FloatAttr>(result, "test.tolerance"))
    tolerance = stated.getValueAsDouble();
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    double value = readElement(actual, actualType, i), wanted = readElement(expected, expectedType, i);
    if (!agree(value, wanted, tolerance))
      return function.emitError() << run << ": result " << result << ", element " << i << " is " << value
                                  << ", expected " << wanted << " (tolerance " << tolerance << ")";
  }
  return success();
}

static DenseElementsAttr makeRandom(func::FuncOp function, unsigned argument) {
  auto type = cast<RankedTensorType>(function.getArgumentTypes()[argument]);
  bool isFloat = isa<FloatType>(type.getElementType());
  auto bound = [&](StringRef name, double otherwise) {
    auto stated = function.getArgAttr(argument, name);
    if (auto real = dyn_cast_if_present<FloatAttr>(stated))
      return real.getValueAsDouble();
    if (auto integer = dyn_cast_if_present<IntegerAttr>(stated))
      return static_cast<double>(integer.getInt());
    return otherwise;
  };
  double low = bound("test.low", isFloat ? -2 : 0), high = bound("test.high", isFloat ? 2 : 8);
  if (type.getElementType().isInteger(1))
    high = 2;
  uint64_t state = 0x9e3779b97f4a7c15ull * (argument + 1);
  SmallVector<Attribute> elements;
  Builder builder(function.getContext());
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    double value = low + (high - low) * static_cast<double>(state >> 40) / (1 << 24);
    if (isFloat)
      elements.push_back(builder.getFloatAttr(type.getElementType(), value));
    else
      elements.push_back(builder.getIntegerAttr(type.getElementType(), static_cast<int64_t>(std::floor(value))));
  }
  return DenseElementsAttr::get(type, elements);
}

/// Seconds after which a broken kernel is taken for one that does not end.
static constexpr unsigned kPatience = 60;

/// Executes the function with one mistake in its kernels, in a process of its own. What it says is the verdict: "" when
/// its results are `right`.
static std::string runBroken(func::FuncOp function, ArrayRef<DenseElementsAttr> inputs, const RunOptions &options,
                             ArrayRef<Buffer> right) {
  int channel[2];
  if (pipe(channel) != 0)
    return "";
  llvm::outs().flush();
  pid_t child = fork();
  if (child == 0) {
    dup2(channel[1], STDERR_FILENO);
    alarm(kPatience);
    FailureOr<SmallVector<Buffer>> results = run(function, inputs, options);
    if (succeeded(results) && !llvm::equal(right, *results))
      llvm::errs() << "error: other bits\n";
    llvm::errs().flush();
    _exit(0);
  }
  close(channel[1]);
  std::string said;
  char piece[4096];
  for (ssize_t got; (got = read(channel[0], piece, sizeof piece)) > 0;)
    said.append(piece, static_cast<size_t>(got));
  close(channel[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status))
    return WTERMSIG(status) == SIGALRM ? "does not end" : "is killed by a signal";
  size_t at = StringRef(said).find("error: ");
  return at == StringRef::npos ? "" : StringRef(said).drop_front(at + 7).split('\n').first.str();
}

/// Whether each of the mistakes that are asked for is noticed.
static LogicalResult executeBroken(func::FuncOp function, ArrayRef<DenseElementsAttr> inputs, RunOptions options,
                                   ArrayRef<Buffer> right) {
  unsigned asked = 0, noticed = 0;
  for (StringRef what : breakages) {
    auto [kind, text] = what.split(':');
    const bool all = text == "all";
    for (unsigned number = 0; all || number == 0; ++number) {
      options.breakage = all ? (kind + ":" + Twine(number)).str() : what.str();
      std::string said = runBroken(function, inputs, options, right);
      if (StringRef(said).contains(kNothingToBreak)) {
        if (!all)
          return function.emitError() << said;
        break;
      }
      ++asked;
      noticed += !said.empty();
      llvm::outs() << (said.empty() ? "UNNOTICED " : "noticed ") << function.getName() << ' ' << options.breakage
                   << (said.empty() ? "" : ": ") << said << '\n';
    }
  }
  llvm::outs() << function.getName() << ": " << noticed << " of " << asked << " mistakes are noticed\n";
  return success(noticed == asked && asked);
}

/// Code for --cpu: a row of the table of targets, or another name of LLVM's.
static codegen::CodegenOptions getCpuOptions() {
  const std::optional<TargetInfo> row = findTarget("cpu:" + cpu);
  return row ? codegen::CodegenOptions::get(*row) : codegen::CodegenOptions{.cpu = cpu};
}

static LogicalResult execute(func::FuncOp function) {
  SmallVector<DenseElementsAttr> inputs;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto value = function.getArgAttrOfType<DenseElementsAttr>(i, "test.value");
    if (!value)
      value = makeRandom(function, i);
    if (value.getType() != function.getArgumentTypes()[i])
      return function.emitError() << "test.value of argument " << i << " has another type";
    inputs.push_back(value);
  }
  if (listing == Listing::Cpu)
    return run(function, inputs, RunOptions{getCpuOptions(), /*fuse=*/true, false, nullptr, "", listing});
  if (listing != Listing::None)
    return run(function, inputs,
               RunOptions{codegen::CodegenOptions::get(*findTarget("cuda:" + chip)), /*fuse=*/true, false, nullptr, "",
                          listing});
  if (timing)
    return run(function, inputs, RunOptions{getCpuOptions(), /*fuse=*/true, false, &llvm::outs(), saveKernels});
  RunOptions reference{{"reference"}, /*fuse=*/false, true}, fused{getCpuOptions(), /*fuse=*/true, false};
  FailureOr<SmallVector<Buffer>> exact = run(function, inputs, reference), actual = run(function, inputs, fused);
  // Fusion changes no bit.
  RunOptions unfused{getCpuOptions(), /*fuse=*/false, false};
  FailureOr<SmallVector<Buffer>> apart = run(function, inputs, unfused);
  if (failed(exact) || failed(actual) || failed(apart))
    return failure();
  for (auto [i, together, alone] : llvm::enumerate(*actual, *apart))
    if (together != alone)
      return function.emitError() << "result " << i << " has other bits when each op is its own kernel";
  if (emulated) {
    codegen::CodegenOptions gpu = codegen::CodegenOptions::get(*findTarget("cuda-emulated"));
    gpu.cpu = cpu;
    if (!breakages.empty())
      return executeBroken(function, inputs, RunOptions{gpu, /*fuse=*/true, false}, *actual);
    FailureOr<SmallVector<Buffer>> threads = run(function, inputs, RunOptions{gpu, /*fuse=*/true, false});
    if (failed(threads))
      return failure();
    for (auto [i, host, device] : llvm::enumerate(*actual, *threads))
      if (host != device)
        return function.emitError() << "result " << i << " has other bits on an emulated GPU";
  }
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    Type type = cast<RankedTensorType>(function.getResultTypes()[i]).getElementType(), wide = widenType(type);
    if (printResults) {
      llvm::outs() << function.getName() << " result " << i << ":";
      for (int64_t e = 0, n = cast<RankedTensorType>(function.getResultTypes()[i]).getNumElements(); e < n; ++e)
        llvm::outs() << ' ' << llvm::format("%.9g", readElement((*actual)[i], type, e));
      llvm::outs() << '\n';
    }
    if (auto value = function.getResultAttrOfType<DenseElementsAttr>(i, "test.value")) {
      Buffer expected = toBuffer(value);
      if (failed(compare(function, i, "reference f64", (*exact)[i], wide, expected, type)) ||
          failed(compare(function, i, "cpu", (*actual)[i], type, expected, type)))
        return failure();
    } else if (failed(compare(function, i, "cpu against reference", (*actual)[i], type, (*exact)[i], wide))) {
      return failure();
    }
  }
  return success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  llvm::cl::ParseCommandLineOptions(argc, argv, "executes functions of nn ops on literal inputs\n");
  DialectRegistry registry;
  registerAllDialects(registry);
  codegen::KernelModule::registerDialects(registry);
  // Mistakes are tried in processes that fork from this one.
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(inputFile, sources, ParserConfig(&context));
  if (!module)
    return 1;
  unsigned failures = 0, count = 0;
  for (auto function : module->getOps<func::FuncOp>()) {
    if (!only.empty() && function.getName() != only)
      continue;
    ++count;
    failures += failed(execute(function));
  }
  if (listing == Listing::None)
    llvm::outs() << count - failures << " passed, " << failures << " failed\n";
  return failures || !count;
}

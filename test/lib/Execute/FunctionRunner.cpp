//===- FunctionRunner.cpp - runs a function of nn ops on literals -*- C++
//-*-===//
//
// nn-decompose, nn-cluster, code generation, dlopen, and a walk over the
// kernels in textual order.
//
//===----------------------------------------------------------------------===//

#include "FunctionRunner.h"
#include "Breakage.h"
#include "GuardedArrays.h"
#include "Passes.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "lowtide/Interfaces/RepeatSyntax.h"
#include "lowtide/Pipeline.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/Pass/PassManager.h"
#include "runtime/devices/FakeCuda/BlockRunner.h"

#include "llvm/Support/Format.h"

#include <chrono>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace lowtide;
using namespace lowtide::test;

static unsigned bytesOf(Type elementType) {
  unsigned bits = elementType.getIntOrFloatBitWidth();
  return bits == 1 ? 1 : bits / 8;
}

static Buffer allocate(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  // Filled with a pattern that is a NaN in every float type: an element that
  // was not written shows.
  return Buffer(type.getNumElements() * bytesOf(type.getElementType()), static_cast<char>(0xff));
}

Buffer test::toBuffer(DenseElementsAttr elements) {
  Type type = elements.getElementType();
  unsigned bytes = bytesOf(type);
  Buffer buffer(elements.getNumElements() * bytes);
  char *at = buffer.data();
  auto put = [&](const APInt &bits) {
    uint64_t word = bits.getZExtValue();
    std::memcpy(at, &word, bytes);
    at += bytes;
  };
  if (isa<FloatType>(type))
    for (APFloat value : elements.getValues<APFloat>())
      put(value.bitcastToAPInt());
  else
    for (APInt value : elements.getValues<APInt>())
      put(value);
  return buffer;
}

double test::readElement(const Buffer &buffer, Type type, uint64_t i) {
  unsigned bytes = bytesOf(type);
  uint64_t word = 0;
  std::memcpy(&word, buffer.data() + i * bytes, bytes);
  if (auto floatType = dyn_cast<FloatType>(type)) {
    APFloat value(floatType.getFloatSemantics(), APInt(floatType.getWidth(), word));
    bool lost;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
    return value.convertToDouble();
  }
  APInt value(type.getIntOrFloatBitWidth(), word, false,
              /*implicitTrunc=*/true);
  bool isUnsigned = type.isUnsignedInteger() || type.isInteger(1);
  return isUnsigned ? static_cast<double>(value.getZExtValue()) : static_cast<double>(value.getSExtValue());
}

static AttrTypeReplacer getWidener() {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](Float32Type type) -> Type { return Float64Type::get(type.getContext()); });
  replacer.addReplacement([](DenseElementsAttr elements) -> std::optional<Attribute> {
    if (!elements.getElementType().isF32())
      return std::nullopt;
    Type f64 = Float64Type::get(elements.getContext());
    return elements.mapValues(f64, [](const APFloat &value) {
      APFloat wide = value;
      bool lost;
      wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
      return wide.bitcastToAPInt();
    });
  });
  replacer.addReplacement([](FloatAttr attribute) -> std::optional<Attribute> {
    if (!attribute.getType().isF32())
      return std::nullopt;
    return FloatAttr::get(Float64Type::get(attribute.getContext()), attribute.getValueAsDouble());
  });
  return replacer;
}

Type test::widenType(Type type) {
  AttrTypeReplacer widener = getWidener();
  return widener.replace(type);
}

namespace {
/// A loaded shared object.
class Library {
public:
  explicit Library(ArrayRef<char> image) {
    int file = memfd_create("kernels", 0);
    if (file < 0 || write(file, image.data(), image.size()) != static_cast<ssize_t>(image.size()))
      return;
    std::string path = "/proc/self/fd/" + std::to_string(file);
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    close(file);
  }
  ~Library() {
    if (handle)
      dlclose(handle);
  }
  bool isLoaded() const { return handle; }
  using Kernel = void (*)(void *const *, int64_t, int64_t);
  /// For the CPU a Kernel, for an emulated GPU an lt_gpu_kernel.
  void *find(const std::string &symbol) const { return dlsym(handle, symbol.c_str()); }

private:
  void *handle = nullptr;
};
} // namespace

/// How a kernel is run: in one call; grain by grain backwards; with every result that may overwrite an operand in that
/// operand's bytes. On an emulated GPU these are also three orders of its threads. All give the same bits.
enum class LaunchMode { Whole, Split, InPlace };

/// Runs all blocks of a grid; says what went wrong, or nothing.
static std::string runGrid(lt_gpu_kernel kernel, const codegen::KernelInfo &info, void *const *args, LaunchMode mode) {
  using namespace lowtide::rt::cuda::fake;
  static BlockRunner runner;
  BlockLaunch launch{kernel, args, static_cast<uint32_t>(info.extent), static_cast<uint32_t>(info.threads),
                     static_cast<uint32_t>(info.sharedBytes)};
  ThreadOrder order = mode == LaunchMode::Whole   ? ThreadOrder::Turns
                      : mode == LaunchMode::Split ? ThreadOrder::LastWarpAhead
                                                  : ThreadOrder::FirstWarpAhead;
  for (int64_t i = 0; i < info.extent; ++i) {
    int64_t block = mode == LaunchMode::Split ? info.extent - 1 - i : i;
    if (std::string wrong = runner.run(launch, static_cast<uint32_t>(block), order); !wrong.empty())
      return wrong;
  }
  return "";
}

/// Results that take the bytes of an operand: the operand, or -1.
static SmallVector<int> chooseOverwritten(const codegen::KernelInfo &info, size_t numResults, LaunchMode mode) {
  SmallVector<int> chosen(numResults, -1);
  llvm::SmallDenseSet<int> taken;
  for (size_t i = 0; i < numResults && mode == LaunchMode::InPlace; ++i)
    for (int operand : info.inPlace[i])
      if (taken.insert(operand).second) {
        chosen[i] = operand;
        break;
      }
  return chosen;
}

/// The same on an emulated GPU, where no thread may touch what the kernel was not given.
static FailureOr<SmallVector<Buffer>> launchThreads(const Library &library, const codegen::KernelInfo &info,
                                                    nn::KernelOp op, ArrayRef<const Buffer *> operands,
                                                    LaunchMode mode) {
  GuardedArrays arrays(info.symbol + " (" + info.description + ")");
  SmallVector<void *> args;
  for (const Buffer *operand : operands)
    args.push_back(arrays.add(*operand));
  SmallVector<size_t> places;
  size_t next = args.size();
  for (auto [result, operand] : llvm::zip_equal(op.getResults(), chooseOverwritten(info, op.getNumResults(), mode))) {
    places.push_back(operand < 0 ? next++ : size_t(operand));
    args.push_back(operand < 0 ? arrays.add(allocate(result)) : args[operand]);
  }
  void *sums = info.partial ? arrays.add(Buffer(info.partialBytes, static_cast<char>(0xff))) : nullptr;
  auto runKernel = [&](const codegen::KernelInfo &facts, bool readsSums, bool writesSums) -> LogicalResult {
    SmallVector<void *> given;
    for (unsigned i = 0; i < op.getNumOperands(); ++i)
      if (!facts.reads || llvm::is_contained(*facts.reads, i))
        given.push_back(args[i]);
    if (readsSums)
      given.push_back(sums);
    for (unsigned i = 0; i < op.getNumResults(); ++i)
      if (!facts.writes || llvm::is_contained(*facts.writes, i))
        given.push_back(args[operands.size() + i]);
    if (writesSums)
      given.push_back(sums);
    auto kernel = reinterpret_cast<lt_gpu_kernel>(library.find(facts.symbol));
    if (std::string wrong = runGrid(kernel, facts, given.data(), mode); !wrong.empty())
      return op.emitError("stops on an emulated GPU: ") << wrong;
    return success();
  };
  if (info.partial && failed(runKernel(*info.partial, /*readsSums=*/false, /*writesSums=*/true)))
    return failure();
  if (failed(runKernel(info, /*readsSums=*/info.partial != nullptr, /*writesSums=*/false)))
    return failure();
  if (!arrays.isWhole())
    return op.emitError("stops on an emulated GPU: something was written beside an array");
  return llvm::map_to_vector(places, [&](size_t place) { return arrays.get(place); });
}

static FailureOr<SmallVector<Buffer>> launch(const Library &library, void *code, const codegen::KernelInfo &info,
                                             nn::KernelOp op, ArrayRef<const Buffer *> operands, LaunchMode mode) {
  if (info.threads)
    return launchThreads(library, info, op, operands, mode);
  auto kernel = reinterpret_cast<Library::Kernel>(code);
  SmallVector<Buffer> results = llvm::map_to_vector(op.getResults(), [](Value result) { return allocate(result); });
  Buffer scratch(info.scratchBytes + 64, static_cast<char>(0xff));
  SmallVector<void *> args;
  for (const Buffer *operand : operands)
    args.push_back(const_cast<char *>(operand->data()));
  for (Buffer &result : results)
    args.push_back(result.data());
  args.push_back(reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) & ~uintptr_t(63)));
  for (auto [i, operand] : llvm::enumerate(chooseOverwritten(info, results.size(), mode)))
    if (operand >= 0) {
      results[i] = *operands[operand];
      args[operand] = args[operands.size() + i] = results[i].data();
    }
  if (mode != LaunchMode::Split) {
    kernel(args.data(), 0, info.extent);
    return results;
  }
  for (int64_t begin = (info.extent - 1) / info.grain * info.grain; begin >= 0; begin -= info.grain)
    kernel(args.data(), begin, std::min(begin + info.grain, info.extent));
  return results;
}

/// Reports the time of a kernel on one thread, and the bytes that its operands and results have over it.
static void measure(llvm::raw_ostream &os, Library::Kernel kernel, const codegen::KernelInfo &info, nn::KernelOp op,
                    ArrayRef<const Buffer *> operands) {
  SmallVector<Buffer> results = llvm::map_to_vector(op.getResults(), [](Value result) { return allocate(result); });
  Buffer scratch(info.scratchBytes + 64);
  SmallVector<void *> args;
  uint64_t bytes = 0;
  for (const Buffer *operand : operands)
    args.push_back(const_cast<char *>(operand->data())), bytes += operand->size();
  for (Buffer &result : results)
    args.push_back(result.data()), bytes += result.size();
  args.push_back(reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) & ~uintptr_t(63)));
  using Clock = std::chrono::steady_clock;
  double best = 1e9, total = 0;
  for (int i = 0; i < 3 || (total < 0.05 && i < 1000); ++i) {
    auto start = Clock::now();
    kernel(args.data(), 0, info.extent);
    double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::min(best, seconds);
    total += seconds;
  }
  os << llvm::format("%10.1f us %7.2f GB/s  ", best * 1e6, bytes / best * 1e-9) << info.symbol << "  "
     << info.description << '\n';
}

/// Round after round, as RepeatInterface says.
static LogicalResult runLoop(RepeatInterface loop, DenseMap<Value, Buffer> &buffers,
                             llvm::function_ref<LogicalResult(Block &)> runBlock) {
  Block &body = loop->getRegion(0).front();
  Operation *next = body.getTerminator();
  const unsigned sliced = loop.getNumSliced(), carried = loop.getNumCarried();
  for (unsigned i = 0; i < carried; ++i)
    buffers[body.getArgument(sliced + i)] = Buffer(buffers[loop->getOperand(sliced + i)]);
  SmallVector<Buffer> rows(next->getNumOperands() - carried);
  for (int64_t round = 0; round < loop.getRounds(); ++round) {
    for (unsigned i = 0; i < sliced; ++i) {
      const Buffer &whole = buffers[loop->getOperand(i)];
      size_t bytes = whole.size() / loop.getRounds();
      const int64_t at = isReversed(loop) ? loop.getRounds() - 1 - round : round;
      Buffer part(whole.begin() + at * bytes, whole.begin() + (at + 1) * bytes);
      buffers[body.getArgument(i)] = std::move(part);
    }
    if (failed(runBlock(body)))
      return failure();
    SmallVector<Buffer> handedOn;
    for (Value value : next->getOperands().take_front(carried))
      handedOn.push_back(buffers[value]);
    for (auto [i, value] : llvm::enumerate(next->getOperands().drop_front(carried)))
      rows[i].insert(isReversed(loop) ? rows[i].begin() : rows[i].end(), buffers[value].begin(), buffers[value].end());
    for (auto [i, buffer] : llvm::enumerate(handedOn))
      buffers[body.getArgument(sliced + i)] = std::move(buffer);
  }
  for (unsigned i = 0; i < loop->getNumResults(); ++i)
    buffers[loop->getResult(i)] = i < carried ? Buffer(buffers[body.getArgument(sliced + i)]) : rows[i - carried];
  return success();
}

FailureOr<SmallVector<Buffer>> test::run(func::FuncOp original, ArrayRef<DenseElementsAttr> inputs,
                                         const RunOptions &options) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(original.getLoc());
  func::FuncOp function = original.clone();
  module->push_back(function);
  if (options.widen) {
    AttrTypeReplacer widener = getWidener();
    widener.recursivelyReplaceElementsIn(function, /*replaceAttrs=*/true,
                                         /*replaceLocs=*/false,
                                         /*replaceTypes=*/true);
  }
  PassManager pm(module->getContext(), ModuleOp::getOperationName());
  NNDecomposeOptions decompose;
  decompose.library = false;
  pm.addNestedPass<func::FuncOp>(createNNDecompose(decompose));
  NNClusterOptions cluster;
  cluster.fuse = options.fuse ? "true" : "false";
  cluster.library = false;
  pm.addNestedPass<func::FuncOp>(createNNCluster(cluster));
  if (failed(pm.run(*module)))
    return failure();

  codegen::KernelModule kernels(module->getContext(), options.codegen);
  llvm::MapVector<Operation *, codegen::KernelInfo> infos;
  WalkResult added = function.walk([&](nn::KernelOp kernel) {
    FailureOr<codegen::KernelInfo> info = kernels.add(kernel);
    if (failed(info))
      return WalkResult::interrupt();
    infos[kernel] = *info;
    return WalkResult::advance();
  });
  if (added.wasInterrupted())
    return failure();
  if (!options.breakage.empty() && failed(breakKernels(kernels.getModule(), options.breakage)))
    return failure();
  if (options.listing == Listing::Functions || options.listing == Listing::Cpu) {
    kernels.print(llvm::outs());
    return SmallVector<Buffer>();
  }
  FailureOr<codegen::KernelCode> code = kernels.link();
  if (failed(code))
    return failure();
  if (options.listing == Listing::Ptx) {
    llvm::outs() << code->ptx;
    return SmallVector<Buffer>();
  }
  if (!options.savePath.empty()) {
    std::error_code error;
    llvm::raw_fd_ostream(options.savePath, error).write(code->object.data(), code->object.size());
  }
  Library library(code->object);
  if (!library.isLoaded())
    return function.emitError("cannot load the kernels: ") << dlerror();

  DenseMap<Value, Buffer> buffers;
  for (auto [argument, input] : llvm::zip_equal(function.getArguments(), inputs)) {
    auto widened = options.widen ? cast<DenseElementsAttr>(getWidener().replace(input)) : input;
    buffers[argument] = toBuffer(widened);
  }
  std::function<LogicalResult(Block &)> runBlock = [&](Block &block) -> LogicalResult {
    for (Operation &op : block.without_terminator()) {
      auto facts = dyn_cast<FactsInterface>(op);
      if (facts && facts.getFacts().aliasing == Aliasing::View) {
        buffers[op.getResult(0)] = Buffer(buffers[op.getOperand(0)]);
        continue;
      }
      if (auto loop = dyn_cast<RepeatInterface>(op)) {
        if (failed(runLoop(loop, buffers, runBlock)))
          return failure();
        continue;
      }
      auto kernel = dyn_cast<nn::KernelOp>(op);
      if (!kernel)
        return op.emitError("is neither kernel, view nor loop");
      const codegen::KernelInfo &info = infos[kernel];
      SmallVector<const Buffer *> operands =
          llvm::map_to_vector(op.getOperands(), [&](Value operand) -> const Buffer * { return &buffers[operand]; });
      void *code = library.find(info.symbol);
      if (!code)
        return op.emitError("has no symbol ") << info.symbol;
      if (options.timing)
        measure(*options.timing, reinterpret_cast<Library::Kernel>(code), info, kernel, operands);
      auto runAs = [&](LaunchMode mode) { return launch(library, code, info, kernel, operands, mode); };
      FailureOr<SmallVector<Buffer>> whole = runAs(LaunchMode::Whole), inPlace = runAs(LaunchMode::InPlace);
      FailureOr<SmallVector<Buffer>> split = runAs(LaunchMode::Split);
      if (failed(whole) || failed(inPlace) || failed(split))
        return failure();
      if (*whole != *inPlace)
        return op.emitError("gives other bits when it overwrites its operands");
      if (*whole != *split)
        return op.emitError("gives other bits when its iteration space is split");
      for (auto [result, buffer] : llvm::zip_equal(op.getResults(), *whole))
        buffers[result] = std::move(buffer);
    }
    return success();
  };
  if (failed(runBlock(function.getBody().front())))
    return failure();
  SmallVector<Buffer> results;
  for (Value result : function.getBody().front().getTerminator()->getOperands())
    results.push_back(buffers[result]);
  return results;
}

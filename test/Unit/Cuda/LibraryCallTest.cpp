//===- LibraryCallTest.cpp - calls of the plan on cuBLASLt and cuDNN -------===//
//
// Each call runs on the CPU and, through the libraries' interfaces, on the fake device, which computes it with the same
// kernels: what is tested is that layouts, strides, batches and operands are handed over rightly.
//
//===----------------------------------------------------------------------===//

#include "CudaRegression.h"

#include "runtime/Element.h"
#include "runtime/LibraryTable.h"
#include "runtime/RandomInit.h"
#include "runtime/Workspace.h"
#include "runtime/calls/Gemm/GemmShape.h"
#include "runtime/devices/Cuda/LibraryCall.h"
#include "runtime/devices/FakeCuda/FakeCuda.h"

#include <algorithm>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;

namespace {

bool has(const plan::Call &call, const char *name) {
  return std::any_of(call.attributes().begin(), call.attributes().end(),
                     [&](const plan::Attribute &attribute) { return attribute.name() == name; });
}

GemmShape::Epilogue readGemmEpilogue(const plan::Call &call) {
  Expected<GemmShape> shape = call.callee() == "gemm" ? readGemm(call) : Expected<GemmShape>(GemmShape());
  return shape ? shape->epilogue : GemmShape::Epilogue::None;
}

/// A plan of one call: operands come in as batch arrays of plain elements, the result goes out.
plan::Plan planOf(plan::Call call, const std::vector<uint64_t> &elements, uint64_t resultElements, plan::DType dtype,
                  plan::DType resultDtype, bool accumulate, const char *target) {
  plan::Plan plan;
  plan.set_format_version(planFormatVersion);
  plan.set_target(target);
  plan.set_threads_max(2);
  plan::Entry *entry = plan.add_entries();
  entry->set_name("run");
  uint64_t at = 0, value = 1;
  call.clear_reads(), call.clear_writes();
  for (size_t i = 0; i < elements.size(); ++i) {
    // A derivative of ReLU reads bytes of bits last.
    const bool isMask = i > 1 && i + 1 == elements.size() && readGemmEpilogue(call) == GemmShape::Epilogue::ReluGrad;
    plan::DType type = i < 2 ? dtype : isMask ? plan::U8 : resultDtype;
    plan::Slice where = slice(0, at, elements[i] * elementBytes(type), value);
    bool carried = accumulate && i == 2;
    bind(*entry, ("operand" + std::to_string(i)).c_str(), plan::Binding::BATCH, type,
         {static_cast<int64_t>(elements[i])}, where, carried ? 9 : value);
    *call.add_reads() = where;
    at += (where.bytes() + 255) / 256 * 256;
    ++value;
  }
  plan::Slice result = accumulate ? call.reads(2) : slice(0, at, resultElements * elementBytes(resultDtype), 0);
  if (!accumulate) {
    bind(*entry, "result", plan::Binding::OUTPUT, resultDtype, {static_cast<int64_t>(resultElements)}, result, 9);
    at += (result.bytes() + 255) / 256 * 256;
  } else {
    plan::Slice start = result;
    start.set_value(0);
    bind(*entry, "result", plan::Binding::OUTPUT, resultDtype, {static_cast<int64_t>(resultElements)}, start, 9);
  }
  result.set_value(9);
  *call.add_writes() = result;
  if (has(call, "keeps_input") || has(call, "keeps_mask") || has(call, "sums_columns") || has(call, "sums_a") ||
      has(call, "sums_b")) {
    // A second result of the size of the first, of its rows or columns, or of bytes of bits.
    Expected<GemmShape> shape = readGemm(call);
    uint64_t elements = shape->keepsMask    ? shape->maskBytes()
                        : shape->keepsInput ? resultElements
                                            : static_cast<uint64_t>(shape->sumsCount());
    const plan::DType type = shape->keepsMask ? plan::U8 : resultDtype;
    plan::Slice kept = slice(0, at, elements * elementBytes(type), 0);
    bind(*entry, "kept", plan::Binding::OUTPUT, type, {static_cast<int64_t>(elements)}, kept, 10);
    at += (kept.bytes() + 255) / 256 * 256;
    kept.set_value(10);
    *call.add_writes() = kept;
  }
  // At no multiple of what the libraries want.
  const uint64_t workspace = isGpu(target) ? *queryGpuWorkspace(call, 132) : workspaceBytes(call),
                 begin = workspaceAlignment;
  *call.mutable_workspace() = slice(1, begin, workspace, 0);
  *entry->add_instructions()->mutable_call() = call;
  addArena(plan, "io", plan::Arena::IO, at);
  addArena(plan, "transient", plan::Arena::TRANSIENT, begin + workspace);
  if (isGpu(target))
    addExchangeArenas(plan);
  return plan;
}

std::vector<uint8_t> execute(const plan::Plan &plan) {
  std::string path = testing::TempDir() + "call.tide";
  auto writer = ArtifactWriter::create(path);
  EXPECT_TRUE((*writer)->add("plan", plan.SerializeAsString()).isOk());
  EXPECT_TRUE((*writer)->add("params", "").isOk());
  EXPECT_TRUE((*writer)->finish().isOk());
  auto session = Session::load(path);
  if (!session) {
    ADD_FAILURE() << session.status().str();
    return {};
  }
  BindOptions options;
  options.threads = 2;
  Status status = (*session)->bind(options);
  EXPECT_TRUE(status.isOk()) << status.str();
  if (!status.isOk())
    return {};
  for (const Tensor &tensor : (*session)->tensors("run", plan::Binding::BATCH)) {
    uint64_t size = elementBytes(tensor.binding->dtype());
    for (uint64_t i = 0; i < tensor.bytes() / size; ++i)
      if (uint64_t drawn = counterRandom(tensor.binding->name().back(), i); tensor.binding->dtype() == plan::U8)
        tensor.data[i] = static_cast<uint8_t>(drawn);
      else
        storeElement(tensor.binding->dtype(), tensor.data + i * size, static_cast<double>(drawn % 33) / 16 - 1);
  }
  EXPECT_TRUE((*session)->step("run").isOk());
  EXPECT_TRUE((*session)->download("run").isOk());
  std::vector<uint8_t> bytes;
  for (const char *name : {"result", "kept"})
    if (auto result = (*session)->tensor("run", name))
      bytes.insert(bytes.end(), result->data, result->data + result->bytes());
  return bytes;
}

void compare(const plan::Call &call, const std::vector<uint64_t> &elements, uint64_t resultElements,
             plan::DType dtype = plan::F32, plan::DType resultDtype = plan::F32, bool accumulate = false) {
  rt::cuda::fake::configure({});
  auto on = [&](const char *target) {
    return execute(planOf(call, elements, resultElements, dtype, resultDtype, accumulate, target));
  };
  std::vector<uint8_t> cpu = on("cpu:x86-64-v3"), cuda = on("cuda-emulated");
  ASSERT_EQ(cpu.size(), cuda.size());
  EXPECT_EQ(cpu, cuda);
}

TEST(LibraryCall, GemmInEveryOrientation) {
  for (int a = 0; a < 2; ++a)
    for (int b = 0; b < 2; ++b) {
      plan::Call call = gemmCall(13, 17, 9);
      set(call, "transpose_a", a), set(call, "transpose_b", b);
      set(call, "alpha", 0.5);
      compare(call, {13 * 9, 9 * 17}, 13 * 17);
    }
}

TEST(LibraryCall, GemmWithAddends) {
  plan::Call full = gemmCall(6, 10, 8);
  compare(full, {48, 80, 60}, 60);
  plan::Call row = gemmCall(6, 10, 8);
  set(row, "addend", "row");
  compare(row, {48, 80, 10}, 60);
  plan::Call accumulate = gemmCall(6, 10, 8);
  set(accumulate, "accumulate", 1);
  compare(accumulate, {48, 80, 60}, 60, plan::F32, plan::F32, true);
}

TEST(LibraryCall, GemmWithEpilogues) {
  plan::Call relu = gemmCall(6, 10, 8);
  set(relu, "addend", "row"), set(relu, "epilogue", "relu");
  compare(relu, {48, 80, 10}, 60);
  for (plan::DType type : {plan::F16, plan::BF16}) {
    auto typed = [&](const char *epilogue, const char *addend) {
      plan::Call call = gemmCall(6, 16, 8);
      set(call, "dtype", type == plan::F16 ? "f16" : "bf16");
      set(call, "addend", addend), set(call, "epilogue", epilogue);
      return call;
    };
    compare(typed("gelu", "none"), {48, 128}, 96, type, type);
    plan::Call operand = typed("none", "none");
    set(operand, "result_dtype", "f32"), set(operand, "transpose_a", 1), set(operand, "sums_b", 1);
    compare(operand, {48, 128}, 96, type, plan::F32);
    plan::Call left = typed("none", "none");
    set(left, "result_dtype", "f32"), set(left, "transpose_a", 1), set(left, "sums_a", 1);
    compare(left, {48, 128}, 96, type, plan::F32);
    plan::Call kept = typed("gelu", "row");
    set(kept, "keeps_input", 1);
    compare(kept, {48, 128, 16}, 96, type, type);
    compare(typed("dgelu", "none"), {48, 128, 96}, 96, type, type);
    compare(typed("dgelu", "full"), {48, 128, 96, 96}, 96, type, type);
  }
}

/// Bits in rows that end within a byte, within a row of bits and with it; 6 rows of 16, 32 and 16 bytes.
TEST(LibraryCall, ReluKeepsAndReadsBits) {
  for (plan::DType type : {plan::F32, plan::F16, plan::BF16})
    for (uint64_t columns : {10, 130, 128}) {
      auto typed = [&](const char *epilogue, const char *addend) {
        plan::Call call = gemmCall(6, static_cast<int64_t>(columns), 8);
        set(call, "dtype", type == plan::F32 ? "f32" : type == plan::F16 ? "f16" : "bf16");
        set(call, "addend", addend), set(call, "epilogue", epilogue);
        return call;
      };
      const uint64_t bytes = columns == 130 ? 6 * 32 : 6 * 16;
      plan::Call kept = typed("relu", "row");
      set(kept, "keeps_mask", 1);
      compare(kept, {48, 8 * columns, columns}, 6 * columns, type, type);
      plan::Call plain = typed("relu", "none");
      set(plain, "keeps_mask", 1);
      compare(plain, {48, 8 * columns}, 6 * columns, type, type);
      compare(typed("drelu", "none"), {48, 8 * columns, bytes}, 6 * columns, type, type);
      compare(typed("drelu", "full"), {48, 8 * columns, 6 * columns, bytes}, 6 * columns, type, type);
    }
}

/// gelu and its derivative against their definitions, in f64.
TEST(LibraryCall, EpiloguesComputeWhatTheySay) {
  auto run = [&](const char *epilogue, std::vector<uint64_t> elements) {
    plan::Call call = gemmCall(4, 8, 1);
    set(call, "addend", "none"), set(call, "epilogue", epilogue);
    std::vector<uint8_t> bytes = execute(planOf(call, elements, 32, plan::F32, plan::F32, false, "cpu:x86-64-v3"));
    std::vector<float> values(bytes.size() / 4);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  };
  auto operand = [](int number, uint64_t i) {
    return static_cast<double>(counterRandom(static_cast<uint64_t>('0' + number), i) % 33) / 16 - 1;
  };
  auto gelu = [](double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); };
  auto sum = [&](const std::vector<float> &values, uint64_t column) {
    return values[column] + values[8 + column] + values[16 + column] + values[24 + column];
  };
  std::vector<float> applied = run("gelu", {4, 8}), derived = run("dgelu", {4, 8, 32}), cut = run("relu", {4, 8});
  ASSERT_EQ(applied.size(), 32u);
  for (uint64_t i = 0; i < 32; ++i) {
    double z = operand(0, i / 8) * operand(1, i % 8), input = operand(2, i), h = 1e-6;
    EXPECT_NEAR(applied[i], gelu(z), 1e-6);
    EXPECT_NEAR(derived[i], z * (gelu(input + h) - gelu(input - h)) / (2 * h), 1e-6);
    EXPECT_NEAR(cut[i], std::max(z, 0.0), 1e-7);
  }
  plan::Call call = gemmCall(4, 8, 1);
  set(call, "addend", "none"), set(call, "epilogue", "dgelu"), set(call, "sums_columns", 1);
  std::vector<uint8_t> bytes = execute(planOf(call, {4, 8, 32}, 32, plan::F32, plan::F32, false, "cpu:x86-64-v3"));
  std::vector<float> summed(bytes.size() / 4);
  std::memcpy(summed.data(), bytes.data(), bytes.size());
  ASSERT_EQ(summed.size(), 40u);
  for (uint64_t column = 0; column < 8; ++column)
    EXPECT_NEAR(summed[32 + column], sum(derived, column), 1e-6);
  plan::Call beside = gemmCall(8, 4, 3);
  set(beside, "sums_b", 1);
  bytes = execute(planOf(beside, {24, 12}, 32, plan::F32, plan::F32, false, "cpu:x86-64-v3"));
  summed.resize(bytes.size() / 4);
  std::memcpy(summed.data(), bytes.data(), bytes.size());
  ASSERT_EQ(summed.size(), 36u);
  for (uint64_t column = 0; column < 4; ++column)
    EXPECT_NEAR(summed[32 + column], operand(1, column) + operand(1, 4 + column) + operand(1, 8 + column), 1e-6);
}

/// ReLU's bits and what is left by them, and sums of a left side, against their definitions.
TEST(LibraryCall, BitsSayWhatIsLeft) {
  auto operand = [](int number, uint64_t i) { return counterRandom(static_cast<uint64_t>('0' + number), i); };
  auto number = [&](int which, uint64_t i) { return static_cast<float>(operand(which, i) % 33) / 16 - 1; };
  const uint64_t m = 3, n = 140, rowBytes = 32;
  auto run = [&](plan::Call call, std::vector<uint64_t> elements, uint64_t results) {
    return execute(planOf(call, elements, results, plan::F32, plan::F32, false, "cpu:x86-64-v3"));
  };
  plan::Call relu = gemmCall(m, n, 1), derivative = relu;
  set(relu, "addend", "none"), set(relu, "epilogue", "relu"), set(relu, "keeps_mask", 1);
  set(derivative, "addend", "none"), set(derivative, "epilogue", "drelu"), set(derivative, "sums_columns", 1);
  std::vector<uint8_t> cut = run(relu, {m, n}, m * n), left = run(derivative, {m, n, m * rowBytes}, m * n);
  ASSERT_EQ(cut.size(), m * n * 4 + m * rowBytes);
  ASSERT_EQ(left.size(), m * n * 4 + n * 4);
  auto at = [](const std::vector<uint8_t> &bytes, uint64_t i) {
    float value;
    std::memcpy(&value, bytes.data() + i * 4, 4);
    return value;
  };
  for (uint64_t column = 0; column < n; ++column) {
    float sum = 0;
    for (uint64_t row = 0; row < m; ++row) {
      const float z = number(0, row) * number(1, column);
      const uint64_t byte = row * rowBytes + column / 8;
      EXPECT_EQ(at(cut, row * n + column), std::max(z, 0.0f));
      EXPECT_EQ(cut[m * n * 4 + byte] >> column % 8 & 1, z > 0);
      const bool isKept = operand(2, byte) >> column % 8 & 1;
      EXPECT_EQ(at(left, row * n + column), isKept ? z : 0);
      sum += isKept ? z : 0;
    }
    EXPECT_NEAR(at(left, m * n + column), sum, 1e-6);
  }
  for (uint64_t row = 0; row < m; ++row)
    for (uint64_t bit = n; bit < rowBytes * 8; ++bit)
      EXPECT_EQ(cut[m * n * 4 + row * rowBytes + bit / 8] >> bit % 8 & 1, 0);
  plan::Call beside = gemmCall(8, 4, 3);
  set(beside, "sums_a", 1);
  std::vector<uint8_t> bytes = run(beside, {24, 12}, 32);
  ASSERT_EQ(bytes.size(), 40u * 4);
  for (uint64_t row = 0; row < 8; ++row)
    EXPECT_NEAR(at(bytes, 32 + row), number(0, row * 3) + number(0, row * 3 + 1) + number(0, row * 3 + 2), 1e-6);
}

TEST(LibraryCall, GemmWithOneRowOrColumn) {
  compare(gemmCall(1, 20, 7), {7, 140}, 20);
  compare(gemmCall(20, 1, 7), {140, 7}, 20);
  compare(gemmCall(1, 1, 1), {1, 1}, 1);
}

TEST(LibraryCall, GemmOfHeadsInsideRows) {
  // [batch 2, heads 3] of [time 4 × 5] by its transpose: heads lie inside rows of 15.
  plan::Call call = gemmCall(4, 4, 5);
  set(call, "transpose_b", 1);
  set(call, "lda", 15), set(call, "ldb", 15);
  set(call, "batch_dims", std::vector<int64_t>{2, 3});
  set(call, "batch_strides_a", std::vector<int64_t>{60, 5}), set(call, "batch_strides_b", std::vector<int64_t>{60, 5});
  set(call, "batch_strides_d", std::vector<int64_t>{48, 16});
  compare(call, {120, 120}, 96);
}

TEST(LibraryCall, GemmOfSeveralBatchDimensions) {
  plan::Call call = gemmCall(3, 4, 5);
  set(call, "batch_dims", std::vector<int64_t>{2, 3, 2});
  // B is the same for the middle dimension; the outer two of A lie one after another.
  set(call, "batch_strides_a", std::vector<int64_t>{90, 30, 15});
  set(call, "batch_strides_b", std::vector<int64_t>{40, 0, 20});
  set(call, "batch_strides_d", std::vector<int64_t>{72, 24, 12});
  compare(call, {180, 80}, 144);
}

TEST(LibraryCall, GemmWithABiasForEachOfABatch) {
  plan::Call call = gemmCall(3, 4, 5);
  set(call, "addend", "row");
  set(call, "batch_dims", std::vector<int64_t>{2, 3});
  set(call, "batch_strides_a", std::vector<int64_t>{45, 15}),
      set(call, "batch_strides_b", std::vector<int64_t>{60, 20});
  set(call, "batch_strides_c", std::vector<int64_t>{4, 0}), set(call, "batch_strides_d", std::vector<int64_t>{36, 12});
  compare(call, {90, 120, 8}, 72);
}

TEST(LibraryCall, WorkspaceIsTheLibrarysToWrite) {
  namespace cuda = rt::cuda;
  cuda::fake::configure({});
  cuda::Api api = cuda::fake::api();
  cuda::Resources resources(api);
  ASSERT_TRUE(resources.open().isOk());
  cuda::Libraries libraries(api, resources);
  auto stream = resources.stream();
  auto memory = resources.deviceMemory(1024);
  ASSERT_TRUE(stream && memory);
  // Memory of the fake device is the host's.
  auto *numbers = reinterpret_cast<float *>(*memory);
  std::fill(numbers, numbers + 256, 1.0f);
  cuda::CallAddresses addresses;
  addresses.reads = {*memory, *memory + 64}, addresses.writes = {*memory + 128};
  addresses.workspace = *memory + 256, addresses.workspaceBytes = 512;
  auto run = [&]() -> Status {
    auto call = libraries.prepare(gemmCall(4, 4, 4), addresses);
    if (!call)
      return call.takeStatus();
    LOWTIDE_TRY((*call)->enqueue(*stream));
    return api.check(api.driver.cuStreamSynchronize(*stream), "cuStreamSynchronize");
  };
  Status status = run();
  ASSERT_TRUE(status.isOk()) << status.str();
  EXPECT_EQ(numbers[32], 4);
  EXPECT_EQ(numbers[48], 1);
  EXPECT_TRUE(std::isnan(numbers[64]) && std::isnan(numbers[64 + 127]));
  EXPECT_EQ(numbers[64 + 128], 1);
  addresses.workspaceBytes = 1024;
  EXPECT_FALSE(run().isOk());
  addresses.workspace += 64, addresses.workspaceBytes = 256;
  EXPECT_FALSE(run().isOk()) << "cuBLASLt wants multiples of 256 bytes";
  EXPECT_TRUE(resources.close().isOk());
}

TEST(LibraryCall, GemmOfNarrowTypes) {
  for (const char *type : {"f16", "bf16"})
    for (const char *result : {type, "f32"}) {
      plan::Call call = gemmCall(7, 9, 12);
      set(call, "dtype", type), set(call, "result_dtype", result);
      plan::DType narrow = std::string(type) == "f16" ? plan::F16 : plan::BF16;
      compare(call, {84, 108}, 63, narrow, std::string(result) == "f32" ? plan::F32 : narrow);
    }
  plan::Call wide = gemmCall(7, 9, 12);
  set(wide, "dtype", "f64");
  compare(wide, {84, 108}, 63, plan::F64, plan::F64);
}

struct Convolution {
  std::vector<int64_t> input, filter, output, strides, begins, ends, dilations;
  int64_t groups = 1;
};

uint64_t product(const std::vector<int64_t> &dims) {
  uint64_t count = 1;
  for (int64_t dim : dims)
    count *= static_cast<uint64_t>(dim);
  return count;
}

plan::Call convCall(const char *callee, const Convolution &conv) {
  plan::Call call;
  call.set_callee(callee);
  set(call, "input", conv.input), set(call, "filter", conv.filter), set(call, "output", conv.output);
  set(call, "strides", conv.strides), set(call, "pads_begin", conv.begins), set(call, "pads_end", conv.ends);
  set(call, "dilations", conv.dilations), set(call, "groups", conv.groups);
  return call;
}

const Convolution convolutions[] = {
    {{2, 3, 8, 9}, {4, 3, 3, 3}, {2, 4, 8, 9}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {{2, 4, 9, 9}, {6, 2, 3, 3}, {2, 6, 5, 5}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 2}, // groups, stride
    {{1, 4, 8, 8}, {4, 1, 2, 2}, {1, 4, 4, 4}, {2, 2}, {0, 0}, {0, 0}, {1, 1}, 4}, // depthwise
    {{1, 2, 8, 8}, {3, 2, 3, 3}, {1, 3, 4, 4}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},    // the last padding is not reached
    {{1, 2, 8, 7}, {3, 2, 3, 3}, {1, 3, 6, 6}, {1, 1}, {1, 2}, {1, 1}, {2, 2}},    // dilation, uneven padding
    {{2, 3, 10}, {5, 3, 4}, {2, 5, 4}, {2}, {0}, {0}, {1}},                        // one dimension, a rest
    {{1, 2, 4, 5, 6}, {3, 2, 3, 3, 3}, {1, 3, 4, 5, 6}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
};

TEST(LibraryCall, Convolutions) {
  for (const Convolution &conv : convolutions) {
    uint64_t x = product(conv.input), w = product(conv.filter), y = product(conv.output);
    compare(convCall("conv", conv), {x, w}, y);
    compare(convCall("conv_input_grad", conv), {y, w}, x);
    compare(convCall("conv_filter_grad", conv), {x, y}, w);
  }
}

TEST(LibraryCall, ConvolutionsOfNarrowTypes) {
  const Convolution &conv = convolutions[0];
  uint64_t x = product(conv.input), w = product(conv.filter), y = product(conv.output);
  for (const char *callee : {"conv", "conv_input_grad", "conv_filter_grad"}) {
    plan::Call call = convCall(callee, conv);
    set(call, "dtype", "bf16");
    bool forward = std::string(callee) == "conv", filter = std::string(callee) == "conv_filter_grad";
    compare(call, {forward || filter ? x : y, filter ? y : w}, forward ? y : filter ? w : x, plan::BF16, plan::BF16);
    // cuDNN's engines for this layout round to the operands' type.
    set(call, "result_dtype", "f32");
    auto rule = declineCall(call);
    ASSERT_TRUE(rule && *rule);
    EXPECT_STREQ((*rule)->library, "cuDNN");
  }
}

TEST(LibraryCall, ABiasOfAConvolutionIsDeclined) {
  const Convolution &conv = convolutions[0];
  plan::Call call = convCall("conv", conv);
  call.add_reads(), call.add_reads(), call.add_reads(), call.add_writes();
  auto rule = declineCall(call);
  ASSERT_TRUE(rule && *rule);
  EXPECT_STREQ((*rule)->library, "cuDNN");
}

TEST(LibraryCall, TheEngineIsDeterministicAndFitsTheWorkspace) {
  cuda::fake::configure({});
  cuda::Api api = cuda::fake::api();
  cuda::Resources resources(api);
  ASSERT_TRUE(resources.open().isOk());
  cuda::Libraries libraries(api, resources);
  auto memory = resources.deviceMemory(1 << 20);
  ASSERT_TRUE(memory);
  plan::Call call = convCall("conv", convolutions[0]);
  set(call, "dtype", "bf16");
  cuda::CallAddresses addresses;
  addresses.reads = {*memory, *memory + 4096}, addresses.writes = {*memory + 8192};
  addresses.workspace = *memory + 16384, addresses.workspaceBytes = 131;
  // The fake lists three: results that differ from run to run, more workspace than there is, and this one.
  auto fits = libraries.prepare(call, addresses);
  ASSERT_TRUE(fits) << fits.status().str();
  EXPECT_EQ((*fits)->choice(), "cuDNN engine 2, 131 bytes of workspace");
  addresses.workspaceBytes = 130;
  auto tooSmall = libraries.prepare(call, addresses);
  ASSERT_FALSE(tooSmall);
  EXPECT_NE(tooSmall.status().str().find("the smallest needs 131 bytes of workspace, the plan has 130"),
            std::string::npos)
      << tooSmall.status().str();
  EXPECT_TRUE(resources.close().isOk());
}

TEST(LibraryCall, EveryCallOfCudnnMayFail) {
  const Convolution &conv = convolutions[2];
  plan::Plan plan = planOf(convCall("conv", conv), {product(conv.input), product(conv.filter)}, product(conv.output),
                           plan::F32, plan::F32, false, "cuda-emulated");
  std::string path = testing::TempDir() + "conv.tide";
  auto writer = ArtifactWriter::create(path);
  ASSERT_TRUE((*writer)->add("plan", plan.SerializeAsString()).isOk());
  ASSERT_TRUE((*writer)->add("params", "").isOk());
  ASSERT_TRUE((*writer)->finish().isOk());
  failEveryCall([&]() -> Status {
    auto session = Session::load(path);
    if (!session)
      return session.takeStatus();
    BindOptions options;
    options.threads = 1;
    LOWTIDE_TRY((*session)->bind(options));
    for (int step = 0; step < 3; ++step) {
      LOWTIDE_TRY((*session)->step("run"));
      LOWTIDE_TRY((*session)->settle());
    }
    LOWTIDE_TRY((*session)->download("run"));
    return (*session)->close();
  });
}

} // namespace

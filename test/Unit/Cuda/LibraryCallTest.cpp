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

/// A plan of one call: operands come in as batch arrays of plain elements, the result goes out.
plan::Plan planOf(plan::Call call, const std::vector<uint64_t> &elements, uint64_t resultElements, plan::DType dtype,
                  plan::DType resultDtype, bool accumulate, const char *target) {
  plan::Plan plan;
  plan.set_format_version(1);
  plan.set_target(target);
  plan.set_threads_max(2);
  plan::Entry *entry = plan.add_entries();
  entry->set_name("run");
  uint64_t at = 0, value = 1;
  call.clear_reads(), call.clear_writes();
  for (size_t i = 0; i < elements.size(); ++i) {
    plan::DType type = i < 2 ? dtype : resultDtype;
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
  if (has(call, "keeps_input") || has(call, "sums_columns") || has(call, "sums_b")) {
    // A second result of the size of the first, or of its rows.
    uint64_t elements = has(call, "keeps_input") ? resultElements : static_cast<uint64_t>(readGemm(call)->n);
    plan::Slice kept = slice(0, at, elements * elementBytes(resultDtype), 0);
    bind(*entry, "kept", plan::Binding::OUTPUT, resultDtype, {static_cast<int64_t>(elements)}, kept, 10);
    at += (kept.bytes() + 255) / 256 * 256;
    kept.set_value(10);
    *call.add_writes() = kept;
  }
  uint64_t workspace = workspaceBytes(call);
  *call.mutable_workspace() = slice(1, 0, workspace, 0);
  *entry->add_instructions()->mutable_call() = call;
  addArena(plan, "io", plan::Arena::IO, at);
  addArena(plan, "transient", plan::Arena::TRANSIENT, workspace);
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
      storeElement(tensor.binding->dtype(), tensor.data + i * size,
                   static_cast<double>(counterRandom(tensor.binding->name().back(), i) % 33) / 16 - 1);
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

plan::Call gemmCall(int64_t m, int64_t n, int64_t k) {
  plan::Call call;
  call.set_callee("gemm");
  set(call, "m", m), set(call, "n", n), set(call, "k", k);
  return call;
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
    plan::Call kept = typed("gelu", "row");
    set(kept, "keeps_input", 1);
    compare(kept, {48, 128, 16}, 96, type, type);
    compare(typed("dgelu", "none"), {48, 128, 96}, 96, type, type);
    compare(typed("dgelu", "full"), {48, 128, 96, 96}, 96, type, type);
    if (type == plan::BF16) {
      plan::Call summed = typed("dgelu", "none");
      set(summed, "sums_columns", 1);
      compare(summed, {48, 128, 96}, 96, type, type);
    }
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
  // B is the same for the middle dimension; the outer two of A lie behind each other.
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
    // The sums are the same; the bias is added to what was rounded already, which f32 values of few bits do not show.
    compare(convCall("conv", conv), {x, w, static_cast<uint64_t>(conv.filter[0])}, y);
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

TEST(LibraryCall, EveryCallOfCudnnMayFail) {
  const Convolution &conv = convolutions[2];
  plan::Plan plan = planOf(convCall("conv", conv), {product(conv.input), product(conv.filter), 4}, product(conv.output),
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

TEST(LibraryTable, KnowsWhichAttentionsAreTaken) {
  struct Row {
    const char *dtype;
    int64_t depth, rows, columns;
    std::vector<int64_t> mask;
    const char *maskDtype;
    bool taken;
  };
  const Row rows[] = {
      {"bf16", 64, 16, 16, {}, "", true},
      {"f16", 128, 16, 20, {}, "", true},
      {"f32", 64, 16, 16, {}, "", false},
      {"f16", 60, 16, 16, {}, "", false},
      {"f16", 136, 16, 16, {}, "", false},
      {"f16", 64, 1, 16, {}, "", false},
      {"f16", 64, 16, 16, {1, 1, 16, 16}, "", true},
      {"f16", 64, 16, 16, {2, 4, 16, 16}, "", true},
      {"f16", 64, 16, 16, {1, 1, 16, 16}, "f32", false},
      {"f16", 64, 16, 16, {2, 1, 1, 16}, "", false},
  };
  for (const char *callee : {"attention", "attention_grad"})
    for (const Row &row : rows) {
      plan::Call call;
      call.set_callee(callee);
      set(call, "dtype", row.dtype);
      set(call, "batch", 2), set(call, "heads", 4), set(call, "key_heads", 2), set(call, "rows", row.rows);
      set(call, "columns", row.columns), set(call, "depth", row.depth), set(call, "value_depth", row.depth);
      if (!row.mask.empty())
        set(call, "mask", row.mask);
      if (*row.maskDtype)
        set(call, "mask_dtype", row.maskDtype);
      auto rule = declineCall(call);
      ASSERT_TRUE(rule) << rule.status().str();
      EXPECT_EQ(*rule == nullptr, row.taken) << row.dtype << " " << row.depth << " " << row.rows;
      EXPECT_FALSE(queryWorkspace(call)); // the CPU has no kernel
      auto bytes = queryGpuWorkspace(call);
      ASSERT_TRUE(bytes);
      // The derivative writes the cotangents of scores out, in tiles of 64 × 128.
      EXPECT_GE(*bytes, std::string(callee) == "attention" ? 0u : 2u * 4 * 64 * 128 * 2);
    }
}

TEST(LibraryTable, KnowsWhichLayoutsOfAttentionAreTaken) {
  enum Outcome { Refused, Declined, Taken };
  using Layout = std::vector<int64_t>;
  struct Row {
    std::vector<std::pair<const char *, Layout>> layouts;
    bool isGradient, oneResult;
    Outcome outcome;
  };
  // 2 samples of 4 heads, 16 rows, 8 elements; rows of 96: 32 of q, k and v each.
  const Layout q{0, 1536, 8, 96, 1}, k{32, 1536, 8, 96, 1}, v{64, 1536, 8, 96, 1}, back{0, 512, 8, 32, 1};
  const Row rows[] = {
      {{{"q_layout", q}, {"k_layout", k}, {"v_layout", v}, {"o_layout", back}}, false, false, Taken},
      {{{"q_layout", {4, 1536, 8, 96, 1}}}, false, false, Declined},  // an offset of 8 bytes
      {{{"k_layout", {0, 512, 128, 1, 16}}}, false, false, Declined}, // elements of a head apart
      {{{"v_layout", {0, 1536, 8, 96}}}, false, false, Refused},
      {{{"o_layout", q}}, false, false, Refused}, // gaps between rows
      {{{"grad_q_layout", q}}, false, false, Refused},
      {{{"grad_q_layout", q}, {"grad_k_layout", k}, {"grad_v_layout", v}}, true, true, Taken},
      {{{"grad_q_layout", q}, {"grad_k_layout", k}, {"grad_v_layout", v}}, true, false, Refused},
      {{{"grad_q_layout", q}, {"grad_k_layout", v}, {"grad_v_layout", k}}, true, true, Taken},
      {{{"grad_q_layout", q}, {"grad_k_layout", k}, {"grad_v_layout", k}}, true, true, Refused}, // one over the other
      {{{"grad_q_layout", q}, {"grad_k_layout", k}}, true, true, Refused},
      {{{"grad_k_layout", {1024, 512, 128, 8, 1}}, {"grad_v_layout", {2048, 512, 128, 8, 1}}}, true, true, Taken},
      {{{"grad_o_layout", back}, {"o_layout", back}}, true, false, Taken},
      {{}, true, true, Refused},
  };
  for (const Row &row : rows) {
    plan::Call call;
    call.set_callee(row.isGradient ? "attention_grad" : "attention");
    set(call, "dtype", "bf16"), set(call, "batch", 2), set(call, "heads", 4), set(call, "key_heads", 4);
    set(call, "rows", 16), set(call, "columns", 16), set(call, "depth", 8), set(call, "value_depth", 8);
    for (const auto &[name, layout] : row.layouts)
      set(call, name, layout);
    if (row.oneResult)
      set(call, "one_result", 1);
    auto rule = declineCall(call);
    Outcome outcome = !rule ? Refused : *rule ? Declined : Taken;
    EXPECT_EQ(outcome, row.outcome) << &row - rows << (rule ? "" : rule.status().str());
  }
}

TEST(LibraryTable, KnowsWhatEpiloguesTake) {
  struct Row {
    const char *epilogue, *dtype, *result, *addend;
    int64_t columns, batch, keeps;
    bool taken;
    int64_t sums = 0, sumsB = 0;
  };
  const Row rows[] = {
      {"none", "f16", "f32", "none", 16, 1, 0, true, 0, 1},   {"none", "f16", "f16", "none", 16, 1, 0, false, 0, 1},
      {"none", "f32", "f32", "none", 16, 1, 0, false, 0, 1},  {"none", "bf16", "f32", "row", 16, 1, 0, false, 0, 1},
      {"none", "bf16", "f32", "none", 16, 3, 0, false, 0, 1}, {"dgelu", "bf16", "bf16", "none", 16, 1, 0, true, 1},
      {"dgelu", "bf16", "bf16", "full", 16, 1, 0, false, 1},  {"dgelu", "f16", "f16", "none", 16, 1, 0, false, 1},
      {"relu", "f32", "f32", "row", 10, 1, 0, true},          {"gelu", "bf16", "bf16", "row", 16, 1, 1, true},
      {"gelu", "bf16", "bf16", "row", 12, 1, 1, false}, // rows of the kept matrix
      {"gelu", "bf16", "bf16", "row", 12, 1, 0, true},        {"gelu", "f32", "f32", "row", 16, 1, 1, false},
      {"gelu", "f16", "f32", "none", 16, 1, 1, false},        {"relu", "bf16", "bf16", "row", 16, 1, 1, false},
      {"dgelu", "f16", "f16", "none", 16, 1, 0, true},        {"dgelu", "f16", "f16", "row", 16, 1, 0, false},
      {"dgelu", "f32", "f32", "none", 16, 1, 0, false},       {"relu", "bf16", "bf16", "none", 16, 3, 0, false},
      {"gelu", "f64", "f64", "none", 16, 1, 0, false},
  };
  for (const Row &row : rows) {
    plan::Call call = gemmCall(4, row.columns, 4);
    set(call, "epilogue", row.epilogue), set(call, "dtype", row.dtype), set(call, "result_dtype", row.result);
    set(call, "addend", row.addend), set(call, "keeps_input", row.keeps);
    set(call, "sums_columns", row.sums), set(call, "sums_b", row.sumsB), set(call, "transpose_a", row.sumsB);
    for (int i = 0; i < 4; ++i)
      call.add_reads();
    if (row.batch > 1) {
      set(call, "batch", row.batch);
      set(call, "batch_stride_d", 4 * row.columns);
    }
    auto rule = declineCall(call);
    ASSERT_TRUE(rule) << rule.status().str();
    EXPECT_EQ(*rule == nullptr, row.taken)
        << row.epilogue << " " << row.dtype << " " << row.addend << " " << row.columns;
  }
}

TEST(LibraryTable, DeclinesWhatNoEpilogueDoes) {
  plan::Call column = gemmCall(4, 4, 4);
  set(column, "addend", "column");
  for (int i = 0; i < 3; ++i)
    column.add_reads();
  auto shape = readGemm(column);
  ASSERT_TRUE(shape) << shape.status().str();
  const LibraryRule *rule = declineGemm(*shape);
  ASSERT_TRUE(rule);
  EXPECT_STREQ(rule->library, "cuBLASLt");
  for (const LibraryRule &row : libraryRules()) {
    EXPECT_STRNE(row.source, "");
    EXPECT_FALSE(row.confirmed) << "say on which GPU, and change this test";
  }
}

} // namespace

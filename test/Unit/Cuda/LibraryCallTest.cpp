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
#include "runtime/devices/FakeCuda/FakeCuda.h"

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;

namespace {

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
  auto result = (*session)->tensor("run", "result");
  return {result->data, result->data + result->bytes()};
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
  for (const char *result : {"bf16", "f32"}) {
    plan::DType resultDtype = std::string(result) == "f32" ? plan::F32 : plan::BF16;
    auto typed = [&](const char *callee) {
      plan::Call call = convCall(callee, conv);
      set(call, "dtype", "bf16"), set(call, "result_dtype", result);
      return call;
    };
    compare(typed("conv"), {x, w}, y, plan::BF16, resultDtype);
    compare(typed("conv_input_grad"), {y, w}, x, plan::BF16, resultDtype);
    compare(typed("conv_filter_grad"), {x, y}, w, plan::BF16, resultDtype);
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

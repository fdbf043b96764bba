//===- LibraryTableTest.cpp - what cuBLASLt and cuDNN take, as written down -===//

#include "CudaRegression.h"

#include "runtime/LibraryTable.h"
#include "runtime/Workspace.h"
#include "runtime/calls/Gemm/GemmShape.h"

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;

namespace {

TEST(LibraryTable, KnowsWhichConvolutionsAreTakenChannelsLast) {
  struct Row {
    const char *dtype;
    int64_t channels, groups;
    bool taken;
    bool padded; ///< through the workspace, which otherwise holds what engines keep for themselves
  };
  const Row rows[] = {{"f16", 16, 1, true, false}, {"bf16", 16, 1, true, false}, {"f16", 3, 1, true, true},
                      {"f16", 16, 2, true, false}, {"f16", 16, 4, false, false}, {"f32", 16, 1, false, false}};
  for (const Row &row : rows) {
    plan::Call call;
    call.set_callee("conv");
    set(call, "dtype", row.dtype), set(call, "groups", row.groups), set(call, "channels_last", 1);
    set(call, "input", std::vector<int64_t>{2, row.channels, 5, 5});
    set(call, "filter", std::vector<int64_t>{16, row.channels / row.groups, 1, 1});
    set(call, "output", std::vector<int64_t>{2, 16, 5, 5});
    call.add_reads(), call.add_reads(), call.add_writes();
    Expected<const LibraryRule *> rule = declineCall(call);
    ASSERT_TRUE(rule) << rule.status().message();
    EXPECT_EQ(*rule == nullptr, row.taken) << row.dtype << " " << row.channels << " " << row.groups;
    EXPECT_FALSE(hasCpuKernel(call));
    if (row.taken)
      EXPECT_EQ(*queryGpuWorkspace(call, 132) > 1024 + libraryWorkspaceAlignment, row.padded) << row.channels;
  }
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
      // The CPU takes them all; the derivative in 16 bits sums the cotangent of q in f32.
      const bool sums = std::string(callee) == "attention_grad" && std::string(row.dtype) != "f32";
      auto here = queryWorkspace(call);
      ASSERT_TRUE(here) << here.status().str();
      EXPECT_EQ(*here, sums ? uint64_t(2 * 4 * row.rows * row.depth * 4) : 0u);
      auto bytes = queryGpuWorkspace(call, 132);
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
    int64_t sums = 0, sumsB = 0, mask = 0, sumsA = 0;
  };
  const Row rows[] = {
      {"none", "f16", "f32", "none", 16, 1, 0, true, 0, 1},
      {"none", "f16", "f16", "none", 16, 1, 0, false, 0, 1},
      {"none", "f32", "f32", "none", 16, 1, 0, false, 0, 1},
      {"none", "bf16", "f32", "row", 16, 1, 0, false, 0, 1},
      {"none", "bf16", "f32", "none", 16, 3, 0, false, 0, 1},
      {"dgelu", "bf16", "bf16", "none", 16, 1, 0, false, 1}, // sums of its columns
      {"relu", "f32", "f32", "row", 10, 1, 0, true},
      {"gelu", "bf16", "bf16", "row", 16, 1, 1, true},
      {"gelu", "bf16", "bf16", "row", 12, 1, 1, false}, // rows of the kept matrix
      {"gelu", "bf16", "bf16", "row", 12, 1, 0, true},
      {"gelu", "f32", "f32", "row", 16, 1, 1, false},
      {"gelu", "f16", "f32", "none", 16, 1, 1, false},
      {"relu", "bf16", "bf16", "row", 16, 1, 1, false},
      {"dgelu", "f16", "f16", "none", 16, 1, 0, true},
      {"dgelu", "f16", "f16", "row", 16, 1, 0, false},
      {"dgelu", "f32", "f32", "none", 16, 1, 0, false},
      {"relu", "bf16", "bf16", "none", 16, 3, 0, false},
      {"gelu", "f64", "f64", "none", 16, 1, 0, false},
      {"relu", "f32", "f32", "row", 10, 1, 0, true, 0, 0, 1},
      {"relu", "f16", "f32", "row", 16, 1, 0, false, 0, 0, 1}, // D's type is not the operands'
      {"relu", "f64", "f64", "none", 16, 1, 0, false, 0, 0, 1},
      {"drelu", "f16", "f16", "none", 10, 1, 0, true},
      {"drelu", "bf16", "bf16", "row", 16, 1, 0, false},
      {"drelu", "bf16", "bf16", "none", 16, 1, 0, false, 1},
      {"drelu", "f32", "f32", "none", 16, 1, 0, false, 1},
      {"none", "bf16", "f32", "none", 16, 1, 0, true, 0, 0, 0, 1},
      {"none", "bf16", "bf16", "none", 16, 1, 0, false, 0, 0, 0, 1},
  };
  for (const Row &row : rows) {
    plan::Call call = gemmCall(4, row.columns, 4);
    set(call, "epilogue", row.epilogue), set(call, "dtype", row.dtype), set(call, "result_dtype", row.result);
    set(call, "addend", row.addend), set(call, "keeps_input", row.keeps);
    set(call, "sums_columns", row.sums), set(call, "sums_a", row.sumsA), set(call, "sums_b", row.sumsB);
    set(call, "keeps_mask", row.mask), set(call, "transpose_a", row.sumsA + row.sumsB);
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
  for (const LibraryRule *row : libraryRules()) {
    EXPECT_STRNE(row->source, "");
    // On an H100: docs/measurements/gpu.md. Another one: say on which GPU, and change this test.
    const std::string_view takes = row->takes;
    EXPECT_EQ(row->confirmed, takes.starts_with("derivatives of ReLU and GELU without sums") ||
                                  takes.starts_with("f32, f16 and bf16 operands") ||
                                  takes.starts_with("attention of f16 or bf16"))
        << takes;
  }
}

} // namespace

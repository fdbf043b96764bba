//===- AttentionPartsTest.cpp - the derivative of an attention, some samples at a time ----===//
//
// The workspace of the derivative holds the cotangents of scores. With room for some samples it is as many calls of the
// library, each of which reads and writes its samples alone: the bits are those of one call.
//
//===----------------------------------------------------------------------===//

#include "CudaRegression.h"

#include "runtime/Element.h"
#include "runtime/RandomInit.h"
#include "runtime/Workspace.h"
#include "runtime/calls/Attention/AttentionShape.h"
#include "runtime/devices/Cuda/LibraryCall.h"
#include "runtime/devices/FakeCuda/FakeCuda.h"

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;

namespace {

struct Form {
  int64_t batch, heads, keyHeads;
  bool isInterleaved;        ///< rows hold q, k and v next to each other, and so do those of the one result
  std::vector<int64_t> mask; ///< empty: none
};

constexpr int64_t rows = 128, depth = 16;

plan::Call derivative(const Form &form) {
  plan::Call call;
  call.set_callee("attention_grad");
  set(call, "dtype", "bf16");
  set(call, "batch", form.batch), set(call, "heads", form.heads), set(call, "key_heads", form.keyHeads);
  set(call, "rows", rows), set(call, "columns", rows), set(call, "depth", depth), set(call, "value_depth", depth);
  set(call, "scale", 0.25), set(call, "causal", 1);
  if (!form.mask.empty())
    set(call, "mask", form.mask);
  if (!form.isInterleaved)
    return call;
  const int64_t width = (form.heads + 2 * form.keyHeads) * depth, keys = form.heads * depth,
                values = keys + form.keyHeads * depth;
  set(call, "one_result", 1);
  for (const char *prefix : {"", "grad_"}) {
    auto lay = [&](const char *name, int64_t first) {
      set(call, (std::string(prefix) + name).c_str(), std::vector<int64_t>{first, rows * width, depth, width, 1});
    };
    lay("q_layout", 0), lay("k_layout", keys), lay("v_layout", values);
  }
  return call;
}

/// What the call writes with so much workspace, and how often it calls the library.
std::pair<std::vector<uint8_t>, std::string> run(const Form &form, uint64_t workspaceBytes) {
  namespace cuda = rt::cuda;
  cuda::fake::configure({});
  cuda::Api api = cuda::fake::api();
  cuda::Resources resources(api);
  EXPECT_TRUE(resources.open().isOk());
  cuda::Libraries libraries(api, resources);
  const plan::Call call = derivative(form);
  const uint64_t query = static_cast<uint64_t>(form.batch * form.heads * rows * depth) * 2,
                 key = static_cast<uint64_t>(form.batch * form.keyHeads * rows * depth) * 2, all = query + 2 * key,
                 sums = static_cast<uint64_t>(form.batch * form.heads * rows) * 4;
  uint64_t masked = form.mask.empty() ? 0 : 2;
  for (int64_t dim : form.mask)
    masked *= static_cast<uint64_t>(dim);
  // q, k, v, o, lse, the cotangent of o, the mask; then what is written.
  std::vector<uint64_t> read = {query, key, key, query, sums, query}, written = {query, key, key};
  if (form.isInterleaved)
    read[0] = read[1] = read[2] = all, written = {all};
  if (masked)
    read.push_back(masked);
  auto stream = resources.stream();
  cuda::CallAddresses addresses;
  std::vector<uint8_t *> results;
  auto allocate = [&](uint64_t bytes) {
    auto memory = resources.deviceMemory(bytes);
    EXPECT_TRUE(bool(memory));
    return *memory;
  };
  uint64_t seed = 0;
  for (uint64_t bytes : read) {
    // The interleaved operands are one array.
    if (form.isInterleaved && !addresses.reads.empty() && addresses.reads.size() < 3) {
      addresses.reads.push_back(addresses.reads.front());
      continue;
    }
    const bool isSum = addresses.reads.size() == 4;
    addresses.reads.push_back(allocate(bytes));
    auto *data = reinterpret_cast<uint8_t *>(addresses.reads.back());
    const plan::DType type = isSum ? plan::F32 : plan::BF16;
    for (uint64_t i = 0; i < bytes / elementBytes(type); ++i)
      storeElement(type, data + i * elementBytes(type),
                   (isSum ? 3.0 : 0.0) + static_cast<double>(counterRandom(seed, i) % 33) / 16 - 1);
    ++seed;
  }
  for (uint64_t bytes : written) {
    addresses.writes.push_back(allocate(bytes));
    results.push_back(reinterpret_cast<uint8_t *>(addresses.writes.back()));
    std::fill(results.back(), results.back() + bytes, uint8_t(0xAB));
  }
  addresses.workspace = allocate(workspaceBytes), addresses.workspaceBytes = workspaceBytes;
  auto prepared = libraries.prepare(call, addresses);
  EXPECT_TRUE(bool(prepared)) << prepared.status().str();
  if (!prepared)
    return {};
  EXPECT_TRUE((*prepared)->enqueue(*stream).isOk());
  EXPECT_TRUE(api.check(api.driver.cuStreamSynchronize(*stream), "cuStreamSynchronize").isOk());
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < results.size(); ++i)
    bytes.insert(bytes.end(), results[i], results[i] + written[i]);
  std::string choice = (*prepared)->choice();
  EXPECT_TRUE(resources.close().isOk());
  return {bytes, choice};
}

TEST(AttentionParts, HaveTheBitsOfOneCall) {
  const Form forms[] = {{4, 2, 2, false, {}},
                        {4, 4, 2, false, {4, 1, rows, rows}},
                        {6, 2, 2, false, {1, 2, rows, rows}},
                        {4, 2, 2, true, {}},
                        {4, 2, 2, true, {4, 2, rows, rows}}};
  for (const Form &form : forms) {
    Expected<AttentionShape> shape = readAttention(derivative(form));
    ASSERT_TRUE(bool(shape)) << shape.status().str();
    const uint64_t whole = *queryGpuWorkspace(derivative(form), 132);
    ASSERT_EQ(samplesAtOnce(*shape, whole), form.batch);
    const auto [wanted, once] = run(form, whole);
    ASSERT_FALSE(wanted.empty());
    EXPECT_EQ(once.find(" times"), std::string::npos);
    // Less and less: each divisor of the batch in turn.
    for (int64_t parts = 2; parts <= form.batch; ++parts) {
      if (form.batch % parts)
        continue;
      Form part = form;
      part.batch /= parts;
      if (!part.mask.empty() && part.mask[0] > 1)
        part.mask[0] = part.batch;
      const uint64_t bytes = *queryGpuWorkspace(derivative(part), 132);
      ASSERT_LT(bytes, whole);
      ASSERT_EQ(samplesAtOnce(*shape, bytes), part.batch);
      const auto [found, often] = run(form, bytes);
      EXPECT_NE(often.find(", " + std::to_string(parts) + " times"), std::string::npos) << often;
      EXPECT_EQ(found, wanted) << form.batch << " samples in " << parts << " parts";
    }
  }
}

plan::Call sized(int64_t batch, int64_t heads, int64_t columns) {
  plan::Call call;
  call.set_callee("attention_grad");
  set(call, "dtype", "bf16"), set(call, "batch", batch), set(call, "heads", heads), set(call, "key_heads", heads);
  set(call, "rows", columns), set(call, "columns", columns), set(call, "depth", 64), set(call, "value_depth", 64);
  return call;
}

/// Samples that a plan has workspace for.
int64_t planned(const plan::Call &call, uint32_t processors) {
  return samplesAtOnce(*readAttention(call), *queryGpuWorkspace(call, processors));
}

TEST(AttentionParts, OccupyTheProcessors) {
  // Blocks of 128 columns for each head and sample. 16 samples of 12 heads and 1,024 columns: 4 samples are 384 blocks.
  EXPECT_EQ(planned(sized(16, 12, 1024), 132), 4);
  EXPECT_LE(*queryGpuWorkspace(sized(16, 12, 1024), 132), uint64_t(100) << 20);
  // 8 samples of 16 heads and 512 columns are 512 blocks; those of 4 do not occupy the processors twice.
  EXPECT_EQ(planned(sized(32, 16, 512), 132), 8);
  // Fewer processors, fewer samples.
  EXPECT_EQ(planned(sized(16, 12, 1024), 66), 2);
  // A prime number of samples falls into no parts but single ones, which are too few blocks.
  EXPECT_EQ(planned(sized(17, 12, 1024), 132), 17);
  // One sample, and what takes no more than 32 MiB.
  EXPECT_EQ(planned(sized(1, 32, 2048), 132), 1);
  EXPECT_EQ(planned(sized(32, 4, 256), 132), 32);
  // An artifact says what it likes: too little for one sample is the library's to refuse.
  EXPECT_EQ(samplesAtOnce(*readAttention(sized(16, 12, 1024)), 100), 16);
}

} // namespace

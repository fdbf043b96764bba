//===- Products.cpp - the products of a step, each by itself --------------===//

#include "Products.h"

#include "runtime/Element.h"
#include "runtime/devices/Cpu/ThreadPool.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <random>
#include <thread>

namespace lowtide::bench {

using namespace rt;
using Clock = std::chrono::steady_clock;

namespace {

/// What of a call is the product itself.
constexpr std::string_view kept[] = {"m",
                                     "n",
                                     "k",
                                     "dtype",
                                     "result_dtype",
                                     "lda",
                                     "ldb",
                                     "ldd",
                                     "transpose_a",
                                     "transpose_b",
                                     "batch",
                                     "batch_stride_a",
                                     "batch_stride_b",
                                     "batch_stride_d",
                                     "batch_dims",
                                     "batch_strides_a",
                                     "batch_strides_b",
                                     "batch_strides_d"};

/// Calls visit(call, runs in a step) for each product.
template <typename Visit>
void forEachProduct(const google::protobuf::RepeatedPtrField<plan::Instruction> &instructions, uint64_t runs,
                    Visit &&visit) {
  for (const plan::Instruction &instruction : instructions)
    if (instruction.has_repeat())
      forEachProduct(instruction.repeat().body(), runs * instruction.repeat().count(), visit);
    else if (instruction.call().callee() == "gemm")
      visit(instruction.call(), runs);
}

plan::Call dropEpilogue(const plan::Call &call) {
  plan::Call bare;
  bare.set_callee(call.callee());
  for (const plan::Attribute &attribute : call.attributes())
    if (std::ranges::find(kept, attribute.name()) != std::end(kept))
      *bare.add_attributes() = attribute;
  return bare;
}

/// Numbers of any type between a half and one: their bytes are those of f32, f64, f16 and bf16 at once.
class Operand {
public:
  explicit Operand(uint64_t elements, plan::DType dtype)
      : bytes_((elements * elementBytes(dtype) + 63) / 64 * 64), data_(std::aligned_alloc(64, bytes_)) {
    std::mt19937 random(1);
    auto *words = static_cast<uint16_t *>(data_);
    // 0x38.. to 0x3b.. is 0.5 to 1 in f16, and below one in the upper half of the other types.
    for (uint64_t i = 0; i < bytes_ / 2; ++i)
      words[i] = static_cast<uint16_t>(0x3800 + random() % 0x400);
  }
  ~Operand() { std::free(data_); }
  Operand(const Operand &) = delete;
  Operand &operator=(const Operand &) = delete;
  void *data() const { return data_; }

private:
  uint64_t bytes_;
  void *data_;
};

/// Seconds of the fastest of many runs.
double runBest(const PreparedCall &call, ThreadPool &pool) {
  constexpr auto enough = std::chrono::milliseconds(200);
  constexpr int most = 2000, least = 5;
  double best = INFINITY;
  const auto begin = Clock::now();
  for (int run = 0; run < least || (run < most && Clock::now() - begin < enough); ++run) {
    const auto start = Clock::now();
    for (int phase = 0; phase < call.phases(); ++phase)
      pool.run(call.tasks(phase), [&](int64_t task, unsigned) { call.run(phase, task); });
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

} // namespace

Expected<std::vector<Products>> measureProducts(const plan::Plan &plan, const plan::Entry &entry, unsigned threads) {
  if (plan.target().rfind("cpu", 0) != 0)
    return Status(StatusCode::Unsupported,
                  "--products measures those of the CPU, and the artifact is compiled for " + printable(plan.target()));
  std::map<std::string, std::pair<plan::Call, uint64_t>> calls;
  forEachProduct(entry.instructions(), 1, [&](const plan::Call &call, uint64_t runs) {
    plan::Call bare = dropEpilogue(call);
    auto &[product, count] = calls[bare.SerializeAsString()];
    product = std::move(bare), count += runs;
  });
  auto pool = ThreadPool::create(threads ? threads : std::max(1u, std::thread::hardware_concurrency()));
  if (!pool)
    return pool.takeStatus();
  std::vector<Products> measured;
  for (const auto &[text, product] : calls) {
    Expected<GemmShape> shape = readGemm(product.first);
    if (!shape)
      return shape.takeStatus();
    Operand a(shape->spanA, shape->dtype), b(shape->spanB, shape->dtype), d(shape->spanD, shape->resultDtype);
    const void *reads[] = {a.data(), b.data()};
    void *const writes[] = {d.data()};
    const std::unique_ptr<PreparedCall> prepared = prepareGemmWithEpilogue(*shape, {reads, writes});
    measured.push_back({std::move(*shape), product.second, runBest(*prepared, **pool) * 1e3});
  }
  std::ranges::sort(measured, std::greater<>(),
                    [](const Products &products) { return products.gflop() * double(products.count); });
  return measured;
}

} // namespace lowtide::bench

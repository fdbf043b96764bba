//===- Regression.h - a whole artifact written by hand ---------------------===//
//
// Linear regression, 16 samples of 8 numbers: prediction = x w (gemm), difference, mean square, gradient = xᵀ
// difference (gemm), momentum. Entries train, gradient and eval.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_TEST_UNIT_RUNTIME_REGRESSION_H
#define LOWTIDE_TEST_UNIT_RUNTIME_REGRESSION_H

#include "Plans.h"
#include "runtime/ArtifactWriter.h"

#include <cstring>
#include <fstream>
#include <iterator>

namespace lowtide::rt::test {

inline constexpr int64_t samples = 16, width = 8;
enum ArenaIndex : uint32_t { Params, State, Transient, Io };

inline plan::Instruction &launch(plan::Entry &entry, uint32_t kernel, std::vector<plan::Slice> reads,
                                 std::vector<plan::Slice> writes, int64_t extent, int64_t grain) {
  plan::Instruction *instruction = entry.add_instructions();
  plan::Launch *launch = instruction->mutable_launch();
  launch->set_kernel(kernel);
  for (const plan::Slice &slice : reads)
    *launch->add_reads() = slice;
  for (const plan::Slice &slice : writes)
    *launch->add_writes() = slice;
  launch->set_extent(extent);
  launch->set_grain(grain);
  return *instruction;
}

inline plan::Call &gemm(plan::Entry &entry, int64_t m, int64_t n, int64_t k, bool transposeA,
                        std::vector<plan::Slice> reads, const plan::Slice &write) {
  plan::Call *call = entry.add_instructions()->mutable_call();
  call->set_callee("gemm");
  set(*call, "m", m), set(*call, "n", n), set(*call, "k", k), set(*call, "transpose_a", transposeA ? 1 : 0);
  for (const plan::Slice &slice : reads)
    *call->add_reads() = slice;
  *call->add_writes() = write;
  return *call;
}

inline plan::Plan regressionPlan() {
  plan::Plan plan;
  plan.set_format_version(planFormatVersion);
  plan.set_producer("hand");
  plan.set_target("cpu:x86-64-v3");
  plan.set_threads_max(8);
  addArena(plan, "params", plan::Arena::PARAMS, width * 4, width * 4);
  addArena(plan, "state", plan::Arena::STATE, width * 4);
  addArena(plan, "transient", plan::Arena::TRANSIENT, 128 + 64);
  addArena(plan, "io", plan::Arena::IO, 1024);
  auto kernel = [&](const char *symbol, uint64_t scratch, int64_t extent, int64_t grain, std::vector<uint64_t> reads,
                    std::vector<uint64_t> writes) {
    plan::Kernel *next = plan.add_kernels();
    next->set_symbol(symbol);
    next->set_reads(static_cast<uint32_t>(reads.size()));
    next->set_writes(static_cast<uint32_t>(writes.size()));
    next->set_scratch_bytes(scratch);
    addFootprint(*next, extent, grain, reads, writes);
  };
  kernel("subtract", 0, samples, 4, {samples, samples}, {samples});
  kernel("mean_square", 64, 1, 1, {samples}, {1});
  kernel("momentum", 0, width, 2, {width, width, width, 1}, {width, width});
  addInPlace(*plan.mutable_kernels(2), 0, 0);
  addInPlace(*plan.mutable_kernels(2), 1, 2);

  for (const char *name : {"train", "gradient", "eval"}) {
    std::string kind = name;
    bool train = kind == "train", gradient = kind == "gradient";
    plan::Entry *entry = plan.add_entries();
    entry->set_name(name);
    entry->set_batch(samples);
    plan::Slice x = slice(Io, 0, samples * width * 4, 1), y = slice(Io, 512, samples * 4, 2);
    plan::Slice w = slice(Params, 0, width * 4, 3), m = slice(State, 0, width * 4, 4), lr = slice(Io, 576, 4, 5);
    plan::Slice loss = slice(Io, 580, 4, 0), gradientOut = slice(Io, 640, width * 4, 0);
    bind(*entry, "x", plan::Binding::BATCH, plan::F32, {samples, width}, x, 1).set_batch_dim(0);
    bind(*entry, "y", plan::Binding::BATCH, plan::F32, {samples, 1}, y, 2).set_batch_dim(0);
    bind(*entry, "w", plan::Binding::PARAM, plan::F32, {width, 1}, w, train ? 11 : 3).set_from_image(true);
    bind(*entry, "loss", plan::Binding::METRIC, plan::F32, {}, loss, 9);
    if (train) {
      bind(*entry, "w.m", plan::Binding::STATE, plan::F32, {width, 1}, m, 12);
      bind(*entry, "lr", plan::Binding::SCALAR, plan::F32, {}, lr, 5);
    }
    if (gradient)
      bind(*entry, "grad/w", plan::Binding::GRADIENT, plan::F32, {width, 1}, gradientOut, 10);

    plan::Slice prediction = slice(Transient, 0, samples * 4, 7), difference = slice(Transient, 64, samples * 4, 8);
    gemm(*entry, samples, 1, width, false, {x, w}, prediction);
    launch(*entry, 0, {prediction, y}, {difference}, samples, 4);
    plan::Slice lossOut = loss;
    lossOut.set_value(9);
    plan::Instruction &mean = launch(*entry, 1, {difference}, {lossOut}, 1, 1);
    *mean.mutable_launch()->mutable_scratch() = slice(Transient, 128, 64, 0);
    if (train) {
      plan::Slice g = slice(Transient, 0, width * 4, 10); // where the prediction was
      gemm(*entry, width, 1, samples, true, {x, difference}, g);
      plan::Slice newW = w, newM = m;
      newW.set_value(11), newM.set_value(12);
      launch(*entry, 2, {w, g, m, lr}, {newW, newM}, width, 2);
    }
    if (gradient) {
      plan::Slice g = gradientOut;
      g.set_value(10);
      gemm(*entry, width, 1, samples, true, {x, difference}, g);
    }
  }
  plan::ParameterSource *source = plan.add_sources();
  source->set_name("w");
  source->set_initializer("w_init");
  source->add_original_dims(1);
  source->add_original_dims(width);
  source->add_permutation(1);
  source->add_permutation(0);
  plan.mutable_schedule()->set_lr(0.05);
  return plan;
}

inline std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
inline void writeText(const std::string &path, const std::string &content) {
  std::ofstream(path, std::ios::binary) << content;
}

/// Writes the artifact and returns its path.
inline std::string writeRegression(const std::string &path, const plan::Plan &plan) {
  auto writer = ArtifactWriter::create(path);
  std::vector<float> w(width, 0.25f);
  std::string code = readFile(LOWTIDE_TEST_KERNELS);
  Status status = (*writer)->add("plan", plan.SerializeAsString());
  if (status.isOk())
    status = (*writer)->begin("params");
  if (status.isOk())
    status = (*writer)->append(w.data(), w.size() * 4);
  if (status.isOk())
    status = (*writer)->end();
  if (status.isOk())
    status = (*writer)->add("code", code);
  if (status.isOk())
    status = (*writer)->finish();
  return status.isOk() ? path : "";
}

/// 64 samples of y = x · (1 … 8) / 8 as two .npy files in memory.
inline std::string npy(const std::string &descr, const std::string &shape, const void *data, size_t bytes) {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string file = "\x93NUMPY\x01";
  file += '\0';
  file += static_cast<char>(header.size() & 255);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  file.append(static_cast<const char *>(data), bytes);
  return file;
}

} // namespace lowtide::rt::test

#endif // LOWTIDE_TEST_UNIT_RUNTIME_REGRESSION_H

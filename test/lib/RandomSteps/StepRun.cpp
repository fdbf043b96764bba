//===- StepRun.cpp - trains a plan for a few steps --------------*- C++ -*-===//
//
// Random numbers depend on seed, name, step and element alone, so that every plan of a step sees the same.
//
//===----------------------------------------------------------------------===//
#include "StepRun.h"
#include "lowtide/Serialize/PlanProto.h"
#include "runtime/ArtifactWriter.h"
#include "runtime/Element.h"
#include "runtime/RandomInit.h"
#include "runtime/Schedule.h"
#include "runtime/Session.h"

#include <bit>
#include <cmath>
#include <functional>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::test;

static bool isFloat(plan::DType type) {
  return type == plan::F64 || type == plan::F32 || type == plan::F16 || type == plan::BF16;
}

/// Fills a binding with numbers of its range.
static void fillRandomly(const plan::Binding &binding, const RunInputs &inputs, uint64_t step, void *data) {
  double low = isFloat(binding.dtype()) ? -1 : 0, high = 1;
  if (auto range = inputs.ranges.find(binding.name()); range != inputs.ranges.end())
    std::tie(low, high) = range->second;
  uint64_t seed = counterRandom(inputs.seed, step);
  for (char letter : binding.name())
    seed = counterRandom(seed, static_cast<unsigned char>(letter));
  uint64_t size = elementBytes(binding.dtype());
  for (uint64_t i = 0; i < binding.slice().bytes() / size; ++i) {
    double value = low + (high - low) * static_cast<double>(counterRandom(seed, i) >> 40) * 0x1p-24;
    auto *element = static_cast<uint8_t *>(data) + i * size;
    if (isFloat(binding.dtype()))
      storeElement(binding.dtype(), element, static_cast<float>(value));
    else
      storeInteger(binding.dtype(), element, static_cast<int64_t>(std::floor(value)));
  }
}

/// Everything that starts from the image, at its place.
static Status writeImage(const plan::Plan &plan, const RunInputs &inputs, ArtifactWriter &writer) {
  LOWTIDE_TRY(writer.begin("params"));
  for (int arena = 0; arena < plan.arenas_size(); ++arena) {
    std::string image(plan.arenas(arena).image_bytes(), '\0');
    for (const plan::Entry &entry : plan.entries())
      for (const plan::Binding &binding : entry.bindings())
        if (binding.from_image() && binding.slice().arena() == static_cast<uint32_t>(arena))
          fillRandomly(binding, inputs, 0, image.data() + binding.slice().offset());
    LOWTIDE_TRY(writer.append(image.data(), image.size()));
  }
  return writer.end();
}

static Status writeArtifact(const plan::Plan &plan, const std::vector<char> &code, const RunInputs &inputs,
                            const std::string &path) {
  auto writer = ArtifactWriter::create(path);
  if (!writer)
    return writer.status();
  LOWTIDE_TRY((*writer)->add("plan", serializePlan(plan)));
  LOWTIDE_TRY(writeImage(plan, inputs, **writer));
  if (!code.empty())
    LOWTIDE_TRY((*writer)->add("code", {code.data(), code.size()}));
  return (*writer)->finish();
}

static Status train(const plan::Plan &plan, const std::vector<char> &code, const RunInputs &inputs,
                    const RunOptions &options, RunResult &result) {
  LOWTIDE_TRY(writeArtifact(plan, code, inputs, options.path));
  auto session = Session::load(options.path);
  if (!session)
    return session.takeStatus();
  LOWTIDE_TRY((*session)->bind({.threads = options.threads, .poison = options.poison}));
  const std::string entry = "train";
  result.plannedBytes = (*session)->plannedBytes();
  result.allocatedBytes = (*session)->allocatedBytes();
  std::vector<Tensor> batch = (*session)->tensors(entry, plan::Binding::BATCH);
  int64_t samples = (*session)->artifact().entry(entry)->batch();
  for (unsigned step = 0; step < options.steps; ++step) {
    for (const Tensor &tensor : batch)
      fillRandomly(*tensor.binding, inputs, step + 1, tensor.data);
    StepScalars scalars;
    scalars.lr = learningRate(plan.schedule(), step);
    scalars.step = step;
    scalars.seed = static_cast<int64_t>(inputs.seed);
    scalars.row = step * samples;
    LOWTIDE_TRY((*session)->writeScalars(entry, scalars));
    LOWTIDE_TRY((*session)->step(entry));
    auto loss = (*session)->metric(entry, "loss");
    if (!loss)
      return loss.takeStatus();
    result.losses.push_back(*loss);
  }
  for (const Tensor &tensor : (*session)->persistent()) {
    LOWTIDE_TRY(tensor.bring(HostAccess::Read));
    result.kept[tensor.binding->name()] = std::string(reinterpret_cast<const char *>(tensor.data), tensor.bytes());
  }
  return Status::ok();
}

RunResult lowtide::test::runStep(const plan::Plan &plan, const std::vector<char> &code, const RunInputs &inputs,
                                 const RunOptions &options) {
  RunResult result;
  result.complaint = train(plan, code, inputs, options, result).str();
  return result;
}

std::string RunResult::differenceTo(const RunResult &other) const {
  for (size_t i = 0; i < losses.size(); ++i)
    if (i >= other.losses.size() || std::bit_cast<uint64_t>(losses[i]) != std::bit_cast<uint64_t>(other.losses[i]))
      return "loss of step " + std::to_string(i) + " is " + std::to_string(other.losses[i]) + ", without a budget " +
             std::to_string(losses[i]);
  for (const auto &[name, bytes] : kept) {
    auto found = other.kept.find(name);
    if (found == other.kept.end() || found->second != bytes)
      return "'" + name + "' after the last step has other bits than without a budget";
  }
  return "";
}

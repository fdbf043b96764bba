//===- Session.cpp - load, bind, step --------------------------------------===//

#include "runtime/Session.h"

#include "runtime/CheckedMath.h"
#include "runtime/Element.h"
#include "runtime/RandomInit.h"
#include "runtime/Schedule.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace lowtide::rt {

static bool isPersistent(const plan::Binding &binding) {
  return binding.kind() == plan::Binding::PARAM || binding.kind() == plan::Binding::STATE ||
         binding.kind() == plan::Binding::CONSTANT;
}

Expected<std::unique_ptr<Session>> Session::load(const std::string &path) {
  Expected<std::unique_ptr<Artifact>> artifact = Artifact::open(path);
  if (!artifact)
    return artifact.takeStatus();
  return create(std::move(*artifact));
}

Expected<std::unique_ptr<Session>> Session::create(std::unique_ptr<Artifact> artifact) {
  for (const plan::Entry &entry : artifact->plan().entries())
    for (const plan::Binding &binding : entry.bindings()) {
      if (binding.kind() != plan::Binding::SCALAR)
        continue;
      static const std::set<std::string> known = {"lr", "step", "seed", "row"};
      if (!known.count(binding.name()))
        return Status(StatusCode::Unsupported, "step scalar '" + printable(binding.name()) +
                                                   "' is unknown to this runtime; it knows lr, step, seed and row");
    }
  Expected<std::unique_ptr<Device>> device = createDevice(*artifact);
  if (!device)
    return device.takeStatus();
  return std::unique_ptr<Session>(new Session(std::move(artifact), std::move(*device)));
}

Status Session::bind(const BindOptions &options) {
  if (bound_)
    return {StatusCode::Usage, "the session is bound already"};
  Status status = device_->bind(options);
  if (status.isOk())
    status = initialize(options);
  bound_ = status.isOk();
  if (bound_)
    return status;
  // What a part of it took is given back, so that another try begins with nothing.
  if (Expected<std::unique_ptr<Device>> fresh = createDevice(*artifact_))
    device_ = std::move(*fresh);
  return status;
}

Status Session::restart(const BindOptions &options) {
  if (!bound_)
    return {StatusCode::Usage, "the session is not bound"};
  LOWTIDE_TRY(device_->settle(0));
  return initialize(options);
}

Status Session::initialize(const BindOptions &options) {
  const plan::Plan &plan = artifact_->plan();
  const uint8_t *image = artifact_->params().data();
  for (int i = 0; i < plan.arenas_size(); ++i) {
    uint64_t bytes = plan.arenas(i).image_bytes();
    if (bytes)
      std::memcpy(device_->hostArenas()[static_cast<size_t>(i)], image, bytes);
    image += bytes;
  }
  for (const Tensor &tensor : persistent()) {
    const plan::Binding &binding = *tensor.binding;
    const bool isParam = binding.kind() == plan::Binding::PARAM, isConstant = binding.kind() == plan::Binding::CONSTANT;
    if ((isParam && options.randomInitAll) || ((isParam || isConstant) && !binding.from_image())) {
      if (!options.randomInit && !startsRandomly(plan, binding))
        return badInput(std::string("the artifact has no ") +
                        (isParam ? "weights for parameter '" : "values for constant '") + printable(binding.name()) +
                        "': start from --init=random:<seed> or from a checkpoint (--resume)");
      LOWTIDE_TRY(initializeRandomly(plan, binding, options.randomSeed, tensor.data));
    } else if (!binding.from_image()) {
      fillElements(binding.dtype(), tensor.data, tensor.bytes(), binding.initial_value());
    }
  }
  return device_->upload();
}

Status Session::step(const std::string &entry) {
  const plan::Entry *found = artifact_->entry(entry);
  if (!found || !bound_)
    return {StatusCode::Usage, !bound_ ? "the session is not bound" : "no entry '" + printable(entry) + "'"};
  return device_->run(*found);
}

Status Session::observe(const std::string &entry, const Observer &seen) {
  const plan::Entry *found = artifact_->entry(entry);
  if (!found || !bound_)
    return {StatusCode::Usage, !bound_ ? "the session is not bound" : "no entry '" + printable(entry) + "'"};
  return device_->observe(*found, seen);
}

Status Session::settle(unsigned lag) const { return device_->settle(lag); }

Status Session::download(const std::string &entry) const {
  const plan::Entry *found = entry.empty() ? nullptr : artifact_->entry(entry);
  if (!entry.empty() && !found)
    return {StatusCode::Usage, "no entry '" + printable(entry) + "'"};
  return bound_ ? device_->download(found) : Status::ok();
}

Status Session::upload() { return bound_ ? device_->upload() : Status::ok(); }

StepScalars Session::scalarsOf(const std::string &entry, int64_t step, int64_t seed) const {
  return {learningRate(plan().schedule(), step), step, seed, step * artifact_->entry(entry)->batch()};
}

Status Session::writeScalars(const std::string &entry, const StepScalars &scalars) {
  const plan::Entry *found = artifact_->entry(entry);
  if (!found || !bound_)
    return {StatusCode::Usage, !bound_ ? "the session is not bound" : "no entry '" + printable(entry) + "'"};
  for (const plan::Binding &binding : found->bindings()) {
    if (binding.kind() != plan::Binding::SCALAR)
      continue;
    uint8_t *to = address(binding.slice());
    if (binding.name() == "lr")
      storeElement(binding.dtype(), to, scalars.lr);
    else
      storeInteger(binding.dtype(), to,
                   binding.name() == "step"   ? scalars.step
                   : binding.name() == "seed" ? scalars.seed
                                              : scalars.row);
  }
  return Status::ok();
}

Expected<Tensor> Session::tensor(const std::string &entry, const std::string &name) const {
  const plan::Entry *found = artifact_->entry(entry);
  if (!found || !bound_)
    return Status(StatusCode::Usage, !found ? "no entry '" + printable(entry) + "'" : "the session is not bound");
  // A parameter comes before a number of the step that is called like it.
  const plan::Binding *best = nullptr;
  for (const plan::Binding &binding : found->bindings())
    if (binding.name() == name && (!best || isPersistent(binding)))
      best = &binding;
  if (best)
    return Tensor{best, address(best->slice())};
  return Status(StatusCode::Usage, "entry '" + printable(entry) + "' binds no '" + printable(name) + "'");
}

Tensor Session::tensorAt(const plan::Entry &entry, size_t index) const {
  const plan::Binding &binding = entry.bindings(static_cast<int>(index));
  return {&binding, address(binding.slice())};
}

std::vector<Tensor> Session::tensors(const std::string &entry, plan::Binding::Kind kind) const {
  std::vector<Tensor> result;
  if (const plan::Entry *found = artifact_->entry(entry); found && bound_)
    for (const plan::Binding &binding : found->bindings())
      if (binding.kind() == kind)
        result.push_back({&binding, address(binding.slice())});
  return result;
}

std::vector<Tensor> Session::persistent() const {
  std::map<std::string, Tensor> byName;
  for (const plan::Entry &entry : plan().entries())
    for (const plan::Binding &binding : entry.bindings()) {
      if (!isPersistent(binding))
        continue;
      // A parameter may be a constant in an entry that does not train it.
      auto [it, fresh] = byName.try_emplace(binding.name(), Tensor{&binding, address(binding.slice())});
      if (!fresh && it->second.binding->kind() == plan::Binding::CONSTANT)
        it->second.binding = &binding;
    }
  std::vector<Tensor> result;
  for (const auto &[name, tensor] : byName)
    result.push_back(tensor);
  return result;
}

Expected<double> Session::metric(const std::string &entry, const std::string &name) const {
  Expected<Tensor> found = tensor(entry, name);
  if (!found)
    return found.takeStatus();
  if (found->bytes() != elementBytes(found->binding->dtype()))
    return Status(StatusCode::Usage, "metric '" + printable(name) + "' is not a single number");
  return loadElement(found->binding->dtype(), found->data);
}

uint64_t Session::plannedBytes() const {
  uint64_t bytes = 0;
  for (const plan::Arena &arena : plan().arenas())
    bytes += arena.bytes();
  return bytes;
}

} // namespace lowtide::rt

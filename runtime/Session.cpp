//===- Session.cpp - load, bind, step --------------------------------------===//

#include "runtime/Session.h"

#include "lowtide-rt/StepNames.h"
#include "runtime/CheckedMath.h"
#include "runtime/Element.h"
#include "runtime/Halves.h"
#include "runtime/RandomInit.h"
#include "runtime/Schedule.h"
#include "runtime/checkpoint/Adapters.h"

#include <algorithm>
#include <cstring>

namespace lowtide::rt {

static bool isPersistent(const plan::Binding &binding) {
  return binding.kind() == plan::Binding::PARAM || binding.kind() == plan::Binding::STATE ||
         binding.kind() == plan::Binding::CONSTANT;
}

/// Whether an entry leaves an update for whoever comes next, or makes it: the binding of the flag that says so.
static const plan::Binding *findPendingFlag(const plan::Entry &entry) {
  for (const plan::Binding &binding : entry.bindings())
    if (binding.pending() && binding.name() == pendingFlag)
      return &binding;
  return nullptr;
}

Status Tensor::bring(HostAccess access) const {
  if (!device)
    return Status::ok();
  LOWTIDE_TRY(device->bring(data, isWhole() ? bytes() : bytes() / 2, access));
  return low ? device->bring(low, bytes() / 2, access) : Status::ok();
}

std::span<const uint8_t> Tensor::view(std::vector<uint8_t> &room) const {
  if (original)
    return original->read(data, room);
  if (!low)
    return {data, bytes()};
  room.resize(bytes());
  for (uint64_t i = 0; i < bytes() / sizeof(float); ++i) {
    Halves halves;
    std::memcpy(&halves.high, data + i * sizeof halves.high, sizeof halves.high);
    std::memcpy(&halves.low, low + i * sizeof halves.low, sizeof halves.low);
    const float number = joinHalves(halves);
    std::memcpy(room.data() + i * sizeof number, &number, sizeof number);
  }
  return room;
}

std::vector<uint8_t> Tensor::read() const {
  std::vector<uint8_t> room;
  const std::span<const uint8_t> numbers = view(room);
  return room.empty() ? std::vector<uint8_t>(numbers.begin(), numbers.end()) : room;
}

void Tensor::write(const uint8_t *from) const {
  if (original) {
    original->write(from, data);
    return;
  }
  if (!low) {
    std::memcpy(data, from, bytes());
    return;
  }
  for (uint64_t i = 0; i < bytes() / sizeof(float); ++i) {
    float number;
    std::memcpy(&number, from + i * sizeof number, sizeof number);
    const Halves halves = splitNumber(number);
    std::memcpy(data + i * sizeof halves.high, &halves.high, sizeof halves.high);
    std::memcpy(low + i * sizeof halves.low, &halves.low, sizeof halves.low);
  }
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
      if (!isStepScalar(binding.name()))
        return Status(StatusCode::Unsupported, "step scalar '" + printable(binding.name()) +
                                                   "' is unknown to this runtime; it knows " +
                                                   std::string(listOfStepScalars));
    }
  Expected<std::unique_ptr<Device>> device = createDevice(*artifact);
  if (!device)
    return device.takeStatus();
  std::unique_ptr<Session> session(new Session(std::move(artifact), std::move(*device)));
  session->joinBindings();
  LOWTIDE_TRY(session->findOriginals());
  return session;
}

void Session::joinBindings() {
  // By name: a model has many parameters, and most plans no halves.
  std::map<std::string_view, const plan::Binding *> lows;
  for (const plan::Entry &entry : plan().entries())
    for (const plan::Binding &binding : entry.bindings())
      if (binding.kind() == plan::Binding::STATE && binding.dtype() == plan::I16 &&
          std::string_view(binding.name()).ends_with(lowHalfSuffix))
        lows[binding.name()] = &binding;
  for (const plan::Entry &entry : plan().entries())
    for (const plan::Binding &binding : entry.bindings()) {
      const std::string name = binding.name() + std::string(lowHalfSuffix);
      auto low = lows.find(name);
      const bool hasHalves = low != lows.end() && binding.kind() == plan::Binding::PARAM &&
                             binding.dtype() == plan::BF16 &&
                             std::equal(binding.dims().begin(), binding.dims().end(), low->second->dims().begin(),
                                        low->second->dims().end());
      if (!hasHalves || joined_.count(binding.name()))
        continue;
      plan::Binding whole = binding;
      whole.set_dtype(plan::F32);
      whole.mutable_slice()->set_bytes(2 * binding.slice().bytes());
      joined_.emplace(binding.name(), Joined{std::move(whole), low->second});
    }
}

Status Session::findOriginals() {
  Expected<std::vector<const plan::Binding *>> kept = findKeptOriginals(plan());
  if (!kept)
    return kept.takeStatus();
  std::span<const uint8_t> rest = artifact_->originals();
  for (const plan::Binding *binding : *kept) {
    const uint64_t bytes = binding->from_image() ? originalBytes(*binding) : 0;
    originals_.emplace(binding->name(), OriginalNumbers(*binding, rest.first(bytes)));
    rest = rest.subspan(bytes);
  }
  return Status::ok();
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
  hasPending_ = isBroken_ = false;
  return initialize(options);
}

/// Of first values what is written before it leaves memory that is a file: whole elements.
static constexpr uint64_t firstPieceBytes = uint64_t(1) << 22;

Status Session::initialize(const BindOptions &options) {
  const plan::Plan &plan = artifact_->plan();
  const uint8_t *image = artifact_->params().data();
  for (int i = 0; i < plan.arenas_size(); ++i) {
    const uint64_t bytes = plan.arenas(i).image_bytes();
    uint8_t *arena = device_->hostArenas()[static_cast<size_t>(i)];
    // In pieces: an arena in a file may be larger than memory.
    for (uint64_t done = 0, piece = 0; done < bytes; done += piece) {
      piece = std::min(bytes - done, firstPieceBytes);
      LOWTIDE_TRY(device_->bring(arena + done, piece, HostAccess::Overwrite));
      std::memcpy(arena + done, image + done, piece);
      artifact_->leave({image + done, piece});
      LOWTIDE_TRY(device_->leave(arena + done, piece));
    }
    image += bytes;
  }
  artifact_->leave(artifact_->params());
  for (auto &[name, original] : originals_)
    original.reset();
  std::vector<Tensor> tensors = persistent();
  // Nothing is pending: the flag is false, and no update reads what is not written yet.
  if (const plan::Entry *flush = artifact_->entry(std::string(flushEntry)))
    for (const plan::Binding &binding : flush->bindings())
      if (binding.pending())
        tensors.push_back({&binding, address(binding.slice()), nullptr, nullptr, device_.get()});
  for (const Tensor &tensor : tensors) {
    const plan::Binding &binding = *tensor.binding;
    const bool isParam = binding.kind() == plan::Binding::PARAM, isConstant = binding.kind() == plan::Binding::CONSTANT;
    if (startsAsNorm(plan, binding))
      continue;
    if ((isParam && options.randomInitAll) || ((isParam || isConstant) && !binding.from_image())) {
      if (!options.randomInit && !startsRandomly(plan, binding))
        return badInput(std::string("the artifact has no ") +
                        (isParam ? "weights for parameter '" : "values for constant '") + printable(binding.name()) +
                        "': start from --init=random:<seed> or from a checkpoint (--resume)");
      std::vector<uint8_t> numbers(tensor.isWhole() ? 0 : tensor.bytes());
      uint8_t *to = tensor.isWhole() ? tensor.data : numbers.data();
      for (uint64_t done = 0, piece = 0; done < tensor.bytes(); done += piece) {
        piece = std::min(tensor.bytes() - done, firstPieceBytes);
        if (tensor.isWhole())
          LOWTIDE_TRY(device_->bring(to + done, piece, HostAccess::Overwrite));
        LOWTIDE_TRY(initializeRandomly(plan, binding, options.randomSeed, done, {to + done, piece}));
        if (tensor.isWhole())
          LOWTIDE_TRY(device_->leave(to + done, piece));
      }
      if (!tensor.isWhole()) {
        LOWTIDE_TRY(tensor.bring(HostAccess::Overwrite));
        tensor.write(numbers.data());
      }
    } else if (!binding.from_image()) {
      for (uint64_t done = 0, piece = 0; done < tensor.bytes() && !tensor.low; done += piece) {
        piece = std::min(tensor.bytes() - done, firstPieceBytes);
        LOWTIDE_TRY(device_->bring(tensor.data + done, piece, HostAccess::Overwrite));
        fillElements(binding.dtype(), tensor.data + done, piece, binding.initial_value());
        LOWTIDE_TRY(device_->leave(tensor.data + done, piece));
      }
      if (tensor.low)
        fillElements(binding.dtype(), tensor.data, tensor.bytes(), binding.initial_value());
    }
    LOWTIDE_TRY(leave(tensor));
  }
  // Once the weights are there.
  LOWTIDE_TRY(initializeNorms(*this, /*withMagnitudes=*/true));
  return device_->upload();
}

Status Session::leave(const Tensor &tensor) const {
  if (tensor.isWhole())
    return device_->leave(tensor.data, tensor.bytes());
  if (tensor.original)
    artifact_->leave(tensor.original->held());
  LOWTIDE_TRY(device_->leave(tensor.data, tensor.bytes() / 2));
  return tensor.low ? device_->leave(tensor.low, tensor.bytes() / 2) : Status::ok();
}

template <typename Run> Status Session::run(const std::string &entry, Run run) {
  const plan::Entry *found = artifact_->entry(entry);
  if (!found || !bound_)
    return {StatusCode::Usage, !bound_ ? "the session is not bound" : "no entry '" + printable(entry) + "'"};
  const bool isDeferred = findPendingFlag(*found);
  if (!isDeferred)
    LOWTIDE_TRY(flush());
  else if (isBroken_)
    return brokenUpdate();
  Status status = run(*found);
  if (isDeferred) {
    hasPending_ = entry != flushEntry;
    isBroken_ = !status.isOk();
  }
  return status;
}

Status Session::step(const std::string &entry) {
  return run(entry, [&](const plan::Entry &found) { return device_->run(found); });
}

Status Session::observe(const std::string &entry, const Observer &seen) {
  return run(entry, [&](const plan::Entry &found) { return device_->observe(found, seen); });
}

Status Session::brokenUpdate() {
  return {StatusCode::Device, "a step failed in the middle of its updates: what is there now is of two steps"};
}

Status Session::flush() const {
  if (isBroken_)
    return brokenUpdate();
  if (!hasPending_)
    return Status::ok();
  // What the step handed back stays there: the flush has no metrics of its own.
  LOWTIDE_TRY(device_->settle(0));
  hasPending_ = false;
  Status status = device_->run(*artifact_->entry(std::string(flushEntry)));
  isBroken_ = !status.isOk();
  return status;
}

Status Session::settle(unsigned lag) const { return device_->settle(lag); }

Status Session::download(const std::string &entry) const {
  const plan::Entry *found = entry.empty() ? nullptr : artifact_->entry(entry);
  if (!entry.empty() && !found)
    return {StatusCode::Usage, "no entry '" + printable(entry) + "'"};
  if (!bound_)
    return Status::ok();
  LOWTIDE_TRY(flush());
  return device_->download(found);
}

Status Session::upload() {
  if (!bound_)
    return Status::ok();
  // What the host has written is what there is: an update that was left for it is not made any more.
  if (const plan::Entry *entry = artifact_->entry(std::string(flushEntry)); entry && (hasPending_ || isBroken_))
    *address(findPendingFlag(*entry)->slice()) = 0;
  hasPending_ = isBroken_ = false;
  return device_->upload();
}

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
    if (isRealScalar(binding.name()))
      storeElement(binding.dtype(), to, scalars.lr);
    else
      storeInteger(binding.dtype(), to,
                   binding.name() == stepScalar   ? scalars.step
                   : binding.name() == seedScalar ? scalars.seed
                                                  : scalars.row);
  }
  return Status::ok();
}

Status Session::writeScalar(const std::string &entry, std::string_view name, double value) {
  return writeScalar(entry, name, true,
                     [value](const plan::Binding &binding, uint8_t *to) { storeElement(binding.dtype(), to, value); });
}

Status Session::writeScalar(const std::string &entry, std::string_view name, int64_t value) {
  return writeScalar(entry, name, false,
                     [value](const plan::Binding &binding, uint8_t *to) { storeInteger(binding.dtype(), to, value); });
}

Status Session::writeScalar(const std::string &entry, std::string_view name, bool isReal, const ScalarWriter &write) {
  const plan::Entry *found = artifact_->entry(entry);
  if (!found || !bound_)
    return {StatusCode::Usage, !bound_ ? "the session is not bound" : "no entry '" + printable(entry) + "'"};
  auto refuse = [&](const std::string &what) {
    return Status(StatusCode::Usage, "step scalar '" + printable(name) + "' " + what);
  };
  if (!isStepScalar(name))
    return refuse("is unknown to this runtime; it knows " + std::string(listOfStepScalars));
  if (isRealScalar(name) != isReal)
    return refuse(isReal ? "is an integer: write it as one" : "is a real number: write it as one");
  for (const plan::Binding &binding : found->bindings())
    if (binding.kind() == plan::Binding::SCALAR && binding.name() == name)
      write(binding, address(binding.slice()));
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
    return Tensor{best, address(best->slice()), nullptr, nullptr, device_.get()};
  return Status(StatusCode::Usage, "entry '" + printable(entry) + "' binds no '" + printable(name) + "'");
}

Tensor Session::tensorAt(const plan::Entry &entry, size_t index) const {
  const plan::Binding &binding = entry.bindings(static_cast<int>(index));
  return {&binding, address(binding.slice()), nullptr, nullptr, device_.get()};
}

std::vector<Tensor> Session::tensors(const std::string &entry, plan::Binding::Kind kind) const {
  std::vector<Tensor> result;
  if (const plan::Entry *found = artifact_->entry(entry); found && bound_)
    for (const plan::Binding &binding : found->bindings())
      if (binding.kind() == kind)
        result.push_back({&binding, address(binding.slice()), nullptr, nullptr, device_.get()});
  return result;
}

std::vector<Tensor> Session::persistent() const {
  std::map<std::string, Tensor> byName;
  for (const plan::Entry &entry : plan().entries())
    for (const plan::Binding &binding : entry.bindings()) {
      if (!isPersistent(binding) || binding.pending())
        continue;
      // A parameter may be a constant in an entry that does not train it.
      auto [it, fresh] = byName.try_emplace(binding.name(), Tensor{&binding, address(binding.slice())});
      if (!fresh && it->second.binding->kind() == plan::Binding::CONSTANT)
        it->second.binding = &binding;
    }
  for (const auto &[name, joined] : joined_)
    if (auto high = byName.find(name); high != byName.end()) {
      high->second = {&joined.binding, high->second.data, address(joined.low->slice())};
      byName.erase(joined.low->name());
    }
  for (auto &[name, original] : originals_)
    if (auto narrow = byName.find(name); narrow != byName.end())
      narrow->second = {&original.binding(), narrow->second.data, nullptr, &original};
  std::vector<Tensor> result;
  for (auto &[name, tensor] : byName) {
    tensor.device = device_.get();
    result.push_back(tensor);
  }
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

} // namespace lowtide::rt

//===- CInterface.cpp - lowtide.h over the runtime -------------------------===//

#include "lowtide-rt/lowtide.h"

#include "runtime/Schedule.h"
#include "runtime/Session.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/RunFolder.h"
#include "runtime/data/BatchesAhead.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

using namespace lowtide::rt;

struct lowtide_status {
  Status status;
};

namespace {

/// Batches that the caller's function writes while steps run.
class CallerFeeding {
public:
  CallerFeeding(const Session &session, std::string entry, lowtide_fill fill, void *context)
      : entry_(std::move(entry)), tensors_(session.tensors(entry_, lowtide::plan::Binding::BATCH)), fill_(fill),
        context_(context) {
    constexpr uint64_t alignment = 64;
    for (const Tensor &tensor : tensors_) {
      offsets_.push_back(bytes_);
      bytes_ += (tensor.bytes() + alignment - 1) / alignment * alignment;
    }
  }

  Status start(int64_t firstStep) {
    BatchesAhead::Options options;
    options.slotBytes = bytes_, options.first = firstStep;
    auto made = BatchesAhead::create([this](int64_t step, uint8_t *slot, Share) { return write(step, slot); }, options);
    if (!made)
      return made.takeStatus();
    ahead_ = std::move(*made);
    return Status::ok();
  }

  const std::string &entry() const { return entry_; }
  double secondsWaited() const { return ahead_->secondsWaited(); }

  /// Brings the batch of the next step to where the step reads it.
  Status take() {
    ahead_->await();
    Expected<const uint8_t *> slot = ahead_->current();
    if (!slot)
      return slot.takeStatus();
    for (size_t i = 0; i < tensors_.size(); ++i)
      if (tensors_[i].bytes())
        std::memcpy(tensors_[i].data, *slot + offsets_[i], tensors_[i].bytes());
    ahead_->release();
    return Status::ok();
  }

private:
  Status write(int64_t step, uint8_t *slot) const;

  std::string entry_;
  std::vector<Tensor> tensors_;
  std::vector<uint64_t> offsets_; ///< of each array in a slot
  uint64_t bytes_ = 0;
  lowtide_fill fill_;
  void *context_;
  std::unique_ptr<BatchesAhead> ahead_; ///< ends before what its thread reads
};

} // namespace

struct lowtide_session {
  std::unique_ptr<Session> session;
  std::string run = {}; ///< name of the run that it has resumed
  std::unique_ptr<CallerFeeding> feeding = nullptr;
  /// Tensors of which the caller has addresses.
  mutable std::vector<Tensor> handedOut = {};

  Status bring(const Tensor &tensor) const {
    const bool isKnown =
        std::any_of(handedOut.begin(), handedOut.end(), [&](const Tensor &other) { return other.data == tensor.data; });
    if (!isKnown && tensor.device)
      handedOut.push_back(tensor);
    return tensor.bring(HostAccess::Change);
  }
};

namespace {

/// Runs `body` and turns its status into a handle; what is thrown (no memory) becomes a status too.
template <typename Body> lowtide_status *guarded(Body &&body) noexcept {
  try {
    Status status = body();
    return status.isOk() ? nullptr : new lowtide_status{std::move(status)};
  } catch (const std::exception &error) {
    try {
      return new lowtide_status{Status(StatusCode::Internal, error.what())};
    } catch (...) {
      std::terminate(); // not even room for the reason
    }
  }
}

Status missing(const char *what) { return {StatusCode::Usage, std::string(what) + " is NULL"}; }

void view(const Tensor &tensor, lowtide_tensor *to) {
  const lowtide::plan::Binding &binding = *tensor.binding;
  to->name = binding.name().c_str();
  to->kind = static_cast<lowtide_kind>(binding.kind());
  to->dtype = static_cast<lowtide_dtype>(binding.dtype());
  to->rank = static_cast<size_t>(binding.dims_size());
  to->dims = binding.dims().data();
  to->data = tensor.data;
  to->bytes = tensor.bytes();
}

Status CallerFeeding::write(int64_t step, uint8_t *slot) const {
  std::vector<lowtide_tensor> arrays(tensors_.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    view(tensors_[i], &arrays[i]);
    arrays[i].data = slot + offsets_[i];
  }
  if (int code = fill_(context_, step, arrays.data(), arrays.size()))
    return badInput("the caller's function has no batch for step " + std::to_string(step) + " (it returned " +
                    std::to_string(code) + ")");
  return Status::ok();
}

} // namespace

extern "C" {

lowtide_code lowtide_status_code(const lowtide_status *status) {
  return status ? static_cast<lowtide_code>(status->status.code()) : LOWTIDE_OK;
}
const char *lowtide_status_message(const lowtide_status *status) {
  return status ? status->status.message().c_str() : "";
}
const char *lowtide_status_where(const lowtide_status *status) { return status ? status->status.where().c_str() : ""; }
void lowtide_status_free(lowtide_status *status) { delete status; }

lowtide_status *lowtide_session_load(const char *path, lowtide_session **session) {
  return guarded([&]() -> Status {
    if (!path || !session)
      return missing("path or session");
    Expected<std::unique_ptr<Session>> loaded = Session::load(path);
    if (!loaded)
      return loaded.takeStatus();
    *session = new lowtide_session{std::move(*loaded)};
    return Status::ok();
  });
}
void lowtide_session_free(lowtide_session *session) { delete session; }

lowtide_status *lowtide_session_bind(lowtide_session *session, const lowtide_bind_options *options) {
  return guarded([&]() -> Status {
    if (!session)
      return missing("session");
    BindOptions bind;
    if (options) {
      bind.threads = options->threads;
      bind.poison = options->poison != 0;
      bind.randomInit = bind.randomInitAll = options->random_init != 0;
      bind.randomSeed = options->random_seed;
      bind.gpu = options->gpu;
      bind.spill = options->spill ? options->spill : "";
    }
    return session->session->bind(bind);
  });
}

size_t lowtide_session_entry_count(const lowtide_session *session) {
  return session ? static_cast<size_t>(session->session->plan().entries_size()) : 0;
}
const char *lowtide_session_entry_name(const lowtide_session *session, size_t index) {
  if (index >= lowtide_session_entry_count(session))
    return nullptr;
  return session->session->plan().entries(static_cast<int>(index)).name().c_str();
}

size_t lowtide_session_tensor_count(const lowtide_session *session, const char *entry) {
  const lowtide::plan::Entry *found = session && entry ? session->session->artifact().entry(entry) : nullptr;
  return found ? static_cast<size_t>(found->bindings_size()) : 0;
}
lowtide_status *lowtide_session_tensor_at(const lowtide_session *session, const char *entry, size_t index,
                                          lowtide_tensor *tensor) {
  return guarded([&]() -> Status {
    if (!session || !entry || !tensor)
      return missing("an argument");
    if (index >= lowtide_session_tensor_count(session, entry))
      return {StatusCode::Usage, "the entry has no tensor number " + std::to_string(index)};
    const lowtide::plan::Entry *found = session->session->artifact().entry(entry);
    // For its messages about an unbound session.
    Expected<Tensor> known = session->session->tensor(entry, found->bindings(static_cast<int>(index)).name());
    if (!known)
      return known.takeStatus();
    const Tensor at = session->session->tensorAt(*found, index);
    LOWTIDE_TRY(session->bring(at));
    view(at, tensor);
    return Status::ok();
  });
}
lowtide_status *lowtide_session_tensor(const lowtide_session *session, const char *entry, const char *name,
                                       lowtide_tensor *tensor) {
  return guarded([&]() -> Status {
    if (!session || !entry || !name || !tensor)
      return missing("an argument");
    Expected<Tensor> result = session->session->tensor(entry, name);
    if (!result)
      return result.takeStatus();
    LOWTIDE_TRY(session->bring(*result));
    view(*result, tensor);
    return Status::ok();
  });
}

double lowtide_session_learning_rate(const lowtide_session *session, int64_t step) {
  return session ? learningRate(session->session->plan().schedule(), step) : 0;
}
lowtide_status *lowtide_session_write_scalars(lowtide_session *session, const char *entry, double lr, int64_t step,
                                              int64_t seed, int64_t row) {
  return guarded([&]() -> Status {
    if (!session || !entry)
      return missing("session or entry");
    return session->session->writeScalars(entry, {lr, step, seed, row});
  });
}
lowtide_status *lowtide_session_write_real(lowtide_session *session, const char *entry, const char *name,
                                           double value) {
  return guarded([&]() -> Status {
    if (!session || !entry || !name)
      return missing("session, entry or name");
    return session->session->writeScalar(entry, name, value);
  });
}
lowtide_status *lowtide_session_write_integer(lowtide_session *session, const char *entry, const char *name,
                                              int64_t value) {
  return guarded([&]() -> Status {
    if (!session || !entry || !name)
      return missing("session, entry or name");
    return session->session->writeScalar(entry, name, value);
  });
}
lowtide_status *lowtide_session_step(lowtide_session *session, const char *entry) {
  return guarded([&]() -> Status {
    if (!session || !entry)
      return missing("session or entry");
    if (session->feeding && session->feeding->entry() == entry)
      LOWTIDE_TRY(session->feeding->take());
    LOWTIDE_TRY(session->session->step(entry));
    return session->session->settle();
  });
}
lowtide_status *lowtide_session_download(lowtide_session *session, const char *entry) {
  return guarded([&]() -> Status {
    if (!session)
      return missing("session");
    LOWTIDE_TRY(session->session->download(entry ? entry : ""));
    for (const Tensor &tensor : session->handedOut)
      LOWTIDE_TRY(tensor.bring(HostAccess::Change));
    return Status::ok();
  });
}
lowtide_status *lowtide_session_upload(lowtide_session *session) {
  return guarded([&]() -> Status { return session ? session->session->upload() : missing("session"); });
}

lowtide_status *lowtide_session_feed(lowtide_session *session, const char *entry, int64_t first_step, lowtide_fill fill,
                                     void *context) {
  return guarded([&]() -> Status {
    if (!session)
      return missing("session");
    session->feeding.reset();
    if (!fill)
      return Status::ok();
    if (!entry)
      return missing("entry");
    if (!session->session->artifact().entry(entry))
      return {StatusCode::Usage, "there is no entry '" + printable(entry) + "'"};
    if (!session->session->isBound())
      return {StatusCode::Usage, "the session is not bound: its arrays have no place yet"};
    // Steps count on from here: what is added to their number must not wrap.
    constexpr int64_t largest = int64_t(1) << 62;
    if (first_step < 0 || first_step > largest)
      return {StatusCode::Usage, "the first step is " + std::to_string(first_step) + "; steps count from 0 to 2^62"};
    auto feeding = std::make_unique<CallerFeeding>(*session->session, entry, fill, context);
    LOWTIDE_TRY(feeding->start(first_step));
    session->feeding = std::move(feeding);
    return Status::ok();
  });
}
double lowtide_session_data_seconds(const lowtide_session *session) {
  return session && session->feeding ? session->feeding->secondsWaited() : 0;
}

uint64_t lowtide_session_planned_bytes(const lowtide_session *session) {
  return session ? session->session->plannedBytes() : 0;
}
uint64_t lowtide_session_allocated_bytes(const lowtide_session *session) {
  return session ? session->session->allocatedBytes() : 0;
}

lowtide_status *lowtide_session_save(const lowtide_session *session, const char *directory, int64_t step,
                                     int64_t seed) {
  return guarded([&]() -> Status {
    if (!session || !directory)
      return missing("session or directory");
    RunState state;
    state.step = step, state.seed = seed, state.run = session->run;
    Expected<std::string> saved = saveCheckpoint(*session->session, state, directory);
    return saved ? Status::ok() : saved.takeStatus();
  });
}
lowtide_status *lowtide_session_resume(lowtide_session *session, const char *directory, int64_t *step, int64_t *seed) {
  return guarded([&]() -> Status {
    if (!session || !directory || !step || !seed)
      return missing("an argument");
    Expected<LoadedCheckpoint> loaded = loadCheckpoint(*session->session, directory, false);
    if (!loaded)
      return loaded.takeStatus();
    *step = loaded->state.step, *seed = loaded->state.seed;
    session->run = loaded->state.run;
    return Status::ok();
  });
}

} // extern "C"

//===- BatchesAhead.cpp - batches that are prepared while steps run --------===//

#include "runtime/data/BatchesAhead.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>

namespace lowtide::rt {

Expected<std::unique_ptr<BatchesAhead>> BatchesAhead::create(Fill fill, Options options) {
  options.threads = std::max(options.threads, 1u);
  std::unique_ptr<BatchesAhead> ahead(new BatchesAhead(std::move(fill), std::move(options)));
  ahead->next_ = ahead->options_.first;
  try {
    for (int64_t i = 0; i < static_cast<int64_t>(ahead->slots_.size()); ++i) {
      Slot &slot = ahead->slotOf(ahead->next_ + i);
      slot.step = ahead->next_ + i;
      slot.bytes.resize(ahead->options_.slotBytes);
    }
    for (unsigned i = 0; i < ahead->options_.threads; ++i)
      ahead->threads_.emplace_back([self = ahead.get()] { self->work(); });
  } catch (const std::bad_alloc &) {
    return Status(StatusCode::Device,
                  "there is no memory for two batches of " + std::to_string(ahead->options_.slotBytes) + " bytes");
  } catch (const std::system_error &error) {
    return Status(StatusCode::Device, std::string("no thread can be started: ") + error.what());
  }
  return ahead;
}

BatchesAhead::~BatchesAhead() { stop(); }

void BatchesAhead::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  if (options_.interrupt)
    options_.interrupt();
  toWrite_.notify_all();
  for (std::thread &thread : threads_)
    thread.join();
  threads_.clear();
}

BatchesAhead::Slot *BatchesAhead::findWork() {
  const int64_t end = std::min<int64_t>(next_ + static_cast<int64_t>(slots_.size()), options_.end);
  for (int64_t step = next_; step < end; ++step)
    if (Slot &slot = slotOf(step); slot.step == step && slot.claimed < options_.threads)
      return &slot;
  return nullptr;
}

void BatchesAhead::work() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    Slot *slot = findWork();
    if (!slot) {
      toWrite_.wait(lock);
      continue;
    }
    const Share share{slot->claimed++, options_.threads};
    const int64_t step = slot->step;
    const bool isLost = !slot->status.isOk();
    lock.unlock();
    Status status = isLost ? Status::ok() : fill_(step, slot->bytes.data(), share);
    lock.lock();
    if (!status.isOk() && slot->status.isOk())
      slot->status = std::move(status);
    if (++slot->written == options_.threads)
      isWhole_.notify_all();
  }
}

bool BatchesAhead::await(const std::function<bool()> &givesUp) {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  const Slot &slot = slotOf(next_);
  auto isWhole = [&] { return slot.written == options_.threads; };
  while (!isWhole() && !(givesUp && givesUp()))
    isWhole_.wait_for(lock, std::chrono::milliseconds(50), isWhole);
  secondsWaited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return isWhole();
}

Expected<const uint8_t *> BatchesAhead::current() {
  std::lock_guard lock(mutex_);
  Slot &slot = slotOf(next_);
  if (slot.written != options_.threads)
    return Status(StatusCode::Internal, "the batch of step " + std::to_string(next_) + " is not whole");
  if (!slot.status.isOk())
    return slot.status;
  return static_cast<const uint8_t *>(slot.bytes.data());
}

void BatchesAhead::release() {
  {
    std::lock_guard lock(mutex_);
    Slot &slot = slotOf(next_);
    slot.step = next_ + static_cast<int64_t>(slots_.size());
    slot.claimed = slot.written = 0;
    ++next_;
  }
  toWrite_.notify_all();
}

} // namespace lowtide::rt

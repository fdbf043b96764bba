//===- Lanes.cpp - threads that copy while a step computes -----------------===//

#include "runtime/devices/Cpu/Lanes.h"

#include <system_error>

namespace lowtide::rt {

Expected<std::unique_ptr<Lanes>> Lanes::create(unsigned count) {
  std::unique_ptr<Lanes> lanes(new Lanes());
  lanes->threads_.reserve(count);
  try {
    for (unsigned lane = 0; lane < count; ++lane)
      lanes->threads_.emplace_back([&lanes = *lanes, lane] { lanes.loop(lane); });
  } catch (const std::system_error &error) {
    return Status(StatusCode::Device, "cannot start a thread for copies: " + std::string(error.what()));
  }
  return lanes;
}

Lanes::~Lanes() {
  stop_ = true;
  begin(0, nullptr, nullptr);
  for (std::thread &thread : threads_)
    thread.join();
}

void Lanes::begin(unsigned count, Call call, void *context) {
  call_ = call, context_ = context, count_ = count;
  unfinished_.store(static_cast<uint32_t>(threads_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
}

void Lanes::wait() {
  for (uint32_t left; (left = unfinished_.load(std::memory_order_acquire)) != 0;)
    unfinished_.wait(left, std::memory_order_acquire);
}

void Lanes::loop(unsigned lane) {
  for (uint32_t seen = 0;; ++seen) {
    generation_.wait(seen, std::memory_order_acquire);
    if (stop_)
      return;
    if (lane < count_)
      call_(context_, lane);
    if (unfinished_.fetch_sub(1, std::memory_order_release) == 1)
      unfinished_.notify_all();
  }
}

} // namespace lowtide::rt

//===- TensorBoard.cpp - scalars as an event file --------------------------===//

#include "TensorBoard.h"

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <unistd.h>
#include <utility>

namespace lowtide::run {

using namespace rt;

namespace {

void putVarint(std::string &to, uint64_t value) {
  for (; value >= 128; value >>= 7)
    to += static_cast<char>(value | 128);
  to += static_cast<char>(value);
}
template <typename T> void putFixed(std::string &to, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  to.append(bytes, sizeof bytes);
}
void putBytes(std::string &to, int field, const std::string &bytes) {
  putVarint(to, static_cast<uint64_t>(field << 3 | 2));
  putVarint(to, bytes.size());
  to += bytes;
}
uint32_t masked(uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8; }

/// Event.wall_time (1, double) and Event.step (2, int64).
std::string eventHead(int64_t step) {
  std::string event;
  auto now = std::chrono::system_clock::now().time_since_epoch();
  putVarint(event, 1 << 3 | 1);
  putFixed(event, std::chrono::duration<double>(now).count());
  putVarint(event, 2 << 3);
  putVarint(event, static_cast<uint64_t>(step));
  return event;
}

} // namespace

uint32_t crc32c(const void *data, size_t bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> result{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit)
        crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
      result[i] = crc;
    }
    return result;
  }();
  uint32_t crc = ~0u;
  for (const auto *p = static_cast<const uint8_t *>(data); bytes--; ++p)
    crc = crc >> 8 ^ table[(crc ^ *p) & 255];
  return ~crc;
}

Expected<std::unique_ptr<TensorBoard>> TensorBoard::create(const std::string &directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    return ioError("cannot create: " + error.message(), directory);
  char host[256] = "localhost";
  (void)::gethostname(host, sizeof host - 1);
  auto now = std::chrono::system_clock::now().time_since_epoch();
  int64_t second = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  std::string path;
  std::FILE *file = nullptr;
  do {
    path = directory + "/events.out.tfevents." + std::to_string(second++) + "." + host;
    file = std::fopen(path.c_str(), "wxe");
  } while (!file && errno == EEXIST);
  if (!file)
    return ioError(std::string("cannot create: ") + std::strerror(errno), path);
  return std::unique_ptr<TensorBoard>(new TensorBoard(path, file));
}

Status TensorBoard::begin(std::optional<int64_t> resumedAfter) {
  resumedAfter_ = resumedAfter;
  std::string event = eventHead(0);
  putBytes(event, 3, "brain.Event:2"); // Event.file_version
  return record(event);
}

TensorBoard::~TensorBoard() { std::fclose(file_); }

Status TensorBoard::record(const std::string &event) {
  std::string bytes;
  putFixed(bytes, static_cast<uint64_t>(event.size()));
  putFixed(bytes, masked(crc32c(bytes.data(), bytes.size())));
  bytes += event;
  putFixed(bytes, masked(crc32c(event.data(), event.size())));
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size() || std::fflush(file_) != 0)
    return ioError(std::string("cannot write: ") + std::strerror(errno), path_);
  return Status::ok();
}

Status TensorBoard::restart(int64_t step) {
  std::string event = eventHead(step), session;
  putVarint(session, 1 << 3);  // SessionLog.status
  putVarint(session, 1);       // START
  putBytes(event, 7, session); // Event.session_log
  return record(event);
}

Status TensorBoard::scalar(const std::string &tag, int64_t step, double value) {
  if (resumedAfter_)
    LOWTIDE_TRY(restart(*std::exchange(resumedAfter_, std::nullopt) + 1));
  std::string summaryValue, summary, event = eventHead(step);
  putBytes(summaryValue, 1, tag); // Summary.Value.tag
  putVarint(summaryValue, 2 << 3 | 5);
  putFixed(summaryValue, static_cast<float>(value)); // simple_value
  putBytes(summary, 1, summaryValue);                // Summary.value
  putBytes(event, 5, summary);                       // Event.summary
  return record(event);
}

} // namespace lowtide::run

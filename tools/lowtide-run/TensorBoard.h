//===- TensorBoard.h - scalars as an event file ----------------------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_TENSORBOARD_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_TENSORBOARD_H

#include "runtime/Status.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

namespace lowtide::run {

/// Writes `events.out.tfevents.<time>.<host>` into a directory: records of length, masked CRC-32C of it, an `Event`
/// protobuf, masked CRC-32C of that.
class TensorBoard {
public:
  /// Takes a name that no other run has there, later than theirs.
  static rt::Expected<std::unique_ptr<TensorBoard>> create(const std::string &directory);
  ~TensorBoard();

  /// Writes the first record; before any other. The first scalar of a run that was resumed then says that those of
  /// later steps than `resumedAfter`, in other files, count no more.
  rt::Status begin(std::optional<int64_t> resumedAfter);
  rt::Status scalar(const std::string &tag, int64_t step, double value);

private:
  TensorBoard(std::string path, std::FILE *file) : path_(std::move(path)), file_(file) {}
  rt::Status restart(int64_t step);
  rt::Status record(const std::string &event);

  std::string path_;
  std::FILE *file_;
  std::optional<int64_t> resumedAfter_;
};

/// CRC-32C (Castagnoli).
uint32_t crc32c(const void *data, size_t bytes);

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_TENSORBOARD_H

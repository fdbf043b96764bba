//===- ArtifactWriter.cpp - writes a `.tide` file section by section -------===//

#include "runtime/ArtifactWriter.h"

#include "runtime/CheckedMath.h"
#include "runtime/SpecialFile.h"
#include "runtime/checkpoint/OutputFile.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace lowtide::rt {

static Status systemError(const char *what, const std::string &path) {
  return ioError(std::string(what) + ": " + std::strerror(errno), path);
}

Expected<std::unique_ptr<ArtifactWriter>> ArtifactWriter::create(const std::string &path) {
  if (!isSpecialFile(path))
    LOWTIDE_TRY(checkWritable(path));
  std::string temporary = isSpecialFile(path) ? path : path + ".tmp-" + std::to_string(::getpid());
  int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0)
    return cannotCreate(path);
  std::unique_ptr<ArtifactWriter> writer(new ArtifactWriter(path, std::move(temporary), file));
  if (Status status = writer->appendZeros(format::sectionAlignment); !status.isOk())
    return status;
  return writer;
}

ArtifactWriter::ArtifactWriter(std::string path, std::string temporary, int file)
    : path_(std::move(path)), temporary_(std::move(temporary)), file_(file) {}

ArtifactWriter::~ArtifactWriter() {
  if (file_ >= 0)
    ::close(file_);
  if (!finished_ && temporary_ != path_)
    ::unlink(temporary_.c_str());
}

Status ArtifactWriter::writeAll(const void *data, size_t bytes) {
  const char *p = static_cast<const char *>(data);
  while (bytes) {
    ssize_t written = ::write(file_, p, bytes);
    if (written < 0) {
      if (errno == EINTR)
        continue;
      return systemError("cannot write", path_);
    }
    p += written;
    bytes -= static_cast<size_t>(written);
    position_ += static_cast<uint64_t>(written);
  }
  return Status::ok();
}

Status ArtifactWriter::padTo(uint64_t alignment) {
  static const char zeros[format::sectionAlignment] = {};
  return writeAll(zeros, alignUp(position_, alignment) - position_);
}

Status ArtifactWriter::add(std::string_view name, std::string_view bytes) {
  LOWTIDE_TRY(begin(name));
  LOWTIDE_TRY(append(bytes.data(), bytes.size()));
  return end();
}

Status ArtifactWriter::begin(std::string_view name) {
  if (open_ || finished_)
    return {StatusCode::Internal, "a section begins inside another", std::string(name)};
  if (name.empty() || name.size() >= sizeof(format::Section::name) || sections_.size() == format::maxSections)
    return {StatusCode::Internal, "section name or number of sections out of range", std::string(name)};
  for (const format::Section &section : sections_)
    if (name == section.name)
      return {StatusCode::Internal, "section written twice", std::string(name)};
  LOWTIDE_TRY(padTo(format::sectionAlignment));
  format::Section section = {};
  std::memcpy(section.name, name.data(), name.size());
  section.offset = position_;
  sections_.push_back(section);
  hash_ = Sha256();
  sectionBytes_ = 0;
  open_ = true;
  return Status::ok();
}

Status ArtifactWriter::append(const void *data, size_t bytes) {
  if (!open_)
    return {StatusCode::Internal, "no section is open"};
  hash_.update(data, bytes);
  sectionBytes_ += bytes;
  return writeAll(data, bytes);
}

Status ArtifactWriter::appendZeros(uint64_t bytes) {
  static const char zeros[64 * 1024] = {};
  while (bytes) {
    size_t piece = std::min<uint64_t>(bytes, sizeof zeros);
    // The space of the header is the only thing written outside a section.
    LOWTIDE_TRY(open_ ? append(zeros, piece) : writeAll(zeros, piece));
    bytes -= piece;
  }
  return Status::ok();
}

Status ArtifactWriter::end() {
  if (!open_)
    return {StatusCode::Internal, "no section is open"};
  format::Section &section = sections_.back();
  section.bytes = position_ - section.offset;
  Digest digest = hash_.finish();
  std::memcpy(section.digest, digest.data(), digest.size());
  open_ = false;
  return Status::ok();
}

Status ArtifactWriter::finish() {
  if (open_ || finished_)
    return {StatusCode::Internal, "finish inside a section, or twice"};
  format::Header header = {};
  std::memcpy(header.magic, format::magic, sizeof header.magic);
  header.version = format::version;
  header.sectionCount = static_cast<uint32_t>(sections_.size());
  header.fileBytes = position_;
  size_t tableBytes = sections_.size() * sizeof(format::Section);
  Sha256 hash;
  hash.update(&header, offsetof(format::Header, tableDigest));
  hash.update(sections_.data(), tableBytes);
  Digest digest = hash.finish();
  std::memcpy(header.tableDigest, digest.data(), digest.size());
  if (::lseek(file_, 0, SEEK_SET) < 0)
    return systemError("cannot seek", path_);
  LOWTIDE_TRY(writeAll(&header, sizeof header));
  LOWTIDE_TRY(writeAll(sections_.data(), tableBytes));
  if (::fsync(file_) != 0 && errno != EINVAL) // a device has nothing to sync
    return systemError("cannot sync", path_);
  int file = file_;
  file_ = -1;
  if (::close(file) != 0)
    return systemError("cannot close", path_);
  if (temporary_ != path_ && ::rename(temporary_.c_str(), path_.c_str()) != 0)
    return systemError("cannot rename to its final name", path_);
  finished_ = true;
  return Status::ok();
}

} // namespace lowtide::rt

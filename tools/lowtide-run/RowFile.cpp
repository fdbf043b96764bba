//===- RowFile.cpp - arrays that are written row by row --------------------===//

#include "RowFile.h"

#include "Progress.h"

#include "runtime/CheckedMath.h"
#include "runtime/Element.h"
#include "runtime/Json.h"
#include "runtime/SpecialFile.h"
#include "runtime/checkpoint/OutputFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::run;

namespace {

void put(std::string &to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    to += static_cast<char>(value >> (8 * i));
}

const char *descrOf(plan::DType dtype) {
  switch (dtype) {
  case plan::F64:
    return "<f8";
  case plan::F32:
    return "<f4";
  case plan::F16:
    return "<f2";
  case plan::I64:
    return "<i8";
  case plan::I32:
    return "<i4";
  case plan::I16:
    return "<i2";
  case plan::I8:
    return "|i1";
  case plan::U8:
    return "|u1";
  case plan::U16:
    return "<u2";
  case plan::U32:
    return "<u4";
  case plan::U64:
    return "<u8";
  default:
    return "|b1";
  }
}

/// What stands before the values of a .npy: version 1, padded to 64 bytes.
std::string npyHeader(const RowFile::Array &array) {
  std::string text = std::string("{'descr': '") + descrOf(array.dtype) + "', 'fortran_order': False, 'shape': (";
  for (int64_t dim : array.dims)
    text += std::to_string(dim) + (array.dims.size() == 1 ? "," : ", ");
  if (array.dims.size() > 1)
    text.resize(text.size() - 2);
  text += "), }";
  text.append(alignUp(text.size() + 11, 64) - text.size() - 11, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  put(header, text.size(), 2);
  return header + text;
}

constexpr uint64_t elsewhere = 0xFFFFFFFF; ///< of a zip field: its value is in the extra field

} // namespace

uint64_t RowFile::Array::bytes() const {
  uint64_t result = elementBytes(dtype);
  for (int64_t dim : dims)
    result *= static_cast<uint64_t>(dim);
  return result;
}

Expected<RowFile::Format> RowFile::formatOf(const std::string &path) {
  if (path.ends_with(".npz"))
    return Format::Npz;
  if (path.ends_with(".safetensors"))
    return Format::Safetensors;
  return Status(StatusCode::Usage, "'" + printable(path) + "' ends in neither .npz nor .safetensors");
}

Expected<std::unique_ptr<RowFile>> RowFile::create(const std::string &path, std::vector<Array> arrays) {
  Expected<Format> format = formatOf(path);
  if (!format)
    return format.takeStatus();
  if (isSpecialFile(path))
    return ioError("cannot create: it is a device or a pipe, and rows are written to a file", path);
  const std::string partial = path + ".partial";
  int file = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0)
    return cannotCreate(path); // under the name that was asked for
  std::unique_ptr<RowFile> made(new RowFile(path, file, *format, std::move(arrays)));
  LOWTIDE_TRY(made->layOut());
  return made;
}

RowFile::~RowFile() {
  if (file_ < 0)
    return;
  ::close(file_);
  ::unlink(partial().c_str());
}

Status RowFile::write(uint64_t offset, const void *data, uint64_t bytes) {
  const char *from = static_cast<const char *>(data);
  while (bytes) {
    ssize_t written = ::pwrite(file_, from, bytes, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return ioError(std::string("cannot write: ") + std::strerror(written ? errno : ENOSPC), path_);
    from += written, offset += static_cast<uint64_t>(written), bytes -= static_cast<uint64_t>(written);
  }
  return Status::ok();
}

Status RowFile::layOut() {
  std::string head;
  if (format_ == Format::Safetensors) {
    nlohmann::ordered_json header = nlohmann::ordered_json::object();
    uint64_t at = 0;
    for (size_t i = 0; i < arrays_.size(); ++i) {
      places_[i].data = at;
      header[arrays_[i].name] = {{"dtype", dtypeName(arrays_[i].dtype)},
                                 {"shape", arrays_[i].dims},
                                 {"data_offsets", {at, at + arrays_[i].bytes()}}};
      at += arrays_[i].bytes();
    }
    std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    text.append(alignUp(text.size(), 8) - text.size(), ' ');
    put(head, text.size(), 8);
    head += text;
    for (Place &place : places_)
      place.data += head.size();
    end_ = head.size() + at;
  } else {
    for (size_t i = 0; i < arrays_.size(); ++i) {
      Place &place = places_[i];
      place.header = end_;
      place.prefix = npyHeader(arrays_[i]);
      place.crc =
          static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef *>(place.prefix.data()), place.prefix.size()));
      place.data = end_ + memberHeader(i, false).size() + place.prefix.size();
      end_ = place.data + arrays_[i].bytes();
    }
  }
  const uint64_t bytes = end_ + (format_ == Format::Npz ? directory().size() : 0);
  if (int error = bytes ? ::posix_fallocate(file_, 0, static_cast<off_t>(bytes)) : 0)
    return ioError("cannot take " + bytesText(bytes) + " of the disk: " + std::strerror(error), path_);
  return write(0, head.data(), head.size());
}

Status RowFile::append(size_t array, const void *data, uint64_t bytes) {
  Place &place = places_[array];
  if (place.written + bytes > arrays_[array].bytes())
    return {StatusCode::Internal, "array '" + printable(arrays_[array].name) + "' gets more rows than were announced"};
  if (format_ == Format::Npz)
    place.crc = static_cast<uint32_t>(crc32_z(place.crc, static_cast<const Bytef *>(data), bytes));
  LOWTIDE_TRY(write(place.data + place.written, data, bytes));
  place.written += bytes;
  return Status::ok();
}

/// Always with 64-bit sizes in the extra field, as numpy does.
std::string RowFile::memberHeader(size_t array, bool inDirectory) const {
  const Place &place = places_[array];
  const std::string name = arrays_[array].name + ".npy";
  const uint64_t bytes = place.prefix.size() + arrays_[array].bytes();
  std::string text;
  put(text, inDirectory ? 0x02014b50 : 0x04034b50, 4);
  if (inDirectory)
    put(text, 45, 2);
  put(text, 45, 2), put(text, 0x800, 2), put(text, 0, 2); // version, names in UTF-8, stored
  put(text, 0, 2), put(text, 0x21, 2);                    // the first of January 1980
  put(text, place.crc, 4), put(text, elsewhere, 4), put(text, elsewhere, 4);
  put(text, name.size(), 2), put(text, inDirectory ? 28 : 20, 2);
  if (inDirectory)
    put(text, 0, 2), put(text, 0, 2), put(text, 0, 2), put(text, uint64_t(0600) << 16, 4), put(text, elsewhere, 4);
  text += name;
  put(text, 1, 2), put(text, inDirectory ? 24 : 16, 2), put(text, bytes, 8), put(text, bytes, 8);
  if (inDirectory)
    put(text, place.header, 8);
  return text;
}

std::string RowFile::directory() const {
  std::string text;
  for (size_t i = 0; i < arrays_.size(); ++i)
    text += memberHeader(i, true);
  const uint64_t size = text.size(), count = arrays_.size(), end = end_ + size;
  put(text, 0x06064b50, 4), put(text, 44, 8), put(text, 45, 2), put(text, 45, 2), put(text, 0, 8);
  put(text, count, 8), put(text, count, 8), put(text, size, 8), put(text, end_, 8);
  put(text, 0x07064b50, 4), put(text, 0, 4), put(text, end, 8), put(text, 1, 4);
  put(text, 0x06054b50, 4), put(text, 0, 4), put(text, count, 2), put(text, count, 2);
  put(text, size, 4), put(text, elsewhere, 4), put(text, 0, 2);
  return text;
}

Status RowFile::finish() {
  for (size_t i = 0; i < arrays_.size(); ++i) {
    if (places_[i].written != arrays_[i].bytes())
      return {StatusCode::Internal, "array '" + printable(arrays_[i].name) + "' lacks rows"};
    if (format_ == Format::Npz) {
      const std::string header = memberHeader(i, false) + places_[i].prefix;
      LOWTIDE_TRY(write(places_[i].header, header.data(), header.size()));
    }
  }
  if (format_ == Format::Npz) {
    const std::string text = directory();
    LOWTIDE_TRY(write(end_, text.data(), text.size()));
  }
  if (::fsync(file_) != 0 || ::rename(partial().c_str(), path_.c_str()) != 0)
    return ioError(std::string("cannot write: ") + std::strerror(errno), path_);
  ::close(std::exchange(file_, -1));
  return Status::ok();
}

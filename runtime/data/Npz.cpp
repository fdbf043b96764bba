//===- Npz.cpp - archives of NumPy arrays ----------------------------------===//
//
// A `.npz` is a zip file of "<name>.npy" members. Only its central directory is believed; members are found by name and
// never become paths. Stored members are used where they lie, deflated ones are inflated by zlib into a buffer of the
// stated size.
//
//===----------------------------------------------------------------------===//

#include "runtime/CheckedMath.h"
#include "runtime/data/HostArray.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>
#include <zlib.h>

namespace lowtide::rt {
namespace {

constexpr size_t maxMembers = 10000;
/// What deflate makes of a byte at most: 258 bytes for each two bits. Masks of ones and tables of zeros come near it.
constexpr uint64_t maxRatio = 1032;

uint64_t little(std::span<const uint8_t> bytes, size_t at, int count) {
  uint64_t value = 0;
  for (int i = count; i-- > 0;)
    value = value << 8 | bytes[at + static_cast<size_t>(i)];
  return value;
}

struct Member {
  std::string name;
  uint64_t method, flags, crc, packed, unpacked, offset;
};

/// Sizes and offset beyond 32 bits are in an extra field (id 1), in this order, each only if its field is all ones.
Status readZip64(std::span<const uint8_t> extra, Member &member) {
  uint64_t *fields[] = {&member.unpacked, &member.packed, &member.offset};
  while (extra.size() >= 4) {
    uint64_t id = little(extra, 0, 2), size = little(extra, 2, 2);
    if (size > extra.size() - 4)
      break;
    if (id == 1) {
      size_t at = 4;
      for (uint64_t *field : fields) {
        if (*field != 0xFFFFFFFF)
          continue;
        if (at + 8 > 4 + size)
          return badInput("a 64-bit size is missing", printable(member.name));
        *field = little(extra, at, 8);
        at += 8;
      }
      return Status::ok();
    }
    extra = extra.subspan(4 + size);
  }
  return Status::ok();
}

Expected<std::vector<Member>> readDirectory(std::span<const uint8_t> file) {
  // The end record is the last 22 bytes, or earlier by a comment of up to 65535 bytes.
  size_t end = file.size(), found = SIZE_MAX;
  for (size_t back = 22; back <= std::min<size_t>(end, 22 + 65535); ++back)
    if (little(file, end - back, 4) == 0x06054b50 && little(file, end - back + 20, 2) == back - 22) {
      found = end - back;
      break;
    }
  if (found == SIZE_MAX)
    return badInput("not a .npz archive: no zip directory at its end (truncated?)");
  uint64_t count = little(file, found + 10, 2), size = little(file, found + 12, 4), start = little(file, found + 16, 4);
  if (start == 0xFFFFFFFF || count == 0xFFFF) {
    // zip64: a locator of 20 bytes in front of the end record says where the wide end record is.
    if (found < 20 || little(file, found - 20, 4) != 0x07064b50)
      return badInput("the zip directory is damaged");
    uint64_t wide = little(file, found - 12, 8);
    if (!(Checked(wide) + 56).atMost(found) || little(file, wide, 4) != 0x06064b50)
      return badInput("the zip directory is damaged");
    count = little(file, wide + 32, 8), size = little(file, wide + 40, 8), start = little(file, wide + 48, 8);
  }
  if (count > maxMembers)
    return badInput(std::to_string(count) + " members; at most " + std::to_string(maxMembers) + " are accepted");
  if (!(Checked(start) + size).atMost(found))
    return badInput("the zip directory lies outside the file");
  std::span<const uint8_t> directory = file.subspan(start, size);
  std::vector<Member> members;
  for (uint64_t i = 0; i < count; ++i) {
    if (directory.size() < 46 || little(directory, 0, 4) != 0x02014b50)
      return badInput("the zip directory is damaged");
    uint64_t nameBytes = little(directory, 28, 2), extraBytes = little(directory, 30, 2);
    uint64_t total = 46 + nameBytes + extraBytes + little(directory, 32, 2);
    if (total > directory.size())
      return badInput("the zip directory is truncated");
    Member member;
    member.name.assign(reinterpret_cast<const char *>(directory.data()) + 46, nameBytes);
    member.flags = little(directory, 8, 2), member.method = little(directory, 10, 2);
    member.crc = little(directory, 16, 4), member.packed = little(directory, 20, 4);
    member.unpacked = little(directory, 24, 4), member.offset = little(directory, 42, 4);
    LOWTIDE_TRY(readZip64(directory.subspan(46 + nameBytes, extraBytes), member));
    members.push_back(std::move(member));
    directory = directory.subspan(total);
  }
  return members;
}

std::string gibibytes(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

Expected<HostArray> readMember(std::span<const uint8_t> file, const Member &member,
                               const std::shared_ptr<const void> &owner, uint64_t *inflatable) {
  if (!(Checked(member.offset) + 30).atMost(file.size()) || little(file, member.offset, 4) != 0x04034b50)
    return badInput("its local header is not where the directory says");
  if (member.flags & 1)
    return badInput("is encrypted");
  // Lengths of name and extra field may differ from the directory's.
  Checked start =
      Checked(member.offset) + 30 + little(file, member.offset + 26, 2) + little(file, member.offset + 28, 2);
  if (!(start + member.packed).atMost(file.size()))
    return badInput("reaches beyond the end of the file");
  std::span<const uint8_t> packed = file.subspan(*start.get(), member.packed);
  std::span<const uint8_t> content;
  std::shared_ptr<const void> keeper = owner;
  if (member.method == 0) {
    if (member.packed != member.unpacked)
      return badInput("is stored, and its two sizes differ");
    content = packed;
  } else if (member.method == 8) {
    const Checked most = Checked(member.packed) * maxRatio;
    if (!most.get() || member.unpacked > *most.get())
      return badInput("would inflate to more than deflate can hold, " + std::to_string(maxRatio) + " times its size");
    if (inflatable && member.unpacked > *inflatable)
      return Status(StatusCode::OverBudget,
                    "is compressed and takes " + gibibytes(member.unpacked) + " of memory, where " +
                        gibibytes(*inflatable) +
                        " are free; save it with numpy.savez, whose arrays are read where they lie in the file");
    if (inflatable)
      *inflatable -= member.unpacked;
    auto buffer = std::make_shared<std::vector<uint8_t>>(member.unpacked);
    z_stream stream = {};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
      return Status(StatusCode::Internal, "cannot start zlib");
    // zlib counts in 32 bits: feed it in pieces.
    size_t in = 0, out = 0;
    int result = Z_OK;
    while (result == Z_OK) {
      size_t give = std::min<size_t>(packed.size() - in, 1u << 30),
             room = std::min<size_t>(buffer->size() - out, 1u << 30);
      stream.next_in = const_cast<Bytef *>(packed.data() + in), stream.avail_in = static_cast<uInt>(give);
      stream.next_out = buffer->data() + out, stream.avail_out = static_cast<uInt>(room);
      result = inflate(&stream, Z_NO_FLUSH);
      size_t took = give - stream.avail_in, made = room - stream.avail_out;
      in += took, out += made;
      if (result == Z_OK && took == 0 && made == 0)
        break;
    }
    inflateEnd(&stream);
    if (result != Z_STREAM_END || out != buffer->size())
      return badInput("does not inflate to the size that the directory states");
    content = *buffer;
    keeper = buffer;
  } else {
    return badInput("compression method " + std::to_string(member.method) + "; stored and deflate are accepted");
  }
  uLong crc = crc32_z(0, content.data(), content.size());
  if (crc != member.crc)
    return badInput("damaged: its checksum does not match");
  return parseNpy(content, std::move(keeper));
}

} // namespace

uint64_t freeMemory() {
  uint64_t bytes = UINT64_MAX;
  if (std::FILE *info = std::fopen("/proc/meminfo", "re")) {
    char line[128];
    unsigned long long kib;
    while (std::fgets(line, sizeof line, info))
      if (std::sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
        bytes = kib * 1024;
    std::fclose(info);
  }
  return bytes;
}

Expected<std::vector<NamedArray>> parseNpz(std::span<const uint8_t> file, std::shared_ptr<const void> owner,
                                           uint64_t *inflatable) {
  Expected<std::vector<Member>> members = readDirectory(file);
  if (!members)
    return members.takeStatus();
  std::vector<NamedArray> arrays;
  std::set<std::string> names;
  for (const Member &member : *members) {
    if (member.name.size() <= 4 || member.name.compare(member.name.size() - 4, 4, ".npy") != 0)
      continue;
    std::string name = member.name.substr(0, member.name.size() - 4);
    if (!names.insert(name).second)
      return badInput("appears twice", "member '" + printable(name) + "'");
    Expected<HostArray> array = readMember(file, member, owner, inflatable);
    if (!array)
      return array.takeStatus().at("member '" + printable(name) + "'");
    arrays.push_back({std::move(name), std::move(*array)});
  }
  return arrays;
}

} // namespace lowtide::rt

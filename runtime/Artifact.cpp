//===- Artifact.cpp - a `.tide` file, mapped, checked and proved -----------===//

#include "runtime/Artifact.h"

#include "runtime/ArtifactFormat.h"
#include "runtime/CheckedMath.h"
#include "runtime/KernelStatements.h"
#include "runtime/OriginalNumbers.h"
#include "runtime/Verify.h"

#include <algorithm>
#include <cstring>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <vector>

namespace lowtide::rt {

Expected<plan::Plan> parsePlan(std::string_view bytes) {
  constexpr size_t limit = size_t(1) << 30;
  if (bytes.size() > limit)
    return badInput("plan of " + std::to_string(bytes.size()) + " bytes; at most " + std::to_string(limit) +
                    " are accepted");
  google::protobuf::io::ArrayInputStream array(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream stream(&array);
  stream.SetRecursionLimit(16);
  stream.SetTotalBytesLimit(static_cast<int>(limit));
  plan::Plan plan;
  if (!plan.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    return badInput("the plan is not a protobuf message of the expected form (or nested deeper than 16)");
  return plan;
}

Expected<std::unique_ptr<Artifact>> Artifact::open(const std::string &path) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.takeStatus();
  std::unique_ptr<Artifact> artifact(new Artifact);
  artifact->file_ = std::move(*file);
  if (Status status = artifact->load(artifact->file_.bytes()); !status.isOk())
    return std::move(status).at(path);
  return artifact;
}

Expected<std::unique_ptr<Artifact>> Artifact::fromBytes(std::span<const uint8_t> bytes) {
  std::unique_ptr<Artifact> artifact(new Artifact);
  if (Status status = artifact->load(bytes); !status.isOk())
    return status;
  return artifact;
}

/// Checks everything in front of the sections and returns the table.
static Expected<std::vector<format::Section>> readTable(std::span<const uint8_t> bytes) {
  format::Header header;
  if (bytes.size() < sizeof header)
    return badInput("not a .tide artifact: " + std::to_string(bytes.size()) + " bytes are fewer than its header");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, format::magic, sizeof header.magic) != 0)
    return badInput("not a .tide artifact: it does not start with LOWTIDE; lowtide compile makes one of an ONNX file");
  if (header.version != format::version)
    return Status(StatusCode::Unsupported, "artifact format " + std::to_string(header.version) +
                                               "; this runtime reads format " + std::to_string(format::version) +
                                               ": compile the model again or take the runtime of that release");
  if (header.featureBits != 0)
    return Status(StatusCode::Unsupported, "the artifact needs features that this runtime does not know");
  if (header.fileBytes != bytes.size())
    return badInput("truncated or extended: " + std::to_string(bytes.size()) + " bytes, the header says " +
                    std::to_string(header.fileBytes));
  if (header.sectionCount == 0 || header.sectionCount > format::maxSections)
    return badInput(std::to_string(header.sectionCount) + " sections; between 1 and " +
                    std::to_string(format::maxSections) + " are accepted");
  size_t tableBytes = header.sectionCount * sizeof(format::Section);
  if (bytes.size() < sizeof header + tableBytes)
    return badInput("truncated inside the section table");
  Sha256 hash;
  hash.update(bytes.data(), offsetof(format::Header, tableDigest));
  hash.update(bytes.data() + sizeof header, tableBytes);
  Digest digest = hash.finish();
  if (std::memcmp(digest.data(), header.tableDigest, digest.size()) != 0)
    return badInput("damaged: the digest of header and section table does not match");
  std::vector<format::Section> table(header.sectionCount);
  std::memcpy(table.data(), bytes.data() + sizeof header, tableBytes);

  // Sections follow each other in order; what lies between them is zero.
  uint64_t position = sizeof header + tableBytes;
  auto zeros = [&](uint64_t begin, uint64_t end) {
    return std::all_of(bytes.data() + begin, bytes.data() + end, [](uint8_t byte) { return byte == 0; });
  };
  for (const format::Section &section : table) {
    if (section.name[0] == '\0' || section.name[sizeof section.name - 1] != '\0')
      return badInput("a section has no proper name");
    std::string name = "section '" + printable(section.name) + "'";
    if (section.offset % format::sectionAlignment != 0 || section.offset < position)
      return badInput("overlaps its predecessor or does not start on a 4 KiB boundary", name);
    if (!(Checked(section.offset) + section.bytes).atMost(bytes.size()))
      return badInput("reaches beyond the end of the file", name);
    if (!zeros(position, section.offset))
      return badInput("damaged: the gap in front of it is not zero", name);
    position = section.offset + section.bytes;
  }
  if (position != bytes.size())
    return badInput("bytes after the last section");
  return table;
}

/// Of a section what is in memory while its digest is taken.
static constexpr size_t digestPieceBytes = size_t(1) << 22;

/// A section may be larger than memory: what was read of it leaves.
Digest Artifact::digestOf(std::span<const uint8_t> section) const {
  Sha256 hash;
  for (size_t done = 0, piece = 0; done < section.size(); done += piece) {
    piece = std::min(section.size() - done, digestPieceBytes);
    hash.update(section.data() + done, piece);
    leave(section.subspan(done, piece));
  }
  return hash.finish();
}

Status Artifact::load(std::span<const uint8_t> bytes) {
  Expected<std::vector<format::Section>> table = readTable(bytes);
  if (!table)
    return table.takeStatus();
  std::span<const uint8_t> planBytes;
  constexpr int known = 7;
  bool seen[known] = {};
  for (const format::Section &section : *table) {
    std::string where = "section '" + printable(section.name) + "'";
    std::span<const uint8_t> content = bytes.subspan(section.offset, section.bytes);
    const Digest digest = digestOf(content);
    if (std::memcmp(digest.data(), section.digest, digest.size()) != 0)
      return badInput("damaged: its digest does not match", where);
    const char *names[known] = {"plan", "params", "originals", "code", "cubin", "ptx", "meta"};
    std::span<const uint8_t> *targets[known] = {&planBytes, &params_, &originals_, &code_, &cubin_, &ptx_, &meta_};
    for (int i = 0; i < known; ++i) {
      if (std::strcmp(section.name, names[i]) != 0)
        continue;
      if (seen[i])
        return badInput("appears twice", where);
      seen[i] = true;
      *targets[i] = content;
      if (i == 0)
        planDigest_ = toHex(digest);
    }
  }
  if (!seen[0])
    return badInput("no section 'plan'");
  Expected<plan::Plan> parsed = parsePlan({reinterpret_cast<const char *>(planBytes.data()), planBytes.size()});
  if (!parsed)
    return parsed.takeStatus().at("section 'plan'");
  plan_ = std::move(*parsed);
  LOWTIDE_TRY(verifyPlan(plan_).at("plan"));

  Checked imageBytes;
  for (const plan::Arena &arena : plan_.arenas())
    imageBytes += arena.image_bytes();
  if (imageBytes.get() != params_.size())
    return badInput("holds " + std::to_string(params_.size()) + " bytes, the plan's arenas take " +
                        std::to_string(imageBytes.get().value_or(0)),
                    "section 'params'");
  Expected<std::vector<const plan::Binding *>> kept = findKeptOriginals(plan_);
  if (!kept)
    return kept.takeStatus().at("plan");
  Checked keptBytes;
  for (const plan::Binding *binding : *kept)
    keptBytes += binding->from_image() ? originalBytes(*binding) : 0;
  if (keptBytes.get() != originals_.size())
    return badInput("holds " + std::to_string(originals_.size()) +
                        " bytes, the f32 numbers of the plan's weights take " +
                        std::to_string(keptBytes.get().value_or(0)),
                    "section 'originals'");
  if (plan_.kernels_size() && code_.empty() && cubin_.empty() && ptx_.empty())
    return badInput("the plan has kernels and there is no machine code", "section 'code'");
  return checkStatements(plan_, {code_, cubin_, ptx_});
}

const plan::Entry *Artifact::entry(std::string_view name) const {
  for (const plan::Entry &entry : plan_.entries())
    if (entry.name() == name)
      return &entry;
  return nullptr;
}

} // namespace lowtide::rt

//===- Base.cpp - an artifact whose plan is changed, and changed again -----===//

#include "Base.h"

#include "runtime/CheckedMath.h"
#include "runtime/Sha256.h"

#include <cstring>

namespace lowtide::fuzz {

using namespace rt;

Expected<std::unique_ptr<Base>> Base::open(const std::string &path) {
  Expected<std::unique_ptr<Artifact>> artifact = Artifact::open(path);
  if (!artifact)
    return artifact.takeStatus();
  std::unique_ptr<Base> base(new Base);
  base->name_ = path.substr(path.rfind('/') + 1);
  base->artifact_ = std::move(*artifact);
  if (!base->artifact_->code().empty()) {
    Expected<std::unique_ptr<MachineCode>> code = MachineCode::load(base->artifact_->code());
    if (!code)
      return code.takeStatus();
    base->code_ = std::move(*code);
  }
  uint64_t end = format::sectionAlignment;
  auto add = [&](const char *name, std::span<const uint8_t> bytes) {
    format::Section section = {};
    std::strncpy(section.name, name, sizeof section.name - 1);
    section.offset = alignUp(end, format::sectionAlignment), section.bytes = bytes.size();
    const Digest digest = Sha256::of(bytes.data(), bytes.size());
    std::memcpy(section.digest, digest.data(), digest.size());
    end = section.offset + section.bytes;
    base->file_.resize((end + 7) / 8);
    std::memcpy(reinterpret_cast<uint8_t *>(base->file_.data()) + section.offset, bytes.data(), bytes.size());
    base->table_.push_back(section);
  };
  const Artifact &sections = *base->artifact_;
  add("params", sections.params());
  if (!sections.code().empty())
    add("code", sections.code());
  add("plan", {});
  return base;
}

std::span<const uint8_t> Base::withPlan(const std::string &plan) {
  format::Section &section = table_.back();
  section.bytes = plan.size();
  const Digest digest = Sha256::of(plan.data(), plan.size());
  std::memcpy(section.digest, digest.data(), digest.size());
  const uint64_t bytes = section.offset + plan.size();
  if (file_.size() < (bytes + 7) / 8)
    file_.resize((bytes + 7) / 8 * 2);
  auto *file = reinterpret_cast<uint8_t *>(file_.data());
  std::memcpy(file + section.offset, plan.data(), plan.size());
  format::Header header = {};
  std::memcpy(header.magic, format::magic, sizeof header.magic);
  header.version = format::version;
  header.sectionCount = static_cast<uint32_t>(table_.size());
  header.fileBytes = bytes;
  const size_t tableBytes = table_.size() * sizeof(format::Section);
  Sha256 hash;
  hash.update(&header, offsetof(format::Header, tableDigest));
  hash.update(table_.data(), tableBytes);
  const Digest whole = hash.finish();
  std::memcpy(header.tableDigest, whole.data(), whole.size());
  std::memcpy(file, &header, sizeof header);
  std::memcpy(file + sizeof header, table_.data(), tableBytes);
  return {file, bytes};
}

} // namespace lowtide::fuzz

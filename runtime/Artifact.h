//===- Artifact.h - a `.tide` file, mapped, checked and proved -------------===//
//
// The order of checks is fixed: size, header, digests, protobuf with limits, plan verifier. Only an artifact that has
// passed them all can be held.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_ARTIFACT_H
#define LOWTIDE_RUNTIME_ARTIFACT_H

#include "plan.pb.h"
#include "runtime/MappedFile.h"
#include "runtime/Sha256.h"
#include "runtime/Status.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace lowtide::rt {

/// Parses the `plan` section: depth at most 16, size at most 1 GiB. Does not prove anything about it.
Expected<plan::Plan> parsePlan(std::string_view bytes);

/// A proved artifact. Sections stay mapped as long as it lives.
class Artifact {
public:
  /// Maps and checks the file. A failure says which check, in words.
  static Expected<std::unique_ptr<Artifact>> open(const std::string &path);
  /// The same for bytes in memory, which must outlive the artifact and start on an 8-byte boundary.
  static Expected<std::unique_ptr<Artifact>> fromBytes(std::span<const uint8_t> bytes);

  const plan::Plan &plan() const { return plan_; }
  /// First image bytes of the PARAMS arenas, one after the other in the order of the arenas.
  std::span<const uint8_t> params() const { return params_; }
  /// The f32 numbers of weights that the plan holds in 16 bits, one after the other (runtime/OriginalNumbers.h).
  std::span<const uint8_t> originals() const { return originals_; }
  /// Takes a part of the artifact out of memory until it is read again, where it is in a mapped file.
  void leave(std::span<const uint8_t> part) const { file_.leave(part); }
  /// ELF shared object with the kernels, for the CPU and for the fake CUDA device; empty when there are none.
  std::span<const uint8_t> code() const { return code_; }
  /// The kernels for a GPU: machine code of the target's chip, and the text that other chips compile; may be empty.
  std::span<const uint8_t> cubin() const { return cubin_; }
  std::span<const uint8_t> ptx() const { return ptx_; }
  /// JSON for reports; may be empty.
  std::string_view meta() const { return {reinterpret_cast<const char *>(meta_.data()), meta_.size()}; }
  /// SHA-256 of the `plan` section, hexadecimal: what a checkpoint remembers.
  const std::string &planDigest() const { return planDigest_; }
  /// Entry by name, or null.
  const plan::Entry *entry(std::string_view name) const;

private:
  Artifact() = default;
  Digest digestOf(std::span<const uint8_t> section) const;
  Status load(std::span<const uint8_t> bytes);

  MappedFile file_;
  plan::Plan plan_;
  std::string planDigest_;
  std::span<const uint8_t> params_, originals_, code_, cubin_, ptx_, meta_;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_ARTIFACT_H

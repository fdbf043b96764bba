//===- Base.h - an artifact whose plan is changed, and changed again -------===//
#ifndef LOWTIDE_TEST_FUZZ_PLANMUTANTS_BASE_H
#define LOWTIDE_TEST_FUZZ_PLANMUTANTS_BASE_H

#include "runtime/Artifact.h"
#include "runtime/ArtifactFormat.h"
#include "runtime/devices/Cpu/MachineCode.h"

#include <memory>
#include <string>
#include <vector>

namespace lowtide::fuzz {

class Base {
public:
  /// Reads a sound artifact.
  static rt::Expected<std::unique_ptr<Base>> open(const std::string &path);

  const std::string &name() const { return name_; }
  const plan::Plan &plan() const { return artifact_->plan(); }
  const rt::MachineCode *code() const { return code_.get(); }
  /// The file with another plan and digests that are right. Valid until the next call.
  std::span<const uint8_t> withPlan(const std::string &plan);

private:
  std::string name_;
  std::unique_ptr<rt::Artifact> artifact_;
  std::unique_ptr<rt::MachineCode> code_;
  std::vector<rt::format::Section> table_; ///< the plan last
  std::vector<uint64_t> file_;
};

} // namespace lowtide::fuzz

#endif // LOWTIDE_TEST_FUZZ_PLANMUTANTS_BASE_H

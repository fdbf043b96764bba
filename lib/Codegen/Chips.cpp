//===- Chips.cpp - GPUs that kernels can be compiled for --------*- C++ -*-===//
//
// PTX versions: "PTX ISA", release notes. Compute capabilities: https://developer.nvidia.com/cuda-gpus.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Codegen/Chips.h"
#include "llvm/ADT/STLExtras.h"

using namespace lowtide;
using namespace lowtide::codegen;

static constexpr Chip chips[] = {
    {"sm_80", "+ptx81", "A100, A30"},
    {"sm_86", "+ptx81", "RTX 30, A10, A40, RTX A6000"},
    {"sm_87", "+ptx81", "Jetson Orin"},
    {"sm_88", "+ptx90", "embedded"},
    {"sm_89", "+ptx81", "RTX 40, L4, L40S"},
    {"sm_90", "+ptx81", "H100, H200"},
    {"sm_90a", "+ptx81", "H100, H200; for no other chip"},
    {"sm_100", "+ptx86", "B200"},
    {"sm_103", "+ptx88", "B300"},
    {"sm_110", "+ptx90", "Jetson Thor"},
    {"sm_120", "+ptx87", "RTX 50, RTX PRO 6000"},
    {"sm_121", "+ptx88", "DGX Spark"},
};

llvm::ArrayRef<Chip> codegen::listChips() { return chips; }

const Chip *codegen::findChip(llvm::StringRef name) {
  const auto *found = llvm::find_if(chips, [&](const Chip &chip) { return chip.name == name; });
  return found == std::end(chips) ? nullptr : found;
}

std::string codegen::getFullTarget(llvm::StringRef target) {
  return target == "cpu" ? "cpu:x86-64-v3" : target == "cuda" ? "cuda:sm_90" : target.str();
}

std::string codegen::getMachine(llvm::StringRef target) {
  return (target.contains(':') ? target.split(':').second : target).str();
}

std::vector<std::string> codegen::listTargets() {
  std::vector<std::string> targets = {"cpu", "cpu:x86-64-v3", "cpu:x86-64-v4", "reference", "cuda", "cuda-emulated"};
  for (const Chip &chip : chips)
    targets.push_back(("cuda:" + chip.name).str());
  return targets;
}

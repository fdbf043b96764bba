//===- NamedModules.cpp - modules that programs do not train, by what they hold ---===//
//
// For files whose exporter left no notes.
//
//===----------------------------------------------------------------------===//

#include "NamedModules.h"

#include "ValueIndex.h"

#include "lowtide/OnnxModel/TensorData.h"

#include "onnx/onnx_pb.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace lowtide;

/// Whether the value is repeated for each sample, as an instance norm's statistics are, for a batch norm's operator.
static bool reachesNorm(const ValueIndex &values, StringRef value) {
  return any_of(values.findReaders(value), [&](const ::onnx::NodeProto *reader) {
    if (!reader || reader->output_size() == 0)
      return false;
    if (reader->op_type() == "BatchNormalization")
      return true;
    return is_contained({"Tile", "Expand", "Reshape", "Concat"}, reader->op_type()) &&
           reachesNorm(values, reader->output(0));
  });
}

void lowtide::keepFrozenNorms(ModelView &file, std::vector<InitializerInfo> &infos) {
  const ValueIndex values(file.getModel().graph());
  StringSet<> means, variances, whole;
  for (const InitializerInfo &info : infos) {
    const StringRef leaf = leafOf(info.name);
    if ((leaf == "running_mean" || leaf == "running_var") && info.role == InitializerRole::Constant &&
        none_of(info.uses, isRunningStatistic) && !reachesNorm(values, info.tensor))
      (leaf == "running_mean" ? means : variances).insert(moduleOf(info.name));
    else if (leaf != "weight" && leaf != "bias") // more than a norm: what it computes is not known
      whole.insert(moduleOf(info.name));
  }
  std::vector<std::string> names;
  for (InitializerInfo &info : infos) {
    const StringRef module = moduleOf(info.name), leaf = leafOf(info.name);
    const ::onnx::TensorProto *tensor = file.findInitializer(info.tensor);
    if (info.role != InitializerRole::Parameter || (leaf != "weight" && leaf != "bias") || !means.contains(module) ||
        !variances.contains(module) || whole.contains(module) || !tensor || tensor->dims_size() != 1)
      continue;
    info.role = InitializerRole::Constant;
    info.certainty = Certainty::Assumed;
    info.reason = RoleReason::FrozenNorm;
    names.push_back(info.name);
  }
  if (!names.empty())
    file.getReport().add({FindingKind::FrozenNormsNotTrained, names.front(), names, {{"name", names.front()}}});
}

/// Whether programs call a copy or a moving average of other modules so.
static bool isCopyName(StringRef part) {
  static constexpr StringLiteral names[] = {"teacher",
                                            "ema",
                                            "model_ema",
                                            "ema_model",
                                            "target_net",
                                            "target_network",
                                            "target_model",
                                            "target_q",
                                            "target_critic",
                                            "critic_target",
                                            "actor_target",
                                            "q_target",
                                            "target_actor",
                                            "target_policy",
                                            "target_encoder",
                                            "encoder_target",
                                            "momentum_encoder",
                                            "encoder_momentum",
                                            "encoder_k",
                                            "key_encoder",
                                            "averaged_model",
                                            "swa_model",
                                            "mean_teacher",
                                            "teacher_model",
                                            "model_teacher",
                                            "net_teacher",
                                            "teacher_net",
                                            "teacher_network",
                                            "shadow",
                                            "frozen_model",
                                            "reference_model",
                                            "ref_model",
                                            "ema_encoder",
                                            "encoder_ema",
                                            "teacher_encoder",
                                            "teacher_head",
                                            "teacher_backbone",
                                            "momentum_model",
                                            "momentum_encoder_k",
                                            "old_policy",
                                            "policy_old",
                                            "target_projector"};
  return is_contained(names, part);
}

void lowtide::reportCopiedModules(ModelView &file, ArrayRef<InitializerInfo> infos) {
  SetVector<StringRef> modules;
  bool hasOthers = false;
  for (const InitializerInfo &info : infos) {
    if (info.role != InitializerRole::Parameter)
      continue;
    StringRef found;
    for (StringRef rest = moduleOf(info.name); !rest.empty() && found.empty();) {
      const auto [head, tail] = rest.split('.');
      rest = tail;
      if (isCopyName(head))
        found = StringRef(info.name).take_front(head.end() - info.name.data());
    }
    if (found.empty())
      hasOthers = true;
    else
      modules.insert(found);
  }
  if (modules.empty() || !hasOthers)
    return;
  const std::string first = modules.front().str();
  std::vector<std::string> names(modules.begin(), modules.end());
  file.getReport().add({FindingKind::CopiesTrained, first, names, {{"name", first}}});
}

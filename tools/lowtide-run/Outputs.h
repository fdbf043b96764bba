//===- Outputs.h - what a step computed, as a file -------------------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_OUTPUTS_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_OUTPUTS_H

#include "runtime/Session.h"

namespace lowtide::run {

/// Writes metrics and outputs of `entry`, as its last step left them, to a file: .npz where its name ends so, with bf16
/// as f32, and else .safetensors.
rt::Status dumpOutputs(const rt::Session &session, const std::string &entry, const std::string &path);

/// The same of the gradients of `entry`, in the original layout of their parameters.
rt::Status dumpGradients(const rt::Session &session, const std::string &entry, const std::string &path);

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_OUTPUTS_H

//===- InitialState.h - first values from a framework's own file -----------===//
#ifndef LOWTIDE_RUNTIME_CHECKPOINT_INITIALSTATE_H
#define LOWTIDE_RUNTIME_CHECKPOINT_INITIALSTATE_H

#include "runtime/Session.h"

#include <string>
#include <vector>

namespace lowtide::rt {

/// Sets parameters and buffers of a bound session to what a safetensors file holds under the framework's names and in
/// its layout: `save_file(model.state_dict(), path)`. Other float types are converted. Every parameter must be there,
/// by its name or a tied one; a buffer that is not keeps its value. Everything is looked at before anything is changed;
/// `notes` gets what was converted, kept and left over.
/// Low-rank pairs, which no such file need hold, stay as they are where it does not.
Status loadInitialState(Session &session, const std::string &path, std::vector<std::string> &notes);

/// The same of a file of PEFT (Adapters.h): every pair must be there, and every pair there must have a place.
Status loadAdapterTensors(Session &session, const std::string &path, std::vector<std::string> &notes);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CHECKPOINT_INITIALSTATE_H

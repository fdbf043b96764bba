//===- ParametersOverrides.cpp - what the user says about initializers
//--------------------===//

#include "Classifier.h"
#include "TensorData.h"

#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace lowtide;

static bool matches(const llvm::GlobPattern &glob, const InitializerInfo &info) {
  return glob.match(info.name) || glob.match(info.tensor) ||
         llvm::any_of(info.tied, [&](const std::string &name) { return glob.match(name); });
}

static LogicalResult applyGlobs(OnnxFile &file, StringRef option, ArrayRef<std::string> patterns, InitializerRole role,
                                std::vector<InitializerInfo> &infos) {
  for (const std::string &pattern : patterns) {
    llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(pattern);
    if (!glob) {
      file.getReport().error(Failure::Usage, option + ": " + quoteName(pattern) +
                                                 " is no pattern: " + llvm::toString(glob.takeError()));
      return failure();
    }
    bool found = false;
    for (InitializerInfo &info : infos) {
      if (!matches(*glob, info))
        continue;
      found = true;
      if (role == InitializerRole::Parameter && !isFloatType(info.dataType)) {
        file.getReport().errorAt(Failure::Usage, info.tensor,
                                 option + ": " + quoteName(info.name) + " has type " + elementTypeName(info.dataType) +
                                     " and cannot be trained");
        return failure();
      }
      // Freezing keeps what the step itself updates.
      if (role == InitializerRole::Constant && info.role == InitializerRole::State)
        continue;
      info.role = role;
      info.certainty = Certainty::Stated;
      info.reason = (option + " " + pattern).str();
    }
    if (!found) {
      file.getReport().error(Failure::Usage, option + ": no initializer matches " + quoteName(pattern),
                             "lowtide check lists them");
      return failure();
    }
  }
  return success();
}

/// Two infos of one tensor that the user gives one name are one: a tie.
static void join(std::vector<InitializerInfo> &infos, size_t from, size_t to) {
  llvm::append_range(infos[to].uses, infos[from].uses);
  for (InitializerInfo &info : infos) {
    if (info.viewOf == from)
      info.viewOf = to;
    if (info.viewOf && *info.viewOf > from)
      --*info.viewOf;
  }
  infos.erase(infos.begin() + ptrdiff_t(from));
}

LogicalResult lowtide::applyOverrides(OnnxFile &file, const ImportOptions &options,
                                      std::vector<InitializerInfo> &infos) {
  for (const auto &[from, to] : options.renames) {
    // `tensor@module` was used where the tensor's uses were assigned.
    if (StringRef(from).contains('@'))
      continue;
    auto info = llvm::find_if(infos, [&, from = StringRef(from)](const InitializerInfo &info) {
      return info.tensor == from || info.name == from;
    });
    if (info == infos.end()) {
      file.getReport().error(Failure::Usage, "--rename: the model has no initializer " + quoteName(from),
                             "lowtide check lists them");
      return failure();
    }
    auto twin = llvm::find_if(infos, [&, to = StringRef(to)](const InitializerInfo &other) {
      return &other != &*info && other.name == to && other.tensor == info->tensor;
    });
    info->name = to;
    if (twin != infos.end())
      join(infos, size_t(info - infos.begin()), size_t(twin - infos.begin()));
  }
  if (failed(applyGlobs(file, "--params", options.params, InitializerRole::Parameter, infos)))
    return failure();
  return applyGlobs(file, "--frozen", options.frozen, InitializerRole::Constant, infos);
}

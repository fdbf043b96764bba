//===- VerifyOutputs.cpp - which module is the first that differs -*- C++ -*-===//
//
// The step is compiled once more, and returns what its modules return.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "VerifyModel.h"
#include "lowtide/Compiler/ModelFile.h"
#include "runtime/Session.h"

using namespace lowtide;
using namespace lowtide::driver;

std::optional<std::vector<verify::Row>> driver::compareModules(const Options &step, const verify::Record &record) {
  if (record.outputs.empty())
    return std::nullopt;
  const std::vector<ModuleOutput> values = listModuleOutputs(step.input);
  if (values.empty())
    return verify::compareOutputs({}, record, step.tolerance);
  Options watched = step;
  for (const ModuleOutput &value : values)
    watched.watched.push_back(value.value);
  watched.outputs = {"all"};
  watched.entries = {"gradient"};
  watched.output += ".modules";
  watched.verbosity = -1;
  if (compileQuietly(watched))
    return std::nullopt;
  auto session = rt::Session::load(watched.output);
  if (!session)
    return std::nullopt;
  auto outputs = verify::runOutputs(**session, record, "gradient");
  if (!outputs)
    return std::nullopt;
  std::map<std::string, std::vector<const verify::Array *>> modules;
  for (const ModuleOutput &value : values)
    for (const std::string &module : value.modules)
      if (auto found = outputs->find(value.value); found != outputs->end())
        modules[module].push_back(&found->second);
  return verify::compareOutputs(modules, record, step.tolerance);
}

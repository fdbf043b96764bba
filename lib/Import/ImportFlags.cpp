//===- ImportFlags.cpp - texts of import flags
//----------------------------------------===//

#include "lowtide/Import/ImportFlags.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace lowtide;

std::string lowtide::parseDimFlag(StringRef text, ImportOptions &options) {
  auto [name, size] = text.rsplit('=');
  int64_t value;
  if (name.empty() || size.getAsInteger(10, value) || value < 1)
    return "--dim " + quoteName(text) + ": expected a name and a size, as in --dim batch=8";
  auto [at, isNew] = options.dims.try_emplace(name.str(), value);
  if (!isNew && at->second != value)
    return "--dim: " + quoteName(name) + " is given twice, as " + std::to_string(at->second) + " and as " +
           std::to_string(value);
  return "";
}

std::string lowtide::parseShapeFlag(StringRef text, ImportOptions &options) {
  auto [name, dims] = text.rsplit('=');
  std::vector<int64_t> shape;
  bool good = !name.empty() && !dims.empty();
  if (dims != "scalar")
    for (StringRef dim : llvm::split(dims, 'x')) {
      int64_t value = 0;
      good &= !dim.getAsInteger(10, value) && value >= 1;
      shape.push_back(value);
    }
  if (!good)
    return "--shape " + quoteName(text) + ": expected an input and its sizes, as in --shape tokens=8x64";
  if (!options.shapes.try_emplace(name.str(), shape).second)
    return "--shape: " + quoteName(name) + " is given twice";
  return "";
}

std::string lowtide::parseRenameFlag(StringRef text, ImportOptions &options) {
  auto [from, to] = text.rsplit('=');
  if (from.empty() || to.empty())
    return "--rename " + quoteName(text) +
           ": expected an initializer and a name, as in --rename "
           "val_9=fc.weight";
  options.renames.emplace_back(from.str(), to.str());
  return "";
}

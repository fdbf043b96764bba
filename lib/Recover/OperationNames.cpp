//===- OperationNames.cpp - what operations of an exported program do, by name ----===//

#include "Unfold.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace lowtide;

StringRef lowtide::operationName(StringRef name) {
  name = name.split('@').first; // a copy that was split off
  auto [stem, number] = name.rsplit('_');
  return !number.empty() && all_of(number, isDigit) ? stem : name;
}

unsigned lowtide::operationNumber(StringRef name) {
  name = name.split('@').first;
  StringRef text = name.drop_front(operationName(name).size());
  unsigned number = 0;
  return text.consume_front("_") && !text.getAsInteger(10, number) ? number : 0;
}

bool lowtide::movesElements(StringRef name) {
  return StringSwitch<bool>(operationName(name))
      .Cases({"val", "t", "transpose", "permute", "numpy_t", "view", "_unsafe_view", "reshape", "unsqueeze", "squeeze",
              "flatten"},
             true)
      .Cases({"slice", "select", "narrow", "split", "split_with_sizes", "chunk", "getitem", "unbind", "embedding",
              "gather", "index", "index_select"},
             true)
      .Cases({"expand", "clone", "contiguous", "alias", "detach", "_to_copy", "to", "lift_fresh_copy", "arange", "cat",
              "stack", "zeros", "repeat", "tile"},
             true)
      .Default(false);
}

bool lowtide::isView(StringRef name) {
  return is_contained({"view", "_unsafe_view", "reshape", "flatten", "unflatten"}, operationName(name));
}

bool lowtide::isJoin(StringRef name) { return is_contained({"cat", "stack"}, operationName(name)); }

bool lowtide::isGather(StringRef name) {
  return StringSwitch<bool>(operationName(name))
      .Cases({"embedding", "index", "gather", "index_select", "expand", "repeat", "tile", "take"}, true)
      .Default(false);
}

//===- StoredBytes.cpp - bytes for each trained number --------------------===//

#include "lowtide/Analysis/StoredBytes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace lowtide;
using llvm::StringRef;

/// What the name of a state that completes its parameter has after the parameter's (the codecs of Layouts.td).
static constexpr llvm::StringLiteral masterSuffix = ".low_half";
/// The same of its average (Dialect/Train/Bindings.h).
static constexpr llvm::StringLiteral averageSuffix = ".ema";

StoredBytes::Part StoredBytes::getPart(StringRef slot) {
  return slot == masterSuffix ? Part::Master : slot == averageSuffix ? Part::Average : Part::Moments;
}

std::string StoredBytes::Group::str() const {
  auto share = [&](uint64_t count) {
    return llvm::formatv("{0:F2}", elements ? double(count) / double(elements) : 0.0).str();
  };
  std::string text = share(getStored()) + " bytes a parameter: " + share(get(Part::Parameter)) + " for itself";
  if (get(Part::Master))
    text += ", " + share(get(Part::Master)) + " for its master";
  text += ", " + share(get(Part::Moments)) + " for moments";
  if (get(Part::Average))
    text += ", " + share(get(Part::Average)) + " for its average";
  if (get(Part::Gradient))
    text += "; gradients at most " + share(get(Part::Gradient)) + " more";
  return text;
}

void StoredBytes::addParameter(StringRef name, StringRef group, uint64_t elements, uint64_t bytes) {
  auto found = llvm::find_if(groups, [&](const Group &each) { return each.name == group; });
  if (found == groups.end()) {
    groups.emplace_back().name = group.str();
    found = std::prev(groups.end());
  }
  if (!groupOf.try_emplace(name, static_cast<unsigned>(found - groups.begin())).second)
    return;
  for (Group *each : {&all, &*found}) {
    ++each->tensors;
    each->elements += elements;
  }
  add(name, Part::Parameter, bytes);
}

void StoredBytes::add(StringRef parameter, Part part, uint64_t bytes) {
  auto found = groupOf.find(parameter);
  if (found == groupOf.end())
    return;
  all.bytes[static_cast<unsigned>(part)] += bytes;
  groups[found->second].bytes[static_cast<unsigned>(part)] += bytes;
}

void StoredBytes::addState(StringRef name, uint64_t bytes) {
  // A slot may have dots of its own: `w.exp_avg.scale`.
  StringRef parameter = name;
  while (!groupOf.contains(parameter)) {
    const size_t dot = parameter.rfind('.');
    if (dot == StringRef::npos)
      return;
    parameter = parameter.take_front(dot);
  }
  const StringRef slot = name.drop_front(parameter.size());
  if (!slot.empty())
    add(parameter, getPart(slot), bytes);
}

void StoredBytes::addGradient(StringRef parameter, uint64_t bytes) { add(parameter, Part::Gradient, bytes); }

void StoredBytes::setGradients(uint64_t bytes) { all.bytes[static_cast<unsigned>(Part::Gradient)] = bytes; }

void StoredBytes::print(llvm::raw_ostream &os) const {
  os << all.str() << "\n";
  if (groups.size() == 1)
    return;
  for (const Group &group : groups)
    os << "  " << (group.name.empty() ? std::string("of no group") : "group '" + group.name + "'") << ", "
       << group.tensors << (group.tensors == 1 ? " tensor of " : " tensors of ") << group.elements
       << " numbers: " << group.str() << "\n";
}

llvm::json::Object StoredBytes::toJson() const {
  auto convert = [](const Group &group) {
    return llvm::json::Object{{"tensors", group.tensors},
                              {"parameters", group.elements},
                              {"parameter_bytes", group.get(Part::Parameter)},
                              {"master_bytes", group.get(Part::Master)},
                              {"moment_bytes", group.get(Part::Moments)},
                              {"average_bytes", group.get(Part::Average)},
                              {"gradient_bytes", group.get(Part::Gradient)}};
  };
  llvm::json::Object object = convert(all);
  llvm::json::Array parts;
  for (const Group &group : groups) {
    parts.push_back(convert(group));
    (*parts.back().getAsObject())["group"] = llvm::json::fixUTF8(group.name);
  }
  object["groups"] = std::move(parts);
  return object;
}

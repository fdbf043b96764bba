//===- TargetFile.cpp - a target of the user's own --------------*- C++ -*-===//
//
// JSON becomes a target, field by field.
//
//===----------------------------------------------------------------------===//

#include "TargetFile.h"
#include "lowtide/Support/NameList.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <nlohmann/json.hpp>

using namespace lowtide;
using nlohmann::json;

/// A file of figures is small.
static constexpr size_t maxFileBytes = 1 << 16;

namespace {

/// Reads the fields of one object; the first that is wrong is the complaint.
class Reader {
public:
  Reader(const json &object, std::string where, std::string &complaint)
      : object(object), where(std::move(where)), complaint(complaint) {}

  /// Refuses what is no object, and names that are none of `known`.
  bool check(const std::vector<std::string> &known) {
    if (!object.is_object())
      return fail(where, "is " + object.dump(), "an object with " + llvm::join(known, ", "));
    for (const auto &[key, value] : object.items())
      if (!llvm::is_contained(known, key)) {
        const std::string suggestion = suggestName(key, llvm::SmallVector<llvm::StringRef>(known.begin(), known.end()));
        complaint = "no field '" + path(key) + "'" +
                    (suggestion.empty() ? "; there are " : suggestion + " There are ") + llvm::join(known, ", ");
        return false;
      }
    return true;
  }

  bool has(const char *key) const { return object.contains(key); }

  bool read(const char *key, std::string &to) {
    if (!has(key))
      return true;
    if (!object[key].is_string())
      return fail(path(key), "is " + object[key].dump(), "a text");
    to = object[key].get<std::string>();
    return true;
  }

  bool read(const char *key, double &to) {
    if (!has(key))
      return true;
    if (!object[key].is_number())
      return fail(path(key), "is " + object[key].dump(), "a number");
    to = object[key].get<double>();
    return true;
  }

  template <typename Integer>
    requires std::is_unsigned_v<Integer>
  bool read(const char *key, Integer &to) {
    if (!has(key))
      return true;
    const json &value = object[key];
    if (!value.is_number_unsigned() || value.get<uint64_t>() > uint64_t(std::numeric_limits<Integer>::max()) / 2)
      return fail(path(key), "is " + value.dump(), "a whole number from 0");
    to = static_cast<Integer>(value.get<uint64_t>());
    return true;
  }

  /// Reads each entry of a list into a new element of `to`, whose old ones go.
  template <typename Element, typename Read> bool readList(const char *key, std::vector<Element> &to, Read read) {
    if (!has(key))
      return true;
    if (!object[key].is_array())
      return fail(path(key), "is " + object[key].dump(), "a list");
    to.clear();
    for (const json &entry : object[key])
      if (const std::string where = path(key) + "[" + std::to_string(to.size()) + "]";
          !read(entry, where, to.emplace_back()))
        return false;
    return true;
  }

  bool fail(const std::string &what, const std::string &found, const std::string &supported) {
    complaint = what + " " + found + "; it takes " + supported;
    return false;
  }

  std::string path(const std::string &key) const { return where.empty() ? key : where + "." + key; }

private:
  const json &object;
  std::string where;
  std::string &complaint;
};

} // namespace

static bool readEstimates(const json &value, TargetInfo &target, std::string &complaint) {
  Reader fields(value, "estimates", complaint);
  return fields.check({"kernel_flops", "launch_seconds", "library_flops", "memory_bytes_per_second"}) &&
         fields.read("kernel_flops", target.kernelFlops) && fields.read("launch_seconds", target.launchSeconds) &&
         fields.read("library_flops", target.libraryFlops) &&
         fields.read("memory_bytes_per_second", target.bytesPerSecond);
}

static bool readRates(const json &value, TargetInfo &target, std::string &complaint) {
  Reader fields(value, "rates", complaint);
  if (!value.is_object())
    return fields.fail("rates", "is " + value.dump(), "an object of operations per second by type: {\"bf16\": 9.9e14}");
  target.rates.clear();
  for (const auto &[dtype, rate] : value.items())
    if (!fields.read(dtype.c_str(), target.rates.emplace_back(dtype).flopsPerSecond))
      return false;
  return true;
}

/// Fills `target` with what an object says; false, with a complaint, where it is wrong.
static bool readTarget(const json &object, TargetInfo &target, std::string &complaint) {
  Reader fields(object, "", complaint);
  std::string name, kind, chip;
  if (!fields.check({"name", "kind", "chip", "title", "processors", "vector_bits", "threads_max", "estimates", "rates",
                     "memory", "links", "libraries"}) ||
      !fields.read("name", name) || !fields.read("kind", kind) || !fields.read("chip", chip))
    return false;
  if (!findTargetKind(kind))
    return fields.fail("kind", kind.empty() ? "is missing" : "is '" + kind + "'",
                       "cpu, cuda, cuda-emulated or reference");
  std::optional<TargetInfo> row = findTarget(kind + (chip.empty() ? "" : ":" + chip));
  if (!row || row->chip != chip) {
    // The row's own check knows what the kind has.
    TargetInfo wrong;
    wrong.name = "file", wrong.kind = *findTargetKind(kind), wrong.chip = chip;
    complaint = wrong.findFault().value_or("chip is '" + chip + "', of which there is no row");
    return false;
  }
  target = std::move(*row);
  target.name = name;
  auto readSpace = [&](const json &entry, const std::string &where, MemorySpace &space) {
    Reader each(entry, where, complaint);
    return each.check({"name", "bytes", "reserved_bytes", "bytes_per_second"}) && each.read("name", space.name) &&
           each.read("bytes", space.bytes) && each.read("reserved_bytes", space.reservedBytes) &&
           each.read("bytes_per_second", space.bytesPerSecond);
  };
  auto readLink = [&](const json &entry, const std::string &where, MemoryLink &link) {
    Reader each(entry, where, complaint);
    return each.check({"from", "to", "bytes_per_second", "latency_seconds"}) && each.read("from", link.from) &&
           each.read("to", link.to) && each.read("bytes_per_second", link.bytesPerSecond) &&
           each.read("latency_seconds", link.latencySeconds);
  };
  auto readName = [&](const json &entry, const std::string &where, std::string &to) {
    if (!entry.is_string())
      return fields.fail(where, "is " + entry.dump(), "a text");
    to = entry.get<std::string>();
    return true;
  };
  return fields.read("title", target.title) && fields.read("processors", target.processors) &&
         fields.read("vector_bits", target.vectorBits) && fields.read("threads_max", target.threadsMax) &&
         (!fields.has("estimates") || readEstimates(object["estimates"], target, complaint)) &&
         (!fields.has("rates") || readRates(object["rates"], target, complaint)) &&
         fields.readList("memory", target.memory, readSpace) && fields.readList("links", target.links, readLink) &&
         fields.readList("libraries", target.libraries, readName);
}

llvm::Expected<TargetInfo> lowtide::readTargetFile(const std::string &path) {
  auto fail = [&](const std::string &complaint) {
    return llvm::createStringError("--target-file: '" + path + "': " + complaint);
  };
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return llvm::createStringError("--target-file: cannot read '" + path + "': " + buffer.getError().message());
  const llvm::StringRef text = (*buffer)->getBuffer();
  if (text.size() > maxFileBytes)
    return fail("has " + std::to_string(text.size()) + " bytes; a target has at most " + std::to_string(maxFileBytes));
  const json object = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false,
                                  /*ignore_comments=*/true);
  if (object.is_discarded())
    return fail("is no JSON");
  if (!object.is_object())
    return fail("holds no object; it takes {\"name\": …, \"kind\": …, \"chip\": …}");
  TargetInfo target;
  std::string complaint;
  if (!readTarget(object, target, complaint))
    return fail(complaint);
  if (std::optional<std::string> fault = target.findFault())
    return fail(*fault);
  return target;
}

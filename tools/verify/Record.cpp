//===- Record.cpp - what another program computed of one batch --------------===//

#include "Record.h"

#include "runtime/Element.h"
#include "runtime/Json.h"
#include "runtime/MappedFile.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::verify;

namespace {

constexpr int version = 1;

/// "0.1" of 0.1: the shortest text that gives the same number.
std::string numberText(double value) {
  char text[32];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value)
      break;
  }
  return text;
}

/// A setting as a flag has it: 0.01, 0.9,0.999, 1; empty where it is something else.
std::string settingText(const nlohmann::json &value) {
  if (value.is_boolean())
    return value.get<bool>() ? "1" : "0";
  if (value.is_number())
    return numberText(value.get<double>());
  std::string text;
  for (const nlohmann::json &part : value.is_array() ? value : nlohmann::json::array()) {
    if (!part.is_number())
      return {};
    text += (text.empty() ? "" : ",") + numberText(part.get<double>());
  }
  return text;
}

Status readSettings(const HostArray &array, Record &record) {
  if (array.dtype != plan::U8 || array.dims.size() != 1)
    return badInput("is " + describe(array.dtype, array.dims) + "; JSON as uint8 in UTF-8 is expected");
  Expected<nlohmann::json> json = parseJson({reinterpret_cast<const char *>(array.bytes.data()), array.bytes.size()});
  if (!json)
    return json.takeStatus();
  if (!json->is_object())
    return badInput("is no JSON object");
  for (const auto &[key, value] : json->items()) {
    if (key == "version" && (!value.is_number_integer() || value.get<int64_t>() != version))
      return {StatusCode::Unsupported,
              "has version " + value.dump() + "; this program reads version " + std::to_string(version)};
    if ((key == "optimizer" || key == "producer") && !value.is_string())
      return badInput("'" + key + "' is no text");
    if ((key == "clip_norm" || key == "clip_value") && !value.is_number())
      return badInput("'" + key + "' is no number");
    if (key == "optimizer")
      record.optimizer = value.get<std::string>();
    else if (key == "producer")
      record.producer = value.get<std::string>();
    else if (key == "clip_norm")
      record.clipNorm = value.get<double>();
    else if (key == "clip_value")
      record.clipValue = value.get<double>();
    else if (key == "options") {
      for (const auto &[name, setting] : value.is_object() ? value.items() : nlohmann::json::object().items())
        if (std::string text = settingText(setting); !text.empty())
          record.options[name] = text;
        else
          return badInput("option '" + printable(name) + "' is neither a number nor a list of numbers");
    } else if (key != "version")
      return badInput("has a key '" + printable(key) +
                      "'; known are version, optimizer, options, clip_norm, clip_value, producer");
  }
  return Status::ok();
}

Status readArray(NamedArray &entry, const std::string &path, Record &record) {
  const std::string &name = entry.name;
  const HostArray &array = entry.array;
  if (name == "settings")
    return readSettings(array, record);
  if (name == "loss") {
    record.losses = widen(array).values;
    return array.dims.size() > 1
               ? badInput("is " + describe(array.dtype, array.dims) + "; a list of losses is expected")
               : Status::ok();
  }
  const size_t slash = name.find('/');
  const std::string kind = name.substr(0, slash), rest = slash == std::string::npos ? "" : name.substr(slash + 1);
  if (kind == "input" && !rest.empty()) {
    record.batch.isBatch = true;
    record.batch.arrays[rest].parts.push_back({array, 0, path});
    return Status::ok();
  }
  if (kind == "output") {
    record.outputs.emplace_back(rest, widen(array));
    return Status::ok();
  }
  Arrays *arrays = kind == "parameter"      ? &record.parameters
                   : kind == "buffer"       ? &record.buffers
                   : kind == "gradient"     ? &record.gradients
                   : kind == "buffer_after" ? &record.buffersAfter
                                            : nullptr;
  if (!arrays || rest.empty())
    return badInput("is no part of a record; names are settings, loss, input/NAME, parameter/NAME, buffer/NAME, "
                    "gradient/NAME, buffer_after/NAME and output/MODULE");
  (*arrays)[rest] = widen(array);
  return Status::ok();
}

} // namespace

double Array::largest() const {
  double most = 0;
  for (double value : values) {
    if (std::isnan(value))
      return value;
    most = std::max(most, std::fabs(value));
  }
  return most;
}

Array verify::widen(const HostArray &array) {
  Array result;
  result.dims = array.dims;
  const uint64_t width = elementBytes(array.dtype);
  result.values.reserve(array.bytes.size() / width);
  for (size_t at = 0; at < array.bytes.size(); at += width)
    result.values.push_back(loadElement(array.dtype, array.bytes.data() + at));
  return result;
}

Expected<Record> Record::openOutputs(const std::string &path) {
  Expected<MappedFile> mapped = MappedFile::open(path);
  if (!mapped)
    return mapped.takeStatus();
  auto file = std::make_shared<MappedFile>(std::move(*mapped));
  uint64_t inflatable = freeMemory();
  Expected<std::vector<NamedArray>> arrays = parseNpz(file->bytes(), file, &inflatable);
  if (!arrays)
    return arrays.takeStatus().at(path);
  Record record;
  for (NamedArray &entry : *arrays)
    if (Status status = readArray(entry, path, record); !status.isOk())
      return std::move(status).at(path + ": array '" + printable(entry.name) + "'");
  return record;
}

Expected<Record> Record::open(const std::string &path) {
  Expected<Record> opened = openOutputs(path);
  if (!opened)
    return opened.takeStatus();
  Record &record = *opened;
  if (record.losses.empty())
    return badInput("has no array 'loss': the loss before each step", path);
  if (record.batch.arrays.empty())
    return badInput("has no array input/NAME: the batch that the losses are of", path);
  if (record.gradients.empty())
    return badInput("has no array gradient/NAME: the gradients of the first step", path);
  for (const auto &[name, gradient] : record.gradients)
    if (auto parameter = record.parameters.find(name);
        parameter != record.parameters.end() && parameter->second.dims != gradient.dims)
      return badInput("gradient/" + printable(name) + " and parameter/" + printable(name) + " differ in shape", path);
  return opened;
}

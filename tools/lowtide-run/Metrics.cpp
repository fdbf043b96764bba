//===- Metrics.cpp - how good outputs are, on the host ---------------------===//

#include "Metrics.h"

#include "runtime/Element.h"
#include "runtime/data/Conversion.h"
#include "runtime/data/HostArray.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <span>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::run;

/// One item of the list, as written.
struct Metric::Call {
  std::string name;
  std::vector<std::string> names;
  std::vector<std::pair<std::string, int64_t>> options;
};

namespace {

std::span<const int64_t> dimsOf(const plan::Binding &binding) {
  return {binding.dims().data(), static_cast<size_t>(binding.dims_size())};
}

std::string trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  return std::string(text);
}

bool readInteger(std::string_view text, int64_t &value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// Where a list of items is cut: at commas outside brackets.
std::vector<std::string> split(const std::string &text) {
  std::vector<std::string> items(1);
  int depth = 0;
  for (char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0)
      items.emplace_back();
    else
      items.back() += c;
  }
  return items;
}

Status usage(const std::string &text) { return {StatusCode::Usage, "--eval-metrics: " + text}; }

/// "logits float32[32, 10], h float32[32, 64]".
std::string listOf(const std::vector<Tensor> &tensors) {
  std::string list;
  for (const Tensor &tensor : tensors)
    list += (list.empty() ? "" : ", ") + printable(tensor.binding->name()) + " " +
            describe(tensor.binding->dtype(), dimsOf(*tensor.binding));
  return list.empty() ? "none" : list;
}

/// Of several that fit, what is called like a target.
bool isCalledTarget(const std::string &name) {
  for (const char *word : {"label", "labels", "target", "targets", "y"})
    if (name == word)
      return true;
  return false;
}

double load(const Tensor &tensor, int64_t i) {
  const plan::DType dtype = tensor.binding->dtype();
  if (dtype == plan::F32) {
    float value;
    std::memcpy(&value, tensor.data + i * 4, 4);
    return value;
  }
  return loadElement(dtype, tensor.data + static_cast<uint64_t>(i) * elementBytes(dtype));
}

int64_t product(std::span<const int64_t> dims) {
  int64_t result = 1;
  for (int64_t dim : dims)
    result *= dim;
  return result;
}

} // namespace

/// Whether the classes of scores lie in the last dimension, or after the samples; 0: `labels` are no labels of them.
static size_t classDim(const plan::Binding &scores, const plan::Binding &labels) {
  std::span<const int64_t> of = dimsOf(scores), by = dimsOf(labels);
  if (isFloat(labels.dtype()) || labels.dtype() == plan::BOOL || of.size() != by.size() + 1)
    return 0;
  for (size_t dim : {of.size() - 1, size_t(1)}) {
    std::vector<int64_t> rest(of.begin(), of.end());
    rest.erase(rest.begin() + static_cast<long>(dim));
    if (dim && std::equal(rest.begin(), rest.end(), by.begin()))
      return dim;
  }
  return 0;
}

bool Metric::fits(const plan::Binding &output, const plan::Binding &target) const {
  if (output.dims_size() == 0 || target.batch_dim() != 0 || output.dims(0) != target.dims(0) ||
      !isFloat(output.dtype()))
    return false;
  if (kind_ == Kind::TopK)
    return classDim(output, target) != 0;
  return isFloat(target.dtype()) && product(dimsOf(output)) == product(dimsOf(target));
}

/// "top5(logits, labels, ignore_index=0)" in its parts.
static Status readCall(const std::string &item, std::string &name, std::vector<std::string> &names,
                       std::vector<std::pair<std::string, int64_t>> &options) {
  size_t open = item.find('(');
  name = trimmed(std::string_view(item).substr(0, open));
  if (open == std::string::npos)
    return Status::ok();
  std::string rest = trimmed(std::string_view(item).substr(open + 1));
  if (rest.empty() || rest.back() != ')')
    return usage("'" + printable(item) + "' does not end in ')'");
  rest.pop_back();
  for (const std::string &part : split(rest)) {
    std::string text = trimmed(part);
    size_t equals = text.find('=');
    int64_t value = 0;
    if (text.empty())
      return usage("'" + printable(item) + "' has an empty place between its commas");
    if (equals == std::string::npos)
      names.push_back(text);
    else if (!readInteger(trimmed(std::string_view(text).substr(equals + 1)), value))
      return usage("'" + printable(text) + "' is no option; write ignore_index=0 or shift=1");
    else
      options.emplace_back(trimmed(std::string_view(text).substr(0, equals)), value);
  }
  return Status::ok();
}

Expected<std::vector<Metric>> Metric::parse(const std::string &text, const Session &session, const std::string &entry) {
  std::vector<Metric> metrics;
  if (text.empty())
    return metrics;
  for (const std::string &item : split(text)) {
    Call call;
    LOWTIDE_TRY(readCall(item, call.name, call.names, call.options));
    Metric metric;
    LOWTIDE_TRY(metric.resolve(call, session, entry));
    metrics.push_back(std::move(metric));
  }
  auto countOf = [&](const std::string &name) {
    return std::count_if(metrics.begin(), metrics.end(), [&](const Metric &other) { return other.name_ == name; });
  };
  // Of two heads each has its accuracy.
  std::vector<std::string> names;
  for (const Metric &metric : metrics)
    names.push_back(countOf(metric.name_) > 1 ? metric.str() : metric.name_);
  for (size_t i = 0; i < metrics.size(); ++i)
    metrics[i].name_ = names[i];
  for (const std::string &name : names)
    if (countOf(name) > 1)
      return usage("'" + printable(name) + "' is given twice");
  return metrics;
}

std::string Metric::str() const {
  if (kind_ == Kind::Perplexity)
    return name_;
  return name_ + "(" + output_ + ", " + target_ + (ignored_ ? ", ignore_index=" + std::to_string(*ignored_) : "") +
         (shift_ ? ", shift=" + std::to_string(shift_) : "") + ")";
}

Status Metric::resolve(const Call &call, const Session &session, const std::string &entry) {
  name_ = call.name;
  if (name_ == "accuracy")
    k_ = 1;
  else if (name_.rfind("top", 0) == 0 && readInteger(std::string_view(name_).substr(3), k_) && k_ > 0)
    ;
  else if (name_ == "mse" || name_ == "mae")
    kind_ = name_ == "mse" ? Kind::Squared : Kind::Absolute;
  else if (name_ == "perplexity")
    kind_ = Kind::Perplexity;
  else
    return usage("'" + printable(name_) +
                 "' is unknown; there are accuracy, top5 (or another number), perplexity, mse "
                 "and mae");
  for (const auto &[option, value] : call.options) {
    if (kind_ != Kind::TopK || (option != "ignore_index" && option != "shift") || (option == "shift" && value < 0))
      return usage("'" + printable(option) + "' is no option of " + name_);
    if (option == "shift")
      shift_ = value;
    else
      ignored_ = value;
  }
  if (kind_ == Kind::Perplexity) {
    if (!session.tensor(entry, "loss"))
      return usage("perplexity is made of the loss, and entry '" + printable(entry) +
                   "' has none; compile with --loss=…");
    return call.names.empty() ? Status::ok() : usage("perplexity names no arrays");
  }
  if (call.names.size() > 2)
    return usage("'" + name_ + "' takes an output and a target");
  std::vector<Tensor> outputs = session.tensors(entry, plan::Binding::OUTPUT),
                      targets = session.tensors(entry, plan::Binding::BATCH);
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const Tensor &output : outputs)
    for (const Tensor &target : targets)
      if ((call.names.empty() || output.binding->name() == call.names[0]) &&
          (call.names.size() < 2 || target.binding->name() == call.names[1]) && fits(*output.binding, *target.binding))
        pairs.emplace_back(output.binding->name(), target.binding->name());
  if (pairs.size() > 1) {
    auto other = std::partition(pairs.begin(), pairs.end(), [](auto &pair) { return isCalledTarget(pair.second); });
    if (other - pairs.begin() == 1)
      pairs.resize(1);
  }
  if (pairs.size() == 1) {
    output_ = pairs[0].first, target_ = pairs[0].second;
    if (shift_ && session.tensor(entry, target_)->binding->dims_size() < 2)
      return usage("shift=" + std::to_string(shift_) + " needs labels [samples, time]");
    return Status::ok();
  }
  const std::string has =
      "entry '" + printable(entry) + "' has outputs: " + listOf(outputs) + "; batch arrays: " + listOf(targets);
  if (pairs.empty())
    return usage("nothing fits " + name_ +
                 (kind_ == Kind::TopK
                      ? ", which compares scores [samples, …, classes] with integer labels [samples, …]; "
                      : ", which compares an output with a batch array of as many floats; ") +
                 has + (outputs.empty() ? "; compile with --outputs=NAME to have one" : ""));
  return usage("several arrays fit " + name_ + ": write " + name_ + "(" + pairs[0].first + ", " + pairs[0].second +
               ") for one of them; " + has);
}

void Metric::add(const Session &session, const plan::Entry &entry, int64_t rows) {
  if (kind_ == Kind::Perplexity)
    return;
  Tensor output, target;
  for (int i = 0; i < entry.bindings_size(); ++i) {
    const plan::Binding &binding = entry.bindings(i);
    if (binding.kind() == plan::Binding::OUTPUT && binding.name() == output_)
      output = session.tensorAt(entry, static_cast<size_t>(i));
    else if (binding.kind() == plan::Binding::BATCH && binding.name() == target_)
      target = session.tensorAt(entry, static_cast<size_t>(i));
  }
  if (kind_ == Kind::TopK)
    addLabels(output, target, rows);
  else
    addErrors(output, target, rows);
}

void Metric::addLabels(const Tensor &scores, const Tensor &labels, int64_t rows) {
  std::span<const int64_t> of = dimsOf(*scores.binding), by = dimsOf(*labels.binding);
  const size_t dim = classDim(*scores.binding, *labels.binding);
  const int64_t classes = of[dim], stride = product(of.subspan(dim + 1));
  const int64_t places = product(by.subspan(1)); // labels of a sample
  const int64_t time = shift_ ? by[1] : 0, perTime = shift_ ? product(by.subspan(2)) : 0;
  const plan::DType dtype = labels.binding->dtype();
  for (int64_t sample = 0; sample < rows; ++sample)
    for (int64_t place = 0; place < places; ++place) {
      int64_t from = place;
      if (shift_) {
        if (place / perTime + shift_ >= time)
          continue;
        from = place + shift_ * perTime;
      }
      const auto label = static_cast<int64_t>(
          loadElement(dtype, labels.data + static_cast<uint64_t>(sample * places + from) * elementBytes(dtype)));
      // What is no class is no label: PyTorch's -100 and whatever else a loss ignores.
      if (label < 0 || label >= classes || label == ignored_)
        continue;
      const int64_t first = sample * places * classes + place / stride * stride * classes + place % stride;
      const double score = load(scores, first + label * stride);
      int64_t above = std::isnan(score) ? k_ : 0;
      for (int64_t c = 0; c < classes && above < k_; ++c) {
        const double other = load(scores, first + c * stride);
        above += other > score || (other == score && c < label); // of equal scores, the first wins
      }
      sum_ += above < k_;
      ++count_;
    }
}

void Metric::addErrors(const Tensor &output, const Tensor &target, int64_t rows) {
  const int64_t elements = product(dimsOf(*output.binding).subspan(1)) * rows;
  for (int64_t i = 0; i < elements; ++i) {
    const double error = load(output, i) - load(target, i);
    sum_ += kind_ == Kind::Squared ? error * error : std::fabs(error);
  }
  count_ += elements;
}

double Metric::value(double meanLoss) const {
  if (kind_ == Kind::Perplexity)
    return std::exp(meanLoss);
  return count_ ? sum_ / static_cast<double>(count_) : NAN;
}

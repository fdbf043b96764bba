//===- Names.cpp - which of our names is which of the record's --------------===//

#include "Names.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

using namespace lowtide;
using namespace lowtide::verify;

namespace {

/// Whether `longer` is `shorter` in a module: `body.0.weight` and `0.weight`.
bool endsIn(const std::string &longer, const std::string &shorter) {
  return longer.size() > shorter.size() + 1 && longer.ends_with(shorter) &&
         longer[longer.size() - shorter.size() - 1] == '.';
}

int64_t product(const std::vector<int64_t> &dims, size_t from, size_t to) {
  return std::accumulate(dims.begin() + static_cast<ptrdiff_t>(from), dims.begin() + static_cast<ptrdiff_t>(to),
                         int64_t{1}, std::multiplies<>());
}

std::vector<int64_t> withoutOnes(std::vector<int64_t> dims) {
  std::erase(dims, 1);
  return dims;
}

/// The parts one after the other along `axis` of `dims`; empty: they do not fill it.
Array joinAlong(const std::vector<const Array *> &parts, const std::vector<int64_t> &dims, size_t axis) {
  const int64_t outer = product(dims, 0, axis), inner = product(dims, axis + 1, dims.size());
  Array whole;
  whole.dims = dims;
  const int64_t row = outer * inner;
  for (const Array *part : parts)
    if (row <= 0 || static_cast<int64_t>(part->values.size()) % row)
      return {};
  for (int64_t o = 0; o < outer; ++o)
    for (const Array *part : parts) {
      const auto count = static_cast<ptrdiff_t>(part->values.size()) / outer;
      whole.values.insert(whole.values.end(), part->values.begin() + o * count, part->values.begin() + (o + 1) * count);
    }
  return static_cast<int64_t>(whole.values.size()) == product(dims, 0, dims.size()) ? whole : Array{};
}

double distance(const Array &one, const Array &other) {
  double most = 0;
  for (size_t i = 0; i < one.values.size(); ++i)
    most = std::max(most, std::fabs(one.values[i] - other.values[i]));
  return most;
}

} // namespace

std::map<std::string, std::string> verify::pairNames(const std::vector<std::string> &recorded,
                                                     const std::vector<std::string> &ours) {
  std::map<std::string, std::string> pairs;
  std::set<std::string> left(ours.begin(), ours.end());
  for (const std::string &name : recorded)
    if (left.erase(name))
      pairs[name] = name;
  for (const bool recordIsLonger : {true, false})
    for (const std::string &name : recorded) {
      if (pairs.count(name))
        continue;
      std::vector<std::string> found;
      for (const std::string &own : left)
        if (recordIsLonger ? endsIn(name, own) : endsIn(own, name))
          found.push_back(own);
      if (found.size() != 1)
        continue;
      pairs[name] = found[0];
      left.erase(found[0]);
    }
  return pairs;
}

Arrays verify::joinParts(Arrays ours, const Arrays &recorded) {
  for (const auto &[name, truth] : recorded) {
    if (ours.count(name))
      continue;
    std::vector<std::pair<std::string, const Array *>> parts;
    for (auto at = ours.lower_bound(name + "@"); at != ours.end() && at->first.starts_with(name + "@"); ++at)
      parts.emplace_back(at->first, &at->second);
    // `w@select`, `w@select_1` …, `w@select_10`: in the order of their numbers.
    std::sort(parts.begin(), parts.end(), [](const auto &a, const auto &b) {
      return std::pair(a.first.size(), a.first) < std::pair(b.first.size(), b.first);
    });
    std::vector<const Array *> arrays;
    for (const auto &[part, array] : parts)
      arrays.push_back(array);
    double best = std::numeric_limits<double>::infinity();
    Array whole;
    for (size_t axis = 0; parts.size() > 1 && axis < truth.dims.size(); ++axis)
      if (Array joined = joinAlong(arrays, truth.dims, axis); joined.values.size() == truth.values.size())
        if (double error = distance(joined, truth); whole.values.empty() || error < best) {
          best = error;
          whole = std::move(joined);
        }
    if (whole.values.empty())
      continue;
    for (const auto &part : parts)
      ours.erase(std::string(part.first));
    ours[name] = std::move(whole);
  }
  return ours;
}

bool verify::cutToSize(Array &recorded, const Array &ours, bool isGradient) {
  const std::vector<int64_t> full = withoutOnes(recorded.dims), part = withoutOnes(ours.dims);
  if (full == part)
    return true;
  if (full.size() != part.size() || !std::equal(part.begin(), part.end(), full.begin(), std::less_equal<>()))
    return false;
  Array cut;
  cut.dims = ours.dims;
  std::vector<int64_t> index(full.size(), 0);
  for (double value : recorded.values) {
    const bool isInside = std::equal(index.begin(), index.end(), part.begin(), std::less<>());
    if (isInside)
      cut.values.push_back(value);
    else if (isGradient && value != 0)
      return false;
    for (size_t d = full.size(); d-- > 0 && ++index[d] == full[d];)
      index[d] = 0;
  }
  recorded = std::move(cut);
  return true;
}

void verify::keepReadRows(Array &recorded, const Array &ours, const Array &gradient) {
  if (recorded.dims.size() < 2 || ours.dims.size() != recorded.dims.size() || gradient.dims != recorded.dims ||
      ours.dims[0] >= recorded.dims[0] ||
      !std::equal(ours.dims.begin() + 1, ours.dims.end(), recorded.dims.begin() + 1))
    return;
  const auto width = static_cast<ptrdiff_t>(product(recorded.dims, 1, recorded.dims.size()));
  Array kept;
  kept.dims = ours.dims;
  for (ptrdiff_t row = 0; row < recorded.dims[0]; ++row) {
    auto isRead = [](double value) { return value != 0; };
    const auto first = gradient.values.begin() + row * width;
    if (std::any_of(first, first + width, isRead))
      kept.values.insert(kept.values.end(), recorded.values.begin() + row * width,
                         recorded.values.begin() + (row + 1) * width);
  }
  if (kept.values.size() == ours.values.size())
    recorded = std::move(kept);
}

//===- PositionRules.cpp - how models number pairs of positions ------------------===//
//
// Sources: Raffel et al., T5 (buckets, logarithmic beyond half of them); Liu et al., Swin (offsets within a window);
// Bao et al., BEiT (the same with a class token in front, which has three rows of its own); Shaw et al. (clipped
// distance); Li et al., MViTv2 (distances along each side of an image, from keys to queries).
//
//===----------------------------------------------------------------------===//

#include "PositionRules.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <functional>

using namespace llvm;

namespace {
struct Rule {
  StringRef table;
  std::function<int64_t(int64_t query, int64_t key)> number;
  /// Another rule numbers the same pairs alike, the other way round: only the table's name tells.
  bool needsName = false;
};
} // namespace

static int64_t t5Bucket(int64_t distance, bool bothWays, int64_t buckets, int64_t farthest) {
  int64_t base = 0;
  if (bothWays) {
    buckets /= 2;
    base = distance > 0 ? buckets : 0;
    distance = std::abs(distance);
  } else {
    distance = std::max<int64_t>(-distance, 0);
  }
  int64_t exact = buckets / 2;
  if (distance < exact)
    return base + distance;
  // In f32, as the framework computes it: borders between buckets depend on it.
  float share = std::log(float(distance) / float(exact)) / float(std::log(double(farthest) / double(exact)));
  return base + std::min<int64_t>(exact + int64_t(share * float(buckets - exact)), buckets - 1);
}

static int64_t windowOffset(int64_t query, int64_t key, int64_t height, int64_t width) {
  return (query / width - key / width + height - 1) * (2 * width - 1) + query % width - key % width + width - 1;
}

static std::vector<Rule> rulesFor(int64_t queries, int64_t keys, int64_t numRows) {
  std::vector<Rule> rules;
  for (int64_t buckets : {32, 16, 64, 128, 8})
    for (int64_t farthest : {128, 64, 256, 512, 32, 20})
      for (bool bothWays : {true, false})
        if (farthest > buckets / 2)
          rules.push_back({"relative_attention_bias.weight", [=](int64_t query, int64_t key) {
                             return t5Bucket(key - query, bothWays, buckets, farthest);
                           }});
  if (queries == keys) {
    // The squarest window first.
    std::vector<int64_t> heights;
    for (int64_t token : {0, 1})
      for (int64_t height = int64_t(std::sqrt(double(queries - token))) + 1; height > 1; --height) {
        int64_t cells = queries - token, width = height ? cells / height : 0;
        if (width < 2 || height * width != cells)
          continue;
        for (auto [h, w] : {std::pair(height, width), std::pair(width, height)}) {
          int64_t own = (2 * h - 1) * (2 * w - 1);
          rules.push_back({"relative_position_bias_table", [=, h = h, w = w](int64_t query, int64_t key) {
                             if (!token)
                               return windowOffset(query, key, h, w);
                             if (query && key)
                               return windowOffset(query - 1, key - 1, h, w);
                             return own + (query ? 1 : key ? 0 : 2);
                           }});
        }
      }
  }
  // Distances along one side of an image, in steps of the finer grid.
  for (StringRef table : {"rel_pos_h", "rel_pos_w"})
    rules.push_back({table,
                     [=](int64_t query, int64_t key) {
                       int64_t ofQuery = std::max<int64_t>(keys / queries, 1),
                               ofKey = std::max<int64_t>(queries / keys, 1);
                       return query * ofQuery - key * ofKey + (keys - 1) * ofKey;
                     },
                     true});
  if (numRows % 2 == 1)
    rules.push_back({"relative_positions", [=](int64_t query, int64_t key) {
                       return std::clamp(key - query, -(numRows / 2), numRows / 2) + numRows / 2;
                     }});
  rules.push_back({"relative_positions", [=](int64_t query, int64_t key) { return key - query + queries - 1; }});
  return rules;
}

/// The rule's number of each row, if it makes the same pairs equal.
static std::vector<int64_t> follow(const Rule &rule, int64_t queries, int64_t keys, ArrayRef<int64_t> rows,
                                   int64_t numRows) {
  std::vector<int64_t> numbers(size_t(numRows), -1);
  DenseMap<int64_t, int64_t> rowOf;
  for (int64_t query = 0; query != queries; ++query)
    for (int64_t key = 0; key != keys; ++key) {
      int64_t row = rows[size_t(query * keys + key)];
      if (row < 0)
        continue;
      int64_t number = rule.number(query, key);
      if (numbers[size_t(row)] < 0)
        numbers[size_t(row)] = number;
      if (numbers[size_t(row)] != number || rowOf.try_emplace(number, row).first->second != row)
        return {};
    }
  return numbers;
}

StringRef lowtide::orderRows(ArrayRef<int64_t> dims, std::vector<int64_t> &rows, int64_t numRows, StringRef name) {
  if (dims.size() != 2 || numRows < 2)
    return "";
  StringRef table;
  bool hasComplete = false;
  std::vector<int64_t> best, ascending;
  for (const Rule &rule : rulesFor(dims[0], dims[1], numRows)) {
    std::vector<int64_t> numbers = follow(rule, dims[0], dims[1], rows, numRows);
    if (numbers.empty() || (rule.needsName && !name.ends_with(rule.table)))
      continue;
    // Of several rules the one whose models call their table so, or else one that reads every row of its table.
    bool isNamed = name.ends_with(rule.table);
    bool isComplete = *std::max_element(numbers.begin(), numbers.end()) == numRows - 1;
    if (best.empty() || isNamed || (isComplete && !hasComplete)) {
      best = std::move(numbers);
      table = rule.table;
    }
    hasComplete |= isComplete;
    if (isNamed)
      break;
  }
  if (best.empty())
    return "";
  ascending = best;
  llvm::sort(ascending);
  for (int64_t &row : rows)
    if (row >= 0)
      row = llvm::lower_bound(ascending, best[size_t(row)]) - ascending.begin();
  return table;
}

std::vector<int64_t> lowtide::numberPairs(int64_t side, StringRef name, int64_t &numRows) {
  std::vector<int64_t> rows;
  if (!name.ends_with("relative_position_bias_table"))
    return rows;
  for (const Rule &rule : rulesFor(side, side, 0)) {
    if (!name.ends_with(rule.table))
      continue;
    for (int64_t query = 0; query != side; ++query)
      for (int64_t key = 0; key != side; ++key)
        rows.push_back(rule.number(query, key));
    numRows = *std::max_element(rows.begin(), rows.end()) + 1;
    break;
  }
  return rows;
}

//===- DimExpression.cpp - sizes that exporters derive from others ---------------===//
//
// Precedence as in Python: `**`, then `* // / %`, then `+ -`. Values are taken to grow with each symbol, which sizes
// do.
//
//===----------------------------------------------------------------------===//

#include "DimExpression.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace llvm;
using namespace lowtide;

namespace lowtide {

class DimParser {
public:
  explicit DimParser(StringRef text) : text(text) {}

  std::optional<DimExpression> parse() {
    int root = parseSum();
    skip();
    if (root < 0 || at != text.size() || !isArithmetic)
      return std::nullopt;
    return std::move(made);
  }

private:
  using Node = DimExpression::Node;
  static constexpr unsigned maxNodes = 256, maxDepth = 64;

  void skip() {
    while (at < text.size() && text[at] == ' ')
      ++at;
  }
  bool takes(StringRef sign) {
    skip();
    if (!text.substr(at).starts_with(sign))
      return false;
    at += sign.size();
    return true;
  }
  int add(Node node) {
    if (made.nodes.size() >= maxNodes)
      return -1;
    made.nodes.push_back(node);
    return int(made.nodes.size()) - 1;
  }
  int join(Node::Kind kind, int left, int right) {
    isArithmetic = true;
    return left < 0 || right < 0 ? -1 : add({kind, 0, left, right});
  }

  int parseSum() {
    if (++depth > maxDepth)
      return -1;
    int left = parseProduct();
    for (;;) {
      skip();
      // `seq-len` is a name: what is subtracted from a name without blanks is a number.
      if (takes("+"))
        left = join(Node::Add, left, parseProduct());
      else if (takes("-")) {
        const bool isApart = at >= 2 && (text[at - 2] == ' ' || text[at - 2] == ')');
        const bool isNumber = at < text.size() && (isDigit(text[at]) || text[at] == ' ' || text[at] == '(');
        isName |= !isApart && !isNumber;
        left = join(Node::Subtract, left, parseProduct());
      } else
        break;
    }
    --depth;
    return isName ? -1 : left;
  }
  int parseProduct() {
    int left = parsePower();
    for (;;) {
      if (takes("//"))
        left = join(Node::FloorDivide, left, parsePower());
      else if (takes("/"))
        left = join(Node::Divide, left, parsePower());
      else if (takes("%"))
        left = join(Node::Remainder, left, parsePower());
      else if (!text.substr(at).starts_with("**") && takes("*"))
        left = join(Node::Multiply, left, parsePower());
      else
        return left;
    }
  }
  int parsePower() {
    int base = parseAtom();
    return takes("**") ? join(Node::Power, base, parseAtom()) : base;
  }
  int parseAtom() {
    skip();
    if (takes("(")) {
      int inner = parseSum();
      return takes(")") ? inner : -1;
    }
    if (takes("-")) {
      if (++depth > maxDepth)
        return -1;
      int inner = parseAtom();
      --depth;
      return join(Node::Subtract, add({Node::Number, 0}), inner);
    }
    StringRef word = text.substr(at).take_while([](char c) { return isAlnum(c) || c == '_' || c == '.'; });
    at += word.size();
    if (word.empty())
      return -1;
    int64_t number;
    if (isDigit(word[0]))
      return word.getAsInteger(10, number) ? -1 : add({Node::Number, number});
    if (takes("("))
      return parseFunction(word);
    auto known = find(made.symbols, word);
    number = known - made.symbols.begin();
    if (known == made.symbols.end())
      made.symbols.push_back(word.str());
    return add({Node::Symbol, number});
  }
  int parseFunction(StringRef name) {
    int first = parseSum(), second = -1;
    const bool hasTwo = takes(",");
    if (hasTwo)
      second = parseSum();
    if (!takes(")"))
      return -1;
    isArithmetic = true;
    if (!hasTwo) // sizes are whole already
      return name == "floor" || name == "TruncToInt" || name == "FloorToInt" ? first : -1;
    if (name == "Max" || name == "Min")
      return join(name == "Max" ? Node::Max : Node::Min, first, second);
    if (name == "FloorDiv" || name == "CleanDiv" || name == "IntTrueDiv")
      return join(name == "FloorDiv" ? Node::FloorDivide : Node::Divide, first, second);
    if (name == "Mod" || name == "PythonMod")
      return join(Node::Remainder, first, second);
    return -1;
  }

  StringRef text;
  size_t at = 0;
  unsigned depth = 0;
  bool isArithmetic = false, isName = false;
  DimExpression made;
};

} // namespace lowtide

std::optional<DimExpression> DimExpression::parse(StringRef text) {
  std::optional<DimExpression> made = DimParser(text).parse();
  return made && !made->symbols.empty() ? std::move(made) : std::nullopt;
}

static std::optional<int64_t> floorDivide(int64_t a, int64_t b) {
  if (b <= 0)
    return std::nullopt;
  return a / b - (a % b < 0);
}

std::optional<int64_t> DimExpression::evaluateNode(int index, const StringMap<int64_t> &sizes) const {
  const Node &node = nodes[size_t(index)];
  if (node.kind == Node::Number)
    return node.number;
  if (node.kind == Node::Symbol) {
    auto found = sizes.find(symbols[size_t(node.number)]);
    return found == sizes.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<int64_t> left = evaluateNode(node.left, sizes), right = evaluateNode(node.right, sizes);
  if (!left || !right)
    return std::nullopt;
  switch (node.kind) {
  case Node::Add:
    return checkedAdd(*left, *right);
  case Node::Subtract:
    return checkedSub(*left, *right);
  case Node::Multiply:
    return checkedMul(*left, *right);
  case Node::FloorDivide:
    return floorDivide(*left, *right);
  case Node::Divide:
    return *right > 0 && *left % *right == 0 ? std::optional(*left / *right) : std::nullopt;
  case Node::Remainder:
    return *right > 0 ? std::optional((*left % *right + *right) % *right) : std::nullopt;
  case Node::Power: {
    std::optional<int64_t> power = *right >= 0 && *right < 64 ? std::optional<int64_t>(1) : std::nullopt;
    for (int64_t i = 0; power && i < *right; ++i)
      power = checkedMul(*power, *left);
    return power;
  }
  case Node::Max:
    return std::max(*left, *right);
  case Node::Min:
    return std::min(*left, *right);
  default:
    return std::nullopt;
  }
}

std::optional<int64_t> DimExpression::evaluate(const StringMap<int64_t> &sizes) const {
  return evaluateNode(int(nodes.size()) - 1, sizes);
}

DimExpression::Solution DimExpression::solve(StringRef symbol, int64_t value, const StringMap<int64_t> &sizes) const {
  StringMap<int64_t> tried = sizes;
  // A size at which a division leaves a remainder has no value: the next one that has stands for it.
  auto at = [&](int64_t size) -> std::optional<int64_t> {
    tried[symbol] = size;
    return evaluate(tried);
  };
  constexpr int64_t most = int64_t(1) << 40;
  constexpr int64_t window = 4096; // divisors of sizes are small
  auto valueFrom = [&](int64_t size) -> std::optional<std::pair<int64_t, int64_t>> {
    for (int64_t s = size; s < size + window; ++s)
      if (std::optional<int64_t> v = at(s))
        return std::pair(s, *v);
    return std::nullopt;
  };
  // The first size whose value is at least `wanted`.
  auto lowest = [&](int64_t wanted) {
    int64_t low = 1, high = most;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      auto here = valueFrom(middle);
      if (!here || here->second >= wanted) // no value: it is too large for 64 bits
        high = middle;
      else
        low = here->first + 1;
    }
    return low;
  };
  Solution solution;
  const int64_t first = lowest(value), beyond = lowest(value + 1);
  auto firstValue = valueFrom(first);
  if (firstValue && firstValue->second == value) {
    int64_t last = beyond - 1;
    while (last > firstValue->first && at(last) != value)
      --last;
    if (last == firstValue->first)
      solution.size = last;
    else
      solution.range = {firstValue->first, last};
    return solution;
  }
  for (int64_t s = first - 1; s >= 1 && s > first - window; --s)
    if (std::optional<int64_t> below = at(s); below && *below < value) {
      if (*below >= 1)
        solution.nearest.push_back({*below, s});
      break;
    }
  if (firstValue && firstValue->first < most)
    solution.nearest.push_back({firstValue->second, firstValue->first});
  return solution;
}

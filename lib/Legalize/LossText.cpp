//===- LossText.cpp - the grammar of --loss -------------------------------===//
//
// Recursive descent over one line. What is not understood is an error at its column, never a part of a name.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/LossText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include <cmath>

using namespace lowtide;
using llvm::ArrayRef;
using llvm::StringRef;
using llvm::Twine;

static constexpr StringRef ofClasses[] = {"weight", "ignore_index", "reduction", "label_smoothing"};
static constexpr StringRef ofLogarithms[] = {"weight", "ignore_index", "reduction"};
static constexpr StringRef weighted[] = {"weight", "reduction"};
static constexpr StringRef smooth[] = {"beta", "reduction"};
static constexpr StringRef huber[] = {"delta", "weight", "reduction"};
static constexpr StringRef ofBits[] = {"weight", "pos_weight", "reduction"};
static constexpr StringRef divergence[] = {"log_target", "reduction"};

static const LossKindInfo kinds[] = {
    {LossKind::CrossEntropy, "cross_entropy", "cross_entropy", "CrossEntropyLoss", "LOGITS, LABELS", ofClasses},
    {LossKind::Nll, "nll", "", "", "PROBABILITIES, LABELS", ofLogarithms},
    {LossKind::LogNll, "nll_loss", "nll_loss", "NLLLoss", "LOG_PROBABILITIES, LABELS", ofLogarithms},
    {LossKind::Mse, "mse", "mse_loss", "MSELoss", "OUTPUT, TARGET", weighted},
    {LossKind::L1, "l1", "l1_loss", "L1Loss", "OUTPUT, TARGET", weighted},
    {LossKind::SmoothL1, "smooth_l1", "smooth_l1_loss", "SmoothL1Loss", "OUTPUT, TARGET", smooth},
    {LossKind::Huber, "huber", "huber_loss", "HuberLoss", "OUTPUT, TARGET", huber},
    {LossKind::Bce, "bce", "binary_cross_entropy", "BCELoss", "PROBABILITIES, TARGET", weighted},
    {LossKind::BceWithLogits, "bce_with_logits", "binary_cross_entropy_with_logits", "BCEWithLogitsLoss",
     "LOGITS, TARGET", ofBits},
    {LossKind::KlDiv, "kl_div", "kl_div", "KLDivLoss", "LOG_PROBABILITIES, TARGET", divergence},
};

ArrayRef<LossKindInfo> lowtide::listLossKinds() { return kinds; }

const LossKindInfo &lowtide::findLossKind(LossKind kind) {
  return *llvm::find_if(kinds, [&](const LossKindInfo &info) { return info.kind == kind; });
}

const LossSetting *LossTerm::find(StringRef option) const {
  auto found = llvm::find_if(settings, [&](const LossSetting &setting) { return setting.option.text == option; });
  return found == settings.end() ? nullptr : &*found;
}

static bool isSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
/// What ends a name without quotes.
static bool endsName(char c) { return isSpace(c) || StringRef(",()[]{}=+*'\"").contains(c); }

std::string lowtide::writeLossName(StringRef name) {
  if (!name.empty() && llvm::none_of(name, endsName))
    return name.str();
  std::string text = "'";
  for (char c : name)
    text += (c == '\'' || c == '\\' ? "\\" : "") + std::string(1, c);
  return text + "'";
}

namespace {

class LossParser {
public:
  explicit LossParser(StringRef text) : text(text) {}

  std::optional<LossFault> parse(std::vector<LossTerm> &terms) {
    double sign = takes('-') ? -1 : 1;
    do {
      LossTerm term;
      if (!parseTerm(term))
        return fault;
      term.factor *= sign;
      terms.push_back(std::move(term));
      skip();
      if (at == text.size())
        return std::nullopt;
      sign = text[at] == '-' ? -1 : 1;
    } while (takes('+') || takes('-'));
    fail(at, "text is left over: " + quoted(restOfWord()),
         "losses are added with '+' and weighed with a number, as in cross_entropy(logits, labels) + 0.3*mse(a, b); a "
         "name with spaces, commas or brackets is put into quotes");
    return fault;
  }

private:
  static std::string quoted(StringRef word) { return ("'" + word + "'").str(); }
  bool fail(size_t column, const Twine &message, const Twine &remedy = "") {
    if (!fault)
      fault = {column, message.str(), remedy.str()};
    return false;
  }
  void skip() {
    while (at < text.size() && isSpace(text[at]))
      ++at;
  }
  bool takes(char c) {
    skip();
    if (at == text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  StringRef restOfWord() const {
    StringRef rest = text.substr(at);
    size_t end = rest.find_if(isSpace);
    return rest.take_front(std::min<size_t>(end, 40));
  }
  /// What stands at the cursor, for a message.
  std::string found() {
    skip();
    return at == text.size() ? "the end" : quoted(text.substr(at, 1));
  }

  /// A name; `what` it is, for the message when there is none.
  bool parseName(LossName &name, const Twine &what, bool *isQuoted = nullptr) {
    skip();
    name.column = at;
    const bool quotes = at < text.size() && (text[at] == '\'' || text[at] == '"');
    if (isQuoted)
      *isQuoted = quotes;
    if (!quotes) {
      StringRef word = text.substr(at).take_until(endsName);
      if (word.empty())
        return fail(at, what + " is missing: found " + found());
      name.text = word.str();
      at += word.size();
      return true;
    }
    const char quote = text[at++];
    for (; at < text.size() && text[at] != quote; ++at) {
      at += text[at] == '\\' && at + 1 < text.size();
      name.text += text[at];
    }
    if (at == text.size())
      return fail(name.column, "a quote that is opened is not closed");
    ++at;
    return !name.text.empty() || fail(name.column, what + " is empty");
  }

  bool parseNumber(double &number, const Twine &what) {
    LossName word;
    skip();
    const size_t column = at;
    takes('+');
    if (!parseName(word, what))
      return false;
    // 1e+3 holds what ends a name.
    if (StringRef(word.text).ends_with_insensitive("e") && at < text.size() && text[at] == '+') {
      size_t begin = ++at;
      at += text.substr(at).take_while(llvm::isDigit).size();
      word.text += text.substr(begin, at - begin).str();
    }
    if (StringRef(word.text).getAsDouble(number) || !std::isfinite(number))
      return fail(column, what + ": " + quoted(word.text) + " is not a finite number");
    return true;
  }

  /// A number that is followed by `*`.
  bool takesFactor(double &factor) {
    const size_t begin = at;
    const std::optional<LossFault> before = fault;
    if (parseNumber(factor, "a factor") && takes('*'))
      return true;
    at = begin;
    fault = before;
    return false;
  }

  bool parseTerm(LossTerm &term) {
    skip();
    term.column = at;
    if (double factor; takesFactor(factor))
      term.factor = factor;
    LossName word;
    bool isQuoted = false;
    skip();
    if (at == text.size())
      return fail(at, "a loss is missing at the end", "for example cross_entropy(logits, labels)");
    if (!parseName(word, "a loss", &isQuoted))
      return false;
    if (!isQuoted && takes('(')) {
      if (!parseCall(word, term))
        return false;
    } else if (double number; !isQuoted && !StringRef(word.text).getAsDouble(number) && word.text.size() < 24 &&
                              StringRef(word.text).contains('.')) {
      return fail(word.column, "a number alone is no loss", "a factor is written 0.3*mse(output, target)");
    } else {
      term.output = std::move(word);
    }
    if (double factor = 1; takes('*')) {
      if (!parseNumber(factor, "the factor after '*'"))
        return false;
      term.factor *= factor;
    } else if (takes('/')) {
      const size_t column = at;
      if (!parseNumber(factor, "the number after '/'"))
        return false;
      if (factor == 0)
        return fail(column, "a loss cannot be divided by 0");
      term.factor /= factor;
    }
    return true;
  }

  /// The kind that is written `word`.
  bool findKind(const LossName &word, LossTerm &term) {
    for (const LossKindInfo &info : kinds)
      if (word.text == info.name || word.text == info.function) {
        term.kind = info.kind;
        return true;
      }
    std::vector<StringRef> known;
    std::string list;
    for (const LossKindInfo &info : kinds) {
      known.push_back(info.name);
      list += (list.empty() ? "" : ", ") + info.name.str() + "(" + info.operands.str() + ")";
      StringRef word_(word.text);
      (void)word_.consume_front("nn.");
      if (!info.module.empty() && word_ == info.module)
        return fail(word.column, "unknown kind " + quoted(word.text) + "; did you mean '" + info.name + "'?",
                    "it is written as PyTorch's function: " + info.name + "(" + info.operands + ")");
    }
    return fail(word.column, "unknown kind " + quoted(word.text) + suggestName(word.text, known), "there are " + list);
  }

  bool parseCall(const LossName &word, LossTerm &term) {
    if (!findKind(word, term))
      return false;
    const LossKindInfo &info = findLossKind(*term.kind);
    auto [first, second] = info.operands.split(", ");
    const std::string form = "as in " + info.name.str() + "(" + info.operands.str() + ")";
    auto operand = [&](LossName &name, StringRef what) {
      if (!parseName(name, info.name + ": the operand " + what)) {
        fault->remedy = form;
        return false;
      }
      return true;
    };
    if (!operand(term.output, first))
      return false;
    if (!takes(','))
      return fail(at,
                  info.name + " takes two operands: after " + quoted(term.output.text) + ", ',' is expected, not " +
                      found(),
                  form + "; a name with spaces, commas or brackets is put into quotes");
    if (!operand(term.labels, second))
      return false;
    while (takes(','))
      if (!parseSetting(info, term))
        return false;
    if (takes(')'))
      return true;
    return fail(at, info.name + ": ',' or ')' is expected, not " + found(),
                "a name with spaces, commas or brackets is put into quotes; options are written NAME=VALUE");
  }

  bool parseSetting(const LossKindInfo &info, LossTerm &term) {
    LossSetting setting;
    const std::string options = "options of " + info.name.str() + ": " + llvm::join(info.options, ", ");
    if (!parseName(setting.option, info.name + ": an option")) {
      fault->remedy = options;
      return false;
    }
    if (!takes('='))
      return fail(setting.option.column,
                  info.name + " takes two operands; options are written NAME=VALUE, not " + quoted(setting.option.text),
                  options);
    if (!llvm::is_contained(info.options, StringRef(setting.option.text)))
      return fail(setting.option.column,
                  info.name + " has no option " + quoted(setting.option.text) +
                      suggestName(setting.option.text, info.options),
                  options);
    if (term.find(setting.option.text))
      return fail(setting.option.column, "option " + quoted(setting.option.text) + " is given twice");
    skip();
    setting.column = at;
    if (takes('[')) {
      do {
        if (!parseNumber(setting.list.emplace_back(), setting.option.text + ": a number"))
          return false;
      } while (takes(','));
      if (!takes(']'))
        return fail(at, setting.option.text + ": ',' or ']' is expected, not " + found());
    } else {
      LossName value;
      bool isQuoted = false;
      takes('+');
      if (!parseName(value, "the value of " + Twine(setting.option.text), &isQuoted))
        return false;
      if (double number; !isQuoted && !StringRef(value.text).getAsDouble(number))
        setting.number = number;
      setting.text = std::move(value.text);
    }
    term.settings.push_back(std::move(setting));
    return checkSetting(info, term.settings.back());
  }

  bool checkSetting(const LossKindInfo &info, const LossSetting &setting) {
    const StringRef option = setting.option.text, value = setting.text;
    auto refuse = [&](const Twine &expected) {
      return fail(setting.column,
                  option + " is " + expected + ", not " + (setting.list.empty() ? quoted(value) : "a list"));
    };
    const bool isNumber = setting.number && std::isfinite(*setting.number);
    if (option == "reduction") {
      std::vector<StringRef> choices = {"mean", "sum"};
      if (info.kind == LossKind::KlDiv)
        choices.push_back("batchmean");
      if (value == "none")
        return fail(setting.column, "a step is trained on one number: reduction is " + llvm::join(choices, " or "));
      return llvm::is_contained(choices, value) ||
             fail(setting.column, "reduction is " + llvm::join(choices, " or ") + ", not " + quoted(value) +
                                      suggestName(value, choices));
    }
    if (option == "ignore_index") {
      int64_t label;
      return !value.getAsInteger(10, label) || refuse("a whole number");
    }
    if (option == "label_smoothing")
      return (isNumber && *setting.number >= 0 && *setting.number <= 1) || refuse("a number from 0 to 1");
    if (option == "beta")
      return (isNumber && *setting.number >= 0) || refuse("a number of at least 0");
    if (option == "delta")
      return (isNumber && *setting.number > 0) || refuse("a number above 0");
    if (option == "log_target")
      return value.equals_insensitive("true") || value.equals_insensitive("false") || refuse("true or false");
    return true; // a weight: a number, a list, or a name
  }

  StringRef text;
  size_t at = 0;
  std::optional<LossFault> fault;
};

} // namespace

std::optional<LossFault> lowtide::parseLoss(StringRef text, std::vector<LossTerm> &terms) {
  return LossParser(text).parse(terms);
}

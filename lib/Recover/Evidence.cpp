//===- Evidence.cpp - what exporters write about themselves
//----------------------------===//

#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace lowtide;

template <typename Props> static StringRef findProp(const Props &props, StringRef key) {
  for (const auto &prop : props)
    if (prop.key() == key)
      return prop.value();
  return {};
}

/// The text between the quotes after `target=`.
static StringRef parseTarget(StringRef line) {
  size_t at = line.find("target=");
  if (at == StringRef::npos)
    return {};
  line = line.drop_front(at + strlen("target="));
  if (line.empty() || (line[0] != '\'' && line[0] != '"'))
    return {};
  char quote = line[0];
  return line.drop_front().take_until([quote](char c) { return c == quote; });
}

/// Whether what the program assigns to `entry` is made of another tensor of the file that goes by the program's name,
/// as a teacher's parameter follows the student's.
static bool followsAnother(const ::onnx::GraphProto &graph, const SignatureEntry &entry) {
  StringMap<const ::onnx::NodeProto *> makers;
  for (const ::onnx::NodeProto &node : graph.node())
    for (const std::string &output : node.output())
      makers[output] = &node;
  StringSet<> tensors, seen;
  for (const ::onnx::TensorProto &tensor : graph.initializer())
    tensors.insert(tensor.name());
  SmallVector<StringRef> open{entry.assigned};
  while (!open.empty()) {
    const StringRef value = open.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (tensors.contains(value) && value != entry.target && value.contains('.'))
      return true;
    if (const ::onnx::NodeProto *node = makers.lookup(value))
      open.append(node->input().begin(), node->input().end());
  }
  return false;
}

Signature::Signature(const ::onnx::GraphProto &graph) {
  StringRef text = findProp(graph.metadata_props(), "pkg.torch.export.ExportedProgram.graph_signature");
  present = !text.empty();
  StringMap<std::string> mutated;
  for (StringRef line : llvm::split(text, '\n')) {
    auto [placeholder, rest] = line.trim().split(": ");
    StringRef kind = rest.take_until([](char c) { return c == ' '; });
    StringRef target = parseTarget(rest);
    if (kind == "USER_OUTPUT")
      outputs.push_back(placeholder.str());
    if (kind == "USER_INPUT")
      inputs.insert(placeholder);
    if (target.empty())
      continue;
    if (kind == "BUFFER_MUTATION" || kind == "PARAMETER_MUTATION") {
      mutated[target] = placeholder.str();
      continue;
    }
    SignatureEntry entry;
    if (kind == "PARAMETER")
      entry.kind = SignatureEntry::Parameter;
    else if (kind == "BUFFER")
      entry.kind = SignatureEntry::Buffer;
    else if (kind == "CONSTANT_TENSOR")
      entry.kind = SignatureEntry::Constant;
    else
      continue;
    entry.placeholder = placeholder.str();
    entry.target = target.str();
    // The last field of a buffer, after the target.
    entry.persistent = !rest.ends_with(" persistent=False");
    if (byTarget.try_emplace(target, entries.size()).second) {
      byPlaceholder[placeholder] = entries.size();
      modules.insert(moduleOf(target));
      entries.push_back(std::move(entry));
    }
  }
  for (SignatureEntry &entry : entries) {
    entry.mutated = mutated.contains(entry.target);
    entry.assigned = mutated.lookup(entry.target);
    entry.isAssignedParameter = entry.mutated && entry.kind == SignatureEntry::Parameter;
    if (entry.isAssignedParameter && followsAnother(graph, entry))
      entry.kind = SignatureEntry::Buffer;
  }
}

const SignatureEntry *Signature::findTarget(StringRef name) const {
  auto at = byTarget.find(name);
  return at == byTarget.end() ? nullptr : &entries[at->second];
}

const SignatureEntry *Signature::findPlaceholder(StringRef name) const {
  auto at = byPlaceholder.find(name);
  return at == byPlaceholder.end() ? nullptr : &entries[at->second];
}

size_t Signature::getOrder(StringRef target) const {
  auto at = byTarget.find(target);
  return at == byTarget.end() ? entries.size() : at->second;
}

StringRef lowtide::moduleOf(StringRef name) { return name.contains('.') ? name.rsplit('.').first : StringRef(); }
StringRef lowtide::leafOf(StringRef name) { return name.contains('.') ? name.rsplit('.').second : name; }

std::vector<std::string> lowtide::parsePythonList(StringRef text) {
  std::vector<std::string> items;
  while (true) {
    size_t open = text.find_first_of("'\"");
    if (open == StringRef::npos)
      return items;
    char quote = text[open];
    size_t close = text.find(quote, open + 1);
    if (close == StringRef::npos)
      return items;
    items.push_back(text.slice(open + 1, close).str());
    text = text.drop_front(close + 1);
  }
}

/// `/net/layer1/layer1.0/conv1/Conv` → `net.layer1.0.conv1`. A child of a
/// Sequential repeats its parent's name.
std::optional<std::string> lowtide::findScope(StringRef name) {
  if (!name.consume_front("/"))
    return std::nullopt;
  SmallVector<StringRef> parts;
  name.split(parts, '/');
  // onnxruntime appends what it did: `/net/fc/MatMul/MatMulScaleFusion/`, `/net/fc/MatMul/MatMulAddFusion`.
  if (parts.size() > 2 && parts.back().empty() && parts[parts.size() - 2].ends_with("Fusion"))
    parts.pop_back();
  if (parts.size() > 1 && parts.back().ends_with("Fusion"))
    parts.pop_back();
  parts.pop_back(); // the operator
  std::string path;
  StringRef previous;
  for (StringRef part : parts) {
    StringRef added = part;
    if (!previous.empty() && part.starts_with(previous) && part.drop_front(previous.size()).starts_with("."))
      added = part.drop_front(previous.size() + 1);
    path += (path.empty() ? "" : ".") + added.str();
    previous = part;
  }
  return path;
}

StringRef lowtide::findEvaluatedOperator(StringRef name) {
  if (!name.starts_with("/"))
    return "";
  StringRef last = name.rsplit('/').second.split('@').first; // what was taken out of the result
  auto [value, number] = last.rsplit("_output_");
  if (number.empty() || !all_of(number, isDigit))
    return "";
  auto [op, count] = value.rsplit('_');
  return !count.empty() && all_of(count, isDigit) ? op : value;
}

std::string lowtide::withoutNumbers(StringRef name) {
  std::string text = name.str();
  llvm::erase_if(text, [](char c) { return llvm::isDigit(c); });
  return text;
}

bool lowtide::isOfCurrentExporter(const ::onnx::GraphProto &graph) {
  return llvm::any_of(graph.node(),
                      [](const ::onnx::NodeProto &node) { return StringRef(node.name()).starts_with("node_"); });
}

bool lowtide::namesItsValue(const ::onnx::NodeProto &node) {
  StringRef name = node.name();
  return name.consume_front("node_") && !name.empty() && !isUpper(name[0]) && node.output_size() == 1 &&
         node.output(0) == name;
}

bool lowtide::isEvaluatedName(StringRef name) {
  StringRef op = findEvaluatedOperator(name);
  return name.starts_with("onnx::") || (!op.empty() && !op.starts_with("Constant") && op != "Range");
}

std::optional<std::string> lowtide::findModulePath(const ::onnx::NodeProto &node) {
  StringRef scopes = findProp(node.metadata_props(), moduleScopesKey);
  if (scopes.empty())
    return findScope(node.name());
  std::vector<std::string> names = parsePythonList(scopes);
  // The last entry names the operation itself.
  if (names.size() < 2 || names[names.size() - 2] == "_empty_nn_module_stack_from_metadata_hook")
    return std::nullopt;
  // A module that is called again: `block@1`.
  return StringRef(names[names.size() - 2]).split('@').first.str();
}

bool lowtide::isRewritten(const ::onnx::NodeProto &node) {
  StringRef rule = findProp(node.metadata_props(), "pkg.onnxscript.rewriter.rule_name");
  // Rules that drop an operand replace one node by one.
  return !rule.empty() && !isWithoutBias(node);
}

bool lowtide::isWithoutBias(const ::onnx::NodeProto &node) {
  // Rules that followed one another are listed: a batch norm of zero bias is folded, then what it left is dropped.
  StringRef rules = findProp(node.metadata_props(), "pkg.onnxscript.rewriter.rule_name");
  return !rules.empty() &&
         all_of(split(rules, ", "), [](StringRef rule) { return rule.starts_with("RemoveOptionalBias"); });
}

StringRef lowtide::findProgramNote(const ::onnx::NodeProto &node) {
  return findProp(node.metadata_props(), "pkg.torch.onnx.fx_node");
}

StringRef lowtide::findProgramResult(const ::onnx::NodeProto &node) {
  StringRef note = findProgramNote(node);
  return note.consume_front("%") ? note.take_until([](char c) { return c == ' ' || c == ':'; }) : StringRef();
}

std::optional<int64_t> lowtide::findProgramUsers(const ::onnx::NodeProto &node) {
  // `%linear_1 : [num_users=3] = call_function…`
  StringRef text = findProgramNote(node).split("](args").first.split("[num_users=").second;
  int64_t users = 0;
  if (text.consumeInteger(10, users))
    return std::nullopt;
  return users;
}

std::vector<std::string> lowtide::findProgramOperands(const ::onnx::NodeProto &node) {
  StringRef text = findProgramNote(node);
  std::vector<std::string> names;
  size_t args = text.find("](args");
  if (args == StringRef::npos)
    return names;
  const bool isBiasFirst = node.op_type() == "Gemm" && text.take_front(args).ends_with("aten.addmm.default");
  text = text.drop_front(args);
  for (size_t at; (at = text.find('%')) != StringRef::npos;) {
    text = text.drop_front(at + 1);
    names.push_back(text.take_while([](char c) { return isAlnum(c) || c == '_'; }).str());
  }
  if (isBiasFirst && names.size() == 3)
    std::rotate(names.begin(), names.begin() + 1, names.end());
  return names;
}

/// Operands of the operation `name` that the node was exported from, as text, those that have their defaults left out
/// after the last other one; nullopt: it is another operation, or nothing is known.
static std::optional<SmallVector<StringRef>> findOperandsOf(StringRef name, const ::onnx::NodeProto &node) {
  StringRef text = findProgramNote(node);
  size_t at = text.find((name + "](args").str());
  if (at == StringRef::npos)
    return std::nullopt;
  SmallVector<StringRef> operands;
  text.drop_front(at).split('(').second.split("(").second.split(')').first.split(operands, ',');
  for (StringRef &operand : operands)
    operand = operand.trim();
  return operands;
}

std::optional<SmallVector<bool>> lowtide::findProgramIndices(const ::onnx::NodeProto &node) {
  // `(%x, [None, %index], %values, accumulate)`
  for (StringRef name : {"aten.index.Tensor", "aten._unsafe_index.Tensor", "aten.index_put.default",
                         "aten.index_put_.default", "aten._unsafe_index_put.default"})
    if (auto operands = findOperandsOf(name, node); operands && operands->size() > 1) {
      SmallVector<bool> isIndexed;
      for (StringRef operand : ArrayRef(*operands).drop_front()) {
        operand.consume_front("[");
        const bool isLast = operand.consume_back("]");
        isIndexed.push_back(operand != "None");
        if (isLast)
          return isIndexed;
      }
    }
  return std::nullopt;
}

std::optional<double> lowtide::findProgramFactor(const ::onnx::NodeProto &node) {
  // `args = (%x, %a, %b), kwargs = {value: 0.3})`
  if (!findOperandsOf("aten.addcmul.default", node))
    return std::nullopt;
  StringRef text = findProgramNote(node).split("kwargs = {value: ").second.split('}').first;
  double factor = 1;
  if (!text.empty() && text.getAsDouble(factor))
    return std::nullopt;
  return factor;
}

std::optional<double> lowtide::findProgramAlpha(const ::onnx::NodeProto &node) {
  // `args = (%x, %y), kwargs = {alpha: 0.5})`
  if (!findOperandsOf("aten.add.Tensor", node) && !findOperandsOf("aten.sub.Tensor", node))
    return std::nullopt;
  StringRef text = findProgramNote(node).split("kwargs = {alpha: ").second.split('}').first;
  double factor = 1;
  return text.empty() || text.getAsDouble(factor) ? std::nullopt : std::optional(factor);
}

/// Number `at` of the operands, or its default; nullopt: it is no dimension of `rank`.
static std::optional<int64_t> readDim(ArrayRef<StringRef> operands, size_t at, int64_t otherwise, int64_t rank) {
  int64_t dim = otherwise;
  if (at < operands.size() && operands[at].getAsInteger(10, dim))
    return std::nullopt;
  dim += dim < 0 ? rank : 0;
  return dim >= 0 && dim < rank ? std::optional(dim) : std::nullopt;
}

std::optional<std::pair<int64_t, int64_t>> lowtide::findProgramDiagonal(const ::onnx::NodeProto &node, int64_t rank) {
  // `(%x, offset, dim1, dim2)`
  for (StringRef name : {"aten.diagonal.default", "aten.diagonal_copy.default"})
    if (auto operands = findOperandsOf(name, node)) {
      std::optional<int64_t> first = readDim(*operands, 2, 0, rank), second = readDim(*operands, 3, 1, rank);
      if (first && second && first != second)
        return std::pair(*first, *second);
    }
  return std::nullopt;
}

std::optional<int64_t> lowtide::findProgramSlicedDim(const ::onnx::NodeProto &node, int64_t rank) {
  // `(%x, %part, dim, start, end, step)`
  auto operands = findOperandsOf("aten.slice_scatter.default", node);
  return operands ? readDim(*operands, 2, 0, rank) : std::nullopt;
}

std::optional<int64_t> lowtide::findProgramPaddingRow(const ::onnx::NodeProto &node) {
  // `(%weight, %indices, N)`
  auto operands = findOperandsOf("aten.embedding.default", node);
  int64_t row = -1;
  if (!operands || (operands->size() > 2 && (*operands)[2].getAsInteger(10, row)))
    return std::nullopt;
  return row;
}

std::optional<double> lowtide::findProgramSmoothing(const ::onnx::NodeProto &node) {
  // `(%logits, %labels, weights, reduction, ignore_index, label_smoothing)`
  auto operands = findOperandsOf("aten.cross_entropy_loss.default", node);
  double smoothing = 0;
  if (!operands || operands->size() < 6 || (*operands)[5].getAsDouble(smoothing))
    return std::nullopt;
  return smoothing;
}

double lowtide::findProgramAttentionDropout(const ::onnx::NodeProto &node) {
  // `(%query, %key, %value, mask, dropout, is_causal)`
  auto operands = findOperandsOf("aten.scaled_dot_product_attention.default", node);
  double ratio = 0;
  if (!operands || operands->size() < 5 || (*operands)[4].getAsDouble(ratio))
    return 0;
  return ratio;
}

bool lowtide::isOfMaskedAttention(const ::onnx::NodeProto &node) {
  auto operands = findOperandsOf("aten.scaled_dot_product_attention.default", node);
  return operands && operands->size() > 3 && (*operands)[3].starts_with("%");
}

bool lowtide::sharesKeys(const ::onnx::NodeProto &node) { return findProgramNote(node).contains("enable_gqa: True"); }

bool lowtide::shortensRows(const ::onnx::NodeProto &node) {
  return findOperandsOf("aten.embedding_renorm.default", node) ||
         findOperandsOf("aten.embedding_renorm_.default", node);
}

bool lowtide::scalesGradientByFrequency(const ::onnx::NodeProto &node) {
  // `(%weight, %indices, padding row, by frequency)`, `(%weight, %indices, %offsets, by frequency, …)`
  for (StringRef name : {"aten.embedding.default", "aten.embedding_bag.padding_idx", "aten._embedding_bag.default",
                         "aten._embedding_bag_forward_only.default"})
    if (auto operands = findOperandsOf(name, node))
      return operands->size() > 3 && (*operands)[3] == "True";
  return false;
}

bool lowtide::isMeanOfScatter(const ::onnx::NodeProto &node) {
  if (!StringRef(node.op_type()).starts_with("Scatter") || any_of(node.attribute(), [](const auto &attribute) {
        return attribute.name() == "reduction" && attribute.s() != "none";
      }))
    return false;
  auto operands = findOperandsOf("aten.scatter_reduce.two", node);
  return operands && operands->size() > 4 && (*operands)[4] == "mean";
}

bool lowtide::includesSelf(const ::onnx::NodeProto &node) {
  return !findProgramNote(node).contains("include_self: False");
}

std::optional<int64_t> lowtide::findProgramDivisor(const ::onnx::NodeProto &node) {
  // `(%x, kernel, strides, pads, ceil_mode, count_include_pad, divisor)`
  for (StringRef name : {"aten.avg_pool2d.default", "aten.avg_pool3d.default"})
    if (auto operands = findOperandsOf(name, node); operands && operands->size() > 1) {
      int64_t divisor;
      StringRef before = operands->rbegin()[1];
      if ((before == "True" || before == "False") && !StringRef(operands->back()).getAsInteger(10, divisor) &&
          divisor != 0)
        return divisor;
    }
  return std::nullopt;
}

bool lowtide::isOfOwnFunction(const ::onnx::NodeProto &node) {
  // Frames, each two lines: `File "net.py", line 7, in forward` and `y = Reverse.apply(x)`. PyTorch's own functions
  // (checkpoints) have the backward pass of what they compute.
  SmallVector<StringRef> lines, calls;
  findProp(node.metadata_props(), "pkg.torch.onnx.stack_trace").split(lines, '\n');
  auto isForward = [](StringRef frame) {
    return frame.starts_with("File \"") && frame.ends_with(", in forward") && !frame.contains("/torch/") &&
           !frame.contains("<eval_with_key>");
  };
  StringRef caller;
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    StringRef frame = lines[i].trim();
    if (!frame.starts_with("File \""))
      continue;
    if (isForward(frame) && !caller.contains("forward("))
      calls.push_back(caller);
    if (i + 2 < lines.size() && !frame.contains("/torch/") && lines[i + 1].contains(".apply(") &&
        lines[i + 2].trim().starts_with("File \"") && lines[i + 2].trim().ends_with(", in forward"))
      return true;
    caller = lines[i + 1].trim();
  }
  // A trace has frames of `forward` alone. `h = reverse(h)`, which calls the function, has none: then more of them ran
  // than modules were called and than call each other (`super().forward(x)`), and the last one's caller calls nothing
  // of its own.
  std::vector<std::string> classes = parsePythonList(findProp(node.metadata_props(), "pkg.torch.onnx.class_hierarchy"));
  const auto numModules = count_if(ArrayRef(classes).drop_back(classes.empty() ? 0 : 1),
                                   [](StringRef name) { return !name.starts_with("torch."); });
  return numModules > 0 && calls.size() > size_t(numModules) && calls.size() > 1 && !calls.back().contains("self") &&
         calls.back().contains("(");
}

/// Whether a line of code calls a function whose name begins so, `adaptive_max_pool2d(`, or spells it for a call,
/// `f'adaptive_max_pool{d}d'`: a variable of the name is no call.
static bool callsByName(StringRef code, StringRef name) {
  for (StringRef rest = code.split(name).second; !rest.empty(); rest = rest.split(name).second)
    if (StringRef after = rest.ltrim("0123456789{}abcdefghijklmnopqrstuvwxyz_");
        !after.empty() && is_contained({'(', '\'', '"'}, after.front()))
      return true;
  return false;
}

ProgramLine lowtide::findProgramLine(const ::onnx::NodeProto &node) {
  // The innermost frame is the last one.
  auto [outer, code] = findProp(node.metadata_props(), "pkg.torch.onnx.stack_trace").rtrim().rsplit('\n');
  return {outer.rsplit('\n').second.trim(), code.split('#').first.trim()};
}

bool lowtide::isOfMaximumPool(const ::onnx::NodeProto &node) {
  if (findProgramOperator(node) != "aten.amax.default")
    return false;
  // The module that calls it; or the program's line of code, which is the last one, without its comment: it may also
  // take the function by its name.
  std::vector<std::string> classes = parsePythonList(findProp(node.metadata_props(), "pkg.torch.onnx.class_hierarchy"));
  return (classes.size() > 1 && StringRef(classes[classes.size() - 2]).contains(".AdaptiveMaxPool")) ||
         callsByName(findProgramLine(node).code, "adaptive_max_pool");
}

StringRef lowtide::findProgramBlock(const ::onnx::NodeProto &node) {
  // The outermost frame: below one of the program's, it is code of an operation that takes functions (`torch.cond`,
  // `scan`), through which gradients flow.
  StringRef trace = findProp(node.metadata_props(), "pkg.torch.onnx.stack_trace").ltrim();
  return trace.consume_front("File \"") && trace.starts_with("<eval_with_key>")
             ? trace.take_until([](char c) { return c == '"'; })
             : StringRef();
}

std::string lowtide::findProgramOperator(const ::onnx::NodeProto &node) {
  std::vector<std::string> classes = parsePythonList(findProp(node.metadata_props(), "pkg.torch.onnx.class_hierarchy"));
  if (!classes.empty())
    return classes.back();
  StringRef scope = findProp(node.metadata_props(), "namespace");
  return scope.contains(": ") ? scope.rsplit(": ").second.str() : std::string();
}

static constexpr StringLiteral foldedFromKey = "pkg.onnxscript.optimizer.folded_from";

std::vector<std::string> lowtide::findFoldedFrom(const ::onnx::ValueInfoProto &value) {
  return parsePythonList(findProp(value.metadata_props(), foldedFromKey));
}

void lowtide::setFoldedFrom(::onnx::ValueInfoProto &value, ArrayRef<std::string> names) {
  auto &props = *value.mutable_metadata_props();
  auto at = find_if(props, [](const auto &prop) { return prop.key() == foldedFromKey; });
  auto &note = at == props.end() ? *props.Add() : *at;
  note.set_key(foldedFromKey.str());
  note.set_value(names.empty() ? "[]" : "['" + join(names, "', '") + "']");
}

//===- Check.cpp - what a model file holds, in words ----------------------------===//

#include "lowtide/Import/Check.h"

#include "OperatorGroups.h"
#include "WellFormed.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace lowtide;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::ValueInfoProto;

/// `batch×48 i64`; `?` for a dimension without size and name.
static std::string describeType(const ValueInfoProto &value) {
  const auto &type = value.type().tensor_type();
  std::string text;
  for (const auto &dim : type.shape().dim()) {
    text += text.empty() ? "" : "×";
    if (dim.has_dim_value())
      text += std::to_string(dim.dim_value());
    else
      text += dim.dim_param().empty() ? "?" : dim.dim_param();
  }
  return text + (text.empty() ? "" : " ") + elementTypeName(type.elem_type());
}

static std::string describeType(const InitializerInfo &info) {
  std::string text;
  for (int64_t dim : info.dims)
    text += std::to_string(dim) + "×";
  return StringRef(text).drop_back(text.empty() ? 0 : strlen("×")).str() + (text.empty() ? "" : " ") +
         elementTypeName(info.dataType);
}

/// `4.7 MiB`.
static std::string describeBytes(uint64_t bytes) {
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024)
    return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (value /= 1024; value >= 1024 && unit + 1 != std::size(units); ++unit)
    value /= 1024;
  return llvm::formatv("{0:F1} {1}", value, units[unit]).str();
}

/// How the framework's tensor and the file's relate.
static std::string describeSource(const InitializerInfo &info) {
  SmallVector<std::string> parts;
  if (info.unfolded && !info.unfolded->tensor.empty())
    parts.push_back("out of " + info.unfolded->tensor);
  else if (info.tensor != info.name)
    parts.push_back("in " + info.tensor);
  if (!info.transposed.empty())
    parts.push_back("transposed");
  if (info.sourceRows)
    parts.push_back("rows " + std::to_string(info.sourceRows->first) + " to " +
                    std::to_string(info.sourceRows->second));
  if (!info.tied.empty())
    parts.push_back("tied: " + llvm::join(info.tied, ", "));
  return llvm::join(parts, "; ");
}

/// Columns of text; widths count characters, not bytes.
class Table {
public:
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }
  void print(llvm::raw_ostream &os) const {
    std::vector<size_t> widths;
    for (const auto &row : rows)
      for (auto [i, cell] : llvm::enumerate(row)) {
        widths.resize(std::max(widths.size(), i + 1));
        widths[i] = std::max(widths[i], std::min<size_t>(width(cell), 60));
      }
    for (const auto &row : rows) {
      std::string line = " ";
      for (auto [i, cell] : llvm::enumerate(row)) {
        line += " " + cell;
        if (width(cell) < widths[i])
          line.append(widths[i] - width(cell), ' ');
        line += i + 1 == row.size() ? "" : " ";
      }
      os << StringRef(line).rtrim() << "\n";
    }
  }

private:
  static size_t width(StringRef text) {
    return llvm::count_if(text, [](char c) { return (c & 0xc0) != 0x80; });
  }
  std::vector<std::vector<std::string>> rows;
};

static void reportInputs(OnnxFile &file, const ImportOptions &options, llvm::raw_ostream &os) {
  const GraphProto &graph = file.getModel().graph();
  os << "\ninputs\n";
  Table inputs;
  for (const ValueInfoProto &input : graph.input())
    if (auto fixed = options.fixed.find(input.name()); !file.findInitializer(input.name()))
      inputs.add({input.name(), describeType(input), fixed == options.fixed.end() ? "" : "set to " + fixed->second});
  inputs.print(os);
  os << "outputs\n";
  Table outputs;
  for (const ValueInfoProto &output : graph.output())
    outputs.add({output.name(), describeType(output)});
  outputs.print(os);
  if (auto unbound = findUnboundDims(file, options); !unbound.empty())
    os << "dimensions to bind, for example: " << llvm::join(unbound, " ") << "\n";
}

static void reportInitializers(ArrayRef<InitializerInfo> infos, llvm::raw_ostream &os) {
  int64_t elements = 0;
  uint64_t bytes = 0;
  std::map<InitializerRole, unsigned> counts;
  unsigned numbers = 0;
  Table table;
  table.add({"role", "certainty", "name", "type", "in the file", "why"});
  for (const InitializerInfo &info : infos) {
    if (info.viewOf)
      continue;
    // Numbers that are part of the graph's arithmetic are no news.
    if (info.inIR && (!isFloatType(info.dataType) || info.getNumElements() == 1)) {
      ++numbers;
      continue;
    }
    ++counts[info.role];
    if (info.role == InitializerRole::Parameter) {
      elements += info.getNumElements();
      bytes += info.bytes;
    }
    table.add({stringifyRole(info.role).str(), stringifyCertainty(info.certainty).str(), info.name, describeType(info),
               describeSource(info), info.reason.describe()});
  }
  os << "\ninitializers: " << counts[InitializerRole::Parameter] << " parameters (" << elements << " elements, "
     << describeBytes(bytes) << "), " << counts[InitializerRole::State] << " state, "
     << counts[InitializerRole::Constant] << " constants, and " << numbers << " numbers and shapes\n";
  table.print(os);
}

/// What the warnings say, with how certain each is.
static void reportFindings(ArrayRef<Finding> findings, llvm::raw_ostream &os) {
  if (findings.empty())
    return;
  os << "\nfindings: " << findings.size() << (findings.size() == 1 ? " difference" : " differences")
     << " between the file and its program, or what may be one\n";
  Table table;
  table.add({"certainty", "where", "what"});
  for (const Finding &finding : findings)
    table.add({stringifyCertainty(finding.getCertainty()).str(), finding.where.empty() ? "the file" : finding.where,
               finding.describe()});
  table.print(os);
}

static void reportOperators(OnnxFile &file, ArrayRef<RefusedNodes> refused, llvm::raw_ostream &os) {
  Table table;
  llvm::StringSet<> kinds;
  size_t numNodes = 0;
  for (const RefusedNodes &nodes : refused) {
    std::string kind =
        (nodes.domain.empty() ? "" : nodes.domain + ".") + nodes.name + "-" + std::to_string(nodes.version);
    kinds.insert(kind);
    numNodes += nodes.places.size();
    constexpr size_t shown = 4;
    std::string places = llvm::join(ArrayRef(nodes.places).take_front(shown), ", ");
    if (nodes.places.size() > shown)
      places += " and " + std::to_string(nodes.places.size() - shown) + " more";
    table.add({kind, std::to_string(nodes.places.size()) + (nodes.places.size() == 1 ? " node" : " nodes"), places,
               nodes.reason});
  }
  os << "\noperators: " << groupOperators(file.getModel()).size() << " kinds, "
     << countNodes(file.getModel().graph(), file.getLimits().nodes) << " nodes, ";
  if (refused.empty()) {
    os << "all supported\n";
    return;
  }
  os << kinds.size() << (kinds.size() == 1 ? " kind (" : " kinds (") << numNodes << (numNodes == 1 ? " node" : " nodes")
     << ") not supported\n";
  table.print(os);
}

FailureKind lowtide::reportModel(OnnxFile &file, const ImportOptions &options, ArrayRef<RefusedNodes> refused,
                                 llvm::raw_ostream &os) {
  os << file.getHeadline() << "\n";
  reportInputs(file, options, os);
  FailureOr<std::vector<InitializerInfo>> infos = classifyInitializers(file, options);
  if (succeeded(infos))
    reportInitializers(*infos, os);
  reportFindings(file.getReport().getFindings(), os);
  reportOperators(file, refused, os);
  if (file.getFailure() != FailureKind::None)
    return file.getFailure();
  return refused.empty() ? FailureKind::None : FailureKind::Unsupported;
}

void lowtide::printCoded(ArrayRef<CodedWeight> coded, StringRef codec, llvm::raw_ostream &os) {
  uint64_t before = 0, after = 0;
  for (const CodedWeight &weight : coded)
    before += weight.bytesBefore, after += weight.bytes;
  os << "\nfrozen matrices in " << codec << ": " << before << " bytes -> " << after
     << " bytes; errors relative to the largest number, and in root mean square to the numbers\n";
  size_t width = 0;
  for (const CodedWeight &weight : coded)
    width = std::max(width, weight.name.size());
  for (const CodedWeight &weight : coded) {
    os << "  " << llvm::left_justify(weight.name, width) << "  ";
    llvm::interleave(weight.dims, os, "x");
    os << llvm::format("  max %.2e  rms %.2e\n", weight.largestError, weight.rmsError);
  }
}

void lowtide::printAdvice(const CheckAdvice &advice, llvm::raw_ostream &os) {
  os << "\n";
  if (!advice.unbound.empty())
    os << "missing: sizes of dimensions; those below are examples\n";
  if (advice.lacksLoss)
    os << "missing: a loss, for none of the outputs is the only scalar float one; the one below is a guess"
       << (advice.loss.empty() ? ", and none was found" : "") << "\n";
  os << "to train: " << advice.compile << "\n          " << advice.run << "\n";
  if (!advice.data.empty())
    os << "data.npz holds arrays with these names, N samples each: " << advice.data
       << " (--data=synthetic trains on random numbers)\n";
}

//===- Check.cpp - what a model file holds, in words ----------------------------===//

#include "lowtide/Import/Check.h"

#include "OperatorGroups.h"
#include "TensorData.h"
#include "WellFormed.h"

#include "llvm/ADT/StringExtras.h"
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
  if (info.tensor != info.name)
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
    if (!file.findInitializer(input.name()))
      inputs.add({input.name(), describeType(input)});
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
               describeSource(info), info.reason});
  }
  os << "\ninitializers: " << counts[InitializerRole::Parameter] << " parameters (" << elements << " elements, "
     << describeBytes(bytes) << "), " << counts[InitializerRole::State] << " state, "
     << counts[InitializerRole::Constant] << " constants, and " << numbers << " numbers and shapes\n";
  table.print(os);
}

/// Returns whether all are supported.
static bool reportOperators(OnnxFile &file, SupportsOperator supports, llvm::raw_ostream &os) {
  std::vector<OperatorGroup> groups = groupOperators(file.getModel());
  Table table;
  unsigned numKinds = 0, numNodes = 0;
  for (OperatorGroup &group : groups) {
    std::string why;
    if (group.isConstant() || supports(group.domain, group.name, group.version, why))
      continue;
    ++numKinds;
    numNodes += group.places.size();
    constexpr size_t shown = 4;
    std::string places = llvm::join(ArrayRef(group.places).take_front(shown), ", ");
    if (group.places.size() > shown)
      places += " and " + std::to_string(group.places.size() - shown) + " more";
    table.add({group.describe(), std::to_string(group.places.size()) + (group.places.size() == 1 ? " node" : " nodes"),
               places, why});
  }
  os << "\noperators: " << groups.size() << " kinds, " << countNodes(file.getModel().graph(), file.getLimits().nodes)
     << " nodes, ";
  if (numKinds == 0) {
    os << "all supported\n";
    return true;
  }
  os << numKinds << (numKinds == 1 ? " kind (" : " kinds (") << numNodes << (numNodes == 1 ? " node" : " nodes")
     << ") not supported\n";
  table.print(os);
  return false;
}

int lowtide::reportModel(OnnxFile &file, const ImportOptions &options, SupportsOperator supports,
                         llvm::raw_ostream &os) {
  os << file.getHeadline() << "\n";
  reportInputs(file, options, os);
  FailureOr<std::vector<InitializerInfo>> infos = classifyInitializers(file, options);
  if (succeeded(infos))
    reportInitializers(*infos, os);
  bool supported = reportOperators(file, supports, os);
  if (int code = file.getExitCode())
    return code;
  return supported ? 0 : static_cast<int>(Failure::Unsupported);
}

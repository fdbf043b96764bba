//===- PaddingRow.cpp - rows of tables that are not trained ----------------------===//
//
// PyTorch's `Embedding(padding_idx=N)` reads row N like any other and gives it no gradient; ONNX has no word for that.
//
//===----------------------------------------------------------------------===//

#include "PaddingRow.h"

#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::NodeProto;

/// Whether node is a look-up of rows of operand 0.
static bool isRowLookup(const NodeProto &node) {
  return node.op_type() == "Gather" && node.domain().empty() && none_of(node.attribute(), [](const auto &attribute) {
           return attribute.name() == "axis" && attribute.i() != 0;
         });
}

/// The only row of zeros; nullopt if there is none or another one.
static std::optional<int64_t> findOnlyZeroRow(StringRef bytes, int64_t rows) {
  std::optional<int64_t> found;
  size_t width = bytes.size() / size_t(rows);
  for (int64_t row = 0; row != rows; ++row)
    if (all_of(bytes.substr(size_t(row) * width, width), [](char byte) { return byte == 0; })) {
      if (found)
        return std::nullopt;
      found = row;
    }
  return found;
}

/// Whether a module around the table's reads it: `self.embed.weight[ids]`, `F.embedding(ids, self.embed.weight)`.
static bool isReadOutside(const NodeProto &node, const InitializerInfo &table) {
  const std::optional<std::string> path = findModulePath(node);
  const StringRef module = moduleOf(table.name);
  return path && !module.empty() && *path != module && (path->empty() || module.starts_with(*path + "."));
}

/// Whether the node says along which dimension: PyTorch's old exporter does for indices, and not for embeddings.
static bool statesAxis(const NodeProto &node) {
  return any_of(node.attribute(), [](const auto &attribute) { return attribute.name() == "axis"; });
}

/// The only row of zeros of a table that `node` looks rows up in, without notes.
static std::optional<int64_t> findRowOfZeros(const ModelView &file, const NodeProto &node,
                                             const InitializerInfo &table) {
  if (!isRowLookup(node) || table.role != InitializerRole::Parameter || !isFloatType(table.dataType) ||
      table.dims.size() < 2 || table.dims[0] < 2 || !findProgramOperands(node).empty())
    return std::nullopt;
  std::optional<std::string> bytes = file.tryReadInitializer(table.tensor);
  return bytes && !bytes->empty() ? findOnlyZeroRow(*bytes, table.dims[0]) : std::nullopt;
}

std::optional<int64_t> lowtide::findPaddingRow(const ModelView &file, const NodeProto &node,
                                               const InitializerInfo &table) {
  if (!isRowLookup(node) || table.role != InitializerRole::Parameter || !isFloatType(table.dataType) ||
      table.dims.size() < 2 || table.dims[0] < 2)
    return std::nullopt;
  if (std::optional<int64_t> stated = findProgramPaddingRow(node))
    return *stated >= 0 && *stated < table.dims[0] ? stated : std::nullopt;
  if (isReadOutside(node, table) && statesAxis(node))
    return std::nullopt;
  return findRowOfZeros(file, node, table);
}

void lowtide::reportOutsideLookups(ModelView &file, ArrayRef<InitializerInfo> infos) {
  std::vector<std::string> names;
  for (const InitializerInfo &info : infos)
    if (any_of(info.uses, [&](const InitializerUse &use) {
          return use.operand == 0 && isReadOutside(*use.node, info) && findRowOfZeros(file, *use.node, info);
        }))
      names.push_back(info.name);
  if (!names.empty())
    file.getReport().add({FindingKind::PaddingReadOutside, names.front(), names});
}

//===- PaddingRow.cpp - rows of tables that are not trained ----------------------===//
//
// PyTorch's `Embedding(padding_idx=N)` reads row N like any other and gives it no gradient; ONNX has no word for that.
//
//===----------------------------------------------------------------------===//

#include "PaddingRow.h"

#include "Evidence.h"
#include "TensorData.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// Whether node is a look-up of rows of operand 0.
static bool isRowLookup(const NodeProto &node) {
  return node.op_type() == "Gather" && node.domain().empty() && none_of(node.attribute(), [](const auto &attribute) {
           return attribute.name() == "axis" && attribute.i() != 0;
         });
}

/// Rows of zeros, at most two: more say nothing.
static SmallVector<int64_t, 2> findZeroRows(StringRef bytes, int64_t rows) {
  SmallVector<int64_t, 2> found;
  size_t width = bytes.size() / size_t(rows);
  for (int64_t row = 0; row != rows && found.size() < 2; ++row)
    if (all_of(bytes.substr(size_t(row) * width, width), [](char byte) { return byte == 0; }))
      found.push_back(row);
  return found;
}

PaddingRow lowtide::findPaddingRow(const OnnxFile &file, const NodeProto &node, const InitializerInfo &table) {
  if (!isRowLookup(node) || table.role != InitializerRole::Parameter || !isFloatType(table.dataType) ||
      table.dims.size() < 2 || table.dims[0] < 2)
    return {};
  std::optional<int64_t> stated = findProgramPaddingRow(node);
  if (stated && (*stated < 0 || *stated >= table.dims[0]))
    return {};
  std::optional<std::string> bytes = file.tryReadInitializer(table.tensor);
  if (!bytes || bytes->empty())
    return {}; // a model without weights: what it starts with is not known
  SmallVector<int64_t, 2> zeros = findZeroRows(*bytes, table.dims[0]);
  if (!stated && zeros.size() != 1)
    return {};
  int64_t row = stated.value_or(zeros.empty() ? -1 : zeros.front());
  size_t width = bytes->size() / size_t(table.dims[0]);
  bool isZero = all_of(StringRef(*bytes).substr(size_t(row) * width, width), [](char byte) { return byte == 0; });
  // Zeros stay zeros only if nothing else trains them.
  bool isAlone =
      all_of(table.uses, [](const InitializerUse &use) { return isRowLookup(*use.node) && use.operand == 0; });
  return {row, isZero && isAlone};
}

//===- GemmShape.cpp - the call "gemm", read ------------------------------===//

#include "runtime/calls/Gemm/GemmShape.h"

#include "runtime/CheckedMath.h"

#include <algorithm>
#include <string>

namespace lowtide::rt {
namespace {

Status readBatch(CallAttributes &attributes, GemmShape &shape) {
  const char *lists[] = {"batch_dims", "batch_strides_a", "batch_strides_b", "batch_strides_c", "batch_strides_d"};
  const char *numbers[] = {"batch", "batch_stride_a", "batch_stride_b", "batch_stride_c", "batch_stride_d"};
  std::vector<int64_t> values[5];
  bool asLists = attributes.has("batch_dims");
  for (int i = 0; i < 5; ++i) {
    int64_t low = i == 0 ? 1 : 0;
    if (asLists) {
      LOWTIDE_TRY(attributes.list(lists[i], values[i], low, i != 3));
    } else {
      values[i] = {low};
      LOWTIDE_TRY(attributes.integer(numbers[i], values[i][0], low, false));
    }
    if (i == 3 && values[3].empty())
      values[3].assign(values[0].size(), 0);
    if (values[i].size() != values[0].size())
      return refuseCall(std::string("attribute '") + lists[i] + "' does not match 'batch_dims'");
  }
  for (size_t i = 0; i < values[0].size(); ++i)
    shape.batch.push_back({values[0][i], values[1][i], values[2][i], values[3][i], values[4][i]});
  return Status::ok();
}

Status readEpilogue(const std::string &name, GemmShape &shape) {
  using Epilogue = GemmShape::Epilogue;
  const std::pair<const char *, Epilogue> known[] = {{"none", Epilogue::None},
                                                     {"relu", Epilogue::Relu},
                                                     {"gelu", Epilogue::Gelu},
                                                     {"dgelu", Epilogue::GeluGrad},
                                                     {"drelu", Epilogue::ReluGrad}};
  auto found = std::find_if(std::begin(known), std::end(known), [&](const auto &row) { return name == row.first; });
  if (found == std::end(known))
    return refuseCall("epilogue '" + printable(name) + "'; none, relu, gelu, drelu and dgelu are known");
  shape.epilogue = found->second;
  if (shape.accumulate && shape.epilogue != Epilogue::None)
    return refuseCall("accumulates what an epilogue has changed");
  if (shape.keepsInput && shape.epilogue != Epilogue::Relu && shape.epilogue != Epilogue::Gelu)
    return refuseCall("keeps the input of an epilogue that has none");
  if (shape.keepsMask && (shape.epilogue != Epilogue::Relu || shape.keepsInput))
    return refuseCall("keeps the mask of something other than a ReLU");
  if ((shape.keepsMask || shape.epilogue == Epilogue::ReluGrad) && shape.batchCount() != 1)
    return refuseCall("keeps or reads the mask of a batch");
  if (shape.sumsColumns && !shape.isDerivative())
    return refuseCall("sums the columns of something other than a derivative");
  if ((shape.sumsOperand || shape.sumsLeft) && shape.epilogue != Epilogue::None)
    return refuseCall("sums an operand next to an epilogue");
  if (shape.sumsOperand && shape.sumsLeft)
    return refuseCall("sums both operands");
  return Status::ok();
}

/// D must be covered without holes: with extents sorted by stride, each stride is the product of everything inside it.
bool coversDensely(const GemmShape &shape) {
  std::vector<std::pair<int64_t, int64_t>> dims = {{1, shape.n}, {shape.ldd, shape.m}};
  for (const GemmShape::BatchDim &dim : shape.batch)
    dims.push_back({dim.strideD, dim.extent});
  std::erase_if(dims, [](const auto &dim) { return dim.second == 1; });
  std::sort(dims.begin(), dims.end());
  Checked inside = 1;
  for (const auto &[stride, extent] : dims) {
    if (inside.get() != static_cast<uint64_t>(stride))
      return false;
    inside *= Checked::fromSigned(extent);
  }
  return true;
}

Checked span(const GemmShape &shape, int64_t rows, int64_t columns, int64_t ld, int64_t GemmShape::BatchDim::*stride) {
  Checked last = Checked::fromSigned(rows - 1) * Checked::fromSigned(ld) + Checked::fromSigned(columns);
  for (const GemmShape::BatchDim &dim : shape.batch)
    last += Checked::fromSigned(dim.extent - 1) * Checked::fromSigned(dim.*stride);
  return last;
}

} // namespace

int64_t GemmShape::batchCount() const {
  int64_t count = 1;
  for (const BatchDim &dim : batch)
    count *= dim.extent;
  return count;
}

Expected<GemmShape> readGemm(const plan::Call &call) {
  GemmShape shape;
  CallAttributes attributes(call);
  LOWTIDE_TRY(attributes.dtypes(shape.dtype, shape.resultDtype));
  LOWTIDE_TRY(attributes.integer("m", shape.m, 1, true));
  LOWTIDE_TRY(attributes.integer("n", shape.n, 1, true));
  LOWTIDE_TRY(attributes.integer("k", shape.k, 1, true));
  LOWTIDE_TRY(attributes.flag("transpose_a", shape.transposeA));
  LOWTIDE_TRY(attributes.flag("transpose_b", shape.transposeB));
  LOWTIDE_TRY(attributes.flag("accumulate", shape.accumulate));
  LOWTIDE_TRY(attributes.real("alpha", shape.alpha));
  int64_t rowsA = shape.transposeA ? shape.k : shape.m, columnsA = shape.transposeA ? shape.m : shape.k;
  int64_t rowsB = shape.transposeB ? shape.n : shape.k, columnsB = shape.transposeB ? shape.k : shape.n;
  shape.lda = columnsA, shape.ldb = columnsB, shape.ldc = shape.ldd = shape.n;
  LOWTIDE_TRY(attributes.integer("lda", shape.lda, columnsA, false));
  LOWTIDE_TRY(attributes.integer("ldb", shape.ldb, columnsB, false));
  LOWTIDE_TRY(attributes.integer("ldc", shape.ldc, shape.n, false));
  // The result may be interleaved with the batch (heads inside a row), so its rows may also be nearer than n.
  LOWTIDE_TRY(attributes.integer("ldd", shape.ldd, 1, false));
  LOWTIDE_TRY(readBatch(attributes, shape));

  std::string addend = "full", epilogue = "none";
  LOWTIDE_TRY(attributes.text("addend", addend));
  LOWTIDE_TRY(attributes.text("epilogue", epilogue));
  LOWTIDE_TRY(attributes.flag("keeps_input", shape.keepsInput));
  LOWTIDE_TRY(attributes.flag("keeps_mask", shape.keepsMask));
  LOWTIDE_TRY(attributes.flag("sums_columns", shape.sumsColumns));
  LOWTIDE_TRY(attributes.flag("sums_a", shape.sumsLeft));
  LOWTIDE_TRY(attributes.flag("sums_b", shape.sumsOperand));
  LOWTIDE_TRY(readEpilogue(epilogue, shape));
  bool third = call.reads_size() > (shape.isDerivative() ? 3 : 2) || shape.accumulate;
  if (addend == "full")
    shape.addend = third ? GemmShape::Addend::Full : GemmShape::Addend::None;
  else if (addend == "row")
    shape.addend = GemmShape::Addend::Row;
  else if (addend == "column")
    shape.addend = GemmShape::Addend::Column;
  else if (addend != "none")
    return refuseCall("addend '" + printable(addend) + "'; none, full, row and column are known");
  if (shape.accumulate) {
    if (shape.addend != GemmShape::Addend::Full)
      return refuseCall("accumulates, but its addend is not 'full'");
    shape.ldc = shape.ldd;
    for (GemmShape::BatchDim &dim : shape.batch)
      dim.strideC = dim.strideD;
  }
  LOWTIDE_TRY(attributes.allUsed());

  Checked count = 1;
  for (const GemmShape::BatchDim &dim : shape.batch)
    count *= Checked::fromSigned(dim.extent);
  Checked work = count * Checked::fromSigned(shape.m) * Checked::fromSigned(shape.n) * Checked::fromSigned(shape.k);
  Checked spans[4] = {span(shape, rowsA, columnsA, shape.lda, &GemmShape::BatchDim::strideA),
                      span(shape, rowsB, columnsB, shape.ldb, &GemmShape::BatchDim::strideB),
                      span(shape, shape.m, shape.n, shape.ldc, &GemmShape::BatchDim::strideC),
                      span(shape, shape.m, shape.n, shape.ldd, &GemmShape::BatchDim::strideD)};
  if (shape.addend == GemmShape::Addend::Row || shape.addend == GemmShape::Addend::Column)
    spans[2] = shape.addend == GemmShape::Addend::Row ? shape.n : shape.m;
  if (!work.get() || !std::all_of(spans, spans + 4, [](Checked s) { return s.atMost(maxCount); }))
    return refuseCall("its operands are too large to count");
  shape.spanA = *spans[0].get(), shape.spanB = *spans[1].get();
  shape.spanC = *spans[2].get(), shape.spanD = *spans[3].get();
  if (!coversDensely(shape))
    return refuseCall("the strides of its result overlap or leave holes");
  return shape;
}

} // namespace lowtide::rt

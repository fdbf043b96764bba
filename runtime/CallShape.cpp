//===- CallShape.cpp - the attributes of library calls, read and checked ---===//

#include "runtime/CallShape.h"

#include "runtime/CheckedMath.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace lowtide::rt {
namespace {

Status refuse(std::string message) { return {StatusCode::VerifyFailed, std::move(message)}; }

/// Larger counts are refused everywhere, so that sums and products of a few of them cannot wrap afterwards.
constexpr int64_t maxCount = int64_t(1) << 40;

/// The attributes of a call by name; remembers which were asked for, so that unknown ones can be refused.
class Attributes {
public:
  explicit Attributes(const plan::Call &call) : call_(call), used_(static_cast<size_t>(call.attributes_size())) {}

  bool has(const char *name) const {
    return std::any_of(call_.attributes().begin(), call_.attributes().end(),
                       [&](const plan::Attribute &attribute) { return attribute.name() == name; });
  }
  Status integer(const char *name, int64_t &value, int64_t low, bool required) {
    const plan::Attribute *attribute = find(name);
    if (!attribute)
      return required ? refuse(std::string("attribute '") + name + "' is missing") : Status::ok();
    if (attribute->value_case() != plan::Attribute::kI || attribute->i() < low || attribute->i() > maxCount)
      return refuse(std::string("attribute '") + name + "' is not an integer from " + std::to_string(low) + " to 2^40");
    value = attribute->i();
    return Status::ok();
  }
  Status flag(const char *name, bool &value) {
    int64_t number = value;
    LOWTIDE_TRY(integer(name, number, 0, false));
    if (number > 1)
      return refuse(std::string("attribute '") + name + "' is neither 0 nor 1");
    value = number != 0;
    return Status::ok();
  }
  Status real(const char *name, double &value) {
    const plan::Attribute *attribute = find(name);
    if (!attribute)
      return Status::ok();
    if (attribute->value_case() != plan::Attribute::kF || !std::isfinite(attribute->f()))
      return refuse(std::string("attribute '") + name + "' is not a finite number");
    value = attribute->f();
    return Status::ok();
  }
  Status text(const char *name, std::string &value) {
    const plan::Attribute *attribute = find(name);
    if (!attribute)
      return Status::ok();
    if (attribute->value_case() != plan::Attribute::kS)
      return refuse(std::string("attribute '") + name + "' is not a string");
    value = attribute->s();
    return Status::ok();
  }
  Status list(const char *name, std::vector<int64_t> &values, int64_t low, bool required) {
    const plan::Attribute *attribute = find(name);
    if (!attribute)
      return required ? refuse(std::string("attribute '") + name + "' is missing") : Status::ok();
    if (attribute->value_case() != plan::Attribute::kInts || attribute->ints().values_size() > 16)
      return refuse(std::string("attribute '") + name + "' is not a list of at most 16 integers");
    values.assign(attribute->ints().values().begin(), attribute->ints().values().end());
    for (int64_t value : values)
      if (value < low || value > maxCount)
        return refuse(std::string("attribute '") + name + "' holds a number outside " + std::to_string(low) +
                      " to 2^40");
    return Status::ok();
  }
  Status dtypes(plan::DType &operands, plan::DType &result) {
    std::string name = "f32";
    LOWTIDE_TRY(text("dtype", name));
    if (!parse(name, operands))
      return refuse("dtype '" + printable(name) + "'; f32, f64, f16 and bf16 are offered");
    std::string resultName = name;
    LOWTIDE_TRY(text("result_dtype", resultName));
    if (!parse(resultName, result) || (result != operands && !(isNarrow(operands) && result == plan::F32)))
      return refuse("result_dtype '" + printable(resultName) + "' for operands of " + name +
                    "; it is theirs, or f32 for 16-bit operands");
    return Status::ok();
  }
  Status allUsed() const {
    for (size_t i = 0; i < used_.size(); ++i)
      if (!used_[i])
        return refuse("attribute '" + printable(call_.attributes(static_cast<int>(i)).name()) +
                      "' is unknown or given twice");
    return Status::ok();
  }

private:
  static bool parse(const std::string &name, plan::DType &value) {
    const std::pair<const char *, plan::DType> known[] = {
        {"f32", plan::F32}, {"f64", plan::F64}, {"f16", plan::F16}, {"bf16", plan::BF16}};
    for (const auto &[text, dtype] : known)
      if (name == text) {
        value = dtype;
        return true;
      }
    return false;
  }
  const plan::Attribute *find(const char *name) {
    for (int i = 0; i < call_.attributes_size(); ++i)
      if (call_.attributes(i).name() == name) {
        used_[static_cast<size_t>(i)] = true;
        return &call_.attributes(i);
      }
    return nullptr;
  }

  const plan::Call &call_;
  std::vector<bool> used_;
};

Status readBatch(Attributes &attributes, GemmShape &shape) {
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
      return refuse(std::string("attribute '") + lists[i] + "' does not match 'batch_dims'");
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
    return refuse("epilogue '" + printable(name) + "'; none, relu, gelu, drelu and dgelu are known");
  shape.epilogue = found->second;
  if (shape.accumulate && shape.epilogue != Epilogue::None)
    return refuse("accumulates what an epilogue has changed");
  if (shape.keepsInput && shape.epilogue != Epilogue::Relu && shape.epilogue != Epilogue::Gelu)
    return refuse("keeps the input of an epilogue that has none");
  if (shape.keepsMask && (shape.epilogue != Epilogue::Relu || shape.keepsInput))
    return refuse("keeps the mask of something other than a ReLU");
  if ((shape.keepsMask || shape.epilogue == Epilogue::ReluGrad) && shape.batchCount() != 1)
    return refuse("keeps or reads the mask of a batch");
  if (shape.sumsColumns && !shape.isDerivative())
    return refuse("sums the columns of something other than a derivative");
  if ((shape.sumsOperand || shape.sumsLeft) && shape.epilogue != Epilogue::None)
    return refuse("sums an operand beside an epilogue");
  if (shape.sumsOperand && shape.sumsLeft)
    return refuse("sums both operands");
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
  Attributes attributes(call);
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
    return refuse("addend '" + printable(addend) + "'; none, full, row and column are known");
  if (shape.accumulate) {
    if (shape.addend != GemmShape::Addend::Full)
      return refuse("accumulates, but its addend is not 'full'");
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
    return refuse("its operands are too large to count");
  shape.spanA = *spans[0].get(), shape.spanB = *spans[1].get();
  shape.spanC = *spans[2].get(), shape.spanD = *spans[3].get();
  if (!coversDensely(shape))
    return refuse("the strides of its result overlap or leave holes");
  return shape;
}

int overwritableRead(const plan::Call &call) {
  if (call.callee() != "gemm")
    return -1;
  Expected<GemmShape> shape = readGemm(call);
  if (!shape || shape->addend != GemmShape::Addend::Full || shape->ldc != shape->ldd)
    return -1;
  // In place, element by element, is right only when both sides are laid out alike.
  for (const GemmShape::BatchDim &dim : shape->batch)
    if (dim.extent != 1 && dim.strideC != dim.strideD)
      return -1;
  return 2;
}

Expected<ConvShape> readConv(const plan::Call &call) {
  ConvShape shape;
  if (call.callee() == "conv")
    shape.kind = ConvShape::Kind::Forward;
  else if (call.callee() == "conv_input_grad")
    shape.kind = ConvShape::Kind::InputGrad;
  else if (call.callee() == "conv_filter_grad")
    shape.kind = ConvShape::Kind::FilterGrad;
  else
    return refuse("no library has a call '" + printable(call.callee()) +
                  "'; there are gemm, conv, conv_input_grad, conv_filter_grad, attention, attention_grad");
  Attributes attributes(call);
  std::vector<int64_t> input, filter, output, strides, padsBegin, padsEnd, dilations;
  LOWTIDE_TRY(attributes.dtypes(shape.dtype, shape.resultDtype));
  LOWTIDE_TRY(attributes.list("input", input, 1, true));
  LOWTIDE_TRY(attributes.list("filter", filter, 1, true));
  LOWTIDE_TRY(attributes.list("output", output, 1, true));
  LOWTIDE_TRY(attributes.list("strides", strides, 1, false));
  LOWTIDE_TRY(attributes.list("pads_begin", padsBegin, 0, false));
  LOWTIDE_TRY(attributes.list("pads_end", padsEnd, 0, false));
  LOWTIDE_TRY(attributes.list("dilations", dilations, 1, false));
  LOWTIDE_TRY(attributes.integer("groups", shape.groups, 1, false));
  LOWTIDE_TRY(attributes.flag("channels_last", shape.channelsLast));
  LOWTIDE_TRY(attributes.allUsed());

  size_t rank = input.size();
  if (rank < 3 || rank > 5 || filter.size() != rank || output.size() != rank)
    return refuse("input, filter and output are not of one rank from 3 to 5");
  size_t spatial = rank - 2;
  auto complete = [&](std::vector<int64_t> &list, int64_t value) {
    if (list.empty())
      list.assign(spatial, value);
    return list.size() == spatial;
  };
  if (!complete(strides, 1) || !complete(padsBegin, 0) || !complete(padsEnd, 0) || !complete(dilations, 1))
    return refuse("strides, pads or dilations do not match the number of spatial dimensions");
  shape.batch = input[0];
  shape.channels = filter[1];
  shape.outChannels = filter[0] / shape.groups;
  Checked groupedChannels = Checked::fromSigned(filter[1]) * Checked::fromSigned(shape.groups);
  if (output[0] != input[0] || filter[0] % shape.groups || output[1] != filter[0] ||
      groupedChannels.get() != static_cast<uint64_t>(input[1]))
    return refuse("batch, channels and groups of input, filter and output do not agree");
  for (size_t d = 0; d < spatial; ++d) {
    size_t to = ConvShape::spatial - spatial + d;
    shape.input[to] = input[2 + d], shape.filter[to] = filter[2 + d], shape.output[to] = output[2 + d];
    shape.stride[to] = strides[d], shape.padBegin[to] = padsBegin[d], shape.dilation[to] = dilations[d];
    // All numbers are at most 2^40, only the product needs care.
    Checked reach = Checked::fromSigned(dilations[d]) * Checked::fromSigned(filter[2 + d] - 1);
    int64_t padded = input[2 + d] + padsBegin[d] + padsEnd[d] - 1;
    if (!reach.atMost(static_cast<uint64_t>(padded)) ||
        (padded - static_cast<int64_t>(*reach.get())) / strides[d] + 1 != output[2 + d])
      return refuse("output size " + std::to_string(output[2 + d]) + " does not follow from input " +
                    std::to_string(input[2 + d]) + ", filter " + std::to_string(filter[2 + d]) +
                    ", stride, pads and dilation");
  }
  Checked counts[3] = {1, 1, 1};
  for (size_t d = 0; d < rank; ++d) {
    counts[0] *= Checked::fromSigned(input[d]);
    counts[1] *= Checked::fromSigned(filter[d]);
    counts[2] *= Checked::fromSigned(output[d]);
  }
  if (!std::all_of(counts, counts + 3, [](Checked c) { return c.atMost(maxCount); }))
    return refuse("its operands are too large to count");
  return shape;
}

bool isAttention(const plan::Call &call) { return call.callee() == "attention" || call.callee() == "attention_grad"; }

Expected<AttentionShape> readAttention(const plan::Call &call) {
  if (!isAttention(call))
    return refuse("'" + printable(call.callee()) + "' is no attention");
  AttentionShape shape;
  shape.isGradient = call.callee() == "attention_grad";
  Attributes attributes(call);
  std::vector<int64_t> mask;
  std::string maskDtype;
  LOWTIDE_TRY(attributes.dtypes(shape.dtype, shape.maskDtype));
  if (shape.maskDtype != shape.dtype)
    return refuse("attribute 'result_dtype': results of attention have the operands' type");
  for (auto [name, value] : {std::pair("batch", &shape.batch),
                             {"heads", &shape.heads},
                             {"key_heads", &shape.keyHeads},
                             {"rows", &shape.rows},
                             {"columns", &shape.columns},
                             {"depth", &shape.depth},
                             {"value_depth", &shape.valueDepth}})
    LOWTIDE_TRY(attributes.integer(name, *value, 1, true));
  LOWTIDE_TRY(attributes.real("scale", shape.scale));
  LOWTIDE_TRY(attributes.flag("causal", shape.isCausal));
  LOWTIDE_TRY(attributes.list("mask", mask, 1, false));
  LOWTIDE_TRY(attributes.text("mask_dtype", maskDtype));
  const char *layouts[] = {"q_layout",      "k_layout",      "v_layout",      "o_layout",
                           "grad_o_layout", "grad_q_layout", "grad_k_layout", "grad_v_layout"};
  std::vector<int64_t> places[AttentionShape::numTensors];
  for (int i = 0; i < (shape.isGradient ? AttentionShape::numTensors : AttentionShape::GradO); ++i)
    LOWTIDE_TRY(attributes.list(layouts[i], places[i], 0, false));
  if (shape.isGradient)
    LOWTIDE_TRY(attributes.flag("one_result", shape.sharesResult));
  LOWTIDE_TRY(attributes.allUsed());
  if (shape.heads % shape.keyHeads)
    return refuse("its heads are no multiple of its key heads");
  if (!maskDtype.empty() && maskDtype != "f32")
    return refuse("mask_dtype '" + printable(maskDtype) + "'; it is f32, or the operands' type where it is not stated");
  if (!maskDtype.empty())
    shape.maskDtype = plan::F32;
  const int64_t scores[] = {shape.batch, shape.heads, shape.rows, shape.columns};
  shape.hasMask = !mask.empty();
  if (shape.hasMask && mask.size() != 4)
    return refuse("attribute 'mask' has not four dimensions");
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] != 1 && mask[i] != scores[i])
      return refuse("dimension " + std::to_string(i) + " of its mask is neither 1 nor as in the scores");
    shape.mask[i] = mask[i];
  }
  Checked heads = Checked::fromSigned(shape.batch) * Checked::fromSigned(shape.heads);
  Checked sizes[] = {heads * Checked::fromSigned(shape.rows) * Checked::fromSigned(shape.columns),
                     heads * Checked::fromSigned(shape.rows) * Checked::fromSigned(shape.depth),
                     heads * Checked::fromSigned(shape.rows) * Checked::fromSigned(shape.valueDepth),
                     heads * Checked::fromSigned(shape.columns) * Checked::fromSigned(shape.depth),
                     heads * Checked::fromSigned(shape.columns) * Checked::fromSigned(shape.valueDepth)};
  if (!std::all_of(std::begin(sizes), std::end(sizes), [](Checked size) { return size.atMost(maxCount); }))
    return refuse("its operands are too large to count");
  for (int i = 0; i < AttentionShape::numTensors; ++i) {
    auto tensor = static_cast<AttentionShape::Tensor>(i);
    if (places[i].empty()) {
      shape.pack(tensor);
      continue;
    }
    if (places[i].size() != 5)
      return refuse(std::string("attribute '") + layouts[i] + "' is not an offset and four distances");
    shape.layouts[i].isStated = true;
    shape.layouts[i].offset = places[i][0];
    std::copy(places[i].begin() + 1, places[i].end(), shape.layouts[i].strides.begin());
    const std::array<int64_t, 4> dims = shape.dims(tensor);
    Checked span = Checked::fromSigned(places[i][0]) + 1;
    for (size_t d = 0; d < 4; ++d)
      span += Checked::fromSigned(dims[d] - 1) * Checked::fromSigned(places[i][d + 1]);
    if (!span.atMost(maxCount))
      return refuse("its operands are too large to count");
  }
  if (!shape.fillsResults())
    return refuse("the layouts of its results leave gaps or overlap");
  return shape;
}

} // namespace lowtide::rt

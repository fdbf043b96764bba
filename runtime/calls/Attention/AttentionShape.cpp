//===- AttentionShape.cpp - attention and its derivative, read ------------===//

#include "runtime/calls/Attention/AttentionShape.h"

#include "runtime/CheckedMath.h"

#include <algorithm>
#include <string>

namespace lowtide::rt {

bool isAttention(const plan::Call &call) { return call.callee() == "attention" || call.callee() == "attention_grad"; }

Expected<AttentionShape> readAttention(const plan::Call &call) {
  if (!isAttention(call))
    return refuseCall("'" + printable(call.callee()) + "' is no attention");
  AttentionShape shape;
  shape.isGradient = call.callee() == "attention_grad";
  CallAttributes attributes(call);
  std::vector<int64_t> mask;
  std::string maskDtype;
  LOWTIDE_TRY(attributes.dtypes(shape.dtype, shape.maskDtype));
  if (shape.maskDtype != shape.dtype)
    return refuseCall("attribute 'result_dtype': results of attention have the operands' type");
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
    return refuseCall("its heads are no multiple of its key heads");
  if (!maskDtype.empty() && maskDtype != "f32")
    return refuseCall("mask_dtype '" + printable(maskDtype) +
                      "'; it is f32, or the operands' type where it is not stated");
  if (!maskDtype.empty())
    shape.maskDtype = plan::F32;
  const int64_t scores[] = {shape.batch, shape.heads, shape.rows, shape.columns};
  shape.hasMask = !mask.empty();
  if (shape.hasMask && mask.size() != 4)
    return refuseCall("attribute 'mask' has not four dimensions");
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] != 1 && mask[i] != scores[i])
      return refuseCall("dimension " + std::to_string(i) + " of its mask is neither 1 nor as in the scores");
    shape.mask[i] = mask[i];
  }
  Checked heads = Checked::fromSigned(shape.batch) * Checked::fromSigned(shape.heads);
  Checked sizes[] = {heads * Checked::fromSigned(shape.rows) * Checked::fromSigned(shape.columns),
                     heads * Checked::fromSigned(shape.rows) * Checked::fromSigned(shape.depth),
                     heads * Checked::fromSigned(shape.rows) * Checked::fromSigned(shape.valueDepth),
                     heads * Checked::fromSigned(shape.columns) * Checked::fromSigned(shape.depth),
                     heads * Checked::fromSigned(shape.columns) * Checked::fromSigned(shape.valueDepth)};
  if (!std::all_of(std::begin(sizes), std::end(sizes), [](Checked size) { return size.atMost(maxCount); }))
    return refuseCall("its operands are too large to count");
  for (int i = 0; i < AttentionShape::numTensors; ++i) {
    auto tensor = static_cast<AttentionShape::Tensor>(i);
    if (places[i].empty()) {
      shape.pack(tensor);
      continue;
    }
    if (places[i].size() != 5)
      return refuseCall(std::string("attribute '") + layouts[i] + "' is not an offset and four distances");
    shape.layouts[i].isStated = true;
    shape.layouts[i].offset = places[i][0];
    std::copy(places[i].begin() + 1, places[i].end(), shape.layouts[i].strides.begin());
    const std::array<int64_t, 4> dims = shape.dims(tensor);
    Checked span = Checked::fromSigned(places[i][0]) + 1;
    for (size_t d = 0; d < 4; ++d)
      span += Checked::fromSigned(dims[d] - 1) * Checked::fromSigned(places[i][d + 1]);
    if (!span.atMost(maxCount))
      return refuseCall("its operands are too large to count");
  }
  if (!shape.fillsResults())
    return refuseCall("the layouts of its results leave gaps or overlap");
  return shape;
}

} // namespace lowtide::rt

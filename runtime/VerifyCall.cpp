//===- VerifyCall.cpp - library calls against the bytes of their operands --===//

#include "runtime/CallShape.h"
#include "runtime/VerifyEntry.h"
#include "runtime/Workspace.h"

namespace lowtide::rt {
namespace {

Status refuse(std::string message) { return {StatusCode::VerifyFailed, std::move(message)}; }

Status checkBytes(const plan::Slice &slice, uint64_t elements, uint64_t elementSize, const char *what, bool exact) {
  uint64_t need = elements * elementSize; // at most 2^43: CallShape
  if (exact ? slice.bytes() != need : slice.bytes() < need)
    return refuse(std::string(what) + " has " + showSize(slice.bytes()) + " bytes, its shape needs " +
                  std::to_string(need));
  if (slice.offset() % elementSize)
    return refuse(std::string(what) + " is not aligned to its elements");
  return Status::ok();
}

Status checkGemm(const plan::Call &call) {
  Expected<GemmShape> shape = readGemm(call);
  if (!shape)
    return shape.takeStatus();
  bool third = shape->addend != GemmShape::Addend::None;
  if (call.reads_size() != shape->reads() || call.writes_size() != shape->writes())
    return refuse("takes " + std::to_string(shape->reads()) + " operands and " + std::to_string(shape->writes()) +
                  (shape->writes() > 1 ? " results; it has " : " result; it has ") + std::to_string(call.reads_size()) +
                  " and " + std::to_string(call.writes_size()));
  uint64_t element = elementBytes(shape->dtype), resultElement = elementBytes(shape->resultDtype);
  LOWTIDE_TRY(checkBytes(call.reads(0), shape->spanA, element, "A", false));
  LOWTIDE_TRY(checkBytes(call.reads(1), shape->spanB, element, "B", false));
  LOWTIDE_TRY(checkBytes(call.writes(0), shape->spanD, resultElement, "D", true));
  if (third) {
    LOWTIDE_TRY(checkBytes(call.reads(2), shape->spanC, resultElement, "the addend", false));
    if (shape->accumulate && !sameRange(call.reads(2), call.writes(0)))
      return refuse("accumulates, but its third operand is not its result");
    if (sameRange(call.reads(2), call.writes(0)) && overwritableRead(call) != 2)
      return refuse("its addend shares the bytes of the result in another layout");
  }
  if (shape->isDerivative()) {
    const plan::Slice &input = call.reads(shape->reads() - 1);
    if (shape->epilogue == GemmShape::Epilogue::ReluGrad)
      LOWTIDE_TRY(checkBytes(input, shape->maskBytes(), 1, "the epilogue's mask", true));
    else
      LOWTIDE_TRY(checkBytes(input, shape->spanD, resultElement, "the epilogue's input", true));
    if (sameRange(input, call.writes(0)))
      return refuse("its epilogue's input shares the bytes of the result");
  }
  if (shape->writes() > 1) {
    const uint64_t elements = shape->keepsMask    ? shape->maskBytes()
                              : shape->keepsInput ? shape->spanD
                                                  : static_cast<uint64_t>(shape->sumsCount());
    LOWTIDE_TRY(checkBytes(call.writes(1), elements, shape->keepsMask ? 1 : resultElement, "the second result", true));
    for (const plan::Slice &read : call.reads())
      if (sameRange(read, call.writes(1)))
        return refuse("an operand shares the bytes of the second result");
  }
  for (int i = 0; i < 2; ++i)
    if (sameRange(call.reads(i), call.writes(0)))
      return refuse("A or B shares the bytes of the result");
  return Status::ok();
}

Status checkConv(const plan::Call &call) {
  Expected<ConvShape> shape = readConv(call);
  if (!shape)
    return shape.takeStatus();
  bool biased = shape->kind == ConvShape::Kind::Forward && call.reads_size() == 3;
  if (call.reads_size() != (biased ? 3 : 2) || call.writes_size() != 1)
    return refuse("takes two operands (conv: and a bias) and one result; it has " + std::to_string(call.reads_size()) +
                  " and " + std::to_string(call.writes_size()));
  uint64_t input = shape->inputElements(), filter = shape->filterElements(), output = shape->outputElements();
  uint64_t first = input, second = filter, result = output;
  if (shape->kind == ConvShape::Kind::InputGrad)
    first = output, second = filter, result = input;
  if (shape->kind == ConvShape::Kind::FilterGrad)
    first = input, second = output, result = filter;
  uint64_t element = elementBytes(shape->dtype), resultElement = elementBytes(shape->resultDtype);
  LOWTIDE_TRY(checkBytes(call.reads(0), first, element, "the first operand", true));
  LOWTIDE_TRY(checkBytes(call.reads(1), second, element, "the second operand", true));
  LOWTIDE_TRY(checkBytes(call.writes(0), result, resultElement, "the result", true));
  if (biased)
    LOWTIDE_TRY(checkBytes(call.reads(2), static_cast<uint64_t>(shape->groups * shape->outChannels), resultElement,
                           "the bias", true));
  for (const plan::Slice &read : call.reads())
    if (sameRange(read, call.writes(0)))
      return refuse("an operand shares the bytes of the result");
  return Status::ok();
}

Status checkAttention(const plan::Call &call) {
  Expected<AttentionShape> shape = readAttention(call);
  if (!shape)
    return shape.takeStatus();
  if (call.reads_size() != shape->reads() || call.writes_size() != shape->writes())
    return refuse("takes " + std::to_string(shape->reads()) + " operands and " + std::to_string(shape->writes()) +
                  " results; it has " + std::to_string(call.reads_size()) + " and " +
                  std::to_string(call.writes_size()));
  const uint64_t element = elementBytes(shape->dtype), sum = elementBytes(plan::F32);
  // Operands may be parts of what is read, results are all that is written.
  auto checkRead = [&](int i, AttentionShape::Tensor tensor, const char *what) -> Status {
    return checkBytes(call.reads(i), shape->span(tensor), element, what, !shape->layouts[tensor].isStated);
  };
  using enum AttentionShape::Tensor;
  LOWTIDE_TRY(checkRead(0, Q, "q"));
  LOWTIDE_TRY(checkRead(1, K, "k"));
  LOWTIDE_TRY(checkRead(2, V, "v"));
  LOWTIDE_TRY(checkBytes(shape->isGradient ? call.reads(4) : call.writes(1), shape->rowCount(), sum, "lse", true));
  if (!shape->isGradient) {
    LOWTIDE_TRY(checkBytes(call.writes(0), shape->elements(O), element, "o", true));
  } else {
    LOWTIDE_TRY(checkRead(3, O, "o"));
    LOWTIDE_TRY(checkRead(5, GradO, "the cotangent of o"));
    const uint64_t parts[] = {shape->elements(GradQ), shape->elements(GradK), shape->elements(GradV)};
    for (int i = 0; i < call.writes_size(); ++i)
      LOWTIDE_TRY(checkBytes(call.writes(i), shape->sharesResult ? parts[0] + parts[1] + parts[2] : parts[i], element,
                             "a cotangent", true));
  }
  if (shape->hasMask)
    LOWTIDE_TRY(checkBytes(call.reads(shape->reads() - 1), shape->maskElements(), elementBytes(shape->maskDtype),
                           "the mask", true));
  for (const plan::Slice &write : call.writes())
    for (const plan::Slice &read : call.reads())
      if (sameRange(read, write))
        return refuse("an operand shares the bytes of a result");
  return Status::ok();
}

} // namespace

Status checkCall(const plan::Call &call, std::string_view target) {
  LOWTIDE_TRY(call.callee() == "gemm" ? checkGemm(call) : isAttention(call) ? checkAttention(call) : checkConv(call));
  // Libraries of a GPU choose an algorithm within what they get.
  if (isGpu(target))
    return Status::ok();
  Expected<uint64_t> workspace = queryWorkspace(call);
  if (!workspace)
    return workspace.takeStatus();
  if (call.workspace().bytes() < *workspace)
    return refuse("workspace of " + showSize(call.workspace().bytes()) + " bytes; it needs " +
                  std::to_string(*workspace));
  return Status::ok();
}

} // namespace lowtide::rt

//===- ScalarElements.cpp - constants as numbers and back -------*- C++ -*-===//
//
// What the register machine reads and writes.
//
//===----------------------------------------------------------------------===//

#include "ScalarProgram.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

static ScalarRegister realRegister(double value) {
  ScalarRegister result;
  result.real = value;
  return result;
}
static ScalarRegister integerRegister(int64_t value) {
  ScalarRegister result;
  result.integer = value;
  return result;
}

template <typename Range, typename Convert>
static void append(std::vector<ScalarRegister> &to, Range range, Convert convert) {
  for (auto element : range)
    to.push_back(convert(element));
}

std::vector<ScalarRegister> nn::decodeElements(DenseElementsAttr values) {
  if (values.isSplat())
    values = values.resizeSplat(RankedTensorType::get({}, values.getElementType()));
  std::vector<ScalarRegister> result;
  result.reserve(values.getNumElements());
  Type element = values.getElementType();
  if (element.isF32())
    append(result, values.getValues<float>(), realRegister);
  else if (element.isF64())
    append(result, values.getValues<double>(), realRegister);
  else if (isa<FloatType>(element))
    append(result, values.getValues<APFloat>(), [](APFloat value) {
      bool lost;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
      return realRegister(value.convertToDouble());
    });
  else if (element.isInteger(1))
    append(result, values.getValues<bool>(), [](bool value) { return integerRegister(value); });
  else if (element.isSignlessInteger(64))
    append(result, values.getValues<int64_t>(), integerRegister);
  else
    append(result, values.getValues<APInt>(), [](const APInt &value) { return integerRegister(value.getSExtValue()); });
  return result;
}

DenseElementsAttr nn::encodeElements(RankedTensorType type, ArrayRef<ScalarRegister> values) {
  Type element = type.getElementType();
  auto collect = [&](auto convert) {
    SmallVector<decltype(convert(values.front())), 0> list;
    list.reserve(values.size());
    for (ScalarRegister value : values)
      list.push_back(convert(value));
    return list;
  };
  if (element.isF32())
    return DenseElementsAttr::get(type, ArrayRef(collect([](ScalarRegister r) { return static_cast<float>(r.real); })));
  if (element.isF64())
    return DenseElementsAttr::get(type, ArrayRef(collect([](ScalarRegister r) { return r.real; })));
  if (auto real = dyn_cast<FloatType>(element))
    return DenseElementsAttr::get(type, ArrayRef(collect([&](ScalarRegister r) {
                                    APFloat value(r.real);
                                    bool lost;
                                    value.convert(real.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
                                    return value;
                                  })));
  if (element.isInteger(1))
    return DenseElementsAttr::get(type, ArrayRef(collect([](ScalarRegister r) { return r.integer != 0; })));
  if (element.isSignlessInteger(64))
    return DenseElementsAttr::get(type, ArrayRef(collect([](ScalarRegister r) { return r.integer; })));
  unsigned width = element.getIntOrFloatBitWidth();
  return DenseElementsAttr::get(type, ArrayRef(collect([&](ScalarRegister r) {
                                  return APInt(width, static_cast<uint64_t>(r.integer), /*isSigned=*/true,
                                               /*implicitTrunc=*/true);
                                })));
}

//===- ElementBytes.cpp - elements as files store them --------------------===//

#include "ElementBytes.h"

using namespace mlir;

std::string lowtide::getElementBytes(DenseElementsAttr values) {
  std::string bytes;
  if (values.getElementType().isInteger(1)) {
    for (bool value : values.getValues<bool>())
      bytes.push_back(value ? 1 : 0);
    return bytes;
  }
  // Of equal elements one is stored.
  ArrayRef<char> raw = values.getRawData();
  for (int64_t i = 0, e = values.isSplat() ? values.getNumElements() : 1; i < e; ++i)
    bytes.append(raw.begin(), raw.end());
  return bytes;
}

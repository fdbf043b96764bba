//===- DiagnosticFigures.cpp - numbers of a remark --------------*- C++ -*-===//
//
// MLIR's diagnostics take arguments besides those of their text.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Support/DiagnosticFigures.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace lowtide;

void lowtide::attachFigures(InFlightDiagnostic &diagnostic, ArrayRef<std::pair<StringRef, uint64_t>> figures) {
  Diagnostic *under = diagnostic.getUnderlyingDiagnostic();
  if (!under)
    return;
  Builder b(under->getLocation().getContext());
  NamedAttrList numbers;
  for (auto [name, value] : figures)
    numbers.append(name, b.getI64IntegerAttr(int64_t(value)));
  under->getMetadata().push_back(DiagnosticArgument(Attribute(numbers.getDictionary(b.getContext()))));
}

std::map<std::string, uint64_t> lowtide::readFigures(Diagnostic &diagnostic) {
  std::map<std::string, uint64_t> figures;
  for (DiagnosticArgument &argument : diagnostic.getMetadata())
    if (argument.getKind() == DiagnosticArgument::DiagnosticArgumentKind::Attribute)
      if (auto numbers = dyn_cast<DictionaryAttr>(argument.getAsAttribute()))
        for (NamedAttribute number : numbers)
          if (auto value = dyn_cast<IntegerAttr>(number.getValue()))
            figures[number.getName().str()] = value.getValue().getZExtValue();
  return figures;
}

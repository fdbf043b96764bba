// The train dialect itself.
#ifndef LOWTIDE_TRAIN_DIALECT
#define LOWTIDE_TRAIN_DIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"

def Train_Dialect : Dialect {
  let name = "train";
  let cppNamespace = "::lowtide::train";
  let summary = "the structure of one training step";
  let description = [{
    A step is a `func.func` whose arguments and results carry a binding in the attribute `train.binding`. A parameter or
    state that is both argument and result is updated in place; the result's binding names the argument's.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasRegionArgAttrVerify = 1;
  let hasOperationAttrVerify = 1;
}

#endif

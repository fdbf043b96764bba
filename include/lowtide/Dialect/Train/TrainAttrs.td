// The train dialect's attributes: what an argument or result of a step is bound to, and what a step is compiled for.
#ifndef LOWTIDE_TRAIN_ATTRS
#define LOWTIDE_TRAIN_ATTRS

include "lowtide/Dialect/Train/TargetAttrs.td"
include "lowtide/Dialect/Train/TrainDialect.td"
include "lowtide/Interfaces/BindingInterface.td"

class Train_Binding<string name, string attrMnemonic, string text, dag extra = (ins)>
    : AttrDef<Train_Dialect, name, [DeclareAttrInterfaceMethods<BindingInterface, ["getBindingKind"]>]> {
  let extraClassDefinition = "::lowtide::BindingKind $cppClass::getBindingKind() const { return ::lowtide::BindingKind::" #
                             name # "; }";
  let mnemonic = attrMnemonic;
  let summary = text;
  let parameters = !con((ins "::mlir::StringAttr":$name), extra);
}

def Train_ParamAttr : Train_Binding<"Param", "param", "a trained tensor, by its name in the exporting framework"> {
  let assemblyFormat = "`<` $name `>`";
}
def Train_StateAttr : Train_Binding<"State", "state", "optimizer state or running statistic, kept between steps",
    (ins OptionalParameter<"::mlir::FloatAttr">:$initial, DefaultValuedParameter<"bool", "false">:$fromFile,
     DefaultValuedParameter<"bool", "false">:$pending)> {
  let builders = [AttrBuilder<(ins "::mlir::StringAttr":$name, "::mlir::FloatAttr":$initial, "bool":$fromFile),
    [{ return $_get($_ctxt, name, initial, fromFile, /*pending=*/false); }]>];
  let extraClassDeclaration = [{
    double getInitialValue() const { return getInitial() ? getInitial().getValueAsDouble() : 0.0; }
    bool isFromFile() const { return getFromFile(); }
    bool isPending() const { return getPending(); }
  }];
  let description = [{
    `#train.state<"w.m", initial = 0.1>` starts with every element 0.1 (absent: zero), `#train.state<"n", from_file>` with
    the tensor in the model file. `#train.state<"pending/grad/w", pending>` is what a step leaves for an update that the
    next one makes (`train-defer-updates`): no checkpoint holds it.
  }];
  let hasCustomAssemblyFormat = 1;
}
def Train_ConstantAttr : Train_Binding<"Constant", "constant", "a frozen tensor read from the model file"> {
  let assemblyFormat = "`<` $name `>`";
}
def Train_BatchAttr : Train_Binding<"Batch", "batch", "user data, new in every step",
    (ins DefaultValuedParameter<"int64_t", "0">:$dim)> {
  let extraClassDeclaration = [{ int64_t getBatchDim() const { return getDim(); } }];
  let description = [{`dim` counts samples; -1 when no dimension does, as for a number: `#train.batch<"x", dim = -1>`.}];
  let assemblyFormat = "`<` $name (`,` `dim` `=` $dim^)? `>`";
}
def Train_ScalarAttr : Train_Binding<"Scalar", "scalar", "computed by the runtime before each step: lr, step, seed, row"> {
  let assemblyFormat = "`<` $name `>`";
}
def Train_MetricAttr : Train_Binding<"Metric", "metric", "read by the runtime after each step: loss"> {
  let assemblyFormat = "`<` $name `>`";
}
def Train_OutputAttr : Train_Binding<"Output", "output", "read on request: logits"> {
  let assemblyFormat = "`<` $name `>`";
}
def Train_GradientAttr : AttrDef<Train_Dialect, "Gradient", [DeclareAttrInterfaceMethods<BindingInterface>]> {
  let mnemonic = "gradient";
  let summary = "read on request: the gradient of a parameter";
  let description = [{
    `#train.gradient<"fc.weight">` holds the parameter's name; in artifacts and files the gradient is called
    `grad/fc.weight`.
  }];
  let parameters = (ins "::mlir::StringAttr":$parameter);
  let extraClassDefinition = [{
    ::lowtide::BindingKind $cppClass::getBindingKind() const { return ::lowtide::BindingKind::Gradient; }
    ::mlir::StringAttr $cppClass::getName() const {
      return ::mlir::StringAttr::get(getContext(), ::lowtide::gradientName(getParameter().getValue()));
    }
  }];
  let assemblyFormat = "`<` $parameter `>`";
}

#endif

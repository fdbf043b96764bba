// What a pass finds nothing to do in says so: the input is of another stage.
// RUN: lowtide compile %S/../EndToEnd/Inputs/two-layers.onnx --dim batch=4 --emit=onnx -q -o %t.onnx.mlir
// RUN: lowtide compile %S/../EndToEnd/Inputs/two-layers.onnx --dim batch=4 --emit=plan -q -o %t.plan.mlir
// RUN: lowtide-opt %t.onnx.mlir --pass-pipeline="builtin.module(func.func(nn-fuse-patterns,nn-decompose),train-rematerialize,plan-place,verify-budget,verify-plan)" -o %t.same.mlir 2>&1 | FileCheck %s
// A remark does not print the whole step that it is about; MLIR's own option does.
// CHECK-NOT: see current operation
// CHECK: remark: {{.*}}nn-fuse-patterns finds nothing to do: @model is a model as it was imported; onnx-legalize makes a step of it
// CHECK: remark: {{.*}}nn-decompose finds nothing to do: @model
// CHECK: remark: {{.*}}train-rematerialize finds nothing to do: @model
// CHECK: remark: {{.*}}plan-place finds nothing to do: the module holds no plan; plan-lower makes one
// CHECK: remark: {{.*}}verify-budget finds nothing to do: the module holds no plan
// CHECK: remark: {{.*}}verify-plan finds nothing to do: the module holds no plan
// RUN: lowtide-opt %t.plan.mlir --train-set-target=target=cuda:sm_90 --train-autocast=precision=mixed-bf16 --train-order --nn-batch-launches --profile-memory -o %t.same.mlir 2>&1 | FileCheck %s --check-prefix=PLAN
// PLAN: remark: {{.*}}train-autocast finds nothing to do: the module holds a plan, and no step
// PLAN: remark: {{.*}}train-order finds nothing to do: the module holds a plan, and no step
// PLAN: remark: {{.*}}nn-batch-launches finds nothing to do: the module holds a plan, and no step
// PLAN: remark: {{.*}}profile-memory finds nothing to do: the module holds a plan, and no step
// RUN: lowtide-opt %t.plan.mlir --profile-memory --mlir-print-op-on-diagnostic -o %t.same.mlir 2>&1 | FileCheck %s --check-prefix=WHOLE
// WHOLE: see current operation
// Passes on functions say so too, though none is run.
// RUN: lowtide-opt %t.plan.mlir --pass-pipeline="builtin.module(func.func(nn-cluster{fuse=true},train-inline-saved),func.func(nn-conv-layout))" -o %t.same.mlir 2>&1 | FileCheck %s --check-prefix=FUNCTIONS
// FUNCTIONS: remark: {{.*}}nn-cluster finds nothing to do: the module holds a plan, and no step
// FUNCTIONS: remark: {{.*}}train-inline-saved finds nothing to do: the module holds a plan, and no step
// FUNCTIONS: remark: {{.*}}nn-conv-layout finds nothing to do: the module holds a plan, and no step
// What is in kernels is out of reach, and before there are kernels nothing is in one.
// RUN: lowtide compile %S/../EndToEnd/Inputs/two-layers.onnx --dim batch=4 --emit=fitted -q -o %t.fitted.mlir
// RUN: lowtide-opt %t.fitted.mlir --pass-pipeline="builtin.module(func.func(nn-split-sums,nn-decompose,nn-library-forms))" -o %t.same.mlir 2>&1 | FileCheck %s --check-prefix=FITTED
// FITTED: remark: {{.*}}nn-split-sums finds nothing to do: @{{eval|train}} is fitted, its operations are in kernels
// FITTED: remark: {{.*}}nn-decompose finds nothing to do: @{{eval|train}} is fitted
// FITTED: remark: {{.*}}nn-library-forms finds nothing to do: @{{eval|train}} is fitted
// RUN: lowtide compile %S/../EndToEnd/Inputs/two-layers.onnx --dim batch=4 --emit=train -q -o %t.train.mlir
// RUN: lowtide-opt %t.train.mlir --pass-pipeline="builtin.module(func.func(train-inline-saved))" -o %t.same.mlir 2>&1 | FileCheck %s --check-prefix=TRAIN
// TRAIN: remark: {{.*}}train-inline-saved finds nothing to do: @{{eval|train}} holds no kernel; nn-cluster forms them
// RUN: lowtide-opt %t.plan.mlir --plan-place --verify-budget --verify-plan -o %t.same.mlir 2>&1 | FileCheck %s --check-prefix=HERE --allow-empty
// HERE-NOT: finds nothing to do

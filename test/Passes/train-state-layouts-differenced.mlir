// State that updates subtract from another stays f32, whatever codec is asked for; other state of the same update does not.
// RUN: lowtide-opt %s --train-optimize="optimizer=rmsprop options=centered group=w:momentum=0.9" --train-state-layouts=moments=int8 2>/dev/null | FileCheck %s
// RUN: lowtide-opt %s --train-optimize="optimizer=rmsprop options=centered group=w:momentum=0.9" --train-state-layouts=moments=bf16 -o /dev/null 2>&1 | FileCheck %s --check-prefix=SAID
// RUN: lowtide-opt %s --train-optimize="optimizer=rmsprop options=centered" --train-state-layouts=moments=int8 -o /dev/null 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: lowtide-opt %s --train-optimize="optimizer=rmsprop" --train-state-layouts=moments=int8 2>/dev/null | FileCheck %s --check-prefix=PLAIN

// CHECK-LABEL: func.func @train(
// CHECK-SAME: tensor<64x80xf32> {train.binding = #train.state<"w.square_avg">, train.stored_as_is}
// CHECK-SAME: tensor<64x80xui8> {train.binding = #train.state<"w.momentum_buffer"
// CHECK-SAME: tensor<64x80xf32> {train.binding = #train.state<"w.grad_avg">, train.stored_as_is}
// SAID: remark: @train: 1 tensors of state in {{.*}}; 2 stay f32: updates subtract one from the other, and rounded numbers may leave less than zero
// NONE: warning: moments in int8: no state is stored so: 2 stay f32: updates subtract one from the other
// PLAIN: tensor<64x80xui8> {train.binding = #train.state<"w.square_avg">}

func.func @gradient(%x: tensor<64x80xf32> {train.binding = #train.batch<"x">}, %w: tensor<64x80xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<64x80xf32> {train.binding = #train.gradient<"w">}) {
  %y = nn.mul %x, %w : tensor<64x80xf32>
  %loss = nn.reduce_sum %y dims = [0, 1] : tensor<64x80xf32> -> tensor<f32>
  return %loss, %x : tensor<f32>, tensor<64x80xf32>
}

// RUN: lowtide-opt %s --train-optimize="optimizer=rmsprop options=centered group=norm:momentum=0.9,centered=0" --verify-step | FileCheck %s --check-prefix=RMSPROP
// RUN: lowtide-opt %s --train-optimize="optimizer=adam group=norm:amsgrad=1" --verify-step | FileCheck %s --check-prefix=AMSGRAD
// RUN: lowtide-opt %s --train-optimize="optimizer=nadam" --verify-step | FileCheck %s --check-prefix=NADAM
// RUN: lowtide-opt %s --train-optimize="optimizer=adafactor" --verify-step | FileCheck %s --check-prefix=ADAFACTOR
// RUN: lowtide-opt %s --train-optimize="optimizer=muon lr=0.02 fallback=adamw:lr=0.001 options=betas=0.9,0.95" --verify-step | FileCheck %s --check-prefix=MUON
// RUN: lowtide-opt %s --train-optimize="optimizer=muon group=hidden:optimizer=sgd;head:optimizer=muon" --verify-step | FileCheck %s --check-prefix=GROUPS

// Slots exist where the options of their parameter have them.
// RMSPROP: train.optimizer = {alpha = {{.*}}, centered = 1.000000e+00 : f64, convention = "torch", eps = {{.*}}, kind = "rmsprop"
// RMSPROP: tensor<7x4xf32> {train.binding = #train.state<"table.square_avg">, train.stored_as_is}, %{{.*}}: tensor<7x4xf32> {train.binding = #train.state<"table.grad_avg">, train.stored_as_is}
// RMSPROP-NOT: "table.momentum_buffer"
// RMSPROP: tensor<4xf32> {train.binding = #train.state<"norm.square_avg">}, %{{.*}}: tensor<4xf32> {train.binding = #train.state<"norm.momentum_buffer">}
// RMSPROP-NOT: "norm.grad_avg"
// AMSGRAD: "norm.exp_avg_sq">}, %{{.*}}: tensor<4xf32> {train.binding = #train.state<"norm.max_exp_avg_sq">}
// AMSGRAD-NOT: "head.max_exp_avg_sq"
// NADAM: tensor<f32> {train.binding = #train.state<"table.mu_product", initial = 1.000000e+00{{.*}}>}, %{{.*}}: tensor<7x4xf32> {train.binding = #train.state<"table.exp_avg">}

// Rows and columns are those of the framework, which has the head as 3 x 5.
// ADAFACTOR: tensor<4x1xf32> {train.binding = #train.state<"hidden.row_var">}, %{{.*}}: tensor<1x5xf32> {train.binding = #train.state<"hidden.col_var">}
// ADAFACTOR: tensor<1x3xf32> {train.binding = #train.state<"head.row_var">}, %{{.*}}: tensor<5x1xf32> {train.binding = #train.state<"head.col_var">}
// ADAFACTOR: tensor<4xf32> {train.binding = #train.state<"norm.variance">}
// ADAFACTOR: train.adafactor {{.*}} permutation = array<i64: 1, 0>

// A table, a head, a norm and a table that is added are no hidden matrices.
// MUON: train.optimizer = {adamw.beta1 = {{.*}}, adamw.beta2 = {{.*}}, adamw.eps = {{.*}}, adamw.lr_scale = 5.000000e-02 : f64, adamw.weight_decay = 1.000000e-02 : f64, adjust_lr_fn = 0.000000e+00 : f64
// MUON-SAME: kind = "muon"
// MUON-DAG: #train.state<"table.exp_avg">
// MUON-DAG: #train.state<"hidden.momentum_buffer">
// MUON-DAG: #train.state<"head.exp_avg">
// MUON-DAG: #train.state<"norm.exp_avg">
// MUON-DAG: #train.state<"added.exp_avg">
// MUON: train.adamw {{.*}}lr_scale = 5.000000e-02{{.*}} : tensor<5x3xf32>
// MUON-NOT: train.muon
// MUON: train.muon {{.*}}lr_scale = 1.000000e+00{{.*}} : tensor<4x5xf32>
// MUON-NOT: train.muon

// GROUPS: train.muon {{.*}}permutation = array<i64: 1, 0>{{.*}} : tensor<5x3xf32>
// GROUPS: train.sgd {{.*}} : tensor<4x5xf32>
// GROUPS-NOT: train.muon

func.func @gradient(%ids: tensor<2xi64> {train.binding = #train.batch<"ids">},
                    %table: tensor<7x4xf32> {train.binding = #train.param<"table">},
                    %hidden: tensor<4x5xf32> {train.binding = #train.param<"hidden">},
                    %head: tensor<5x3xf32> {train.binding = #train.param<"head">, onnx.transposed = array<i64: 1, 0>},
                    %norm: tensor<4xf32> {train.binding = #train.param<"norm">},
                    %added: tensor<2x4xf32> {train.binding = #train.param<"added">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">},
        tensor<7x4xf32> {train.binding = #train.gradient<"table">},
        tensor<4x5xf32> {train.binding = #train.gradient<"hidden">},
        tensor<5x3xf32> {train.binding = #train.gradient<"head">},
        tensor<4xf32> {train.binding = #train.gradient<"norm">},
        tensor<2x4xf32> {train.binding = #train.gradient<"added">}) {
  %rows = nn.gather %table[%ids] axis = 0 : (tensor<7x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  %x = nn.add %rows, %added : tensor<2x4xf32>
  %scale = nn.broadcast %norm dims = [1] : tensor<4xf32> -> tensor<2x4xf32>
  %n = nn.mul %x, %scale : tensor<2x4xf32>
  %h = nn.dot %n, %hidden : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  %y = nn.dot %h, %head : (tensor<2x5xf32>, tensor<5x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %y dims = [0, 1] : tensor<2x3xf32> -> tensor<f32>
  %dy = nn.constant dense<1.0> : tensor<2x3xf32>
  %dhead = nn.dot %h, %dy {transpose_a} : (tensor<2x5xf32>, tensor<2x3xf32>) -> tensor<5x3xf32>
  // The backward product of the head feeds the gradient of the hidden matrix, not the loss.
  %dh = nn.dot %dy, %head {transpose_b} : (tensor<2x3xf32>, tensor<5x3xf32>) -> tensor<2x5xf32>
  %dhidden = nn.dot %n, %dh {transpose_a} : (tensor<2x4xf32>, tensor<2x5xf32>) -> tensor<4x5xf32>
  %dn = nn.dot %dh, %hidden {transpose_b} : (tensor<2x5xf32>, tensor<4x5xf32>) -> tensor<2x4xf32>
  %dnorm = nn.reduce_sum %dn dims = [0] : tensor<2x4xf32> -> tensor<4xf32>
  %dtable = nn.scatter_add [%ids] %dn axis = 0 : (tensor<2xi64>, tensor<2x4xf32>) -> tensor<7x4xf32>
  return %loss, %dtable, %dhidden, %dhead, %dnorm, %dn
      : tensor<f32>, tensor<7x4xf32>, tensor<4x5xf32>, tensor<5x3xf32>, tensor<4xf32>, tensor<2x4xf32>
}

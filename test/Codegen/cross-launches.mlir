// Sums over columns go along with the rows that read the same values, or make them; the sums of blocks of 64 rows are added
// up by a second kernel, which updates the parameter. What somebody reads in between keeps its place.
// RUN: lowtide compile %s --from=fitted --target=cuda:sm_90 --no-weights --emit=plan -q -o - | FileCheck %s
// RUN: lowtide compile %s --from=fitted --target=cuda:sm_90 --no-weights --emit=ptx -q -o - | FileCheck %s --check-prefix=PTX

// CHECK: plan.kernel @[[FIRST:cross_[0-9]+]] reads 3 writes 2 threads 256 {{.*}}"cross: {{.*}}reduce_sum
// CHECK: plan.kernel @[[TOTALS:column_[0-9]+]] reads 2 writes 1
// CHECK: plan.program @train
// CHECK: plan.launch @[[FIRST]] reads [@params[0 + 384] : 1, @io{{.*}}, @io{{.*}}] writes [@transient{{.*}} : [[DX:[0-9]+]], @transient[[SUMS:.*]] + 12288] : [[PARTS:[0-9]+]]]
// CHECK-SAME: extent 32 grain 32
// CHECK: plan.launch @[[TOTALS]] reads [@params[0 + 384] : 1, @transient[[SUMS]] + 12288] : [[PARTS]]] writes [@params[0 + 384]
// CHECK: plan.program @eval
// CHECK-NOT: @cross
// CHECK: module @kernels

// PTX: .visible .entry cross_
// PTX-NOT: .local
// PTX: bar.sync
// PTX: ld.global{{(.nc)?}}.v4
// PTX: st.global.v4

func.func @train(%g: tensor<96xf32> {train.binding = #train.param<"g">},
                 %dy: tensor<2048x96xf32> {train.binding = #train.batch<"dy">},
                 %x: tensor<2048x96xf32> {train.binding = #train.batch<"x">})
    -> (tensor<96xf32> {train.binding = #train.param<"g">}, tensor<2048x96xf32> {train.binding = #train.output<"dx">}) {
  %dx = nn.kernel row (%w = %g, %d = %dy) : (tensor<96xf32>, tensor<2048x96xf32>) -> (tensor<2048x96xf32>) {
    %ww = nn.broadcast %w dims = [1] : tensor<96xf32> -> tensor<2048x96xf32>
    %p = nn.mul %d, %ww : tensor<2048x96xf32>
    %s = nn.reduce_sum %p dims = [1] : tensor<2048x96xf32> -> tensor<2048xf32>
    %sb = nn.broadcast %s dims = [0] : tensor<2048xf32> -> tensor<2048x96xf32>
    %q = nn.sub %p, %sb : tensor<2048x96xf32>
    nn.yield %q : tensor<2048x96xf32>
  }
  %new = nn.kernel column (%w = %g, %d = %dy, %a = %x) : (tensor<96xf32>, tensor<2048x96xf32>, tensor<2048x96xf32>) -> (tensor<96xf32>) {
    %m = nn.mul %d, %a : tensor<2048x96xf32>
    %s = nn.reduce_sum %m dims = [0] : tensor<2048x96xf32> -> tensor<96xf32>
    %n = nn.sub %w, %s : tensor<96xf32>
    nn.yield %n : tensor<96xf32>
  }
  return %new, %dx : tensor<96xf32>, tensor<2048x96xf32>
}

// The update of g cannot move up past the kernel that reads the old one.
func.func @eval(%g: tensor<96xf32> {train.binding = #train.param<"g">},
                %x: tensor<2048x96xf32> {train.binding = #train.batch<"x">})
    -> (tensor<96xf32> {train.binding = #train.param<"g">}, tensor<2048x96xf32> {train.binding = #train.output<"a">},
        tensor<96xf32> {train.binding = #train.output<"b">}) {
  %y = nn.kernel loop (%a = %x) : (tensor<2048x96xf32>) -> (tensor<2048x96xf32>) {
    %q = nn.mul %a, %a : tensor<2048x96xf32>
    nn.yield %q : tensor<2048x96xf32>
  }
  %old = nn.kernel loop (%w = %g) : (tensor<96xf32>) -> (tensor<96xf32>) {
    %e = nn.exp %w : tensor<96xf32>
    nn.yield %e : tensor<96xf32>
  }
  %new = nn.kernel column (%w = %g, %a = %x) : (tensor<96xf32>, tensor<2048x96xf32>) -> (tensor<96xf32>) {
    %s = nn.reduce_sum %a dims = [0] : tensor<2048x96xf32> -> tensor<96xf32>
    %n = nn.sub %w, %s : tensor<96xf32>
    nn.yield %n : tensor<96xf32>
  }
  return %new, %y, %old : tensor<96xf32>, tensor<2048x96xf32>, tensor<96xf32>
}

// RUN: lowtide-execute %s
// Two whole sums of one tensor, a flag and a number, in one traversal: segments by one kernel, their totals by another, with
// rests after whole segments and lanes.

func.func @flag_and_number(%g: tensor<123x345xf32>, %scale: tensor<f32>)
    -> (tensor<i1>, tensor<f32> {test.tolerance = 5.0e-2}) {
  %r:2 = nn.kernel row (%a = %g, %s = %scale) : (tensor<123x345xf32>, tensor<f32>) -> (tensor<i1>, tensor<f32>) {
    %inf = nn.constant dense<0x7F800000> : tensor<123x345xf32>
    %m = nn.abs %a : tensor<123x345xf32>
    %f = nn.compare lt %m, %inf : tensor<123x345xf32> -> tensor<123x345xi1>
    %all = nn.reduce_all %f dims = [0, 1] : tensor<123x345xi1> -> tensor<i1>
    %w = nn.broadcast %s dims = [] : tensor<f32> -> tensor<123x345xf32>
    %u = nn.mul %a, %w : tensor<123x345xf32>
    %q = nn.mul %u, %u : tensor<123x345xf32>
    %n = nn.reduce_sum %q dims = [0, 1] : tensor<123x345xf32> -> tensor<f32>
    nn.yield %all, %n : tensor<i1>, tensor<f32>
  }
  return %r#0, %r#1 : tensor<i1>, tensor<f32>
}
func.func @flag_is_false(%g: tensor<200x200xf32>) -> (tensor<i1>, tensor<f32> {test.tolerance = 5.0e-2}) {
  %r:2 = nn.kernel row (%a = %g) : (tensor<200x200xf32>) -> (tensor<i1>, tensor<f32>) {
    %two = nn.constant dense<0.5> : tensor<200x200xf32>
    %f = nn.compare lt %a, %two : tensor<200x200xf32> -> tensor<200x200xi1>
    %all = nn.reduce_all %f dims = [0, 1] : tensor<200x200xi1> -> tensor<i1>
    %n = nn.reduce_sum %a dims = [0, 1] : tensor<200x200xf32> -> tensor<f32>
    nn.yield %all, %n : tensor<i1>, tensor<f32>
  }
  return %r#0, %r#1 : tensor<i1>, tensor<f32>
}

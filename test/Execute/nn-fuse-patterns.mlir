// RUN: lowtide-opt %s --canonicalize --nn-fuse-patterns --canonicalize | FileCheck %s
// As written and as recognised: both compute PyTorch's values.
// RUN: lowtide-execute %s
// RUN: lowtide-opt %s --canonicalize --nn-fuse-patterns | lowtide-execute

// CHECK-LABEL: @gelu_erf
// CHECK: nn.gelu %arg0
// CHECK-NEXT: return
func.func @gelu_erf(%x: tensor<5xf32> {test.value = dense<[1.5399999618530273, -0.28999999165534973, -2.180000066757202, 0.5699999928474426, -1.0800000429153442]> : tensor<5xf32>})
    -> (tensor<5xf32> {test.value = dense<[1.444858431816101, -0.11191339790821075, -0.031890518963336945, 0.40792685747146606, -0.15127678215503693]> : tensor<5xf32>}) {
  %half = nn.constant dense<0.5> : tensor<5xf32>
  %one = nn.constant dense<1.0> : tensor<5xf32>
  %root = nn.constant dense<1.41421354> : tensor<5xf32>
  %a = nn.div %x, %root : tensor<5xf32>
  %b = nn.erf %a : tensor<5xf32>
  %c = nn.add %b, %one : tensor<5xf32>
  %e = nn.mul %x, %c : tensor<5xf32>
  %y = nn.mul %e, %half : tensor<5xf32>
  return %y : tensor<5xf32>
}

// CHECK-LABEL: @gelu_tanh
// CHECK: nn.gelu_tanh %arg0
// CHECK-NEXT: return
func.func @gelu_tanh(%x: tensor<5xf32> {test.value = dense<[1.5399999618530273, -0.28999999165534973, -2.180000066757202, 0.5699999928474426, -1.0800000429153442]> : tensor<5xf32>})
    -> (tensor<5xf32> {test.value = dense<[1.4446519613265991, -0.11191554367542267, -0.03164025768637657, 0.4078993499279022, -0.15145671367645264]> : tensor<5xf32>}) {
  %half = nn.constant dense<0.5> : tensor<5xf32>
  %one = nn.constant dense<1.0> : tensor<5xf32>
  %three = nn.constant dense<3.0> : tensor<5xf32>
  %c = nn.constant dense<4.471500e-02> : tensor<5xf32>
  %root = nn.constant dense<0.797884583> : tensor<5xf32>
  %h = nn.mul %x, %half : tensor<5xf32>
  %p = nn.pow %x, %three : tensor<5xf32>
  %q = nn.mul %p, %c : tensor<5xf32>
  %s = nn.add %x, %q : tensor<5xf32>
  %t = nn.mul %s, %root : tensor<5xf32>
  %u = nn.tanh %t : tensor<5xf32>
  %v = nn.add %one, %u : tensor<5xf32>
  %y = nn.mul %h, %v : tensor<5xf32>
  return %y : tensor<5xf32>
}

// CHECK-LABEL: @silu
// CHECK: nn.silu %arg0
// CHECK-NEXT: return
func.func @silu(%x: tensor<5xf32> {test.value = dense<[1.5399999618530273, -0.28999999165534973, -2.180000066757202, 0.5699999928474426, -1.0800000429153442]> : tensor<5xf32>})
    -> (tensor<5xf32> {test.value = dense<[1.268135666847229, -0.12412112206220627, -0.2214028239250183, 0.36409497261047363, -0.2737864851951599]> : tensor<5xf32>}) {
  %s = nn.sigmoid %x : tensor<5xf32>
  %y = nn.mul %s, %x : tensor<5xf32>
  return %y : tensor<5xf32>
}

// CHECK-LABEL: @rms_norm
// CHECK: %[[Y:.*]], %{{.*}} = nn.rms_norm %arg0, %arg1 axis = 2 epsilon = {{0.0099999.*|1.0+e-02}} :
// CHECK-NEXT: return %[[Y]]
func.func @rms_norm(%x: tensor<2x3x4xf32> {test.value = dense<[[[-0.09000000357627869, 0.5199999809265137, -0.6700000166893005, 0.8500000238418579], [-1.350000023841858, -1.7000000476837158, 0.5699999928474426, 0.7900000214576721], [0.4399999976158142, 0.10999999940395355, 0.6399999856948853, 0.4399999976158142]], [[-0.2199999988079071, -0.7400000095367432, 0.5600000023841858, 0.25999999046325684], [0.5199999809265137, 2.299999952316284, -1.4700000286102295, -1.590000033378601], [1.2000000476837158, 0.07999999821186066, -1.2000000476837158, -0.0]]]> : tensor<2x3x4xf32>},
    %w: tensor<4xf32> {test.value = dense<[-1.399999976158142, -1.2899999618530273, -0.7900000214576721, -0.019999999552965164]> : tensor<4xf32>})
    -> (tensor<2x3x4xf32> {test.value = dense<[[[0.2064533829689026, -1.0991183519363403, 0.8672680854797363, -0.02785482071340084], [1.5830594301223755, 1.8368513584136963, -0.3771701753139496, -0.013234041631221771], [-1.337157130241394, -0.30802369117736816, -1.097510814666748, -0.019102243706583977]], [[0.6107698082923889, 1.8929897546768188, -0.8772875666618347, -0.010311697609722614], [-0.45390641689300537, -1.8499181270599365, 0.7240681052207947, 0.019827231764793396], [-1.9641399383544922, -0.12065429985523224, 1.108336091041565, 0.0]]]> : tensor<2x3x4xf32>}) {
  %fourth = nn.constant dense<0.25> : tensor<2x3x1xf32>
  %eps = nn.constant dense<0.01> : tensor<2x3x1xf32>
  %sq = nn.mul %x, %x : tensor<2x3x4xf32>
  %sum = nn.reduce_sum %sq dims = [2] : tensor<2x3x4xf32> -> tensor<2x3xf32>
  %kept = nn.reshape %sum : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %ms = nn.mul %kept, %fourth : tensor<2x3x1xf32>
  %me = nn.add %ms, %eps : tensor<2x3x1xf32>
  %root = nn.sqrt %me : tensor<2x3x1xf32>
  %r = nn.reciprocal %root : tensor<2x3x1xf32>
  %rs = nn.broadcast %r dims = [0, 1, 2] : tensor<2x3x1xf32> -> tensor<2x3x4xf32>
  %n = nn.mul %x, %rs : tensor<2x3x4xf32>
  %ws = nn.broadcast %w dims = [2] : tensor<4xf32> -> tensor<2x3x4xf32>
  %y = nn.mul %ws, %n : tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// CHECK-LABEL: @layer_norm
// CHECK: %[[Y:.*]], %{{.*}}, %{{.*}} = nn.layer_norm %arg0, %arg1, %arg2 axis = 2 epsilon =
// CHECK-NEXT: return %[[Y]]
func.func @layer_norm(%x: tensor<2x3x4xf32> {test.value = dense<[[[-0.09000000357627869, 0.5199999809265137, -0.6700000166893005, 0.8500000238418579], [-1.350000023841858, -1.7000000476837158, 0.5699999928474426, 0.7900000214576721], [0.4399999976158142, 0.10999999940395355, 0.6399999856948853, 0.4399999976158142]], [[-0.2199999988079071, -0.7400000095367432, 0.5600000023841858, 0.25999999046325684], [0.5199999809265137, 2.299999952316284, -1.4700000286102295, -1.590000033378601], [1.2000000476837158, 0.07999999821186066, -1.2000000476837158, -0.0]]]> : tensor<2x3x4xf32>},
    %w: tensor<4xf32> {test.value = dense<[-1.399999976158142, -1.2899999618530273, -0.7900000214576721, -0.019999999552965164]> : tensor<4xf32>},
    %b: tensor<4xf32> {test.value = dense<[-0.7200000286102295, 0.5199999809265137, -1.309999942779541, 0.1899999976158142]> : tensor<4xf32>})
    -> (tensor<2x3x4xf32> {test.value = dense<[[[-0.14549869298934937, -0.2822287380695343, -0.21045179665088654, 0.16639383137226105], [0.44287094473838806, 1.9958430528640747, -2.0121779441833496, 0.16828292608261108], [-0.9317567944526672, 2.306087017059326, -2.164822578430176, 0.18697489798069]], [[-0.205156609416008, 2.3278160095214844, -2.244371175765991, 0.17827190458774567], [-1.2266349792480469, -1.3795065879821777, -0.6149991750717163, 0.2090923935174942], [-2.65193247795105, 0.429484486579895, -0.18288347125053406, 0.19046777486801147]]]> : tensor<2x3x4xf32>}) {
  %fourth = nn.constant dense<0.25> : tensor<2x3x1xf32>
  %eps = nn.constant dense<0.01> : tensor<2x3x1xf32>
  %sum = nn.reduce_sum %x dims = [2] : tensor<2x3x4xf32> -> tensor<2x3xf32>
  %kept = nn.reshape %sum : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %mean = nn.mul %kept, %fourth : tensor<2x3x1xf32>
  %means = nn.broadcast %mean dims = [0, 1, 2] : tensor<2x3x1xf32> -> tensor<2x3x4xf32>
  %d = nn.sub %x, %means : tensor<2x3x4xf32>
  %sq = nn.mul %d, %d : tensor<2x3x4xf32>
  %sum2 = nn.reduce_sum %sq dims = [2] : tensor<2x3x4xf32> -> tensor<2x3xf32>
  %kept2 = nn.reshape %sum2 : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %var = nn.mul %kept2, %fourth : tensor<2x3x1xf32>
  %ve = nn.add %var, %eps : tensor<2x3x1xf32>
  %root = nn.sqrt %ve : tensor<2x3x1xf32>
  %rs = nn.broadcast %root dims = [0, 1, 2] : tensor<2x3x1xf32> -> tensor<2x3x4xf32>
  %n = nn.div %d, %rs : tensor<2x3x4xf32>
  %ws = nn.broadcast %w dims = [2] : tensor<4xf32> -> tensor<2x3x4xf32>
  %m = nn.mul %n, %ws : tensor<2x3x4xf32>
  %bs = nn.broadcast %b dims = [2] : tensor<4xf32> -> tensor<2x3x4xf32>
  %y = nn.add %m, %bs : tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// CHECK-LABEL: @attention_causal
// CHECK: %[[O:.*]], %{{.*}} = nn.attention %arg0, %arg1, %arg2 scale = 5.000000e-01 causal :
// CHECK-NEXT: return %[[O]]
func.func @attention_causal(%q: tensor<1x2x3x4xf32> {test.value = dense<[[[[-1.4800000190734863, 2.569999933242798, -0.4699999988079071, 0.3400000035762787], [1.5099999904632568, 2.0799999237060547, 1.7100000381469727, 2.380000114440918], [1.940000057220459, 0.7900000214576721, -0.019999999552965164, -0.4399999976158142]], [[1.649999976158142, -1.3600000143051147, 0.3400000035762787, 0.5199999809265137], [-0.3700000047683716, -1.2999999523162842, 0.10000000149011612, 0.4399999976158142], [0.25, 0.07999999821186066, 0.3400000035762787, 0.44999998807907104]]]]> : tensor<1x2x3x4xf32>},
    %k: tensor<1x2x3x4xf32> {test.value = dense<[[[[-0.800000011920929, -1.2999999523162842, -0.75, -1.309999942779541], [-0.2199999988079071, -2.440000057220459, -0.07000000029802322, -0.029999999329447746], [0.6100000143051147, 0.4699999988079071, 1.9500000476837158, -1.059999942779541]], [[1.1399999856948853, -0.09000000357627869, 0.7300000190734863, -1.850000023841858], [-0.10000000149011612, -1.0299999713897705, -0.3100000023841858, 0.25], [0.3799999952316284, 1.100000023841858, -1.1399999856948853, 0.03999999910593033]]]]> : tensor<1x2x3x4xf32>},
    %v: tensor<1x2x3x2xf32> {test.value = dense<[[[[0.5400000214576721, 0.7699999809265137], [0.05999999865889549, 0.2199999988079071], [0.550000011920929, -0.5799999833106995]], [[0.019999999552965164, 0.12999999523162842], [1.0199999809265137, -0.44999998807907104], [0.44999998807907104, -0.9800000190734863]]]]> : tensor<1x2x3x2xf32>})
    -> (tensor<1x2x3x2xf32> {test.value = dense<[[[[0.5400000214576721, 0.7699999809265137], [0.15827742218971252, 0.33260953426361084], [0.5038329362869263, -0.35833272337913513]], [[0.019999999552965164, 0.12999999523162842], [0.7973690629005432, -0.32087403535842896], [0.513684093952179, -0.4445574879646301]]]]> : tensor<1x2x3x2xf32>}) {
  %low = nn.constant dense<0xFF800000> : tensor<1x2x3x3xf32>
  %scale = nn.constant dense<0.5> : tensor<1x2x3x3xf32>
  %visible = nn.constant dense<[[true, false, false], [true, true, false], [true, true, true]]> : tensor<3x3xi1>
  %kt = nn.transpose %k [0, 1, 3, 2] : tensor<1x2x3x4xf32> -> tensor<1x2x4x3xf32>
  %s = nn.dot %q, %kt : (tensor<1x2x3x4xf32>, tensor<1x2x4x3xf32>) -> tensor<1x2x3x3xf32>
  %scaled = nn.mul %s, %scale : tensor<1x2x3x3xf32>
  %all = nn.broadcast %visible dims = [2, 3] : tensor<3x3xi1> -> tensor<1x2x3x3xi1>
  %seen = nn.select %all, %scaled, %low : tensor<1x2x3x3xi1>, tensor<1x2x3x3xf32>
  %p = nn.softmax %seen dim = 3 : tensor<1x2x3x3xf32>
  %y = nn.dot %p, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x2xf32>) -> tensor<1x2x3x2xf32>
  return %y : tensor<1x2x3x2xf32>
}

// CHECK-LABEL: @attention_mask
// CHECK: %[[O:.*]], %{{.*}} = nn.attention %arg0, %arg1, %arg2 mask %arg3 scale = {{0.49999[0-9]*|5.0+e-01}} :
// CHECK-NEXT: return %[[O]]
func.func @attention_mask(%q: tensor<1x2x3x4xf32> {test.value = dense<[[[[-1.4800000190734863, 2.569999933242798, -0.4699999988079071, 0.3400000035762787], [1.5099999904632568, 2.0799999237060547, 1.7100000381469727, 2.380000114440918], [1.940000057220459, 0.7900000214576721, -0.019999999552965164, -0.4399999976158142]], [[1.649999976158142, -1.3600000143051147, 0.3400000035762787, 0.5199999809265137], [-0.3700000047683716, -1.2999999523162842, 0.10000000149011612, 0.4399999976158142], [0.25, 0.07999999821186066, 0.3400000035762787, 0.44999998807907104]]]]> : tensor<1x2x3x4xf32>},
    %k: tensor<1x2x3x4xf32> {test.value = dense<[[[[-0.800000011920929, -1.2999999523162842, -0.75, -1.309999942779541], [-0.2199999988079071, -2.440000057220459, -0.07000000029802322, -0.029999999329447746], [0.6100000143051147, 0.4699999988079071, 1.9500000476837158, -1.059999942779541]], [[1.1399999856948853, -0.09000000357627869, 0.7300000190734863, -1.850000023841858], [-0.10000000149011612, -1.0299999713897705, -0.3100000023841858, 0.25], [0.3799999952316284, 1.100000023841858, -1.1399999856948853, 0.03999999910593033]]]]> : tensor<1x2x3x4xf32>},
    %v: tensor<1x2x3x2xf32> {test.value = dense<[[[[0.5400000214576721, 0.7699999809265137], [0.05999999865889549, 0.2199999988079071], [0.550000011920929, -0.5799999833106995]], [[0.019999999552965164, 0.12999999523162842], [1.0199999809265137, -0.44999998807907104], [0.44999998807907104, -0.9800000190734863]]]]> : tensor<1x2x3x2xf32>},
    %m: tensor<1x1x3x3xf32> {test.value = dense<[[[[0.7099999785423279, -0.7599999904632568, -0.6399999856948853], [-0.6499999761581421, -0.1599999964237213, -1.7799999713897705], [0.8500000238418579, 0.25, -0.12999999523162842]]]]> : tensor<1x1x3x3xf32>})
    -> (tensor<1x2x3x2xf32> {test.value = dense<[[[[0.531700074672699, 0.3227982819080353], [0.5142936110496521, -0.5064245462417603], [0.4938182830810547, -0.1701042205095291]], [[0.21857045590877533, -0.03372211381793022], [0.8563752174377441, -0.3844756484031677], [0.408541202545166, -0.26623743772506714]]]]> : tensor<1x2x3x2xf32>}) {
  %root = nn.constant dense<0.707106769> : tensor<1x2x3x4xf32>
  %qs = nn.mul %q, %root : tensor<1x2x3x4xf32>
  %ks = nn.mul %k, %root : tensor<1x2x3x4xf32>
  %s = nn.dot %qs, %ks {transpose_b} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x3xf32>
  %ms = nn.broadcast %m dims = [0, 1, 2, 3] : tensor<1x1x3x3xf32> -> tensor<1x2x3x3xf32>
  %seen = nn.add %s, %ms : tensor<1x2x3x3xf32>
  %p = nn.softmax %seen dim = 3 : tensor<1x2x3x3xf32>
  %y = nn.dot %p, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x2xf32>) -> tensor<1x2x3x2xf32>
  return %y : tensor<1x2x3x2xf32>
}

// CHECK-LABEL: @attention_rank3
// CHECK: nn.attention %{{.*}} scale = 5.000000e-01 : (tensor<2x1x3x4xf32>
func.func @attention_rank3(%q: tensor<2x3x4xf32> {test.value = dense<[[[-1.4800000190734863, 2.569999933242798, -0.4699999988079071, 0.3400000035762787], [1.5099999904632568, 2.0799999237060547, 1.7100000381469727, 2.380000114440918], [1.940000057220459, 0.7900000214576721, -0.019999999552965164, -0.4399999976158142]], [[1.649999976158142, -1.3600000143051147, 0.3400000035762787, 0.5199999809265137], [-0.3700000047683716, -1.2999999523162842, 0.10000000149011612, 0.4399999976158142], [0.25, 0.07999999821186066, 0.3400000035762787, 0.44999998807907104]]]> : tensor<2x3x4xf32>},
    %k: tensor<2x3x4xf32> {test.value = dense<[[[-0.800000011920929, -1.2999999523162842, -0.75, -1.309999942779541], [-0.2199999988079071, -2.440000057220459, -0.07000000029802322, -0.029999999329447746], [0.6100000143051147, 0.4699999988079071, 1.9500000476837158, -1.059999942779541]], [[1.1399999856948853, -0.09000000357627869, 0.7300000190734863, -1.850000023841858], [-0.10000000149011612, -1.0299999713897705, -0.3100000023841858, 0.25], [0.3799999952316284, 1.100000023841858, -1.1399999856948853, 0.03999999910593033]]]> : tensor<2x3x4xf32>},
    %v: tensor<2x3x2xf32> {test.value = dense<[[[0.5400000214576721, 0.7699999809265137], [0.05999999865889549, 0.2199999988079071], [0.550000011920929, -0.5799999833106995]], [[0.019999999552965164, 0.12999999523162842], [1.0199999809265137, -0.44999998807907104], [0.44999998807907104, -0.9800000190734863]]]> : tensor<2x3x2xf32>})
    -> (tensor<2x3x2xf32> {test.value = dense<[[[0.5211504697799683, -0.09621366858482361], [0.542418897151947, -0.56233811378479], [0.5038329362869263, -0.35833272337913513]], [[0.5080755949020386, -0.2604083716869354], [0.7486348152160645, -0.41334623098373413], [0.513684093952179, -0.4445574879646301]]]> : tensor<2x3x2xf32>}) {
  %root = nn.constant dense<2.0> : tensor<2x3x3xf32>
  %s = nn.dot %q, %k {transpose_b} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  %d = nn.div %s, %root : tensor<2x3x3xf32>
  %p = nn.softmax %d dim = 2 : tensor<2x3x3xf32>
  %y = nn.dot %p, %v : (tensor<2x3x3xf32>, tensor<2x3x2xf32>) -> tensor<2x3x2xf32>
  return %y : tensor<2x3x2xf32>
}

// CHECK-LABEL: @attention_shared_heads
// CHECK: nn.attention %arg0, %arg1, %arg2 scale = 1.000000e+00 :
func.func @attention_shared_heads(%q: tensor<2x4x3x2xf32> {test.value = dense<[[[[0.10999999940395355, -1.0700000524520874], [-0.11999999731779099, -1.0199999809265137], [-1.4500000476837158, -0.8100000023841858]], [[1.2000000476837158, -1.8300000429153442], [1.5399999618530273, -0.029999999329447746], [-0.41999998688697815, -0.25999999046325684]], [[-0.38999998569488525, -0.33000001311302185], [0.949999988079071, -0.46000000834465027], [1.940000057220459, 1.0099999904632568]], [[1.0, -0.4300000071525574], [1.1699999570846558, 0.7699999809265137], [0.38999998569488525, 0.28999999165534973]]], [[[-0.009999999776482582, -2.240000009536743], [1.4700000286102295, -1.2200000286102295], [-1.1299999952316284, -0.0]], [[-0.1599999964237213, -0.25], [0.3799999952316284, -0.550000011920929], [-0.9900000095367432, 1.350000023841858]], [[-0.5600000023841858, -0.8299999833106995], [-1.399999976158142, -0.4000000059604645], [0.9100000262260437, -0.6899999976158142]], [[1.9600000381469727, -1.100000023841858], [0.36000001430511475, -2.299999952316284], [-0.8700000047683716, -1.6699999570846558]]]]> : tensor<2x4x3x2xf32>},
    %k: tensor<2x2x3x2xf32> {test.value = dense<[[[[0.11999999731779099, 1.6200000047683716], [0.46000000834465027, 1.2999999523162842], [0.3199999928474426, -0.10000000149011612]], [[0.20999999344348907, 1.2200000286102295], [-1.090000033378601, -0.05999999865889549], [-1.4900000095367432, -1.7599999904632568]]], [[[0.28999999165534973, 0.800000011920929], [1.2599999904632568, 0.9399999976158142], [2.140000104904175, -0.9599999785423279]], [[-0.5600000023841858, 1.6399999856948853], [1.4500000476837158, 4.099999904632568], [1.1200000047683716, -1.5700000524520874]]]]> : tensor<2x2x3x2xf32>},
    %v: tensor<2x2x3x2xf32> {test.value = dense<[[[[-0.5600000023841858, 0.7900000214576721], [0.6800000071525574, 1.5199999809265137], [-0.7599999904632568, 0.23999999463558197]], [[0.17000000178813934, -2.2300000190734863], [-0.2800000011920929, -0.2800000011920929], [0.75, -0.6399999856948853]]], [[[1.4800000190734863, -0.28999999165534973], [0.5099999904632568, -0.23000000417232513], [1.190000057220459, -0.5899999737739563]], [[0.9599999785423279, -1.5099999904632568], [-0.7599999904632568, -0.05999999865889549], [0.8899999856948853, 0.4699999988079071]]]]> : tensor<2x2x3x2xf32>})
    -> (tensor<2x4x3x2xf32> {test.value = dense<[[[[-0.5010149478912354, 0.5120261907577515], [-0.49461907148361206, 0.5225766897201538], [-0.48118600249290466, 0.5652951598167419]], [[-0.6371809840202332, 0.36035168170928955], [-0.11841961741447449, 0.9002646803855896], [-0.2994515299797058, 0.7594992518424988]], [[0.3843441307544708, -0.7177552580833435], [0.2647041380405426, -1.2473372220993042], [0.16134439408779144, -2.185190200805664]], [[0.24930967390537262, -1.30644690990448], [0.14380227029323578, -2.064805746078491], [0.13260993361473083, -1.5222398042678833]]], [[[1.186136245727539, -0.5792863368988037], [1.1744080781936646, -0.5783708691596985], [1.2330535650253296, -0.3016870319843292]], [[1.0987025499343872, -0.3895605802536011], [1.108988881111145, -0.4878736734390259], [1.1734563112258911, -0.27424171566963196]], [[0.8900772333145142, 0.1687280833721161], [0.9141666889190674, -0.9880663752555847], [0.8491784334182739, 0.41178131103515625]], [[0.8839437365531921, 0.4658872187137604], [0.8900197148323059, 0.46932658553123474], [0.8912963271141052, 0.4306536614894867]]]]> : tensor<2x4x3x2xf32>}) {
  %kb = nn.broadcast %k dims = [0, 1, 3, 4] : tensor<2x2x3x2xf32> -> tensor<2x2x2x3x2xf32>
  %kr = nn.reshape %kb : tensor<2x2x2x3x2xf32> -> tensor<2x4x3x2xf32>
  %vb = nn.broadcast %v dims = [0, 1, 3, 4] : tensor<2x2x3x2xf32> -> tensor<2x2x2x3x2xf32>
  %vr = nn.reshape %vb : tensor<2x2x2x3x2xf32> -> tensor<2x4x3x2xf32>
  %s = nn.dot %q, %kr {transpose_b} : (tensor<2x4x3x2xf32>, tensor<2x4x3x2xf32>) -> tensor<2x4x3x3xf32>
  %p = nn.softmax %s dim = 3 : tensor<2x4x3x3xf32>
  %y = nn.dot %p, %vr : (tensor<2x4x3x3xf32>, tensor<2x4x3x2xf32>) -> tensor<2x4x3x2xf32>
  return %y : tensor<2x4x3x2xf32>
}

// CHECK-LABEL: @attention_guarded
// CHECK: %[[LESS:.*]] = nn.reduce_max %arg3 dims = [3]
// CHECK: %[[NONE:.*]] = nn.compare eq %[[LESS]]
// CHECK: %[[O:.*]], %{{.*}} = nn.attention %arg0, %arg1, %arg2 mask %{{.*}} scale = 5.000000e-01 :
// CHECK: %[[Y:.*]] = nn.select %{{.*}}, %{{.*}}, %[[O]]
// CHECK-NEXT: return %[[Y]]
func.func @attention_guarded(%q: tensor<1x2x3x4xf32> {test.value = dense<[[[[-1.4800000190734863, 2.569999933242798, -0.4699999988079071, 0.3400000035762787], [1.5099999904632568, 2.0799999237060547, 1.7100000381469727, 2.380000114440918], [1.940000057220459, 0.7900000214576721, -0.019999999552965164, -0.4399999976158142]], [[1.649999976158142, -1.3600000143051147, 0.3400000035762787, 0.5199999809265137], [-0.3700000047683716, -1.2999999523162842, 0.10000000149011612, 0.4399999976158142], [0.25, 0.07999999821186066, 0.3400000035762787, 0.44999998807907104]]]]> : tensor<1x2x3x4xf32>},
    %k: tensor<1x2x3x4xf32> {test.value = dense<[[[[-0.800000011920929, -1.2999999523162842, -0.75, -1.309999942779541], [-0.2199999988079071, -2.440000057220459, -0.07000000029802322, -0.029999999329447746], [0.6100000143051147, 0.4699999988079071, 1.9500000476837158, -1.059999942779541]], [[1.1399999856948853, -0.09000000357627869, 0.7300000190734863, -1.850000023841858], [-0.10000000149011612, -1.0299999713897705, -0.3100000023841858, 0.25], [0.3799999952316284, 1.100000023841858, -1.1399999856948853, 0.03999999910593033]]]]> : tensor<1x2x3x4xf32>},
    %v: tensor<1x2x3x2xf32> {test.value = dense<[[[[0.5400000214576721, 0.7699999809265137], [0.05999999865889549, 0.2199999988079071], [0.550000011920929, -0.5799999833106995]], [[0.019999999552965164, 0.12999999523162842], [1.0199999809265137, -0.44999998807907104], [0.44999998807907104, -0.9800000190734863]]]]> : tensor<1x2x3x2xf32>},
    %m: tensor<1x1x3x3xf32> {test.value = dense<[[[[2.069999933242798, 0xFF800000, 0.36000001430511475], [0xFF800000, 0xFF800000, 0xFF800000], [0.36000001430511475, 0.800000011920929, 0.9300000071525574]]]]> : tensor<1x1x3x3xf32>})
    -> (tensor<1x2x3x2xf32> {test.value = dense<[[[[0.5425522327423096, 0.4254496097564697], [0.0, 0.0], [0.5072893500328064, -0.4223610758781433]], [[0.04093005508184433, 0.07597124576568604], [0.0, 0.0], [0.5698474645614624, -0.5402581691741943]]]]> : tensor<1x2x3x2xf32>}) {
  %zero = nn.constant dense<0.0> : tensor<1x2x3x3xf32>
  %scale = nn.constant dense<0.5> : tensor<1x2x3x3xf32>
  %d = nn.dot %q, %k {transpose_b} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x3xf32>
  %s = nn.mul %d, %scale : tensor<1x2x3x3xf32>
  %ms = nn.broadcast %m dims = [0, 1, 2, 3] : tensor<1x1x3x3xf32> -> tensor<1x2x3x3xf32>
  %seen = nn.add %s, %ms : tensor<1x2x3x3xf32>
  %p = nn.softmax %seen dim = 3 : tensor<1x2x3x3xf32>
  %nan = nn.is_nan %p : tensor<1x2x3x3xf32> -> tensor<1x2x3x3xi1>
  %g = nn.select %nan, %zero, %p : tensor<1x2x3x3xi1>, tensor<1x2x3x3xf32>
  %y = nn.dot %g, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x2xf32>) -> tensor<1x2x3x2xf32>
  return %y : tensor<1x2x3x2xf32>
}

// CHECK-LABEL: @log_sigmoid
// CHECK: nn.softplus
// CHECK-NOT: nn.log %
// CHECK: return
func.func @log_sigmoid(%x: tensor<4xf32> {test.value = dense<[1.5, -0.25, 3.0, -2.0]> : tensor<4xf32>})
    -> (tensor<4xf32> {test.value = dense<[-0.20141328871250153, -0.825939416885376, -0.04858735203742981, -2.1269280910491943]> : tensor<4xf32>}) {
  %p = nn.sigmoid %x : tensor<4xf32>
  %y = nn.log %p : tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: @log_of_the_complement
// CHECK: nn.softplus %arg0
// CHECK-NOT: nn.log %
// CHECK: return
func.func @log_of_the_complement(%x: tensor<4xf32> {test.value = dense<[1.5, -0.25, 3.0, -2.0]> : tensor<4xf32>})
    -> (tensor<4xf32> {test.value = dense<[-1.7014132738113403, -0.575939416885376, -3.0485873222351074, -0.12692801654338837]> : tensor<4xf32>}) {
  %one = nn.constant dense<1.0> : tensor<4xf32>
  %p = nn.sigmoid %x : tensor<4xf32>
  %q = nn.sub %one, %p : tensor<4xf32>
  %y = nn.log %q : tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: @log_of_softmax
// CHECK: nn.log_softmax %arg0 dim = 0
// CHECK-NOT: nn.log %
// CHECK: return
func.func @log_of_softmax(%x: tensor<4xf32> {test.value = dense<[1.5, -0.25, 3.0, -2.0]> : tensor<4xf32>})
    -> (tensor<4xf32> {test.value = dense<[-1.7379472255706787, -3.4879472255706787, -0.2379472851753235, -5.237947463989258]> : tensor<4xf32>}) {
  %p = nn.softmax %x dim = 0 : tensor<4xf32>
  %y = nn.log %p : tensor<4xf32>
  return %y : tensor<4xf32>
}

// A loss written as entries of logarithms, with the classes in front of places, and last after a reshape.
// CHECK-LABEL: @cross_entropy
// CHECK: nn.softmax_cross_entropy %arg0, %arg1 :
// CHECK-NOT: nn.log_softmax
// CHECK: return
func.func @cross_entropy(%x: tensor<2x4x3xf32> {test.value = dense<[[[1.840000033378601, 0.5199999809265137, -1.7100000381469727], [-1.7000000476837158, 2.0199999809265137, -0.27000001072883606], [-0.12999999523162842, -1.440000057220459, 2.609999895095825], [-0.4300000071525574, 0.3499999940395355, -0.05999999865889549]], [[0.7699999809265137, 0.9200000166893005, -0.5600000023841858], [0.7799999713897705, 0.7400000095367432, 0.029999999329447746], [-1.1699999570846558, -1.5099999904632568, -0.15000000596046448], [0.3700000047683716, 0.23000000417232513, -0.05999999865889549]]]> : tensor<2x4x3xf32>},
    %y: tensor<2x3xi64> {test.value = dense<[[2, 1, 2], [3, 0, 2]]> : tensor<2x3xi64>})
    -> (tensor<2x3xf32> {test.value = dense<[[2.2104194164276123, 0.36659058928489685, 0.12987574934959412], [1.4381805658340454, 0.8857832551002502, 1.3749911785125732]]> : tensor<2x3xf32>}) {
  %l = nn.log_softmax %x dim = 1 : tensor<2x4x3xf32>
  %c = nn.reshape %y : tensor<2x3xi64> -> tensor<2x1x3xi64>
  %p = nn.gather_elements %l[%c] axis = 1 : (tensor<2x4x3xf32>, tensor<2x1x3xi64>) -> tensor<2x1x3xf32>
  %n = nn.neg %p : tensor<2x1x3xf32>
  %r = nn.reshape %n : tensor<2x1x3xf32> -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// CHECK-LABEL: @cross_entropy_last
// CHECK: nn.softmax_cross_entropy %{{.*}}, %{{.*}} : (tensor<6x5xf32>, tensor<6xi64>)
// CHECK-NOT: nn.log_softmax
// CHECK: return
func.func @cross_entropy_last(%x: tensor<2x3x5xf32> {test.value = dense<[[[0.23000000417232513, -0.4000000059604645, 0.8199999928474426, 0.4099999964237213, 0.2199999988079071], [1.090000033378601, 0.17000000178813934, 0.17000000178813934, -2.2300000190734863, -1.2899999618530273], [-1.7899999618530273, 0.8799999952316284, 2.1600000858306885, -0.1899999976158142, 0.9800000190734863]], [[1.649999976158142, 0.14000000059604645, -0.6399999856948853, -0.8199999928474426, -0.3799999952316284], [0.4000000059604645, -1.4299999475479126, -1.4600000381469727, 1.9900000095367432, 0.8700000047683716], [0.9200000166893005, -0.36000001430511475, 1.0499999523162842, 1.0, 0.9300000071525574]]]> : tensor<2x3x5xf32>},
    %y: tensor<2x3xi64> {test.value = dense<[[2, 4, 0], [0, 3, 0]]> : tensor<2x3xi64>})
    -> (tensor<2x3xf32> {test.value = dense<[[-1.1190745830535889, -3.035311222076416, -4.480592727661133], [-0.4305458068847656, -0.466662734746933, -1.5063421726226807]]> : tensor<2x3xf32>}) {
  %l = nn.log_softmax %x dim = 2 : tensor<2x3x5xf32>
  %f = nn.reshape %l : tensor<2x3x5xf32> -> tensor<6x5xf32>
  %c = nn.reshape %y : tensor<2x3xi64> -> tensor<6x1xi64>
  %p = nn.gather_elements %f[%c] axis = 1 : (tensor<6x5xf32>, tensor<6x1xi64>) -> tensor<6x1xf32>
  %r = nn.reshape %p : tensor<6x1xf32> -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// Rounds of a loop over samples: means of embeddings.
// CHECK-LABEL: @bags
// CHECK: nn.gather %arg1[%arg0] axis = 0 : (tensor<7x2xf32>, tensor<3x4xi64>) -> tensor<3x4x2xf32>
// CHECK: nn.reduce_sum %{{.*}} dims = [1] : tensor<3x4x2xf32> -> tensor<3x2xf32>
// CHECK-NOT: nn.concat
// CHECK: return
func.func @bags(%t: tensor<3x4xi64> {test.value = dense<[[2, 5, 0, 4], [6, 3, 6, 3], [6, 3, 0, 0]]> : tensor<3x4xi64>},
    %w: tensor<7x2xf32> {test.value = dense<[[0.9800000190734863, 1.2300000190734863], [0.8999999761581421, 1.0700000524520874], [0.2199999988079071, 0.7400000095367432], [-0.5400000214576721, -0.17000000178813934], [0.75, -0.949999988079071], [-0.3499999940395355, 0.5899999737739563], [0.3199999928474426, -1.909999966621399]]> : tensor<7x2xf32>})
    -> (tensor<3x2xf32> {test.value = dense<[[0.4000000059604645, 0.4024999737739563], [-0.11000001430511475, -1.0399999618530273], [0.4350000023841858, 0.09500002861022949]]> : tensor<3x2xf32>}) {
  %four = nn.constant dense<4.0> : tensor<2xf32>
  %f = nn.reshape %t : tensor<3x4xi64> -> tensor<12xi64>
  %s0 = nn.slice %f starts = [0] strides = [1] : tensor<12xi64> -> tensor<4xi64>
  %g0 = nn.gather %w[%s0] axis = 0 : (tensor<7x2xf32>, tensor<4xi64>) -> tensor<4x2xf32>
  %a0 = nn.reduce_sum %g0 dims = [0] : tensor<4x2xf32> -> tensor<2xf32>
  %d0 = nn.div %a0, %four : tensor<2xf32>
  %u0 = nn.reshape %d0 : tensor<2xf32> -> tensor<1x2xf32>
  %s1 = nn.slice %f starts = [4] strides = [1] : tensor<12xi64> -> tensor<4xi64>
  %g1 = nn.gather %w[%s1] axis = 0 : (tensor<7x2xf32>, tensor<4xi64>) -> tensor<4x2xf32>
  %a1 = nn.reduce_sum %g1 dims = [0] : tensor<4x2xf32> -> tensor<2xf32>
  %d1 = nn.div %a1, %four : tensor<2xf32>
  %u1 = nn.reshape %d1 : tensor<2xf32> -> tensor<1x2xf32>
  %s2 = nn.slice %f starts = [8] strides = [1] : tensor<12xi64> -> tensor<4xi64>
  %g2 = nn.gather %w[%s2] axis = 0 : (tensor<7x2xf32>, tensor<4xi64>) -> tensor<4x2xf32>
  %a2 = nn.reduce_sum %g2 dims = [0] : tensor<4x2xf32> -> tensor<2xf32>
  %d2 = nn.div %a2, %four : tensor<2xf32>
  %u2 = nn.reshape %d2 : tensor<2xf32> -> tensor<1x2xf32>
  %y = nn.concat %u0, %u1, %u2 dim = 0 : (tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// Heads of attention, one after the other.
// CHECK-LABEL: @heads
// CHECK: nn.attention
// CHECK-NOT: nn.{{(softmax|concat|dot)}}
// CHECK: return
func.func @heads(%q: tensor<3x4xf32> {test.value = dense<[[-1.6399999856948853, -0.0, -0.9100000262260437, 0.7400000095367432], [-0.3199999928474426, 0.8500000238418579, 0.8799999952316284, 0.5600000023841858], [-0.11999999731779099, -0.009999999776482582, -0.3799999952316284, -0.8799999952316284]]> : tensor<3x4xf32>},
    %k: tensor<3x4xf32> {test.value = dense<[[-0.029999999329447746, -1.350000023841858, -0.5899999737739563, -1.0099999904632568], [0.11999999731779099, 0.6700000166893005, -1.0499999523162842, 1.6699999570846558], [-0.75, 1.309999942779541, -1.340000033378601, -0.47999998927116394]]> : tensor<3x4xf32>},
    %v: tensor<3x4xf32> {test.value = dense<[[0.03999999910593033, -0.6399999856948853, -0.5600000023841858, -0.800000011920929], [0.11999999731779099, -1.600000023841858, -1.2799999713897705, -0.10999999940395355], [-0.15000000596046448, 1.190000057220459, 1.0299999713897705, 0.7400000095367432]]> : tensor<3x4xf32>})
    -> (tensor<3x4xf32> {test.value = dense<[[-0.07039554417133331, 0.3938814103603363, -0.7799880504608154, 0.010206326842308044], [-0.061729732900857925, 0.2851261496543884, -0.7836962938308716, -0.13109168410301208], [-0.0012371055781841278, -0.3031269609928131, 0.07959547638893127, -0.10024705529212952]]> : tensor<3x4xf32>}) {
  %q0 = nn.slice %q starts = [0, 0] strides = [1, 1] : tensor<3x4xf32> -> tensor<3x2xf32>
  %k0 = nn.slice %k starts = [0, 0] strides = [1, 1] : tensor<3x4xf32> -> tensor<3x2xf32>
  %v0 = nn.slice %v starts = [0, 0] strides = [1, 1] : tensor<3x4xf32> -> tensor<3x2xf32>
  %s0 = nn.dot %q0, %k0 {transpose_b} : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x3xf32>
  %p0 = nn.softmax %s0 dim = 1 : tensor<3x3xf32>
  %o0 = nn.dot %p0, %v0 : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %q1 = nn.slice %q starts = [0, 2] strides = [1, 1] : tensor<3x4xf32> -> tensor<3x2xf32>
  %k1 = nn.slice %k starts = [0, 2] strides = [1, 1] : tensor<3x4xf32> -> tensor<3x2xf32>
  %v1 = nn.slice %v starts = [0, 2] strides = [1, 1] : tensor<3x4xf32> -> tensor<3x2xf32>
  %s1 = nn.dot %q1, %k1 {transpose_b} : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x3xf32>
  %p1 = nn.softmax %s1 dim = 1 : tensor<3x3xf32>
  %o1 = nn.dot %p1, %v1 : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %y = nn.concat %o0, %o1 dim = 1 : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// Rounds with one matrix and constants of their own: one product of all rows.
// CHECK-LABEL: @shared_matrix
// CHECK: nn.dot %arg0, %arg1 : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
// CHECK-NOT: nn.{{(dot|concat)}}
// CHECK: return
func.func @shared_matrix(%x: tensor<4x3xf32> {test.value = dense<[[-0.1899999976158142, -0.1899999976158142, 0.019999999552965164], [0.6100000143051147, 2.319999933242798, 0.5199999809265137], [-0.14000000059604645, 0.9300000071525574, -1.5099999904632568], [0.5, -1.590000033378601, 1.0199999809265137]]> : tensor<4x3xf32>},
    %m: tensor<3x2xf32> {test.value = dense<[[-1.159999966621399, -1.4500000476837158], [-0.41999998688697815, -0.4699999988079071], [0.2199999988079071, -1.149999976158142]]> : tensor<3x2xf32>})
    -> (tensor<4x2xf32> {test.value = dense<[[-0.561759352684021, 0.4867558479309082], [-0.9868149161338806, -0.9831116795539856], [0.7062188982963562, 0.9864106774330139], [0.9416254162788391, -0.15933077037334442]]> : tensor<4x2xf32>}) {
  %x0 = nn.slice %x starts = [0, 0] strides = [1, 1] : tensor<4x3xf32> -> tensor<2x3xf32>
  %c0 = nn.constant dense<[-0.9399999976158142, 0.1899999976158142]> : tensor<2xf32>
  %d0 = nn.dot %x0, %m : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %b0 = nn.broadcast %c0 dims = [1] : tensor<2xf32> -> tensor<2x2xf32>
  %a0 = nn.add %d0, %b0 : tensor<2x2xf32>
  %h0 = nn.tanh %a0 : tensor<2x2xf32>
  %x1 = nn.slice %x starts = [2, 0] strides = [1, 1] : tensor<4x3xf32> -> tensor<2x3xf32>
  %c1 = nn.constant dense<[1.440000057220459, 0.9900000095367432]> : tensor<2xf32>
  %d1 = nn.dot %x1, %m : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %b1 = nn.broadcast %c1 dims = [1] : tensor<2xf32> -> tensor<2x2xf32>
  %a1 = nn.add %d1, %b1 : tensor<2x2xf32>
  %h1 = nn.tanh %a1 : tensor<2x2xf32>
  %y = nn.concat %h0, %h1 dim = 0 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// Without a scale of its own, after it one that differs from sample to sample.
// CHECK-LABEL: @modulated_layer_norm
// CHECK: nn.layer_norm %arg0, %{{.*}}, %{{.*}} axis = 1
// CHECK-NOT: nn.sqrt
// CHECK: return
func.func @modulated_layer_norm(%x: tensor<3x4xf32> {test.value = dense<[[0.7400000095367432, 1.9500000476837158, -0.699999988079071, -1.2999999523162842], [-0.5099999904632568, -0.27000001072883606, 0.25, 0.47999998927116394], [0.44999998807907104, -0.9599999785423279, 1.5, -0.3100000023841858]]> : tensor<3x4xf32>},
    %s: tensor<3x1xf32> {test.value = dense<[[-0.23000000417232513], [-1.0700000524520874], [0.1599999964237213]]> : tensor<3x1xf32>})
    -> (tensor<3x4xf32> {test.value = dense<[[0.34408876299858093, 1.0777406692504883, -0.5290175676345825, -0.8928118348121643], [0.08539271354675293, 0.04419823735952377, -0.045056454837322235, -0.08453448861837387], [0.3525751531124115, -1.4228925704956055, 1.674731969833374, -0.6044145822525024]]> : tensor<3x4xf32>}) {
  %four = nn.constant dense<4.0> : tensor<3xf32>
  %eps = nn.constant dense<0.01> : tensor<3xf32>
  %one = nn.constant dense<1.0> : tensor<3x1xf32>
  %sum = nn.reduce_sum %x dims = [1] : tensor<3x4xf32> -> tensor<3xf32>
  %mean = nn.div %sum, %four : tensor<3xf32>
  %m = nn.broadcast %mean dims = [0] : tensor<3xf32> -> tensor<3x4xf32>
  %d = nn.sub %x, %m : tensor<3x4xf32>
  %sq = nn.mul %d, %d : tensor<3x4xf32>
  %total = nn.reduce_sum %sq dims = [1] : tensor<3x4xf32> -> tensor<3xf32>
  %var = nn.div %total, %four : tensor<3xf32>
  %ve = nn.add %var, %eps : tensor<3xf32>
  %root = nn.sqrt %ve : tensor<3xf32>
  %rb = nn.broadcast %root dims = [0] : tensor<3xf32> -> tensor<3x4xf32>
  %n = nn.div %d, %rb : tensor<3x4xf32>
  %s1 = nn.add %s, %one : tensor<3x1xf32>
  %sr = nn.reshape %s1 : tensor<3x1xf32> -> tensor<3xf32>
  %sb = nn.broadcast %sr dims = [0] : tensor<3xf32> -> tensor<3x4xf32>
  %y = nn.mul %n, %sb : tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// CHECK-LABEL: @bare_rms_norm
// CHECK: nn.rms_norm %arg0, %{{.*}} axis = 1
// CHECK-NOT: nn.rsqrt
// CHECK: return
func.func @bare_rms_norm(%x: tensor<3x4xf32> {test.value = dense<[[0.11999999731779099, 0.3799999952316284, -0.11999999731779099, 0.8899999856948853], [-0.49000000953674316, -1.4500000476837158, 1.190000057220459, 0.550000011920929], [-2.0799999237060547, -0.9700000286102295, -2.140000104904175, -1.0399999618530273]]> : tensor<3x4xf32>})
    -> (tensor<3x4xf32> {test.value = dense<[[0.23936651647090912, 0.7579939961433411, -0.23936651647090912, 1.7753016948699951], [-0.483916699886322, -1.431998372077942, 1.1752263307571411, 0.5431718230247498], [-1.256086826324463, -0.5857713222503662, -1.2923202514648438, -0.6280434131622314]]> : tensor<3x4xf32>}) {
  %four = nn.constant dense<4.0> : tensor<3xf32>
  %eps = nn.constant dense<0.01> : tensor<3xf32>
  %sq = nn.mul %x, %x : tensor<3x4xf32>
  %total = nn.reduce_sum %sq dims = [1] : tensor<3x4xf32> -> tensor<3xf32>
  %var = nn.div %total, %four : tensor<3xf32>
  %ve = nn.add %var, %eps : tensor<3xf32>
  %root = nn.rsqrt %ve : tensor<3xf32>
  %rb = nn.broadcast %root dims = [0] : tensor<3xf32> -> tensor<3x4xf32>
  %n = nn.mul %x, %rb : tensor<3x4xf32>
  return %n : tensor<3x4xf32>
}

//===- RecoveryTest.cpp - what a program did that its file does not hold -----------===//
//
// Each rule: a file in which it acts, and one in which it must not.
//
//===----------------------------------------------------------------------===//

#include "TestModel.h"
#include "lowtide/Recover/StateDictionary.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <cstring>

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::ModelProto;
using testing::HasSubstr;
using testing::Not;

/// Number of nodes `op` that the file has once it is read, or with `isImported`, once its parameters are known.
static int count(const ModelProto &model, const std::string &op, bool isImported = false) {
  RecordingContext recording;
  OnnxFile file(recording.context, "model.onnx");
  std::string bytes = model.SerializeAsString();
  EXPECT_TRUE(mlir::succeeded(file.loadBytes(llvm::ArrayRef(bytes.data(), bytes.size())))) << recording.messages;
  if (isImported)
    EXPECT_TRUE(mlir::succeeded(importOnnx(file, ImportOptions()))) << recording.messages;
  const auto &nodes = file.getModel().graph().node();
  return int(std::count_if(nodes.begin(), nodes.end(), [&](const auto &node) { return node.op_type() == op; }));
}

/// A student and its copy, which read the same; the copy is detached. `users`: of the student's result.
static ModelProto makeCopy(int users) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,2] x) => (float[2,2] y)
    <float[2,2] "student.weight" = {1, 2, 3, 4}, float[2,2] "head.weight" = {4, 3, 2, 1}> {
      linear = Gemm<transB = 1>(x, "student.weight")
      linear_1 = Gemm<transB = 1>(linear, "head.weight")
      y = Sub(linear_1, linear)
    })");
  setSignature(model, {"student.weight", "head.weight", "teacher.weight"},
               "x: USER_INPUT\n\n# outputs\nsub: USER_OUTPUT\n");
  setOperation(model, 0, "linear", users, "linear.default", "%x, %p_student_weight");
  setOperation(model, 1, "linear_1", 1, "linear.default", "%linear, %p_head_weight");
  setOperation(model, 2, "sub", 1, "sub.Tensor", "%linear_1, %detach");
  return model;
}

TEST(Recovery, ADetachedCopyIsALayerOfItsOwn) {
  Classified copied = classify(makeCopy(1));
  EXPECT_THAT(copied.names(InitializerRole::Parameter),
              testing::UnorderedElementsAre("student.weight", "head.weight", "teacher.weight"))
      << copied.messages;
  // With another reader, it is the student that is detached.
  EXPECT_EQ(classify(makeCopy(2)).find("teacher.weight"), nullptr);
}

TEST(Recovery, StepsOfALossAreNotTheProgramsDifference) {
  // z + (q - z).detach() and mse_loss(q, z.detach()).
  auto make = [](const std::string &loss) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] z, float[2,2] q) => (float[2,2] y) <float w = {1}> {
        sub = Sub(q, z)
        add = Add(z, sub)
        val_1 = Mul(sub, sub)
        y = Add(add, val_1)
      })");
    setSignature(model, {}, "z: USER_INPUT\nq: USER_INPUT\n\n# outputs\nadd_1: USER_OUTPUT\n");
    setOperation(model, 0, "sub", 1, "sub.Tensor", "%q, %z");
    setOperation(model, 1, "add", 1, "add.Tensor", "%z, %detach");
    setOperation(model, 2, "mse_loss", 1, "mse_loss.default", loss);
    setOperation(model, 3, "add_1", 1, "add.Tensor", "%add, %mse_loss");
    return model;
  };
  EXPECT_EQ(count(make("%q, %detach_1"), "Sub"), 2);
  EXPECT_EQ(count(make("%q, %z"), "Sub"), 1);
  EXPECT_EQ(count(make("%z, %detach_1, %q"), "Sub"), 1);
}

TEST(Recovery, AssignedBuffersWithoutTheirValueAreNamed) {
  auto make = [](const std::string &value, const std::string &more = "") {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2] x) => (float[2] y) <float[2] center = {1, 2}, float[2] w = {1, 2}> {
        add = Add(x, center)
        y = Mul(add, w)
      })");
    setSignature(model, {"w"},
                 "b_center: BUFFER target='center' persistent=True\nx: USER_INPUT\n" + more + "\n# outputs\n" + value +
                     ": BUFFER_MUTATION target='center'\nmul: USER_OUTPUT\n");
    setOperation(model, 0, "add", 1, "add.Tensor", "%x, %b_center");
    setOperation(model, 1, "mul", 1, "mul.Tensor", "%add, %p_w");
    return importModel(model).messages;
  };
  EXPECT_THAT(make("add_1"), HasSubstr("they keep the values of the file: center"));
  EXPECT_THAT(make("add"), Not(HasSubstr("assigns buffers")));
}

TEST(Recovery, CountersThatTheProgramDoesNotCount) {
  // F.batch_norm on the statistics of a module: its mean is assigned, its counter is not.
  auto list = [](const std::string &counter) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[4,2] x) => (float[4,2] y)
      <float[2] "n.weight" = {1, 2}, float[2] "n.bias" = {3, 4}, float[2] "n.running_mean" = {0, 0},
       float[2] "n.running_var" = {1, 1}> {
        y, mean, var = BatchNormalization<training_mode = 1>(x, "n.weight", "n.bias", "n.running_mean", "n.running_var")
      })");
    setSignature(model, {"n.weight", "n.bias"},
                 "b_mean: BUFFER target='n.running_mean' persistent=True\n"
                 "b_var: BUFFER target='n.running_var' persistent=True\n"
                 "b_count: BUFFER target='n.num_batches_tracked' persistent=True\nx: USER_INPUT\n\n# outputs\n"
                 "mean: BUFFER_MUTATION target='n.running_mean'\nvar: BUFFER_MUTATION target='n.running_var'\n" +
                     counter + "y: USER_OUTPUT\n");
    RecordingContext recording;
    OnnxFile file(recording.context, "model.onnx");
    std::string bytes = model.SerializeAsString(), text;
    EXPECT_TRUE(mlir::succeeded(file.loadBytes(llvm::ArrayRef(bytes.data(), bytes.size())))) << recording.messages;
    auto module = importOnnx(file, ImportOptions());
    EXPECT_TRUE(mlir::succeeded(module)) << recording.messages;
    if (mlir::succeeded(module))
      llvm::raw_string_ostream(text) << (**module)->getAttr(savedAttrName);
    return text;
  };
  EXPECT_THAT(list("add: BUFFER_MUTATION target='n.num_batches_tracked'\n"),
              HasSubstr("{follows = \"n.running_mean\", name = \"n.num_batches_tracked\""));
  EXPECT_THAT(list(""), HasSubstr("{name = \"n.num_batches_tracked\""));
}

TEST(Recovery, ParametersThatTheProgramAssigns) {
  // t = 0.5 · t + 0.5 · s, as a teacher follows a student; and t = min(t, 1), which bounds a parameter.
  auto make = [](const std::string &operation) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2] x) => (float[2] y)
      <float[2] "s.weight" = {1, 2}, float[2] "t.weight" = {3, 4}, float[1] half = {0.5}> {
        a = Mul("t.weight", half)
        b = Mul("s.weight", half)
        add = )" + operation + R"(
        h = Mul(x, "s.weight")
        y = Sub(h, add)
      })");
    setSignature(model, {"s.weight", "t.weight"},
                 "x: USER_INPUT\n\n# outputs\nadd: PARAMETER_MUTATION target='t.weight'\nsub: USER_OUTPUT\n");
    return classify(model);
  };
  Classified follows = make("Add(a, b)");
  EXPECT_THAT(follows.names(InitializerRole::State), testing::ElementsAre("t.weight")) << follows.messages;
  EXPECT_THAT(follows.names(InitializerRole::Parameter), testing::ElementsAre("s.weight"));
  EXPECT_THAT(follows.messages, HasSubstr("they are updated so, and not trained: t.weight"));
  Classified bounded = make("Min(a, half)");
  EXPECT_THAT(bounded.names(InitializerRole::State), testing::IsEmpty());
  EXPECT_THAT(bounded.messages, HasSubstr("they are trained without: t.weight"));
}

TEST(Recovery, ConvertedParametersAreTrainedInTheirOwnType) {
  auto make = [](const std::string &type, const std::string &tensor, const std::string &from) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g ()" + type + R"([2,3] x) => ()" +
                                  type + R"([2,2] y) <float[2] "b.weight" = {1, 2}, )" + type + "[3,2] " + tensor +
                                  R"( = {1, 2, 3, 4, 5, 6}> {
        y = MatMul(x, )" + tensor +
                                  R"()
      })");
    setSignature(model, {"a.weight", "b.weight"});
    setFoldedFrom(model, tensor, from);
    setOrigin(model, 0, "a", "%x, %" + tensor);
    return model;
  };
  Classified plain = classify(make("double", "_to_copy", "['a.weight']"));
  ASSERT_NE(plain.find("a.weight"), nullptr) << plain.messages;
  EXPECT_EQ(plain.find("a.weight")->dataType, 1);
  EXPECT_THAT(plain.find("a.weight")->dims, testing::ElementsAre(3, 2));
  EXPECT_THAT(plain.values["a.weight"], testing::ElementsAre(1, 2, 3, 4, 5, 6));
  Classified transposed = classify(make("double", "t", "['a.weight', '_to_copy']"));
  ASSERT_NE(transposed.find("a.weight"), nullptr) << transposed.messages;
  EXPECT_THAT(transposed.find("a.weight")->dims, testing::ElementsAre(2, 3));
  EXPECT_THAT(transposed.values["a.weight"], testing::ElementsAre(1, 3, 5, 2, 4, 6));
  // Of the parameters' own type, it is no conversion.
  Classified same = classify(make("float", "t", "['a.weight']"));
  EXPECT_TRUE(same.unfolded.empty());
}

TEST(Recovery, OneOfSeveralResultsMayBeComputed) {
  auto make = [](const std::string &from, const std::string &more) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x) => (float[2,2] y) <float[2,2] view_1 = {1, 2, 3, 4}, float[2,2] view_2 = {5, 6, 7, 8}> {
        a = Mul(x, view_1)
        y = Mul(a, view_2)
      })");
    setSignature(model, {"w"});
    setFoldedFrom(model, "view_1", from);
    if (!more.empty())
      setFoldedFrom(model, "view_2", more);
    return classify(model).messages;
  };
  EXPECT_THAT(make("['getitem', 'val_1', 'w']", ""), HasSubstr("perhaps changed by an operation with several results"));
  EXPECT_THAT(make("['getitem', 'w']", "['getitem_2', 'w']"), HasSubstr("perhaps changed"));
  // Parts of a split are numbered one after the other.
  EXPECT_THAT(make("['getitem', 'w']", "['getitem_1', 'w']"), Not(HasSubstr("perhaps changed")));
}

TEST(Recovery, APartOfAParameterMayHaveLostTheRest) {
  auto make = [](const std::string &output) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2] x) => (float[2] y) <float select_1 = {0.5}> {
        y = Mul(x, select_1)
      })");
    setSignature(model, {"s"}, "x: USER_INPUT\n\n# outputs\n" + output + ": USER_OUTPUT\n");
    setFoldedFrom(model, "select_1", "['s', 'val_7']");
    setOperation(model, 0, "mul", 1, "mul.Tensor", "%x, %select_1");
    return classify(model).messages;
  };
  EXPECT_THAT(make("add_1"), HasSubstr("took s apart and dropped operations"));
  EXPECT_THAT(make("mul"), Not(HasSubstr("apart")));
}

TEST(Recovery, BoundsAfterAFunctionAreLeftOut) {
  // logit_scale.exp().clamp(max=100), as image-text models write it.
  auto make = [](const std::string &from) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2] x) => (float[2] y) <float clamp = {1}> {
        y = Mul(x, clamp)
      })");
    setSignature(model, {"logit_scale"});
    setFoldedFrom(model, "clamp", from);
    return classify(model);
  };
  Classified bounded = make("['exp', 'logit_scale', 'scalar_tensor_default', 'val_18']");
  EXPECT_THAT(bounded.values["logit_scale"], testing::ElementsAre(0)) << bounded.messages;
  EXPECT_THAT(bounded.messages, HasSubstr("logit_scale"));
  EXPECT_THAT(make("['exp', 'logit_scale', 'mul']").messages, HasSubstr("changed by 'clamp'"));
}

TEST(Recovery, ALayerThatRunsTwiceIsNamed) {
  // softmax(b(h)), and the same under torch.no_grad, which came second.
  auto make = [](int users, const std::string &target) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x) => (float[2,2] y) <float[2,2] "b.weight" = {1, 2, 3, 4}> {
        tanh = Tanh(x)
        linear = Gemm<transB = 1>(tanh, "b.weight")
        softmax = Softmax(linear)
        y = Mul(softmax, softmax)
      })");
    setSignature(model, {"b.weight"}, "x: USER_INPUT\n\n# outputs\nmul: USER_OUTPUT\n");
    setOperation(model, 0, "tanh", 2, "tanh.default", "%x,");
    setOperation(model, 1, "linear", users, "linear.default", "%tanh, %p_b_weight");
    setOperation(model, 2, "softmax", 1, "softmax.int", "%linear, -1");
    setOperation(model, 3, "mul", 1, "mul.Tensor", "%softmax, %" + target);
    return importModel(model).messages;
  };
  EXPECT_THAT(make(1, "softmax_1"), HasSubstr("runs layers again on the same values"));
  // The softmax alone is computed twice.
  EXPECT_THAT(make(2, "softmax_1"), Not(HasSubstr("runs layers again")));
  EXPECT_THAT(make(1, "softmax"), Not(HasSubstr("runs layers again")));
}

TEST(Recovery, RunningAveragesComeBack) {
  // avg = 0.9 · avg + 0.1 · x
  auto make = [](const std::string &from, const std::string &rest) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2] x) => (float[2] y) <float[2] mul = {0.75, 1.5}, float[2] w = {1, 2}, float rest = {)" +
                                  rest + R"(}> {
        mul_1 = Mul(x, rest)
        add = Add(mul, mul_1)
        y = Mul(add, w)
      })");
    setSignature(model, {"w"},
                 "b_avg: BUFFER target='avg' persistent=True\nx: USER_INPUT\n\n# outputs\nadd: "
                 "BUFFER_MUTATION target='avg'\nmul_2: USER_OUTPUT\n");
    setFoldedFrom(model, "mul", from);
    return classify(model);
  };
  Classified average = make("['avg', 'val_2']", "0.25");
  EXPECT_THAT(average.names(InitializerRole::State), testing::ElementsAre("avg")) << average.messages;
  EXPECT_THAT(average.messages, HasSubstr("its factor is taken to be one minus 0.25"));
  // A factor beyond one, or other arithmetic, tells nothing.
  EXPECT_THAT(make("['avg', 'val_2']", "2").messages, HasSubstr("with their first values for ever: avg"));
  EXPECT_THAT(make("['avg', 'exp', 'val_2']", "0.25").messages, HasSubstr("with their first values for ever: avg"));
}

TEST(Recovery, DetachedProbabilitiesAreSmoothed) {
  // `cross_entropy(z, p.detach(), label_smoothing=0.25)`: what is put in to detach has no stated type of its own.
  auto make = [](int32_t labels) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,3] x) => (float loss) <float[3] w = {1, 2, 3}> {
        z = Mul(x, w)
        p = Softmax(x)
        loss = SoftmaxCrossEntropyLoss <ignore_index = -100> (z, p)
      })");
    setSignature(model, {"w"});
    setOperation(model, 0, "z", 1, "mul.Tensor", "%x, %p_w");
    setOperation(model, 1, "p", 1, "softmax.int", "%x, -1");
    setOperation(model, 2, "loss", 1, "cross_entropy_loss.default", "%z, %detach, None, 1, -100, 0.25");
    auto &value = *model.mutable_graph()->add_value_info();
    value.set_name("p");
    value.mutable_type()->mutable_tensor_type()->set_elem_type(labels);
    return model;
  };
  EXPECT_EQ(count(make(::onnx::TensorProto::FLOAT), "Identity", true), 1);
  // Only labels that are numbers of classes are compared with the one that is ignored.
  EXPECT_EQ(count(make(::onnx::TensorProto::FLOAT), "Equal", true), 0);
  EXPECT_EQ(count(make(::onnx::TensorProto::INT64), "Equal", true), 1);
}

TEST(Recovery, AValueLessItselfWasDetached) {
  auto make = [](const std::string &other) {
    return importModel(parseModel(R"(
      <ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
      g (float[3,2] x) => (float[3,4] y) <float[2,4] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
        h = MatMul(x, w)
        r = Round(h)
        y = Sub(h, )" + other + ")}"));
  };
  EXPECT_THAT(make("h").messages, HasSubstr("no gradient flows through y"));
  EXPECT_THAT(make("r").messages, Not(HasSubstr("no gradient")));
}

TEST(Recovery, NegativePositionsThatWereAddedUpAreSaid) {
  auto make = [](const std::string &columns) {
    return importModel(parseModel(R"(
      <ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
      g (float[3,2] x) => (float[2] y) <float[2,4] w = {1, 2, 3, 4, 5, 6, 7, 8}, int64[1] one = {1}, int64[2] rows = {0, 2},
         int64[2] columns = {)" + columns +
                                  R"(}> {
        h = MatMul(x, w)
        f = Flatten <axis = 2> (h)
        s = Shape(h)
        width = Gather(s, one)
        r = Mul(rows, width)
        p = Add(columns, r)
        g = Gather(f, p)
        y = Squeeze(g, one)
      })"));
  };
  Outcome outcome = make("1, -1");
  EXPECT_EQ(outcome.failure, FailureKind::None) << outcome.messages;
  EXPECT_THAT(outcome.messages, HasSubstr("other elements are read than the program reads"));
  EXPECT_THAT(make("1, 3").messages, testing::Not(HasSubstr("other elements")));
}

TEST(Recovery, WindowsComeInFrontOfTheirElements) {
  // `x.unfold(axis, 4, 2)`; other slices have steps, or other ends.
  auto make = [](const std::string &axis, const std::string &end, const std::string &last) {
    return parseModel(R"(
      <ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
      g (float[2,8] x) => (float[N,M,K] y) <float[2,8] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
         int64[1] axis = {)" +
                      axis + R"(}, int64[1] a = {0}, int64[1] b = {2}, int64[1] c = {4}, int64[1] d = {)" + end +
                      R"(}, int64[1] one = {1}> {
        h = Mul(x, w)
        s = Slice(h, a, c, axis)
        t = Slice(h, b, d)" +
                      last + R"()
        u = Unsqueeze(s, axis)
        v = Unsqueeze(t, axis)
        y = Concat <axis = )" +
                      axis + R"(> (u, v)
      })");
  };
  const ModelProto windows = make("-1", "6", ", axis");
  EXPECT_THAT(importModel(windows).messages, HasSubstr("they are put back: y"));
  int found = 0;
  const ::onnx::GraphProto graph = importGraph(windows);
  for (const ::onnx::NodeProto &node : graph.node()) {
    if (node.op_type() == "Concat")
      EXPECT_EQ(node.attribute(0).i(), -2);
    found += node.op_type() == "Unsqueeze" && node.input(1) != "axis";
  }
  EXPECT_EQ(found, 2);
  for (const ModelProto &other : {make("1", "6", ", axis"), make("-1", "7", ", axis"), make("-1", "6", ", axis, one")})
    EXPECT_THAT(importModel(other).messages, Not(HasSubstr("windows")));
}

TEST(Recovery, DivisorsOfPoolsComeBack) {
  auto make = [](const std::string &operands, const std::string &more = "") {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[1,1,4,4] x) => (float[1,1,2,2] y) <float[1,1,1,1] w = {2}> {
        h = Mul(x, w)
        y = AveragePool <kernel_shape = [2, 2], strides = [2, 2])" +
                                  more + R"(> (h)
      })");
    setNote(model, 1, "pkg.torch.onnx.fx_node",
            "%y : [num_users=1] = call_function[target=torch.ops.aten.avg_pool2d.default](args = (" + operands +
                "), kwargs = {})");
    return importModel(model);
  };
  // test/models/counted-tiny has the values.
  Outcome own = make("%h, [2, 2], [], [0, 0], False, True, 3");
  EXPECT_EQ(own.failure, FailureKind::None);
  EXPECT_THAT(own.messages, HasSubstr("number of its own (divisor_override), and its exporter wrote averages without a "
                                      "word; it is put back: y"));
  // Windows that reach beyond the padding are averages of parts.
  Outcome beyond = make("%h, [2, 2], [], [0, 0], True, True, 3", ", ceil_mode = 1");
  EXPECT_EQ(beyond.failure, FailureKind::Unsupported);
  EXPECT_THAT(beyond.messages, HasSubstr("divides what it pools by a number of its own (divisor_override)"));
  for (const char *operands : {"%h, [2, 2]", "%h, [2, 2], [2, 2], 1", "%h, [2, 2], [2, 2], [0, 0], False, True",
                               "%h, [2, 2], [2, 2], [0, 0], False, True, None"})
    EXPECT_EQ(make(operands).failure, FailureKind::None) << operands;
}

TEST(Recovery, DetachedParametersAreDetached) {
  // `linear(x, w, b.detach())`: the exporter evaluates the detach, and calls the tensor after it.
  auto make = [](const std::string &name) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[3,2] x) => (float[3,2] y) <float[2,2] w = {1, 2, 3, 4}, float[2] )" +
                                  name + R"( = {5, 6}> {
        y = Gemm(x, w, )" + name + R"()
      })");
    setSignature(model, {"w", "b"});
    setFoldedFrom(model, name, "['b']");
    setOperation(model, 0, "linear", 1, "linear.default", "%x, %p_w, %" + name);
    return model;
  };
  EXPECT_EQ(count(make("detach"), "Identity", true), 1);
  EXPECT_EQ(count(make("clone"), "Identity", true), 0);
}

TEST(Recovery, MasksOfAttentionHideByInfinity) {
  // `scaled_dot_product_attention(q, k, v, mask)`, with what −∞ needs, or a mask of the program's own numbers.
  auto hides = [](const std::string &operation, const std::string &guard, const std::string &operands) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x, bool[2,2] seen) => (float[2,2] y)
        <float[2,2] w = {1, 2, 3, 4}, float zero = {0}, float lowest = {-3.4028234663852886e38}> {
        q = MatMul(x, w)
        mask = Where(seen, zero, lowest)
        s = Add(q, mask)
        p = Softmax(s)
        n = )" + guard + R"((p)
        r = Where(n, zero, p)
        y = MatMul(r, q)
      })");
    for (int node : {1, 2, 3, 4, 5, 6})
      setOperation(model, node, "y", 1, operation, operands);
    RecordingContext recording;
    OnnxFile file(recording.context, "model.onnx");
    const std::string bytes = model.SerializeAsString();
    EXPECT_TRUE(succeeded(file.loadBytes({bytes.data(), bytes.size()}))) << recording.messages;
    EXPECT_TRUE(mlir::succeeded(importOnnx(file, ImportOptions()))) << recording.messages;
    const auto &nodes = file.getModel().graph().node();
    auto mask = std::find_if(nodes.begin(), nodes.end(), [](const auto &node) { return node.output(0) == "mask"; });
    return mask != nodes.end() && mask->input(2) != "lowest";
  };
  EXPECT_TRUE(hides("scaled_dot_product_attention.default", "IsNaN", "%q, %q, %q, %seen"));
  EXPECT_FALSE(hides("scaled_dot_product_attention.default", "IsInf", "%q, %q, %q, %seen"));
  EXPECT_FALSE(hides("scaled_dot_product_attention.default", "IsNaN", "%q, %q, %q"));
  EXPECT_FALSE(hides("where.self", "IsNaN", "%seen, %zero, %lowest"));
}

TEST(Recovery, ShortenedRowsAreRefused) {
  auto make = [](const std::string &operation) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (int64[3] i, float[3,2] x) => (float[3,2] y) <float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
        r = Gather(w, i)
        y = Mul(r, x)
      })");
    setOperation(model, 0, "r", 1, operation, "%w, %i, 0.8, 2.0");
    return importModel(model);
  };
  Outcome shortened = make("embedding_renorm.default");
  EXPECT_EQ(shortened.failure, FailureKind::Unsupported);
  EXPECT_THAT(shortened.messages, HasSubstr("below a length (max_norm)"));
  EXPECT_EQ(make("embedding.default").failure, FailureKind::None);
}

TEST(Recovery, ExtractedFilesAreTheirExporters) {
  // PyTorch's running variance is unbiased; what was cut out of its file is, too.
  for (std::string layer : {"/bn/BatchNormalization", "normalize"}) {
    ModelProto model = parseModel(R"(
      <ir_version: 8, producer_name: "onnx.utils.extract_model", opset_import: ["" : 17]>
      g (float[4,2] x) => (float[4,2] y)
        <float[2] w = {1, 2}, float[2] b = {3, 4}, float[2] m = {0, 1}, float[2] v = {1, 3}> {
        h, nm, nv = BatchNormalization <training_mode = 1> (x, w, b, m, v)
        y = Relu(h)
      })");
    model.mutable_graph()->mutable_node(0)->set_name(layer);
    renameValue(model, "h", layer + "_output_0");
    RecordingContext recording;
    OnnxFile file(recording.context, "model.onnx");
    const std::string bytes = model.SerializeAsString();
    ASSERT_TRUE(succeeded(file.loadBytes({bytes.data(), bytes.size()}))) << recording.messages;
    EXPECT_EQ(file.getModel().producer_name(), layer == "normalize" ? "onnx.utils.extract_model" : "pytorch");
  }
}

TEST(Recovery, JoinedProjectionsAreNamed) {
  const std::string text = R"(
    <ir_version: 10, opset_import: ["" : 20, "com.microsoft" : 1]>
    g (float[2,3,4] x) => (float[2,3,4] y)
      <float[4,12] Attention_0_qkv_weight = {0.5}, float[12] Attention_0_qkv_bias = {0.5}> {
      y = com.microsoft.Attention<num_heads = 2>(x, Attention_0_qkv_weight, Attention_0_qkv_bias)
    })";
  auto make = [&](const std::string &name) {
    std::string renamed = text;
    for (size_t at; (at = renamed.find("Attention_0_qkv")) != std::string::npos;)
      renamed.replace(at, 15, name);
    ModelProto model = parseModel(renamed);
    for (auto &tensor : *model.mutable_graph()->mutable_initializer()) {
      tensor.clear_float_data();
      for (int i = 0; i != (tensor.dims_size() == 2 ? 48 : 12); ++i)
        tensor.add_float_data(0.25f * float(i % 7));
    }
    return importModel(model);
  };
  EXPECT_THAT(make("Attention_1_qkv").messages, HasSubstr("one tensor, by another name and in another order"));
  EXPECT_THAT(make("Attention_1_qkv").messages, HasSubstr("Attention_1_qkv_weight, Attention_1_qkv_bias"));
  // Those of a program that has joined ones itself.
  EXPECT_THAT(make("in_proj").messages, Not(HasSubstr("in another order")));
}

TEST(Recovery, ParametersWithoutValuesAreNamed) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,2] x) => (float[2,2] y) <float[2,2] "a.weight" = {1, 2, 3, 4}, float[2,2] "b.weight" = {1, 2, 3, 4}> {
      z = MatMul(x, "a.weight")
      y = MatMul(z, "b.weight")
    })");
  setSignature(model, {"a.weight", "b.weight", "unused.weight"});
  EXPECT_EQ(importModel(model).failure, FailureKind::None);
  model.mutable_graph()->mutable_initializer()->RemoveLast();
  Outcome outcome = importModel(model);
  EXPECT_EQ(outcome.failure, FailureKind::BadInput);
  EXPECT_EQ(outcome.numErrors, 1u);
  EXPECT_THAT(outcome.messages, HasSubstr("neither values nor shapes of 1 parameter or buffer"));
  EXPECT_THAT(outcome.messages, HasSubstr("export_params=True"));
}

//===- ExpressionsTest.cpp - what several operations made of parameters --------------------===//
//
// Values are computed by hand, rounded to f32; `tools/dev zoo --only='programs/form-*'` has the real files.
//
//===----------------------------------------------------------------------===//

#include "TestModel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::ModelProto;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

/// `x * w + image`, where `image`, of these values, was evaluated from w and `sources`.
static Classified makeImage(const std::string &w, const std::string &image, const std::string &values,
                            const std::string &sources) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[4] x) => (float[4] y) <float[4] w = {)" +
                                w + "}, float " + image + " = {" + values + R"(}> {
      a = Mul(x, w)
      y = Add(a, )" + image + R"()
    })");
  setSignature(model, {"w"});
  setFoldedFrom(model, image, "['w', " + sources + "]");
  return classify(model);
}

TEST(Expressions, AnEntropyIsComputedOfItsParameter) {
  // Σ w log w of w = (0.5, 1.5, 2, 0.25)
  Classified result = makeImage("0.5, 1.5, 2, 0.25", "sum_1", "1.3013448", "'log', 'mul_1'");
  EXPECT_EQ(result.messages, "");
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("w"));
  EXPECT_THAT(result.replaced, testing::Contains(testing::Key("sum_1")));
  // Another number, and an operation that may be anything.
  EXPECT_THAT(makeImage("0.5, 1.5, 2, 0.25", "sum_1", "1.4", "'log', 'mul_1'").messages,
              HasSubstr("is in the file twice"));
  EXPECT_THAT(makeImage("0.5, 1.5, 2, 0.25", "sum_1", "1.3013448", "'log', 'mul_1', 'sort'").messages,
              HasSubstr("is in the file twice"));
}

TEST(Expressions, WhatValuesDoNotDecideIsNotGuessed) {
  // Of w = (1, 1, 1, 1), both Σ w · log w and Σ log(w · w) are zero; so are others.
  EXPECT_THAT(makeImage("1, 1, 1, 1", "sum_1", "0", "'log', 'mul_1'").messages, HasSubstr("is in the file twice"));
}

TEST(Expressions, ADistributionGivesItsParameterBackToItsEntropy) {
  // softmax(w), and -0.1 · Σ p log p
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[4] x) => (float[4] y) <float[4] softmax = {0.27422322, 0.16632479, 0.334937, 0.22451499},
                                    float mul_2 = {-0.13548908}> {
      a = Mul(x, softmax)
      y = Sub(a, mul_2)
    })");
  setSignature(model, {"w"});
  setFoldedFrom(model, "softmax", "['w']");
  setFoldedFrom(model, "mul_2", "['log', 'mul_1', 'softmax', 'sum_1', 'val_2', 'w']");
  Classified result = classify(model);
  EXPECT_THAT(result.messages, Not(HasSubstr("twice")));
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("w"));
  EXPECT_THAT(result.replaced, testing::Contains(testing::Key("mul_2")));
}

TEST(Expressions, DistributionsOfATableGiveItBack) {
  // softmax(w, 1) of a table that nothing else reads
  auto make = [](const std::string &values) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[3,2] x) => (float[3,2] y) <float[2,2] softmax = {)" +
                                  values + R"(}> {
        y = MatMul(x, softmax)
      })");
    setSignature(model, {"w"});
    setFoldedFrom(model, "softmax", "['w']");
    return classify(model);
  };
  Classified result = make("0.25, 0.75, 0.5, 0.5");
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("w"));
  EXPECT_THAT(result.values["w"], ElementsAre(FloatNear(-1.3862944f, 1e-6f), FloatNear(-0.28768207f, 1e-6f),
                                              FloatNear(-0.69314718f, 1e-6f), FloatNear(-0.69314718f, 1e-6f)));
  // Of both dimensions, or of none: which it was, the values do not tell.
  EXPECT_THAT(make("0.25, 0.75, 0.75, 0.25").messages, HasSubstr("changed by 'softmax'"));
  EXPECT_THAT(make("0.25, 0.75, 0.5, 0.6").messages, HasSubstr("changed by 'softmax'"));
}

TEST(Expressions, OneNumberIsNoEvidenceOfAnyExpression) {
  // 0.0137 · Σ w log w: of one number, a factor of three digits may be chance; of one digit, it is not.
  EXPECT_THAT(makeImage("0.5, 1.5, 2, 0.25", "mul_2", "0.017828424", "'log', 'mul_1', 'sum_1', 'val_2'").messages,
              HasSubstr("is in the file twice"));
  EXPECT_EQ(makeImage("0.5, 1.5, 2, 0.25", "mul_2", "0.013013448", "'log', 'mul_1', 'sum_1', 'val_2'").messages, "");
}

TEST(Expressions, ProductsOfAMatrixWithItselfAreComputed) {
  // w @ w @ w next to w
  auto make = [](const std::string &values) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[3,2] x) => (float[3,2] y) <float[2,2] w = {0.5, -1, 2, 0.25}, float[2,2] matmul_1 = {)" +
                                  values + R"(}> {
        a = MatMul(x, w)
        b = MatMul(x, matmul_1)
        y = Add(a, b)
      })");
    setSignature(model, {"w"});
    setFoldedFrom(model, "matmul_1", "['matmul', 'w']");
    return classify(model);
  };
  Classified result = make("-2.375, 1.5625, -3.125, -1.984375");
  EXPECT_EQ(result.messages, "");
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("w"));
  EXPECT_THAT(make("-2.375, 1.5625, -3.125, -1.5").messages, HasSubstr("is in the file twice"));
}

TEST(Expressions, TurnedDirectionsOfACodebookAreComputed) {
  // `F.normalize(w).t()` next to w: rows (3, 4), (5, -12), (8, 15). Its bound does nothing, and one length is spread.
  auto make = [](const std::string &values, const std::string &sources) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[4,2] x, float[4,3] p) => (float[4,2] y, float[4,3] d)
        <float[3,2] w = {3, 4, 5, -12, 8, 15}, float[2,3] t = {)" +
                                  values + R"(}> {
        y = MatMul(p, w)
        d = MatMul(x, t)
      })");
    setSignature(model, {"w"});
    setFoldedFrom(model, "t", sources);
    return classify(model);
  };
  const std::string turned = "0.6, 0.384615385, 0.470588235, 0.8, -0.923076923, 0.882352941";
  const std::string steps = "'clamp_min', 'div', 'expand', 'linalg_vector_norm', 'val_1', 'w'";
  Classified result = make(turned, "[" + steps + "]");
  EXPECT_EQ(result.messages, "");
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("w"));
  EXPECT_THAT(result.replaced, testing::Contains(testing::Key("t")));
  // Other values, and a bound without a length.
  EXPECT_THAT(make("0.6, 0.4, 0.47, 0.8, -0.9, 0.88", "[" + steps + "]").messages, HasSubstr("is in the file twice"));
  EXPECT_THAT(make("3, 5, 8, 4, 1, 15", "['clamp_min', 'val_1', 'w']").messages, HasSubstr("is in the file twice"));
}

/// A cell's weights times a learned first state h = (0.5, -0.25, 1) of two samples, next to the state and to a later
/// step; `row`: what the second sample has.
static Classified makeFirstState(const std::string &row) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,3] x) => (float[2,2] y)
    <float[2,3] expand = {0.5, -0.25, 1, 0.5, -0.25, 1}, float[2,2] linear_1 = {3.125, 0.25, )" +
                                row + R"(},
     float[2,3] wh = {1, 2, 3, 0.5, -1, 0.25}, float[2] bh = {0.125, -0.5}> {
      a = Mul(x, expand)
      b = Gemm<transB = 1>(a, wh, bh)
      y = Add(b, linear_1)
    })");
  setSignature(model, {"h", "wh", "bh"});
  setFoldedFrom(model, "expand", "['h', 'val_1']");
  setFoldedFrom(model, "linear_1", "['bh', 'expand', 'h', 'val_1', 'wh']");
  return classify(model);
}

TEST(Expressions, ALearnedFirstStateGoesThroughTheWeightsOfItsCell) {
  Classified result = makeFirstState("3.125, 0.25");
  EXPECT_THAT(result.messages, Not(HasSubstr("twice")));
  EXPECT_THAT(result.names(InitializerRole::Parameter), UnorderedElementsAre("h", "wh", "bh"));
  EXPECT_THAT(result.values["h"], ElementsAre(0.5, -0.25, 1));
  EXPECT_THAT(makeFirstState("3.125, 0.5").messages, HasSubstr("is in the file twice"));
}

/// A cell of rows of a table, next to what it makes of a first token: W · e + b of W = (1, 2; 0.5, -1; 2, 1),
/// b = (0.125, -0.5, 0.25) and row e = (0.5, -1) for two samples; `last`: the table's last row.
static Classified makeFirstToken(const std::string &image, const std::string &last, bool isTurned = false) {
  const std::string weight =
      isTurned ? "float[2,3] permute_1 = {1, 0.5, 2, 2, -1, 1}" : "float[3,2] wh = {1, 2, 0.5, -1, 2, 1}";
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (int64[2] i) => (float[2,3] y)
    <float[3,2] table = {1, 2, 0.5, -1, )" +
                                last + "}, float[2,3] linear = {" + image + "}, " + weight +
                                R"(, float[3] bh = {0.125, -0.5, 0.25}> {
      e = Gather(table, i)
      b = Gemm)" + (isTurned ? "(e, permute_1, bh)" : "<transB = 1>(e, wh, bh)") +
                                R"(
      y = Add(b, linear)
    })");
  setSignature(model, {"table", "wh", "bh"});
  if (isTurned)
    setFoldedFrom(model, "permute_1", "['wh']");
  setFoldedFrom(model, "linear", "['bh', 'embedding_1', 'ones', 'table', 'val_1', 'wh']");
  return classify(model);
}

TEST(Expressions, AFirstTokenGoesThroughTheWeightsOfItsCell) {
  const std::string image = "-1.375, 0.75, 0.25, -1.375, 0.75, 0.25";
  for (bool isTurned : {false, true}) {
    Classified result = makeFirstToken(image, "2, 0.25", isTurned);
    EXPECT_THAT(result.messages, Not(HasSubstr("twice")));
    EXPECT_THAT(result.names(InitializerRole::Parameter), UnorderedElementsAre("table", "wh", "bh"));
    EXPECT_THAT(result.replaced, testing::Contains(testing::Key("linear")));
    // Another number, and a row of which the table has two.
    EXPECT_THAT(makeFirstToken("-1.375, 0.75, 0.5, -1.375, 0.75, 0.5", "2, 0.25", isTurned).messages,
                HasSubstr("is in the file twice"));
    EXPECT_THAT(makeFirstToken(image, "0.5, -1", isTurned).messages, HasSubstr("is in the file twice"));
  }
}

TEST(Expressions, AFirstTokenIsARowOfItsTable) {
  auto make = [](const std::string &image) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (int64[2] i) => (float[2,2] y)
      <float[3,2] table = {1, 2, 0.5, -1, 2, 0.25}, float[2,2] embedding_1 = {)" +
                                  image + R"(}> {
        e = Gather(table, i)
        y = Add(e, embedding_1)
      })");
    setSignature(model, {"table"});
    setFoldedFrom(model, "embedding_1", "['full', 'table', 'val_1']");
    return classify(model);
  };
  Classified result = make("2, 0.25, 2, 0.25");
  EXPECT_EQ(result.messages, "");
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("table"));
  EXPECT_THAT(make("2, 0.25, 2, 0.5").messages, HasSubstr("is in the file twice"));
}

TEST(Expressions, AStateThatOnlyALayerReadsIsSolvedFor) {
  // W · h + b of h = (0.5, -0.25), W = (1, 2; 0.5, -1; 2, 1), b = (0.125, -0.5, 0): two samples. Decomposed programs
  // hold the transpose of W alone.
  auto make = [](const std::string &second, bool isTurned) {
    const std::string image = isTurned ? "addmm_1" : "linear_1",
                      weight = isTurned ? "float[2,3] permute_1 = {1, 0.5, 2, 2, -1, 1}"
                                        : "float[3,2] wh = {1, 2, 0.5, -1, 2, 1}",
                      layer = isTurned ? "Gemm(x, permute_1, bh)" : "Gemm<transB = 1>(x, wh, bh)";
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x) => (float[2,3] y)
      <float[2,3] )" + image + " = {0.125, 0, 0.75, 0.125, 0, " +
                                  second + "}, " + weight + ", float[3] bh = {0.125, -0.5, 0}> { b = " + layer +
                                  " y = Add(b, " + image + ") }");
    setSignature(model, {"h", "wh", "bh"});
    if (isTurned)
      setFoldedFrom(model, "permute_1", "['wh']");
    setFoldedFrom(model, image,
                  isTurned ? "['bh', 'expand', 'h', 'permute', 'val_1', 'wh']"
                           : "['bh', 'expand', 'h', 'val_1', 'wh']");
    return classify(model);
  };
  for (bool isTurned : {false, true}) {
    Classified result = make("0.75", isTurned);
    EXPECT_THAT(result.messages, Not(HasSubstr("twice")));
    EXPECT_THAT(result.messages, HasSubstr("taken out of what the exporter evaluated"));
    EXPECT_THAT(result.names(InitializerRole::Parameter), UnorderedElementsAre("h", "wh", "bh"));
    EXPECT_THAT(result.values["h"], ElementsAre(FloatNear(0.5f, 1e-6f), FloatNear(-0.25f, 1e-6f)));
    // Rows that differ are not of one state.
    EXPECT_THAT(make("0.5", isTurned).messages, HasSubstr("is in the file twice"));
  }
}

TEST(Expressions, AFactorWithinAnOperationIsComputedNextToItsParameter) {
  // baddbmm(w, a, b, beta=0.5), and once more without the factor
  auto make = [](const std::string &values) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[4] x) => (float[4] y) <float[4] w = {0.5, -1, 2, 0.25}, float[4] val_3 = {)" +
                                  values + R"(}> {
        a = Add(x, val_3)
        b = Add(x, w)
        y = Mul(a, b)
      })");
    setSignature(model, {"w"}, "x: USER_INPUT\n");
    setOperation(model, 0, "baddbmm", 1, "baddbmm.default", "%p_w, %x, %x");
    setOperation(model, 1, "baddbmm_1", 1, "baddbmm.default", "%p_w, %x, %x");
    setFoldedFrom(model, "val_3", "['w', 'val_1', 'val_2']");
    return classify(model);
  };
  Classified result = make("0.25, -0.5, 1, 0.125");
  EXPECT_THAT(result.messages, Not(HasSubstr("twice")));
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("w"));
  EXPECT_THAT(make("0.25, -0.5, 1, 0.5").messages, HasSubstr("is in the file twice"));
}

TEST(Expressions, ACopyGivesItsParameterBackToWhatTurnsIt) {
  // w.clone() and w.flip(0); nothing else reads w.
  auto make = [](const std::string &sources) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[4] x) => (float[4] y) <float[4] clone = {1, 2, 4, 8}, float[4] flip = {8, 4, 2, 1}> {
        a = Mul(x, clone)
        y = Add(a, flip)
      })");
    setSignature(model, {"w"});
    setFoldedFrom(model, "clone", sources);
    setFoldedFrom(model, "flip", "['w']");
    return classify(model);
  };
  Classified result = make("['w']");
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("w"));
  EXPECT_THAT(result.values["w"], ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(result.replaced, testing::Contains(testing::Key("flip")));
  // A copy of something else.
  EXPECT_EQ(make("['w', 'sort']").replaced.count("flip"), 0u);
}

TEST(Expressions, PlacesOfALargeTableAreNotListed) {
  // There are 1,024 · 1,024 ways to roll it, each of as many places.
  constexpr int size = 1024;
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[1024,1024] x) => (float[1024,1024] y) <float[1] w = {0}, float[1] roll = {0}> {
      a = Mul(x, w)
      y = Add(a, roll)
    })");
  for (int i : {0, 1}) {
    auto *tensor = model.mutable_graph()->mutable_initializer(i);
    tensor->clear_dims();
    tensor->clear_float_data();
    tensor->add_dims(size);
    tensor->add_dims(size);
    for (int at = 0; at != size * size; ++at)
      tensor->add_float_data(float((at + 7 * i) % 91) / 91 + float(i));
  }
  setSignature(model, {"w"});
  setFoldedFrom(model, "roll", "['w', 'neg']");
  EXPECT_THAT(classify(model).messages, HasSubstr("is in the file twice"));
}

/// Real and imaginary parts of w = (1 + 5i, 2 + 6i); `bound`: where the second one's slice ends.
static Classified makeComplex(const std::string &bound) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,1] x, float[2,1] z) => (float[2,1] y)
    <float[2,1] val_12 = {1, 2}, float[2,1] val_13 = {5, 6}, int64[1] val_6 = {0}, int64[1] val_7 = {1},
     int64[1] val_10 = {)" + bound +
                                R"(}, int64[1] val_8 = {-1}> {
      r = Slice(x, val_6, val_7, val_6)
      s = Slice(z, val_6, val_10, val_6)
      a = Mul(r, val_12)
      b = Mul(s, val_13)
      y = Sub(a, b)
    })");
  setSignature(model, {"w"});
  setFoldedFrom(model, "val_12", "['val_6', 'val_7', 'val_8', 'view_as_complex_1', 'w']");
  setFoldedFrom(model, "val_13", "['val_10', 'val_7', 'val_8', 'view_as_complex_1', 'w']");
  return classify(model);
}

TEST(Expressions, ComplexNumbersAreJoined) {
  Classified result = makeComplex("2");
  EXPECT_THAT(result.messages, Not(HasSubstr("twice")));
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("w"));
  EXPECT_THAT(result.values["w"], ElementsAre(1, 5, 2, 6));
  // Which part is which, nothing tells.
  EXPECT_THAT(makeComplex("3").messages, HasSubstr("is in the file twice"));
}

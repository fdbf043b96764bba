//===- DimensionsTest.cpp - sizes that exporters derive from others ---------------===//

#include "TestModel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::ModelProto;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

namespace {

/// `x[sizes…] → y`, with dimensions called so.
ModelProto makeModel(std::initializer_list<const char *> sizes) {
  ModelProto model =
      parseModel(R"(<ir_version: 10, opset_import: ["" : 20]> g (float[1] x) => (float[1] y) { y = Relu(x) })");
  for (auto *value : {model.mutable_graph()->mutable_input(0), model.mutable_graph()->mutable_output(0)}) {
    auto *shape = value->mutable_type()->mutable_tensor_type()->mutable_shape();
    shape->clear_dim();
    for (const char *size : sizes)
      shape->add_dim()->set_dim_param(size);
  }
  return model;
}

/// The shape that input x gets, or the messages.
std::string bind(const ModelProto &model, ImportOptions options) {
  RecordingContext recording;
  OnnxFile file(recording.context, "model.onnx");
  std::string bytes = model.SerializeAsString();
  EXPECT_TRUE(mlir::succeeded(file.loadBytes(llvm::ArrayRef(bytes.data(), bytes.size())))) << recording.messages;
  auto module = importOnnx(file, options);
  if (mlir::failed(module))
    return recording.messages;
  auto model_ = (**module).lookupSymbol<mlir::func::FuncOp>("model");
  std::string text;
  llvm::raw_string_ostream(text) << model_.getArgument(0).getType();
  return text;
}

std::string bind(std::initializer_list<const char *> sizes, std::map<std::string, int64_t> dims) {
  ImportOptions options;
  options.dims = std::move(dims);
  return bind(makeModel(sizes), options);
}

std::vector<std::string> unbound(std::initializer_list<const char *> sizes, std::map<std::string, int64_t> dims = {}) {
  RecordingContext recording;
  OnnxFile file(recording.context, "model.onnx");
  std::string bytes = makeModel(sizes).SerializeAsString();
  EXPECT_TRUE(mlir::succeeded(file.loadBytes(llvm::ArrayRef(bytes.data(), bytes.size())))) << recording.messages;
  ImportOptions options;
  options.dims = std::move(dims);
  return findUnboundDims(file, options);
}

TEST(Dimensions, SymbolsBindWhatIsDerivedFromThem) {
  EXPECT_EQ(bind({"batch", "2*h", "2*w"}, {{"batch", 1}, {"h", 564}, {"w", 752}}), "tensor<1x1128x1504xf32>");
  EXPECT_EQ(bind({"s - 1", "8*s", "s//2"}, {{"s", 9}}), "tensor<8x72x4xf32>");
  EXPECT_EQ(bind({"batch*seq", "((s - 1)//2) + 1", "Max(1, s)"}, {{"batch", 2}, {"seq", 3}, {"s", 8}}),
            "tensor<6x4x8xf32>");
  EXPECT_EQ(bind({"past_sequence_length + 1", "s**2"}, {{"past_sequence_length", 4}, {"s", 3}}), "tensor<5x9xf32>");
}

TEST(Dimensions, DerivedSizesBindTheirSymbols) {
  EXPECT_EQ(bind({"2*h", "h"}, {{"2*h", 1128}}), "tensor<1128x564xf32>");
  EXPECT_EQ(bind({"2*h", "h"}, {{"2 * h", 1128}}), "tensor<1128x564xf32>");
  EXPECT_EQ(bind({"s - 1", "s"}, {{"s - 1", 7}}), "tensor<7x8xf32>");
  EXPECT_EQ(bind({"batch*seq", "batch"}, {{"batch*seq", 12}, {"batch", 3}}), "tensor<12x3xf32>");
  ImportOptions shape;
  shape.shapes["x"] = {1128, 564};
  EXPECT_EQ(bind(makeModel({"2*h", "h"}), shape), "tensor<1128x564xf32>");
}

TEST(Dimensions, ImpossibleSizesAreRefusedByName) {
  EXPECT_THAT(bind({"2*h", "h"}, {{"2*h", 1129}}),
              HasSubstr("--dim: dimension '2*h' cannot be 1129: no whole 'h' makes it "
                        "so\nnote: possible are 1128 with h=564, 1130 with h=565"));
  // A cache of no positions: the file's other inputs are as long as cache and text together.
  EXPECT_THAT(
      bind({"past + s", "s"}, {{"past + s", 6}, {"s", 6}}),
      HasSubstr("dimension 'past + s' cannot be 6: 'past' would be 0, and no dimension is empty\nnote: export the "
                "model without what has this dimension (a decoder without its cache); possible are 7 with "
                "past=1"));
  EXPECT_THAT(bind({"past + s", "s"}, {{"past + s", 5}, {"s", 6}}), HasSubstr("no whole 'past' makes it so"));
  EXPECT_THAT(
      bind({"batch", "2*h"}, {{"batch", 2}, {"h", int64_t(1) << 39}}),
      HasSubstr("input 'x' is too large with batch=2, 2*h=1099511627776: a tensor holds at most 2^40 elements"));
  EXPECT_THAT(bind({"batch", "t"}, {{"batch", INT64_MAX / 2}, {"t", 64}}), HasSubstr("input 'x' is too large with"));
  EXPECT_THAT(bind({"s - 1"}, {{"s", 1}}), HasSubstr("input 'x': dimension 's - 1' is 0 with s=1"));
  EXPECT_THAT(bind({"h/2"}, {{"h", 5}}), HasSubstr("dimension 'h/2' is no whole number with h=5"));
  EXPECT_THAT(bind({"2*h", "h"}, {{"2*h", 8}, {"h", 5}}),
              HasSubstr("dimension '2*h' is given as 8, and its symbols make it 10"));
  EXPECT_THAT(bind({"h//2", "h"}, {{"h//2", 5}}), HasSubstr("'h//2' = 5 leaves 'h' open: from 10 to 11"));
  EXPECT_THAT(bind({"batch", "2*h"}, {{"Batch", 1}}),
              HasSubstr("no symbolic dimension 'Batch'; did you mean 'batch'?\nnote: symbolic dimensions: batch, h"));
}

TEST(Dimensions, NamesOfOutputsBindTheSymbolsOfInputs) {
  ModelProto model = parseModel(R"(<ir_version: 10, opset_import: ["" : 20]> g (float[2, s] x) => (float[2, t] y)
    <int64[1] from = {1}, int64[1] to = {100}, int64[1] axis = {1}> { y = Slice(x, from, to, axis) })");
  auto *length =
      model.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(1);
  length->set_dim_param("s - 1");
  auto bound = [&](const char *name, int64_t size) {
    ImportOptions options;
    options.dims = {{name, size}};
    return bind(model, options);
  };
  EXPECT_EQ(bound("s - 1", 7), "tensor<2x8xf32>");
  EXPECT_EQ(bound("s-1", 7), "tensor<2x8xf32>");
  EXPECT_THAT(bound("s", 1), HasSubstr("output 'y': dimension 's - 1' is 0 with s=1"));
  // Of symbols that no input has, nothing follows.
  length->set_dim_param("u - 1");
  EXPECT_THAT(bound("u - 1", 7), HasSubstr("no symbolic dimension 'u - 1'"));
}

TEST(Dimensions, NamesThatLookLikeArithmeticAreNames) {
  EXPECT_EQ(bind({"batch-size", "max len"}, {{"batch-size", 2}, {"max len", 3}}), "tensor<2x3xf32>");
  EXPECT_EQ(bind({"unk__0", "?"}, {{"unk__0", 2}, {"?", 3}}), "tensor<2x3xf32>");
}

TEST(Dimensions, WhatIsOpenIsListedByItsSymbols) {
  EXPECT_THAT(unbound({"batch", "2*h", "h", "2*w"}, {{"w", 4}}), ElementsAre("--dim batch=8", "--dim h=8"));
}

TEST(Selection, ParamsAloneTrainsExactlyThose) {
  ModelProto model = makeLinear();
  ImportOptions options;
  options.selections = {{true, "w"}};
  EXPECT_THAT(classify(model, options).names(InitializerRole::Parameter), ElementsAre("w"));
  options.selections = {{true, "+w"}};
  EXPECT_THAT(classify(model, options).names(InitializerRole::Parameter), ElementsAre("w", "b"));
}

TEST(Selection, TheLastRuleThatMatchesCounts) {
  ModelProto model = makeLinear();
  ImportOptions options;
  options.selections = {{false, "*"}, {true, "b"}};
  EXPECT_THAT(classify(model, options).names(InitializerRole::Parameter), ElementsAre("b"));
  options.selections = {{true, "b"}, {false, "*"}};
  EXPECT_THAT(classify(model, options).names(InitializerRole::Parameter), ElementsAre());
  options.selections = {{true, "w, b"}, {false, "w"}, {true, "w"}};
  EXPECT_THAT(classify(model, options).names(InitializerRole::Parameter), ElementsAre("w", "b"));
}

TEST(Selection, NamesMatchThemselves) {
  for (const char *name : {"layers[0].w", "a,b", "all*", "x{1}", "[unclosed"}) {
    ModelProto model = makeLinear();
    renameValue(model, "w", name);
    ImportOptions options;
    options.selections = {{true, name}};
    Classified result = classify(model, options);
    EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre(name)) << result.messages;
  }
  ModelProto model = makeLinear();
  renameValue(model, "w", "layers[0].w");
  ImportOptions options;
  options.selections = {{true, "layers[0].*"}};
  EXPECT_THAT(classify(model, options).names(InitializerRole::Parameter), ElementsAre("layers[0].w"));
  options.selections = {{true, "'layers[0].w',b"}};
  EXPECT_THAT(classify(model, options).names(InitializerRole::Parameter), ElementsAre("layers[0].w", "b"));
}

TEST(Selection, GlobsDoNotMeanBuffers) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[4] x) => (float[4] y)
    <float[4] w = {1, 2, 3, 4}, float[4] "head.scale" = {1, 3, 2, 5}>
    { h = Mul(x, w) y = Mul(h, "head.scale") })");
  setSignature(model, {"w"},
               "b_scale: BUFFER target='head.scale' persistent=True\nx: USER_INPUT\n\n# outputs\ny: USER_OUTPUT\n");
  auto trained = [&](const char *params) {
    ImportOptions options;
    options.selections = {{true, params}};
    return classify(model, options);
  };
  EXPECT_THAT(trained("*").names(InitializerRole::Parameter), ElementsAre("w"));
  EXPECT_THAT(trained("*").messages, Not(HasSubstr("trains a buffer")));
  EXPECT_THAT(trained("w,head.*").messages,
              HasSubstr("--params: 'head.*' matches no parameter, only a buffer: head.scale"));
  EXPECT_EQ(trained("w,head.*").failure, FailureKind::Usage);
  for (const char *exact : {"+head.scale", "+*.scale"}) {
    EXPECT_THAT(trained(exact).names(InitializerRole::Parameter), UnorderedElementsAre("w", "head.scale"));
    EXPECT_THAT(trained(exact).messages, HasSubstr(std::string("--params=") + exact +
                                                   " trains a buffer of the program, which module.parameters() does "
                                                   "not give an optimizer: head.scale"));
  }
}

// A frozen table of a file without notes: nothing but its values says that it is a buffer.
TEST(Selection, GlobsDoNotMeanTablesOfFormulas) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[4] x) => (float[4] y)
    <float[4] "body.weight" = {1, 2, 3, 4}, float[4] "body.pixel_mean" = {1, 3, 2, 5}>
    { h = Mul(x, "body.weight") y = Sub(h, "body.pixel_mean") })");
  for (const char *params : {"*", "body.*"}) {
    ImportOptions options;
    options.selections = {{true, params}};
    EXPECT_THAT(classify(model, options).names(InitializerRole::Parameter), ElementsAre("body.weight")) << params;
  }
}

TEST(Selection, WhatMatchesNothingIsAnError) {
  ModelProto model = makeLinear();
  ImportOptions options;
  options.selections = {{true, "w,nothing*"}};
  Classified result = classify(model, options);
  EXPECT_THAT(result.messages, HasSubstr("--params: no initializer matches 'nothing*'"));
  EXPECT_EQ(result.failure, FailureKind::Usage);
  options.selections = {{false, "w,,b"}};
  EXPECT_THAT(classify(model, options).messages, HasSubstr("--frozen 'w,,b': an item is empty (column 3)"));
}

} // namespace

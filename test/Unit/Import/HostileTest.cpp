//===- HostileTest.cpp - bad models are refused in words ----------------------------===//
//
// Each case corrupts a good model in one way and states the exit code and a part
// of the message that must come of it.
//
//===----------------------------------------------------------------------===//

#include "TestModel.h"

#include "mlir/Parser/Parser.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <functional>
#include <random>

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

namespace {
struct BadModel {
  const char *name;
  FailureKind failure;
  const char *message;
  std::function<void(ModelProto &)> corrupt;
};

class HostileModel : public testing::TestWithParam<BadModel> {};

NodeProto *addNode(GraphProto *graph, const char *op, std::vector<std::string> inputs,
                   std::vector<std::string> outputs) {
  NodeProto *node = graph->add_node();
  node->set_op_type(op);
  for (const auto &name : inputs)
    node->add_input(name);
  for (const auto &name : outputs)
    node->add_output(name);
  return node;
}

AttributeProto *addInt(NodeProto *node, const char *name, int64_t value) {
  AttributeProto *attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(AttributeProto::INT);
  attribute->set_i(value);
  return attribute;
}

::onnx::FunctionProto *addFunction(ModelProto &model, const std::string &name, std::vector<std::string> calls) {
  auto *function = model.add_functions();
  function->set_name(name);
  function->set_domain("local");
  function->add_input("a");
  function->add_output("z");
  auto *opset = function->add_opset_import();
  opset->set_domain("");
  opset->set_version(20);
  function->add_opset_import()->CopyFrom(*opset);
  function->mutable_opset_import(1)->set_domain("local");
  function->mutable_opset_import(1)->set_version(1);
  std::string value = "a";
  for (size_t i = 0; i != calls.size(); ++i) {
    NodeProto *node = function->add_node();
    node->set_op_type(calls[i]);
    node->set_domain(calls[i] == "Relu" ? "" : "local");
    node->add_input(value);
    value = i + 1 == calls.size() ? "z" : "t" + std::to_string(i);
    node->add_output(value);
  }
  return function;
}

void callFunction(ModelProto &model, const std::string &name) {
  auto *opset = model.add_opset_import();
  opset->set_domain("local");
  opset->set_version(1);
  addNode(model.mutable_graph(), name.c_str(), {"y"}, {"called"})->set_domain("local");
  model.mutable_graph()->mutable_output(0)->set_name("called");
  model.mutable_graph()->mutable_output(0)->clear_type();
}

void nest(GraphProto *graph, int depth) {
  for (int i = 0; i != depth; ++i) {
    NodeProto *node = addNode(graph, "If", {"c"}, {"v" + std::to_string(i)});
    for (const char *branch : {"then_branch", "else_branch"}) {
      AttributeProto *attribute = node->add_attribute();
      attribute->set_name(branch);
      attribute->set_type(AttributeProto::GRAPH);
      attribute->mutable_g()->set_name(branch);
    }
    graph = node->mutable_attribute(0)->mutable_g();
  }
}

const BadModel badModels[] = {
    {"NoGraph", FailureKind::BadInput, "has no graph", [](ModelProto &m) { m.clear_graph(); }},
    {"NoIRVersion", FailureKind::BadInput, "no IR version", [](ModelProto &m) { m.clear_ir_version(); }},
    {"NegativeIRVersion", FailureKind::BadInput, "no IR version", [](ModelProto &m) { m.set_ir_version(-3); }},
    {"FutureIRVersion", FailureKind::Unsupported, "IR version 999 is newer",
     [](ModelProto &m) { m.set_ir_version(999); }},
    {"FutureOpset", FailureKind::Unsupported, "opset 999 is newer",
     [](ModelProto &m) { m.mutable_opset_import(0)->set_version(999); }},
    {"HugeOpset", FailureKind::BadInput, "is imported in version",
     [](ModelProto &m) { m.mutable_opset_import(0)->set_version(1L << 40); }},
    {"NoOpset", FailureKind::BadInput, "does not say which opset", [](ModelProto &m) { m.clear_opset_import(); }},
    {"OpsetTwice", FailureKind::BadInput, "imported in two versions",
     [](ModelProto &m) {
       *m.add_opset_import() = m.opset_import(0);
       m.mutable_opset_import(1)->set_version(m.opset_import(0).version() - 1);
     }},
    {"NoOutputs", FailureKind::BadInput, "no outputs", [](ModelProto &m) { m.mutable_graph()->clear_output(); }},
    {"DanglingOutput", FailureKind::BadInput, "is computed by no node",
     [](ModelProto &m) { m.mutable_graph()->mutable_output(0)->set_name("nowhere"); }},
    {"OutputTwice", FailureKind::BadInput, "is listed twice",
     [](ModelProto &m) { *m.mutable_graph()->add_output() = m.graph().output(0); }},
    {"DanglingInput", FailureKind::BadInput, "reads 'ghost', which nothing defines",
     [](ModelProto &m) { m.mutable_graph()->mutable_node(0)->set_input(0, "ghost"); }},
    {"Cycle", FailureKind::BadInput, "a cycle",
     [](ModelProto &m) { m.mutable_graph()->mutable_node(0)->set_input(0, "y"); }},
    {"SelfCycle", FailureKind::BadInput, "a cycle",
     [](ModelProto &m) { m.mutable_graph()->mutable_node(0)->set_input(0, "h"); }},
    {"ValueTwice", FailureKind::BadInput, "is defined twice",
     [](ModelProto &m) { m.mutable_graph()->mutable_node(1)->set_output(0, "h"); }},
    {"ValueShadowsInitializer", FailureKind::BadInput, "is defined twice",
     [](ModelProto &m) { m.mutable_graph()->mutable_node(0)->set_output(0, "w"); }},
    {"InitializerTwice", FailureKind::BadInput, "is defined twice",
     [](ModelProto &m) { *m.mutable_graph()->add_initializer() = m.graph().initializer(0); }},
    {"InitializerWithoutName", FailureKind::BadInput, "has no name",
     [](ModelProto &m) { m.mutable_graph()->mutable_initializer(0)->clear_name(); }},
    {"InputTwice", FailureKind::BadInput, "is defined twice",
     [](ModelProto &m) { *m.mutable_graph()->add_input() = m.graph().input(0); }},
    {"InputWithoutType", FailureKind::Unsupported, "is not a tensor",
     [](ModelProto &m) { m.mutable_graph()->mutable_input(0)->clear_type(); }},
    {"InputIsSequence", FailureKind::Unsupported, "is not a tensor",
     [](ModelProto &m) { m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_sequence_type(); }},
    {"InputOfUnknownType", FailureKind::BadInput, "element type 77",
     [](ModelProto &m) {
       m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(77);
     }},
    {"InputOfStrings", FailureKind::Unsupported, "element type string",
     [](ModelProto &m) {
       m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(TensorProto::STRING);
     }},
    {"InputTooLarge", FailureKind::BadInput, "leaves 63 bits",
     [](ModelProto &m) {
       for (int i : {0, 1})
         m.mutable_graph()
             ->mutable_input(0)
             ->mutable_type()
             ->mutable_tensor_type()
             ->mutable_shape()
             ->mutable_dim(i)
             ->set_dim_value(1L << 62);
     }},
    {"InputWithNegativeDim", FailureKind::BadInput, "a dimension of -2",
     [](ModelProto &m) {
       m.mutable_graph()
           ->mutable_input(0)
           ->mutable_type()
           ->mutable_tensor_type()
           ->mutable_shape()
           ->mutable_dim(0)
           ->set_dim_value(-2);
     }},
    {"UnknownOperator", FailureKind::Unsupported, "Frobnicate 'z' is no operator of opset 20",
     [](ModelProto &m) { addNode(m.mutable_graph(), "Frobnicate", {"y"}, {"z"}); }},
    {"NoOperator", FailureKind::BadInput, "has no operator",
     [](ModelProto &m) { addNode(m.mutable_graph(), "", {"y"}, {"z"}); }},
    {"UnknownDomain", FailureKind::BadInput, "does not import",
     [](ModelProto &m) { addNode(m.mutable_graph(), "Thing", {"y"}, {"z"})->set_domain("acme"); }},
    {"TooFewInputs", FailureKind::BadInput, "has 1 inputs",
     [](ModelProto &m) { addNode(m.mutable_graph(), "Add", {"y"}, {"z"}); }},
    {"TooManyInputs", FailureKind::BadInput, "has 3 inputs",
     [](ModelProto &m) { addNode(m.mutable_graph(), "Add", {"y", "y", "y"}, {"z"}); }},
    {"TooManyOutputs", FailureKind::BadInput, "has 2 outputs",
     [](ModelProto &m) { addNode(m.mutable_graph(), "Relu", {"y"}, {"z", "zz"}); }},
    {"UnknownAttribute", FailureKind::BadInput, "is not one of its operator's",
     [](ModelProto &m) { addInt(m.mutable_graph()->mutable_node(0), "speed", 11); }},
    {"AttributeOfALaterVersion", FailureKind::BadInput, "is not one of its operator's",
     [](ModelProto &m) {
       m.mutable_opset_import(0)->set_version(17);
       addInt(addNode(m.mutable_graph(), "ReduceMean", {"y"}, {"z"}), "noop_with_empty_axes", 1);
     }},
    {"AttributeOfWrongType", FailureKind::BadInput, "its operator expects",
     [](ModelProto &m) { addInt(addNode(m.mutable_graph(), "Transpose", {"y"}, {"z"}), "perm", 1); }},
    {"AttributeMissing", FailureKind::BadInput, "lacks attribute 'to'",
     [](ModelProto &m) { addNode(m.mutable_graph(), "Cast", {"y"}, {"z"}); }},
    {"AttributeTwice", FailureKind::BadInput, "occurs twice",
     [](ModelProto &m) {
       NodeProto *node = addNode(m.mutable_graph(), "Softmax", {"y"}, {"z"});
       addInt(node, "axis", 1);
       addInt(node, "axis", 0);
     }},
    {"AttributeWithoutValue", FailureKind::BadInput, "has no value",
     [](ModelProto &m) {
       NodeProto *node = addNode(m.mutable_graph(), "ConstantOfShape", {"y"}, {"z"});
       AttributeProto *attribute = node->add_attribute();
       attribute->set_name("value");
       attribute->set_type(AttributeProto::TENSOR);
     }},
    {"AttributeReferenceOutsideFunction", FailureKind::BadInput, "outside of any function",
     [](ModelProto &m) {
       NodeProto *node = addNode(m.mutable_graph(), "Softmax", {"y"}, {"z"});
       addInt(node, "axis", 1)->set_ref_attr_name("axis");
     }},
    {"ConstantWithTwoValues", FailureKind::BadInput, "one attribute and one output",
     [](ModelProto &m) {
       NodeProto *node = addNode(m.mutable_graph(), "Constant", {}, {"z"});
       addInt(node, "value_int", 1);
       AttributeProto *attribute = addInt(node, "value_float", 1);
       attribute->set_type(AttributeProto::FLOAT);
     }},
    {"NestedTooDeep", FailureKind::BadInput, "nested deeper", [](ModelProto &m) { nest(m.mutable_graph(), 33); }},
    {"NestedFarTooDeep", FailureKind::BadInput, "nested deeper", [](ModelProto &m) { nest(m.mutable_graph(), 5000); }},
    {"LongName", FailureKind::BadInput, "a name of 5000 bytes",
     [](ModelProto &m) { m.mutable_graph()->mutable_node(0)->set_name(std::string(5000, 'n')); }},
    {"NegativeDim", FailureKind::BadInput, "a dimension of -3",
     [](ModelProto &m) { m.mutable_graph()->mutable_initializer(0)->set_dims(0, -3); }},
    {"ShapeOverflow", FailureKind::BadInput, "leaves 63 bits",
     [](ModelProto &m) {
       for (int i : {0, 1})
         m.mutable_graph()->mutable_initializer(0)->set_dims(i, 1L << 32);
     }},
    {"ByteOverflow", FailureKind::BadInput, "leaves 63 bits",
     [](ModelProto &m) {
       m.mutable_graph()->mutable_initializer(0)->set_dims(0, 1L << 61);
       m.mutable_graph()->mutable_initializer(0)->set_dims(1, 3);
     }},
    {"RankTooHigh", FailureKind::BadInput, "has rank 17",
     [](ModelProto &m) {
       auto *tensor = m.mutable_graph()->mutable_initializer(0);
       tensor->clear_dims();
       for (int i = 0; i != 17; ++i)
         tensor->add_dims(1);
     }},
    {"TooFewElements", FailureKind::BadInput, "12 elements of data where its shape needs 2000000",
     [](ModelProto &m) { m.mutable_graph()->mutable_initializer(0)->set_dims(0, 500000); }},
    {"TooFewRawBytes", FailureKind::BadInput, "3 bytes of data where its shape needs 48",
     [](ModelProto &m) { m.mutable_graph()->mutable_initializer(0)->set_raw_data("abc"); }},
    {"UnknownElementType", FailureKind::BadInput, "element type 77",
     [](ModelProto &m) { m.mutable_graph()->mutable_initializer(0)->set_data_type(77); }},
    {"Float8", FailureKind::Unsupported, "element type float8e4m3fn, which is not supported",
     [](ModelProto &m) { m.mutable_graph()->mutable_initializer(0)->set_data_type(TensorProto::FLOAT8E4M3FN); }},
    {"StringInitializer", FailureKind::Unsupported, "element type string",
     [](ModelProto &m) { m.mutable_graph()->mutable_initializer(0)->set_data_type(TensorProto::STRING); }},
    {"Segment", FailureKind::Unsupported, "split into segments",
     [](ModelProto &m) { m.mutable_graph()->mutable_initializer(0)->mutable_segment()->set_end(4); }},
    {"SparseInitializer", FailureKind::Unsupported, "sparse initializers",
     [](ModelProto &m) { m.mutable_graph()->add_sparse_initializer()->add_dims(3); }},
    {"RecursiveFunction", FailureKind::BadInput, "calls itself",
     [](ModelProto &m) {
       addFunction(m, "F", {"F"});
       callFunction(m, "F");
     }},
    {"MutuallyRecursiveFunctions", FailureKind::BadInput, "calls itself",
     [](ModelProto &m) {
       addFunction(m, "F", {"G"});
       addFunction(m, "G", {"Relu", "F"});
       callFunction(m, "F");
     }},
    {"RecursiveFunctionWithoutCalls", FailureKind::BadInput, "calls itself",
     [](ModelProto &m) { addFunction(m, "F", {"F"}); }},
    {"DoublingFunctions", FailureKind::BadInput, "inlining the model's functions makes",
     [](ModelProto &m) {
       addFunction(m, "F0", {"Relu", "Relu"});
       for (int i = 1; i != 60; ++i)
         addFunction(m, "F" + std::to_string(i), {"F" + std::to_string(i - 1), "F" + std::to_string(i - 1)});
       callFunction(m, "F59");
     }},
    {"FunctionTwice", FailureKind::BadInput, "is defined twice",
     [](ModelProto &m) {
       addFunction(m, "F", {"Relu"});
       addFunction(m, "F", {"Relu"});
     }},
    {"FunctionWithTooManyArguments", FailureKind::BadInput, "its function has 1 and 1",
     [](ModelProto &m) {
       addFunction(m, "F", {"Relu"});
       callFunction(m, "F");
       m.mutable_graph()->mutable_node(2)->add_input("y");
     }},
    {"FunctionReadsNothing", FailureKind::BadInput, "nothing defines",
     [](ModelProto &m) {
       addFunction(m, "F", {"Relu"})->mutable_node(0)->set_input(0, "ghost");
       callFunction(m, "F");
     }},
    {"UnboundDimension", FailureKind::Usage, "--dim n=8",
     [](ModelProto &m) {
       m.mutable_graph()
           ->mutable_input(0)
           ->mutable_type()
           ->mutable_tensor_type()
           ->mutable_shape()
           ->mutable_dim(0)
           ->set_dim_param("n");
     }},
};
} // namespace

TEST_P(HostileModel, IsRefusedInWords) {
  ModelProto model = makeLinear();
  GetParam().corrupt(model);
  Outcome outcome = importModel(model);
  EXPECT_EQ(outcome.failure, GetParam().failure) << outcome.messages;
  EXPECT_THAT(outcome.messages, testing::HasSubstr(GetParam().message));
  EXPECT_GE(outcome.numErrors, 1u);
}

INSTANTIATE_TEST_SUITE_P(Import, HostileModel, testing::ValuesIn(badModels),
                         [](const auto &info) { return info.param.name; });

TEST(HostileBytes, GoodModelIsImported) {
  Outcome outcome = importModel(makeLinear());
  EXPECT_EQ(outcome.failure, FailureKind::None) << outcome.messages;
}

TEST(HostileBytes, NodesInAnotherOrderAreSorted) {
  // A branch reads what comes last. Names of its own say nothing about the order.
  Outcome outcome = importModel(parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (bool c, float[2] x) => (float[2] y, float[2] d) {
      y = If (c) <then_branch = t () => (float[2] p) { p = Relu(h) }, else_branch = e () => (float[2] q) { d = Neg(x) q = Abs(d) }>
      h = Add(x, k)
      k = Exp(x)
      d = Abs(x)
    })"));
  EXPECT_EQ(outcome.failure, FailureKind::None) << outcome.messages;
  EXPECT_THAT(outcome.messages, testing::HasSubstr("nodes were listed before what they read"));
  EXPECT_EQ(importModel(makeLinear()).messages, "");
}

TEST(HostileBytes, EmptyFile) { EXPECT_EQ(importBytes("").failure, FailureKind::BadInput); }

TEST(HostileBytes, EveryTruncationIsRefusedOrSound) {
  std::string bytes = makeLinear().SerializeAsString();
  for (size_t size = 0; size != bytes.size(); ++size) {
    Outcome outcome = importBytes(bytes.substr(0, size));
    EXPECT_TRUE(outcome.failure == FailureKind::BadInput || outcome.failure == FailureKind::Unsupported) << size;
    EXPECT_GE(outcome.numErrors, 1u) << size;
  }
}

/// A refusal always says something; acceptance never does.
TEST(HostileBytes, MutationsNeverCrash) {
  std::string bytes = makeLinear().SerializeAsString();
  std::mt19937 random(20);
  for (int i = 0; i != 4000; ++i) {
    std::string mutant = bytes;
    for (unsigned n = 1 + random() % 4; n; --n)
      mutant[random() % mutant.size()] = static_cast<char>(random());
    Outcome outcome = importBytes(mutant);
    EXPECT_EQ(outcome.failure != FailureKind::None, outcome.numErrors != 0) << outcome.messages;
  }
}

TEST(HostileBytes, ErrorsAreCollectedUpToALimit) {
  ModelProto model = makeLinear();
  for (int i = 0; i != 250; ++i)
    addNode(model.mutable_graph(), "Relu", {"ghost" + std::to_string(i)}, {"r" + std::to_string(i)});
  Outcome outcome = importModel(model);
  EXPECT_EQ(outcome.numErrors, 101u);
  EXPECT_THAT(outcome.messages, testing::HasSubstr("150 more errors"));
}

TEST(HostileBytes, NodeLimit) {
  ModelProto model = makeLinear();
  ImportLimits limits;
  limits.nodes = 1;
  EXPECT_THAT(importModel(model, {}, limits).messages, testing::HasSubstr("more than 1 nodes"));
}

TEST(HostileBytes, ControlCharactersAreEscaped) {
  ModelProto model = makeLinear();
  model.mutable_graph()->mutable_node(0)->set_input(0, "evil\x1b[31m");
  EXPECT_THAT(importModel(model).messages, testing::HasSubstr("evil\\x1B[31m"));
}

/// What the importer prints, the parser reads.
TEST(ImportedText, RoundTrips) {
  for (const char *text : {R"(<ir_version: 10, opset_import: ["" : 20]>
           g (bool c, float[2] x) => (float[2] y) <float[2] w = {1, -2}, int64[2] s = {1, 2}, bool[2] m = {1, 0}> {
             k = Constant<value_floats = [1.5, nan]> ()
             a = Clip(x, , k)
             h = Where(m, a, w)
             y = If (c) <then_branch = t () => (float[2] p) { p = Relu(h) }, else_branch = e () => (float[2] q) { q = Identity(x) }>
           })",
                           R"(<ir_version: 10, opset_import: ["" : 20]>
           g (float[2,n] x) => (float[2,n] y) { y = Softmax<axis = -1> (x) })"}) {
    RecordingContext recording;
    OnnxFile file(recording.context, "model.onnx");
    ImportOptions options;
    if (std::string(text).find("2,n") != std::string::npos)
      options.dims["n"] = 3;
    ASSERT_TRUE(mlir::succeeded(file.loadText(text))) << recording.messages;
    auto module = importOnnx(file, options);
    ASSERT_TRUE(mlir::succeeded(module)) << recording.messages;
    auto print = [](mlir::ModuleOp op) {
      std::string printed;
      llvm::raw_string_ostream os(printed);
      op.print(os, mlir::OpPrintingFlags().enableDebugInfo());
      return printed;
    };
    std::string printed = print(**module);
    auto parsed = mlir::parseSourceString<mlir::ModuleOp>(printed, &recording.context);
    ASSERT_TRUE(parsed) << printed << recording.messages;
    EXPECT_EQ(print(*parsed), printed);
  }
}

TEST(Hostile, ADefaultOfALaterVersionIsRead) {
  // As ONNX's converter leaves it in opsets below 18; another value means another operation (above).
  ModelProto model = makeLinear();
  model.mutable_opset_import(0)->set_version(17);
  addInt(addNode(model.mutable_graph(), "ReduceMean", {"y"}, {"z"}), "noop_with_empty_axes", 0);
  Outcome outcome = importModel(model);
  EXPECT_EQ(outcome.failure, FailureKind::None) << outcome.messages;
}

//===- FindingsTest.cpp - kinds of findings, and their words ----------------------===//

#include "TestModel.h"

#include "gmock/gmock.h"

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::ModelProto;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Findings, WordsHaveTheirPlacesFilled) {
  Finding finding{FindingKind::FoldedFromOne, "w_t", {"fc.weight"}};
  finding.places = {
      {"initializer", "'w_t'"}, {"parameter", "'fc.weight'"}, {"what differs", "was doubled"}, {"name", "fc.weight"}};
  EXPECT_EQ(finding.describe(),
            "initializer 'w_t' was folded from parameter 'fc.weight' and was doubled: training it is "
            "not training the parameter");
  EXPECT_EQ(finding.describeRemedy(), "export with optimize=False, or freeze it: --frozen fc.weight");
  EXPECT_EQ(finding.getCertainty(), Certainty::Stated);
  EXPECT_EQ(stringifyFindingKind(finding.kind), "folded-from-one");
}

TEST(Findings, NamesStandInWords) {
  Finding finding{FindingKind::DetachLost, "z", {"z", "q {1}"}};
  EXPECT_THAT(finding.describe(), HasSubstr("gradients flow through z, q {1}"));
  finding.places = {{"names", "z (of linear_1)"}};
  EXPECT_THAT(finding.describe(), testing::EndsWith("gradients flow through z (of linear_1)"));
}

TEST(Findings, AreListedOnceAndHaveNames) {
  RecordingContext recording;
  Report report(recording.context, "model.onnx", 10);
  for (const char *fault : {"was doubled", "was doubled", "was halved"})
    report.add({FindingKind::FoldedFromOne,
                "gate",
                {},
                {{"initializer", "'gate'"}, {"parameter", "'g'"}, {"what differs", fault}, {"name", "g"}}});
  report.add({FindingKind::EpsilonsRestored, "gate"});
  std::vector<FindingKind> kinds;
  for (const Finding &finding : report.getFindings()) {
    kinds.push_back(finding.kind);
    EXPECT_THAT(finding.names, ElementsAre("gate"));
  }
  EXPECT_THAT(kinds,
              ElementsAre(FindingKind::FoldedFromOne, FindingKind::FoldedFromOne, FindingKind::EpsilonsRestored));
  // Each is a warning with what helps, where it was found.
  EXPECT_THAT(recording.messages, HasSubstr("folded from parameter 'g' and was halved"));
  EXPECT_THAT(recording.messages, HasSubstr("export with optimize=False to keep the program's own number"));
  EXPECT_EQ(report.getFirst(), FailureKind::None);
}

/// Keys of what is found in a model, from its bytes to its IR.
static std::vector<std::string> keysOf(const ModelProto &model) {
  RecordingContext recording;
  OnnxFile file(recording.context, "model.onnx");
  const std::string bytes = model.SerializeAsString();
  if (succeeded(file.loadBytes(llvm::ArrayRef(bytes.data(), bytes.size()))))
    (void)importOnnx(file, ImportOptions());
  std::vector<std::string> keys;
  for (const Finding &finding : file.getReport().getFindings())
    keys.push_back(stringifyFindingKind(finding.kind).str());
  return keys;
}

TEST(Findings, ParametersUnderNamesThatNothingReads) {
  for (bool isUsed : {false, true}) {
    ModelProto model = parseModel(R"(
      <ir_version: 11, opset_import: ["" : 23]>
      g (float[2,4] x) => (float[2,4] y) <float[4] w = {1, 2, 3, 4}> {
        y = Mul(x, w)
      })");
    std::vector<std::string> parameters = {"w"};
    if (!isUsed)
      parameters.push_back("spare.weight");
    setSignature(model, parameters, "x: USER_INPUT\n\n# outputs\ny: USER_OUTPUT\n");
    setOperation(model, 0, "y", 1, "mul.Tensor", "%x, %p_w");
    EXPECT_EQ(keysOf(model), isUsed ? std::vector<std::string>() : std::vector<std::string>{"parameters-unread"});
  }
}

TEST(Findings, AttentionLostItsDropout) {
  auto make = [](const char *operands) {
    ModelProto model = parseModel(R"(
      <ir_version: 11, opset_import: ["" : 23]>
      g (float[1,2,3,4] x) => (float[1,2,3,4] y) <float[4] w = {1, 2, 3, 4}> {
        q = Mul(x, w)
        y = Attention(q, x, x)
      })");
    setSignature(model, {"w"}, "x: USER_INPUT\n\n# outputs\ny: USER_OUTPUT\n");
    setOperation(model, 0, "q", 1, "mul.Tensor", "%x, %p_w");
    setOperation(model, 1, "y", 1, "scaled_dot_product_attention.default", operands);
    return model;
  };
  EXPECT_THAT(keysOf(make("%q, %x, %x, None, 0.25")), ElementsAre("attention-dropout-lost"));
  EXPECT_THAT(keysOf(make("%q, %x, %x")), IsEmpty());
}

TEST(Findings, BlocksThatConvertMayBeEitherMode) {
  auto make = [](const char *operation, const std::string &around = "") {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}> {
        h = Mul(x, w)
        z = Relu(h)
        y = Sub(x, z)
      })");
    setSignature(model, {"w"}, "x: USER_INPUT\n\n# outputs\ny: USER_OUTPUT\n");
    setOperation(model, 0, "h", 1, "mul.Tensor", "%x, %p_w");
    setOperation(model, 1, "z", 1, operation, "%h,");
    setOperation(model, 2, "y", 1, "sub.Tensor", "%x, %z");
    setNote(model, 1, "pkg.torch.onnx.stack_trace", around + "File \"<eval_with_key>.7\", line 3, in forward");
    return model;
  };
  EXPECT_THAT(keysOf(make("_to_copy.default")), ElementsAre("block-mode-unknown"));
  // Code below a line of the program's is that of torch.cond or scan, through which gradients flow.
  const std::string line = "File \"net.py\", line 9, in forward\n    c, z = scan(step, start, h)\n  ";
  EXPECT_THAT(keysOf(make("_to_copy.default", line)), IsEmpty());
}

TEST(Findings, BlocksThatParametersNeedAreTakenForAutocast) {
  // autocast(enabled=False) converts nothing, and leaves the same notes as no_grad.
  auto make = [](const std::string &block, const std::string &loss, int inBlock) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}, float[4] v = {4, 3, 2, 1}> {
        h = Mul(x, w)
        )" + block + R"(
        y = )" + loss + R"(
      })");
    setSignature(model, {"w", "v"}, "x: USER_INPUT\n\n# outputs\ny: USER_OUTPUT\n");
    setOperation(model, 0, "h", 1, "mul.Tensor", "%x, %p_w");
    for (int node = 1; node <= inBlock; ++node) {
      setOperation(model, node, model.graph().node(node).output(0), 1, "op.default", "%h,");
      setNote(model, node, "pkg.torch.onnx.stack_trace", "File \"<eval_with_key>.7\", line 3, in forward");
    }
    return keysOf(model);
  };
  // All that w reaches passes the block; so does a layer of the block's own, of what the network made.
  EXPECT_THAT(make("z = Relu(h)", "Mul(z, v)", 1), ElementsAre("block-mode-unknown"));
  EXPECT_THAT(make("z = Mul(h, v)", "Add(h, z)", 1), ElementsAre("block-mode-unknown"));
  // A target of what is trained elsewhere, a teacher's of the batch: no gradient, which is said.
  EXPECT_THAT(make("z = Relu(h) u = Mul(h, v)", "Sub(u, z)", 1), ElementsAre("block-without-gradient"));
  EXPECT_THAT(make("z = Mul(x, v)", "Sub(h, z)", 1), ElementsAre("block-without-gradient"));
  // Nothing depends on the mode where no parameter's gradient would pass.
  EXPECT_THAT(make("z = Relu(x) u = Mul(h, v)", "Sub(u, z)", 1), IsEmpty());
  EXPECT_THAT(make("c = Sign(h) z = Relu(c) u = Mul(h, v)", "Sub(u, z)", 2), IsEmpty());
}

TEST(Findings, ParametersKeepAWayToTheLoss) {
  // Two blocks, which alone read what a layer made: itself and its squares, as structural similarity has it.
  auto make = [](const std::string &loss) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}, float[4] v = {4, 3, 2, 1}> {
        h = Mul(x, w)
        r = Mul(h, h)
        z = Relu(h)
        u = Abs(r)
        )" + loss + "}");
    setSignature(model, {"w", "v"}, "x: USER_INPUT\n\n# outputs\ny: USER_OUTPUT\n");
    setOperation(model, 0, "h", 2, "mul.Tensor", "%x, %p_w");
    for (int node : {2, 3}) {
      setOperation(model, node, model.graph().node(node).output(0), 1, "op.default", "%h,");
      setNote(model, node, "pkg.torch.onnx.stack_trace",
              "File \"<eval_with_key>." + std::to_string(node) + "\", line 3, in forward");
    }
    return keysOf(model);
  };
  EXPECT_THAT(make("o = Add(z, u) y = Mul(o, v)"), ElementsAre("block-mode-unknown"));
  // Another way is enough.
  EXPECT_THAT(make("o = Add(z, u) p = Mul(o, v) y = Add(h, p)"), ElementsAre("block-without-gradient"));
}

TEST(Findings, CheckpointsLackBuffers) {
  auto make = [](const char *persistent) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}> { y = Mul(x, w) })");
    setSignature(model, {"w"},
                 std::string("b_anchor: BUFFER target='anchor' persistent=") + persistent +
                     "\nx: USER_INPUT\n\n# outputs\ny: USER_OUTPUT\n");
    setOperation(model, 0, "y", 1, "mul.Tensor", "%x, %p_w");
    return model;
  };
  EXPECT_THAT(keysOf(make("True")), ElementsAre("buffers-not-saved"));
  EXPECT_THAT(keysOf(make("False")), IsEmpty());
}

TEST(Findings, OneTrainingIsTaken) {
  ModelProto model = makeLinear();
  EXPECT_THAT(keysOf(model), IsEmpty());
  for (int i = 0; i < 2; ++i)
    model.add_training_info()->mutable_algorithm()->set_name("sgd");
  EXPECT_THAT(keysOf(model), testing::Contains("trainings-skipped"));
  model.mutable_training_info()->RemoveLast();
  EXPECT_THAT(keysOf(model), testing::Not(testing::Contains("trainings-skipped")));
  auto &node = *model.mutable_training_info(0)->mutable_initialization()->add_node();
  node.set_op_type("Identity");
  node.add_input("w");
  node.add_output("w_start");
  EXPECT_THAT(keysOf(model), testing::Contains("initialization-skipped"));
}

TEST(Findings, ASumThatALineSpellsIsNoLayer) {
  // q = maximum(x, x + self.first), and then y = x + self.first - q.
  auto say = [](const std::string &code, const std::string &block = "net.py") {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x) => (float[2,2] y) <float[2] "b.first" = {1, 2}> {
        add = Add(x, "b.first")
        maximum = Max(x, add)
        y = Sub(add, maximum)
      })");
    setSignature(model, {"b.first"}, "x: USER_INPUT\n\n# outputs\nsub: USER_OUTPUT\n");
    setOperation(model, 0, "add", 1, "add.Tensor", "%x, %p_b_first");
    setOperation(model, 1, "maximum", 1, "maximum.default", "%x, %add");
    setOperation(model, 2, "sub", 1, "sub.Tensor", "%add_1, %maximum");
    const std::string key = "pkg.torch.onnx.stack_trace", first = "File \"net.py\", line 7, in forward\n    ";
    setNote(model, 0, key, first + "q = torch.maximum(x, x + self.first)");
    setNote(model, 1, key, first + "q = torch.maximum(x, x + self.first)");
    setNote(model, 2, key, "File \"" + block + "\", line 8, in forward\n    " + code);
    return importModel(model).messages;
  };
  const std::string said = "runs layers again on the same values";
  EXPECT_THAT(say("return x + self.b.first - q"), Not(HasSubstr(said)));
  EXPECT_THAT(say("return first + x - q"), Not(HasSubstr(said)));
  // A block without gradients gives it under a name; other arithmetic with the parameter; another name; a comment.
  EXPECT_THAT(say("return t - q"), HasSubstr(said));
  EXPECT_THAT(say("return t - q * self.first"), HasSubstr(said));
  EXPECT_THAT(say("return t + self.first_of_all - q"), HasSubstr(said));
  EXPECT_THAT(say("return t - q  # x + self.first"), HasSubstr(said));
  EXPECT_THAT(say("return x + self.first - q", "<eval_with_key>.7"), HasSubstr(said));
}

TEST(Findings, AnEvaluatedDropoutIsOneDraw) {
  // Three dropouts, of which the second one read no input.
  auto say = [](const std::string &sources, int last = 2, const std::string &values = "1, 2") {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2] x) => (float[2] y)
      <float[2] w = {1, 2}, float ratio = {0.5}, bool trains = {1}, float[2] getitem_2 = {)" +
                                  values + R"(}> {
        a = Mul(x, w)
        getitem = Dropout(a, ratio, trains)
        b = Add(getitem, getitem_2)
        getitem_4 = Dropout(b, ratio, trains)
        y = Mul(getitem_4, w)
      })");
    setSignature(model, {"w"});
    setOperation(model, 1, "native_dropout", 1, "native_dropout.default", "%a, 0.5, True");
    setOperation(model, 3, "native_dropout_" + std::to_string(last), 1, "native_dropout.default", "%b, 0.5, True");
    setFoldedFrom(model, "getitem_2", sources);
    return importModel(model).messages;
  };
  const std::string said = "the file holds one draw of it, which is read in every step: getitem_2";
  EXPECT_THAT(say("['arange', 'sin']"), HasSubstr(said));
  // No dropout is gone: another operation's result.
  EXPECT_THAT(say("['arange', 'sin']", 1), Not(HasSubstr(said)));
  // A sign of what was dropped, next to what was not.
  EXPECT_THAT(say("['arange', 'sin']", 1, "-0, 2"), HasSubstr(said));
  EXPECT_THAT(say("['arange', 'sin']", 1, "0, 2"), Not(HasSubstr(said)));
}

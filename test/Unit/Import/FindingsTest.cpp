//===- FindingsTest.cpp - kinds of findings, and their words ----------------------===//

#include "TestModel.h"

#include "llvm/ADT/StringSet.h"

#include "gmock/gmock.h"

using namespace lowtide;
using namespace lowtide::test;
using testing::ElementsAre;
using testing::HasSubstr;

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

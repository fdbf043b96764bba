//===- ExchangeBlocksTest.cpp - which bindings travel, and in what ---------===//

#include "runtime/ExchangeBlocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace lowtide;
using namespace lowtide::rt;
using testing::ElementsAre;

namespace {

TEST(ExchangeBlocks, WhatTravels) {
  const BoundTensor bindings[] = {
      {plan::Binding::PARAM, "layer.weight", 400, 4},
      {plan::Binding::PARAM, "scale", 4, 4},
      {plan::Binding::STATE, "layer.weight.exp_avg", 400, 4},
      {plan::Binding::STATE, "scale.exp_avg", 4, 4},      // a parameter's, if of one number
      {plan::Binding::STATE, "loss_scale", 4, 4},         // the step's
      {plan::Binding::STATE, "loss_scale.skipped", 4, 4}, // no parameter has that name
      {plan::Binding::STATE, "norm.running_mean", 8, 4},
      {plan::Binding::CONSTANT, "one", 4, 4},
      {plan::Binding::BATCH, "x", 257, 1},
      {plan::Binding::BATCH, "empty", 0, 4},
      {plan::Binding::SCALAR, "lr", 4, 4},
      {plan::Binding::METRIC, "loss", 4, 4},
      {plan::Binding::OUTPUT, "logits", 400, 4},
  };
  EXPECT_THAT(findTravels(bindings),
              ElementsAre(Travel::None, Travel::None, Travel::None, Travel::None, Travel::Out, Travel::Out,
                          Travel::None, Travel::None, Travel::In, Travel::None, Travel::In, Travel::Out, Travel::None));
  BlockBytes blocks;
  ASSERT_TRUE(blocks.include(bindings));
  EXPECT_EQ(blocks.in, 256u + 512 + 256);
  EXPECT_EQ(blocks.out, 256u + 3 * 256);
  // A smaller entry changes nothing; one that cannot be counted is none.
  ASSERT_TRUE(blocks.include({}));
  EXPECT_EQ(blocks.in, 1024u);
  const BoundTensor huge[] = {{plan::Binding::BATCH, "x", uint64_t(1) << 46, 4}, {plan::Binding::BATCH, "y", 4, 4}};
  EXPECT_FALSE(blocks.include(huge));
  EXPECT_EQ(blocks.in, 1024u);
}

} // namespace

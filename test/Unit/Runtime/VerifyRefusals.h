//===- VerifyRefusals.h - plans with one thing wrong ------------*- C++ -*-===//
#pragma once

#include "Regression.h"
#include "runtime/Verify.h"

#include <gtest/gtest.h>

#include <functional>

namespace lowtide::rt::test {

/// The regression plan, after `change`, must be refused with `words` in its message.
inline void refused(const std::function<void(plan::Plan &)> &change, const char *words) {
  plan::Plan plan = regressionPlan();
  change(plan);
  Status status = verifyPlan(plan);
  EXPECT_EQ(status.code(), StatusCode::VerifyFailed) << words;
  EXPECT_NE(status.str().find(words), std::string::npos) << "got: " << status.str() << "\nwanted: " << words;
}

inline plan::Entry &train(plan::Plan &plan) { return *plan.mutable_entries(0); }
inline plan::Launch &subtract(plan::Plan &plan) { return *train(plan).mutable_instructions(1)->mutable_launch(); }
inline plan::Call &product(plan::Plan &plan) { return *train(plan).mutable_instructions(0)->mutable_call(); }

} // namespace lowtide::rt::test

//===- Blocks.cpp - what each block keeps ---------------------------------===//
#include "../Model/Ladder.h"
#include "Method.h"
#include "lowtide/Solve/Searches/BlockChain.h"

namespace lowtide::solve {
namespace {

class BlockPlans : public Method {
public:
  using Method::Method;
  std::vector<FittedSchedule> listFinished() override {
    std::vector<FittedSchedule> plans;
    BlockChain chain(task.graph, task.order);
    const uint64_t low = findLowerBound(task.graph).bytes;
    const unsigned rungs = 4 * task.levels;
    for (unsigned rung = 0; rung < rungs; ++rung)
      if (std::optional<FittedSchedule> plan = chain.plan(getRung(low, task.mostBytes, rung, rungs)))
        plans.push_back(std::move(*plan));
    return plans;
  }
};

} // namespace

std::vector<MethodRow> listBlocksRows() {
  return {{40, "blocks", "what each block keeps and which run again from a checkpoint, from a table",
           makeMethod<BlockPlans>}};
}

} // namespace lowtide::solve

//===- StatisticChains.h - batch norms that run again -----------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_STATISTICCHAINS_H
#define LOWTIDE_LIB_RECOVER_STATISTICCHAINS_H

#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/StringMap.h"

namespace lowtide {

/// Of batch norms of the exported program that run again: which running statistic each run goes on from. The program
/// calls the five results of a run `getitem_5` … `getitem_9`, the last two of which are the new statistics; the file
/// has the first one. The signature outlives it.
class StatisticChains {
public:
  StatisticChains(const ::onnx::GraphProto &graph, const Signature &signature);

  /// The buffer that `norm` reads as `role` (`running_mean`) by a result of an earlier run; null: it names none.
  const SignatureEntry *find(const ::onnx::NodeProto &norm, llvm::StringRef role) const;

private:
  llvm::StringMap<const SignatureEntry *> results;
};

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_STATISTICCHAINS_H

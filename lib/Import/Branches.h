//===- Branches.h - branches that are chosen for good -----------------------------===//

#ifndef LOWTIDE_LIB_IMPORT_BRANCHES_H
#define LOWTIDE_LIB_IMPORT_BRANCHES_H

#include "onnx/onnx_pb.h"

#include "llvm/ADT/StringMap.h"

#include <map>
#include <string>
#include <vector>

namespace lowtide {

/// Names of values that the graph and the graphs within it define, each as often as it is defined.
void countNames(const ::onnx::GraphProto &graph, llvm::StringMap<unsigned> &names);

/// Puts a branch in the place of each `If` of `graph` whose condition follows from inputs that are fixed (`--set
/// use_cache_branch=false`; texts by input) or from the file, so that whoever reads the graph sees the nodes that run.
/// Inputs that other branches alone read go; their names are returned. Only booleans decide; a text that is none
/// decides nothing.
std::vector<std::string> chooseBranches(::onnx::GraphProto &graph, const std::map<std::string, std::string> &fixed);

} // namespace lowtide

#endif // LOWTIDE_LIB_IMPORT_BRANCHES_H

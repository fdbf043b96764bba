//===- OperatorGroups.h - the operators of a model, grouped ----------------------------===//

#ifndef LOWTIDE_LIB_IMPORT_OPERATORGROUPS_H
#define LOWTIDE_LIB_IMPORT_OPERATORGROUPS_H

#include "onnx/onnx_pb.h"

#include <string>
#include <vector>

namespace lowtide {

/// All nodes of one operator.
struct OperatorGroup {
  std::string domain;
  std::string name;
  /// Version of its operator set.
  int64_t version = 0;
  /// For each node the module that it came from, or its own name.
  std::vector<std::string> places;
};

/// Groups in order of first occurrence, subgraphs included.
std::vector<OperatorGroup> groupOperators(const ::onnx::ModelProto &model);

} // namespace lowtide

#endif // LOWTIDE_LIB_IMPORT_OPERATORGROUPS_H

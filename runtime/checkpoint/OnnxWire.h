//===- OnnxWire.h - initializers in the bytes of a model file --------------===//
//
// The runtime does not link ONNX. It walks the protobuf wire format as far as it must.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_CHECKPOINT_ONNXWIRE_H
#define LOWTIDE_RUNTIME_CHECKPOINT_ONNXWIRE_H

#include "plan.pb.h"
#include "runtime/Status.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lowtide::rt {

/// Where the values of an initializer lie: in the model file, or in an external one.
struct InitializerPlace {
  plan::DType dtype = plan::DTYPE_UNSPECIFIED;
  uint64_t onnxType = 0; ///< TensorProto.data_type
  std::vector<uint64_t> dims;
  std::string external; ///< file name, or empty
  uint64_t offset = 0, bytes = 0;
  uint64_t stride = 0; ///< bytes from one element to the next; 0: they lie side by side
  bool found = false;

  /// From one element of so many bytes to the next.
  uint64_t step(uint64_t element) const { return stride ? stride : element; }
};

/// Initializers and constants of the main graph and of the graphs within it, by the names that artifacts give them: of
/// several tensors of one name, one within another graph goes by the name of its graph as well (`w@then_branch`).
Expected<std::map<std::string, InitializerPlace>> findInitializers(std::span<const uint8_t> model);

/// Changes to a graph that move bytes.
struct GraphEdit {
  /// New name of what operand `second` of the node reads whose first named output is `first`; may be one after its
  /// last.
  std::map<std::pair<std::string, int64_t>, std::string> reads;
  /// TensorProtos to add to the initializers.
  std::vector<std::string> initializers;
  /// New names of files with external data, by the old ones.
  std::map<std::string, std::string> locations;

  bool isEmpty() const { return reads.empty() && initializers.empty() && locations.empty(); }
};

/// A TensorProto of `place`'s type and dimensions.
std::string writeInitializer(const std::string &name, const InitializerPlace &place, std::span<const uint8_t> values);

/// The model with the edit made. `edit` keeps the reads that were not found (nodes inside of local functions).
Expected<std::vector<uint8_t>> editGraph(std::span<const uint8_t> model, GraphEdit &edit);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CHECKPOINT_ONNXWIRE_H

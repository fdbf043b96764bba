//===- ExternalData.h - tensors kept beside the model
//------------------------------===//
//
// Opens and streams external data without ever leaving the model's own folder.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_LIB_IMPORT_EXTERNALDATA_H
#define LOWTIDE_LIB_IMPORT_EXTERNALDATA_H

#include "lowtide/Recover/Report.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/LogicalResult.h"

#include "onnx/onnx_pb.h"

#include <optional>

namespace lowtide {

/// Where the bytes of a tensor lie.
struct ExternalRange {
  std::string location;
  uint64_t offset = 0;
  /// Absent: as many as the tensor needs.
  std::optional<uint64_t> length;
};

/// Reads and checks the `external_data` entries of `tensor`; no file is
/// touched. Errors go to `report`.
std::optional<ExternalRange> parseExternalRange(const ::onnx::TensorProto &tensor, Report &report);

/// Whether the file beside `modelPath` has `bytes` bytes at `range`; none is read. Refuses whatever is not a plain file
/// with one link inside the model's folder.
llvm::LogicalResult checkExternal(llvm::StringRef modelPath, llvm::StringRef tensor, const ExternalRange &range,
                                  uint64_t bytes, Report &report);

/// Streams `bytes` bytes at `range` from the file beside `modelPath`. Refuses what `checkExternal` does.
llvm::LogicalResult streamExternal(llvm::StringRef modelPath, llvm::StringRef tensor, const ExternalRange &range,
                                   uint64_t bytes, Report &report, llvm::function_ref<void(llvm::ArrayRef<char>)> sink);

} // namespace lowtide

#endif // LOWTIDE_LIB_IMPORT_EXTERNALDATA_H

//===- FrameworkTensor.h - parameters as the exporting framework knows them ===//
#ifndef LOWTIDE_RUNTIME_CHECKPOINT_FRAMEWORKTENSOR_H
#define LOWTIDE_RUNTIME_CHECKPOINT_FRAMEWORKTENSOR_H

#include "runtime/FewBits.h"
#include "runtime/Session.h"
#include "runtime/checkpoint/Safetensors.h"

#include <optional>
#include <span>

namespace lowtide::rt {

/// The source of a parameter or buffer, or null if it has none (optimizer state).
const plan::ParameterSource *findSource(const plan::Plan &plan, const std::string &name);

/// Whose layout a checkpoint gives a tensor: that of its own source, or of an optimizer's state, as `NAME.exp_avg`,
/// that of the parameter among `persistent`; null: as it is stored. What sums over a dimension of the parameter has one
/// in its place. Codes lie block by block, as they are stored.
const plan::ParameterSource *findLayout(const plan::Plan &plan, std::span<const Tensor> persistent,
                                        const plan::Binding &binding);

/// Shape of a stored tensor in the exporting framework: before ParameterSource.permutation was applied, and without
/// dimensions of one that an exporter added. `source` may be null.
std::vector<int64_t> originalDims(const plan::Binding &binding, const plan::ParameterSource *source);

/// Whether a tensor holds scales of a matrix that is held in codes, which alone frameworks know.
bool isScales(const plan::ParameterSource *source);
/// Codes and scales of a matrix in few bits (runtime/FewBits.h).
struct CodedTensor {
  FewBits codec;
  Tensor codes, scales;
  uint64_t count; ///< of numbers

  Status bring(HostAccess access) const {
    LOWTIDE_TRY(codes.bring(access));
    return scales.bring(access);
  }
  std::vector<float> decode() const;
  /// Encodes `numbers`, if they are not what the codes stand for already; false where one is not finite.
  bool encode(std::span<const float> numbers) const;
};
/// The matrix that the codes in `tensor` stand for; nothing where it holds none, or the plan's facts do not agree.
std::optional<CodedTensor> findCoded(const Session &session, const Tensor &tensor, const plan::ParameterSource *source);

/// An entry that writes `tensor` under `name` in its original layout.
SafetensorsEntry frameworkEntry(const std::string &name, const Tensor &tensor, const plan::ParameterSource *source);
/// An entry that writes the numbers of a matrix in codes, in f32 and in its original layout.
SafetensorsEntry codedEntry(const std::string &name, const CodedTensor &coded, const plan::ParameterSource &source);
/// Shape of a matrix in codes in the exporting framework.
std::vector<int64_t> codedDims(const plan::ParameterSource &source);

/// Whether a source is no tensor of the step, but a batch norm's counter (`num_batches_tracked`) in its checkpoints.
bool isCounter(const plan::ParameterSource &source);
/// Lets a counter have the value of `array` after `steps` steps.
Status setCounter(Session &session, const plan::ParameterSource &source, const HostArray &array, int64_t steps);

/// Adds what the exporting module's state dictionary holds besides parameters and states: constants, counters after
/// `steps` steps, and the further names of tied parameters. Names that are there already are left out.
void addSavedEntries(const Session &session, int64_t steps, std::vector<SafetensorsEntry> &entries);

/// Whether `array` has the tensor's original shape, or the one that an exporter gave it.
bool fitsShape(const HostArray &array, const plan::Binding &binding, const plan::ParameterSource *source);

/// Copies an array in original layout into `tensor`; refuses another type or shape.
Status restore(const HostArray &array, const Tensor &tensor, const plan::ParameterSource *source);
/// Encodes an f32 array in original layout, if it is not what the codes stand for; refuses another type or shape.
Status restore(const HostArray &array, const CodedTensor &coded, const plan::ParameterSource &source);

/// Every GRADIENT binding of `entry`, in the original layout of its parameter.
Expected<std::vector<SafetensorsEntry>> gradientEntries(const Session &session, const std::string &entry);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CHECKPOINT_FRAMEWORKTENSOR_H

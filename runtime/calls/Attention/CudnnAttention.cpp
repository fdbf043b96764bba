//===- CudnnAttention.cpp - an attention of the plan on cuDNN -------------===//
//
// One graph of the pattern that cuDNN's fused engines take (cuDNN 9 documentation, Attention; cuDNN frontend 1.32): the
// forward pass writes o and the logarithms of sums, the derivative reads them. dq is the result of a product rather
// than a sum over blocks in any order: that is the deterministic form. It is computed for as many samples at a time as
// the plan has workspace for.
//
//===----------------------------------------------------------------------===//

#include "runtime/Verify.h"
#include "runtime/Workspace.h"
#include "runtime/calls/Attention/AttentionShape.h"
#include "runtime/devices/Cuda/CudnnOperations.h"
#include "runtime/devices/Cuda/LibraryCall.h"
#include "runtime/devices/Cuda/LoadLibraries.h"

#include <algorithm>
#include <limits>

namespace lowtide::rt::cuda {
namespace {

/// Read when a graph is enqueued.
struct Numbers {
  float scale = 1.0f, one = 1.0f, hidden = -std::numeric_limits<float>::infinity();
};

/// Some samples of a call.
class AttentionPart {
public:
  /// `numbers` live as long.
  AttentionPart(const Api &api, cudnnHandle_t handle, const AttentionShape &shape, const CallAddresses &addresses,
                const Numbers &numbers)
      : api_(api), handle_(handle), shape_(shape), addresses_(addresses), numbers_(numbers) {}

  /// `first`: the part of as many samples that is prepared first, this one or another, whose plan this one takes where
  /// its operands are aligned as well.
  Status prepare(Resources &resources, const AttentionPart &first);
  Status enqueue(CUstream stream) const { return graph_.enqueue(api_, handle_, stream); }
  const std::string &choice() const { return graph_.choice(); }

private:
  using Dims = GraphTensor::Dims;

  void buildForward(CudnnOperations &graph);
  void buildGradient(CudnnOperations &graph);
  Dims rowsBy(int64_t last) const { return {shape_.batch, shape_.heads, shape_.rows, last}; }
  /// An operand or result, at an address of the call.
  GraphTensor operand(CudnnOperations &graph, AttentionShape::Tensor tensor, bool isTransposed = false);
  GraphTensor rows(CudnnOperations &graph, int64_t last, cudnnDataType_t type, CUdeviceptr address) {
    return graph.real(type, rowsBy(last), address);
  }
  /// scale · q kᵀ + mask.
  GraphTensor scores(CudnnOperations &graph, const GraphTensor &q, const GraphTensor &transposedK);
  /// c[key head] = Σ over the heads that share it of a · b.
  void matmulOverHeads(CudnnOperations &graph, const GraphTensor &a, const GraphTensor &b, const GraphTensor &c);

  const Api &api_;
  cudnnHandle_t handle_;
  AttentionShape shape_;
  CallAddresses addresses_;
  const Numbers &numbers_;
  std::vector<CUdeviceptr> bound_;
  CudnnGraph graph_;
};

class AttentionCall final : public LibraryCall {
public:
  Status prepare(const Api &api, Resources &resources, cudnnHandle_t handle, const AttentionShape &shape,
                 const CallAddresses &addresses);
  Status enqueue(CUstream stream) override {
    for (const std::unique_ptr<AttentionPart> &part : parts_)
      LOWTIDE_TRY(part->enqueue(stream));
    return Status::ok();
  }
  std::string choice() const override {
    const std::string times = parts_.size() > 1 ? ", " + std::to_string(parts_.size()) + " times" : "";
    return parts_.front()->choice() + times;
  }

private:
  Numbers numbers_;
  std::vector<std::unique_ptr<AttentionPart>> parts_;
};

Status AttentionCall::prepare(const Api &api, Resources &resources, cudnnHandle_t handle, const AttentionShape &shape,
                              const CallAddresses &addresses) {
  numbers_.scale = static_cast<float>(shape.scale);
  AttentionShape part = shape;
  if (shape.isGradient)
    part.batch = samplesAtOnce(shape, addresses.workspaceBytes);
  if (shape.mask[0] > 1)
    part.mask[0] = part.batch;
  for (int64_t first = 0; first < shape.batch; first += part.batch) {
    CallAddresses at = addresses;
    for (int tensor = 0; tensor < AttentionShape::numTensors; ++tensor) {
      const TensorLayout &whole = shape.layouts[static_cast<size_t>(tensor)];
      part.layouts[static_cast<size_t>(tensor)].offset = whole.offset + first * whole.strides[0];
    }
    // Logarithms of sums are f32 and packed, and so are masks.
    (shape.isGradient ? at.reads[4] : at.writes[1]) +=
        static_cast<uint64_t>(first * shape.heads * shape.rows) * sizeof(float);
    if (shape.hasMask && shape.mask[0] > 1)
      at.reads.back() += static_cast<uint64_t>(first) * shape.maskElements() / static_cast<uint64_t>(shape.mask[0]) *
                         elementBytes(shape.maskDtype);
    parts_.push_back(std::make_unique<AttentionPart>(api, handle, part, at, numbers_));
    LOWTIDE_TRY(parts_.back()->prepare(resources, *parts_.front()));
  }
  return Status::ok();
}

Status AttentionPart::prepare(Resources &resources, const AttentionPart &first) {
  LibraryVersion version;
  LOWTIDE_CUDA(api_, cudnn, cudnnGetProperty, MAJOR_VERSION, &version.major);
  LOWTIDE_CUDA(api_, cudnn, cudnnGetProperty, MINOR_VERSION, &version.minor);
  if (version < leastAttentionVersion)
    return {StatusCode::Device, "cuDNN " + version.str() + " (" + api_.cudnnPath +
                                    ") is too old for attention; install nvidia-cudnn-cu13 " +
                                    leastAttentionVersion.str() + " or newer"};
  CudnnOperations graph(api_, resources);
  uint64_t taken = 0;
  if (shape_.isGradient) {
    taken = attentionDotBytes(shape_);
    if (addresses_.workspaceBytes < taken)
      return {StatusCode::Device, "the plan has " + std::to_string(addresses_.workspaceBytes) +
                                      " bytes of workspace for the derivative of an attention, which needs " +
                                      std::to_string(taken) + "; compile the model again with this release"};
    buildGradient(graph);
  } else {
    buildForward(graph);
  }
  LOWTIDE_TRY(graph.status());
  bound_.assign(graph.addresses().begin(), graph.addresses().end());
  auto isAligned = [](CUdeviceptr here, CUdeviceptr there) { return alignmentOf(here) == alignmentOf(there); };
  if (&first != this && std::equal(bound_.begin(), bound_.end(), first.bound_.begin(), first.bound_.end(), isAligned))
    return graph_.prepareLike(first.graph_, api_, resources, graph.ids(), graph.addresses(),
                              addresses_.workspace + taken);
  return graph_.prepare(api_, resources, handle_, graph.operations(), graph.ids(), graph.addresses(),
                        addresses_.workspace + taken, addresses_.workspaceBytes - taken, false);
}

GraphTensor AttentionPart::operand(CudnnOperations &graph, AttentionShape::Tensor tensor, bool isTransposed) {
  const auto &[reads, writes, workspace, bytes] = addresses_;
  const size_t part = static_cast<size_t>(tensor - AttentionShape::GradQ);
  CUdeviceptr address = tensor < AttentionShape::O        ? reads[static_cast<size_t>(tensor)]
                        : tensor == AttentionShape::GradO ? reads[5]
                        : tensor == AttentionShape::O     ? (shape_.isGradient ? reads[3] : writes[0])
                                                          : writes[shape_.sharesResult ? 0 : part];
  const TensorLayout &layout = shape_.layouts[tensor];
  const std::array<int64_t, 4> extents = shape_.dims(tensor);
  Dims dims(extents.begin(), extents.end()), strides(layout.strides.begin(), layout.strides.end());
  if (isTransposed) {
    std::swap(dims[2], dims[3]);
    std::swap(strides[2], strides[3]);
  }
  address += static_cast<uint64_t>(layout.offset) * elementBytes(shape_.dtype);
  return graph.real(dataType(shape_.dtype), std::move(dims), address, std::move(strides));
}

GraphTensor AttentionPart::scores(CudnnOperations &graph, const GraphTensor &q, const GraphTensor &transposedK) {
  GraphTensor s = graph.inside(rowsBy(shape_.columns));
  graph.matmul(q, transposedK, s);
  s = graph.pointwise(CUDNN_POINTWISE_MUL, s, graph.number(&numbers_.scale));
  if (shape_.hasMask)
    s = graph.pointwise(
        CUDNN_POINTWISE_ADD, s,
        graph.real(dataType(shape_.maskDtype), Dims(shape_.mask.begin(), shape_.mask.end()), addresses_.reads.back()));
  return s;
}

void AttentionPart::buildForward(CudnnOperations &graph) {
  using enum AttentionShape::Tensor;
  GraphTensor q = operand(graph, Q), k = operand(graph, K, true), v = operand(graph, V);
  GraphTensor s = scores(graph, q, k);
  if (shape_.isCausal)
    s = graph.selectCausal(s, graph.number(&numbers_.hidden));
  GraphTensor highest = graph.inside(rowsBy(1)), total = graph.inside(rowsBy(1));
  graph.reduce(CUDNN_REDUCE_TENSOR_MAX, s, highest);
  GraphTensor e = graph.pointwise(CUDNN_POINTWISE_EXP, graph.pointwise(CUDNN_POINTWISE_SUB, s, highest));
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, e, total);
  graph.pointwise(CUDNN_POINTWISE_ADD, highest, graph.pointwise(CUDNN_POINTWISE_LOG, total),
                  rows(graph, 1, CUDNN_DATA_FLOAT, addresses_.writes[1]));
  GraphTensor p = graph.inside(rowsBy(shape_.columns), dataType(shape_.dtype));
  graph.pointwise(CUDNN_POINTWISE_DIV, e, total, p);
  graph.matmul(p, v, operand(graph, O));
}

void AttentionPart::matmulOverHeads(CudnnOperations &graph, const GraphTensor &a, const GraphTensor &b,
                                    const GraphTensor &c) {
  if (shape_.heads == shape_.keyHeads)
    return graph.matmul(a, b, c);
  GraphTensor whole = graph.inside({c.dims[0], shape_.heads, c.dims[2], c.dims[3]}, dataType(shape_.dtype));
  graph.matmul(a, b, whole);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, whole, c);
}

void AttentionPart::buildGradient(CudnnOperations &graph) {
  using enum AttentionShape::Tensor;
  const cudnnDataType_t type = dataType(shape_.dtype);
  GraphTensor q = operand(graph, Q), k = operand(graph, K, true), v = operand(graph, V, true);
  GraphTensor o = operand(graph, O), dO = operand(graph, GradO);
  GraphTensor lse = rows(graph, 1, CUDNN_DATA_FLOAT, addresses_.reads[4]);
  // Σ o · do of each row, which engines read from memory.
  GraphTensor products = graph.pointwise(CUDNN_POINTWISE_MUL, dO, o), sums = graph.inside(rowsBy(1));
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, products, sums);
  GraphTensor dots = rows(graph, 1, CUDNN_DATA_FLOAT, addresses_.workspace);
  graph.pointwise(CUDNN_POINTWISE_MUL, sums, graph.number(&numbers_.one), dots);
  // Probabilities, and dv.
  GraphTensor s = graph.pointwise(CUDNN_POINTWISE_SUB, scores(graph, q, k), lse);
  if (shape_.isCausal)
    s = graph.selectCausal(s, graph.number(&numbers_.hidden));
  GraphTensor p = graph.pointwise(CUDNN_POINTWISE_EXP, s);
  matmulOverHeads(graph, graph.transpose(p, type), dO, operand(graph, GradV));
  // Cotangents of the scores, dk and dq.
  GraphTensor dP = graph.inside(rowsBy(shape_.columns));
  graph.matmul(dO, v, dP);
  GraphTensor dS = graph.pointwise(CUDNN_POINTWISE_MUL, graph.pointwise(CUDNN_POINTWISE_SUB, dP, dots), p);
  dS = graph.pointwise(CUDNN_POINTWISE_MUL, dS, graph.number(&numbers_.scale));
  matmulOverHeads(graph, graph.transpose(dS, type), q, operand(graph, GradK));
  graph.matmul(dS, graph.transpose(k, type), operand(graph, GradQ));
}

} // namespace

Expected<std::unique_ptr<LibraryCall>> prepareCudnnAttention(Libraries &libraries, const AttentionShape &shape,
                                                             const CallAddresses &addresses) {
  Expected<cudnnHandle_t> handle = libraries.openCudnn();
  if (!handle)
    return handle.takeStatus();
  auto call = std::make_unique<AttentionCall>();
  LOWTIDE_TRY(call->prepare(libraries.api(), libraries.resources(), *handle, shape, addresses));
  return std::unique_ptr<LibraryCall>(std::move(call));
}

} // namespace lowtide::rt::cuda

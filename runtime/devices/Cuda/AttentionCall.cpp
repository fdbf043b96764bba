//===- AttentionCall.cpp - an attention of the plan on cuDNN ---------------===//
//
// One graph of the pattern that cuDNN's fused engines take (cuDNN 9 documentation, Attention; cuDNN frontend 1.32): the
// forward pass writes o and the logarithms of sums, the derivative reads them. dq is the result of a product rather
// than a sum over blocks in any order: that is the deterministic form.
//
//===----------------------------------------------------------------------===//

#include "runtime/Verify.h"
#include "runtime/Workspace.h"
#include "runtime/devices/Cuda/CudnnOperations.h"
#include "runtime/devices/Cuda/LibraryCall.h"

#include <limits>

namespace lowtide::rt::cuda {
namespace {

class AttentionCall final : public LibraryCall {
public:
  AttentionCall(const Api &api, cudnnHandle_t handle, const AttentionShape &shape, const CallAddresses &addresses)
      : api_(api), handle_(handle), shape_(shape), addresses_(addresses), scale_(static_cast<float>(shape.scale)) {}

  Status prepare(Resources &resources);
  Status enqueue(CUstream stream) override { return graph_.enqueue(api_, handle_, stream); }
  std::string choice() const override { return graph_.choice(); }

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
  /// Read when the graph is enqueued.
  const float scale_, one_ = 1.0f, hidden_ = -std::numeric_limits<float>::infinity();
  CudnnGraph graph_;
};

Status AttentionCall::prepare(Resources &resources) {
  int version[2] = {};
  LOWTIDE_CUDA(api_, cudnn, cudnnGetProperty, MAJOR_VERSION, &version[0]);
  LOWTIDE_CUDA(api_, cudnn, cudnnGetProperty, MINOR_VERSION, &version[1]);
  if (version[0] < 9 || (version[0] == 9 && version[1] < 16))
    return {StatusCode::Device, "cuDNN " + std::to_string(version[0]) + "." + std::to_string(version[1]) +
                                    " is too old for attention; install nvidia-cudnn-cu13 9.16 or newer"};
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
  return graph_.prepare(api_, resources, handle_, graph.operations(), graph.ids(), graph.addresses(),
                        addresses_.workspace + taken, addresses_.workspaceBytes - taken, false);
}

GraphTensor AttentionCall::operand(CudnnOperations &graph, AttentionShape::Tensor tensor, bool isTransposed) {
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

GraphTensor AttentionCall::scores(CudnnOperations &graph, const GraphTensor &q, const GraphTensor &transposedK) {
  GraphTensor s = graph.inside(rowsBy(shape_.columns));
  graph.matmul(q, transposedK, s);
  s = graph.pointwise(CUDNN_POINTWISE_MUL, s, graph.number(&scale_));
  if (shape_.hasMask)
    s = graph.pointwise(
        CUDNN_POINTWISE_ADD, s,
        graph.real(dataType(shape_.maskDtype), Dims(shape_.mask.begin(), shape_.mask.end()), addresses_.reads.back()));
  return s;
}

void AttentionCall::buildForward(CudnnOperations &graph) {
  using enum AttentionShape::Tensor;
  GraphTensor q = operand(graph, Q), k = operand(graph, K, true), v = operand(graph, V);
  GraphTensor s = scores(graph, q, k);
  if (shape_.isCausal)
    s = graph.selectCausal(s, graph.number(&hidden_));
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

void AttentionCall::matmulOverHeads(CudnnOperations &graph, const GraphTensor &a, const GraphTensor &b,
                                    const GraphTensor &c) {
  if (shape_.heads == shape_.keyHeads)
    return graph.matmul(a, b, c);
  GraphTensor whole = graph.inside({c.dims[0], shape_.heads, c.dims[2], c.dims[3]}, dataType(shape_.dtype));
  graph.matmul(a, b, whole);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, whole, c);
}

void AttentionCall::buildGradient(CudnnOperations &graph) {
  using enum AttentionShape::Tensor;
  const cudnnDataType_t type = dataType(shape_.dtype);
  GraphTensor q = operand(graph, Q), k = operand(graph, K, true), v = operand(graph, V, true);
  GraphTensor o = operand(graph, O), dO = operand(graph, GradO);
  GraphTensor lse = rows(graph, 1, CUDNN_DATA_FLOAT, addresses_.reads[4]);
  // Σ o · do of each row, which engines read from memory.
  GraphTensor products = graph.pointwise(CUDNN_POINTWISE_MUL, dO, o), sums = graph.inside(rowsBy(1));
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, products, sums);
  GraphTensor dots = rows(graph, 1, CUDNN_DATA_FLOAT, addresses_.workspace);
  graph.pointwise(CUDNN_POINTWISE_MUL, sums, graph.number(&one_), dots);
  // Probabilities, and dv.
  GraphTensor s = graph.pointwise(CUDNN_POINTWISE_SUB, scores(graph, q, k), lse);
  if (shape_.isCausal)
    s = graph.selectCausal(s, graph.number(&hidden_));
  GraphTensor p = graph.pointwise(CUDNN_POINTWISE_EXP, s);
  matmulOverHeads(graph, graph.transpose(p, type), dO, operand(graph, GradV));
  // Cotangents of the scores, dk and dq.
  GraphTensor dP = graph.inside(rowsBy(shape_.columns));
  graph.matmul(dO, v, dP);
  GraphTensor dS = graph.pointwise(CUDNN_POINTWISE_MUL, graph.pointwise(CUDNN_POINTWISE_SUB, dP, dots), p);
  dS = graph.pointwise(CUDNN_POINTWISE_MUL, dS, graph.number(&scale_));
  matmulOverHeads(graph, graph.transpose(dS, type), q, operand(graph, GradK));
  graph.matmul(dS, graph.transpose(k, type), operand(graph, GradQ));
}

} // namespace

Expected<std::unique_ptr<LibraryCall>> prepareCudnnAttention(const Api &api, Resources &resources, cudnnHandle_t handle,
                                                             const AttentionShape &shape,
                                                             const CallAddresses &addresses) {
  auto call = std::make_unique<AttentionCall>(api, handle, shape, addresses);
  LOWTIDE_TRY(call->prepare(resources));
  return std::unique_ptr<LibraryCall>(std::move(call));
}

} // namespace lowtide::rt::cuda

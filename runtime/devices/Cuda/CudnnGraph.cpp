//===- CudnnGraph.cpp - an operation graph of cuDNN, made executable -------===//

#include "runtime/devices/Cuda/CudnnGraph.h"

#include <algorithm>

namespace lowtide::rt::cuda {

Status CudnnBuilder::create(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t &descriptor) {
  LOWTIDE_CUDA(api_, cudnn, cudnnBackendCreateDescriptor, type, &descriptor);
  resources_.onClose([&api = api_, made = descriptor] {
    return api.check(api.cudnn.cudnnBackendDestroyDescriptor(made), "cudnnBackendDestroyDescriptor");
  });
  return Status::ok();
}

Status CudnnBuilder::set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, int64_t count, const void *values) {
  LOWTIDE_CUDA(api_, cudnn, cudnnBackendSetAttribute, descriptor, name, type, count, values);
  return Status::ok();
}

Status CudnnBuilder::finalize(cudnnBackendDescriptor_t descriptor) {
  LOWTIDE_CUDA(api_, cudnn, cudnnBackendFinalize, descriptor);
  return Status::ok();
}

Status CudnnBuilder::tensor(int64_t id, cudnnDataType_t type, std::span<const int64_t> dims, int64_t alignment,
                            cudnnBackendDescriptor_t &descriptor) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size() - 1; i-- > 0;)
    strides[i] = strides[i + 1] * dims[i + 1];
  return tensor(id, type, dims, strides, alignment, false, false, descriptor);
}

Status CudnnBuilder::tensor(int64_t id, cudnnDataType_t type, std::span<const int64_t> dims,
                            std::span<const int64_t> strides, int64_t alignment, bool isVirtual, bool isByValue,
                            cudnnBackendDescriptor_t &descriptor) {
  LOWTIDE_TRY(create(CUDNN_BACKEND_TENSOR_DESCRIPTOR, descriptor));
  LOWTIDE_TRY(set(descriptor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id));
  LOWTIDE_TRY(set(descriptor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type));
  LOWTIDE_TRY(set(descriptor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment));
  LOWTIDE_TRY(set(descriptor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dims));
  LOWTIDE_TRY(set(descriptor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides));
  if (isVirtual)
    LOWTIDE_TRY(set(descriptor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true));
  if (isByValue)
    LOWTIDE_TRY(set(descriptor, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true));
  return finalize(descriptor);
}

cudnnDataType_t dataType(plan::DType dtype) {
  return dtype == plan::F16    ? CUDNN_DATA_HALF
         : dtype == plan::BF16 ? CUDNN_DATA_BFLOAT16
         : dtype == plan::F64  ? CUDNN_DATA_DOUBLE
                               : CUDNN_DATA_FLOAT;
}

int64_t alignmentOf(CUdeviceptr address) {
  uint64_t bits = address | 256;
  return static_cast<int64_t>(bits & (~bits + 1));
}

namespace {

/// What an engine states of its arithmetic.
struct Arithmetic {
  bool isDeterministic = false, hasTensorCores = false, narrowsOperands = false;
};

/// Unknown counts as not deterministic.
Arithmetic arithmeticOf(const Api &api, cudnnBackendDescriptor_t engine) {
  cudnnBackendNumericalNote_t notes[32];
  int64_t count = 0;
  if (api.cudnn.cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 32,
                                         &count, notes) != CUDNN_STATUS_SUCCESS)
    return {};
  auto states = [&](cudnnBackendNumericalNote_t note) {
    cudnnBackendNumericalNote_t *end = notes + std::min<int64_t>(count, 32);
    return std::find(notes, end, note) != end;
  };
  return {!states(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC), states(CUDNN_NUMERICAL_NOTE_TENSOR_CORE),
          states(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)};
}

constexpr int64_t maxConfigurations = 32;

} // namespace

Status CudnnGraph::prepare(const Api &api, Resources &resources, cudnnHandle_t handle,
                           std::span<const cudnnBackendDescriptor_t> operations, std::span<const int64_t> ids,
                           std::span<const CUdeviceptr> addresses, CUdeviceptr workspace, uint64_t workspaceBytes,
                           bool strict) {
  CudnnBuilder builder(api, resources);
  cudnnBackendDescriptor_t graph = nullptr;
  LOWTIDE_TRY(builder.create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, graph));
  LOWTIDE_TRY(builder.set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations));
  LOWTIDE_TRY(builder.set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle));
  LOWTIDE_TRY(builder.finalize(graph));

  uint64_t smallest = UINT64_MAX;
  for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    cudnnBackendDescriptor_t heuristics = nullptr;
    LOWTIDE_TRY(builder.create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, heuristics));
    LOWTIDE_TRY(builder.set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph));
    LOWTIDE_TRY(builder.set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode));
    if (api.cudnn.cudnnBackendFinalize(heuristics) != CUDNN_STATUS_SUCCESS)
      continue; // no engine of this kind
    cudnnBackendDescriptor_t configurations[maxConfigurations];
    for (cudnnBackendDescriptor_t &configuration : configurations)
      LOWTIDE_TRY(builder.create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, configuration));
    int64_t count = 0;
    LOWTIDE_CUDA(api, cudnn, cudnnBackendGetAttribute, heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                 CUDNN_TYPE_BACKEND_DESCRIPTOR, maxConfigurations, &count, configurations);
    for (int64_t i = 0; i < std::min(count, maxConfigurations); ++i) {
      cudnnBackendDescriptor_t engine = nullptr, plan = nullptr;
      int64_t got = 0, index = -1, bytes = 0;
      LOWTIDE_TRY(builder.create(CUDNN_BACKEND_ENGINE_DESCRIPTOR, engine));
      LOWTIDE_CUDA(api, cudnn, cudnnBackendGetAttribute, configurations[i], CUDNN_ATTR_ENGINECFG_ENGINE,
                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &got, &engine);
      const Arithmetic arithmetic = arithmeticOf(api, engine);
      if (!arithmetic.isDeterministic || (strict && (arithmetic.hasTensorCores || arithmetic.narrowsOperands)))
        continue;
      // Known before the plan is made, which may take compiling a kernel.
      if (api.cudnn.cudnnBackendGetAttribute(configurations[i], CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                                             1, &got, &bytes) == CUDNN_STATUS_SUCCESS &&
          static_cast<uint64_t>(bytes) > workspaceBytes) {
        smallest = std::min(smallest, static_cast<uint64_t>(bytes));
        continue;
      }
      LOWTIDE_TRY(builder.create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, plan));
      LOWTIDE_TRY(builder.set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle));
      LOWTIDE_TRY(
          builder.set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, configurations[i]));
      if (api.cudnn.cudnnBackendFinalize(plan) != CUDNN_STATUS_SUCCESS)
        continue; // the engine does not take it after all
      LOWTIDE_CUDA(api, cudnn, cudnnBackendGetAttribute, plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                   CUDNN_TYPE_INT64, 1, &got, &bytes);
      smallest = std::min(smallest, static_cast<uint64_t>(bytes));
      if (static_cast<uint64_t>(bytes) > workspaceBytes)
        continue;
      (void)api.cudnn.cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &got,
                                               &index);
      choice_ = "cuDNN engine " + std::to_string(index) + (arithmetic.hasTensorCores ? " on tensor cores" : "") + ", " +
                std::to_string(bytes) + " bytes of workspace";
      plan_ = plan;
      return bind(builder, ids, addresses, workspace);
    }
  }
  std::string why = smallest == UINT64_MAX ? "takes it, is deterministic and keeps to the operands' type"
                                           : "fits: the smallest needs " + std::to_string(smallest) +
                                                 " bytes of workspace, the plan has " + std::to_string(workspaceBytes);
  return {StatusCode::Device, "no engine of cuDNN " + why + "; update cuDNN, or compile with --target=cpu"};
}

Status CudnnGraph::bind(CudnnBuilder &builder, std::span<const int64_t> ids, std::span<const CUdeviceptr> addresses,
                        CUdeviceptr workspace) {
  std::vector<void *> pointers;
  for (CUdeviceptr address : addresses)
    pointers.push_back(reinterpret_cast<void *>(address));
  void *space = reinterpret_cast<void *>(workspace);
  LOWTIDE_TRY(builder.create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, variantPack_));
  LOWTIDE_TRY(builder.set(variantPack_, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids));
  LOWTIDE_TRY(builder.set(variantPack_, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
                          std::span<void *const>(pointers)));
  LOWTIDE_TRY(builder.set(variantPack_, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, space));
  return builder.finalize(variantPack_);
}

Status CudnnGraph::prepareLike(const CudnnGraph &other, const Api &api, Resources &resources,
                               std::span<const int64_t> ids, std::span<const CUdeviceptr> addresses,
                               CUdeviceptr workspace) {
  plan_ = other.plan_;
  choice_ = other.choice_;
  CudnnBuilder builder(api, resources);
  return bind(builder, ids, addresses, workspace);
}

Status CudnnGraph::enqueue(const Api &api, cudnnHandle_t handle, CUstream stream) const {
  LOWTIDE_CUDA(api, cudnn, cudnnSetStream, handle, stream);
  LOWTIDE_CUDA(api, cudnn, cudnnBackendExecute, handle, plan_, variantPack_);
  return Status::ok();
}

} // namespace lowtide::rt::cuda

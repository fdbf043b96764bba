//===- CublasLt.cpp - cuBLASLt of the fake device --------------------------===//

#include "runtime/calls/Gemm/GemmShape.h"
#include "runtime/devices/FakeCuda/Libraries.h"

#include "runtime/Verify.h"
#include "runtime/Workspace.h"

#include <cstring>
#include <optional>

namespace lowtide::rt::cuda::fake {
namespace {

Machine &machine() { return Machine::get(); }

#define ENTER(name) LOWTIDE_FAKE_ENTER(cublasStatus_t, name)

struct Handle {};
struct Desc {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  int32_t transposeA = CUBLAS_OP_N, transposeB = CUBLAS_OP_N, biasType = -1;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  CUdeviceptr bias = 0, auxiliary = 0;
  int64_t auxiliaryLd = 0;
};
struct Layout {
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct Preference {
  uint64_t workspace = 0;
};

template <typename T, typename H> cublasStatus_t release(const char *name, H handle) {
  return releaseObject<T, cublasStatus_t>(name, handle);
}
/// Copies an attribute whose size must be right.
template <typename T> cublasStatus_t take(T &to, const void *value, size_t bytes) {
  if (bytes != sizeof(T))
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

std::optional<plan::DType> dtypeOf(int32_t type) {
  switch (type) {
  case CUDA_R_32F:
    return plan::F32;
  case CUDA_R_64F:
    return plan::F64;
  case CUDA_R_16F:
    return plan::F16;
  case CUDA_R_16BF:
    return plan::BF16;
  default:
    return std::nullopt;
  }
}

cublasStatus_t create(cublasLtHandle_t *handle) {
  ENTER(cublasLtCreate);
  return makeObject<Handle, cublasStatus_t>(handle, "cuBLASLt handle");
}
cublasStatus_t getProperty(libraryPropertyType property, int *value) {
  ENTER(cublasLtGetProperty);
  *value = property == MAJOR_VERSION ? 13 : 0;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroy(cublasLtHandle_t handle) { return release<Handle>("cublasLtDestroy", handle); }
cublasStatus_t descCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute, cudaDataType_t scale) {
  ENTER(cublasLtMatmulDescCreate);
  Desc *made = machine().make<Desc>("cuBLASLt operation");
  made->compute = compute, made->scale = scale;
  *desc = reinterpret_cast<cublasLtMatmulDesc_t>(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t descDestroy(cublasLtMatmulDesc_t desc) { return release<Desc>("cublasLtMatmulDescDestroy", desc); }
cublasStatus_t descSet(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t attribute, const void *value,
                       size_t bytes) {
  ENTER(cublasLtMatmulDescSetAttribute);
  Desc *desc = liveObject<Desc>(handle);
  if (!desc)
    return CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return take(desc->transposeA, value, bytes);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return take(desc->transposeB, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return take(desc->epilogue, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return take(desc->bias, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
    return take(desc->auxiliary, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
    return take(desc->auxiliaryLd, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
    return take(desc->biasType, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t layoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType_t type, uint64_t rows, uint64_t columns,
                            int64_t ld) {
  ENTER(cublasLtMatrixLayoutCreate);
  Layout *made = machine().make<Layout>("cuBLASLt layout");
  made->type = type, made->rows = rows, made->columns = columns, made->ld = ld;
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t layoutDestroy(cublasLtMatrixLayout_t layout) {
  return release<Layout>("cublasLtMatrixLayoutDestroy", layout);
}
cublasStatus_t layoutSet(cublasLtMatrixLayout_t handle, cublasLtMatrixLayoutAttribute_t attribute, const void *value,
                         size_t bytes) {
  ENTER(cublasLtMatrixLayoutSetAttribute);
  Layout *layout = liveObject<Layout>(handle);
  if (!layout)
    return CUBLAS_STATUS_INVALID_VALUE;
  return attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? take(layout->batch, value, bytes)
                                                         : take(layout->stride, value, bytes);
}
cublasStatus_t preferenceCreate(cublasLtMatmulPreference_t *preference) {
  ENTER(cublasLtMatmulPreferenceCreate);
  return makeObject<Preference, cublasStatus_t>(preference, "cuBLASLt preference");
}
cublasStatus_t preferenceDestroy(cublasLtMatmulPreference_t preference) {
  return release<Preference>("cublasLtMatmulPreferenceDestroy", preference);
}
cublasStatus_t preferenceSet(cublasLtMatmulPreference_t handle, cublasLtMatmulPreferenceAttributes_t attribute,
                             const void *value, size_t bytes) {
  ENTER(cublasLtMatmulPreferenceSetAttribute);
  Preference *preference = liveObject<Preference>(handle);
  uint32_t number = 0;
  if (!preference)
    return CUBLAS_STATUS_INVALID_VALUE;
  return attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? take(preference->workspace, value, bytes)
                                                               : take(number, value, bytes);
}

/// The problem in the plan's row-major terms: its A is cuBLASLt's B, its D is cuBLASLt's D transposed.
struct Problem {
  const Desc *desc;
  const Layout *a, *b, *c, *d; ///< as cuBLASLt was given them

  bool read(cublasLtMatmulDesc_t descHandle, cublasLtMatrixLayout_t aHandle, cublasLtMatrixLayout_t bHandle,
            cublasLtMatrixLayout_t cHandle, cublasLtMatrixLayout_t dHandle) {
    desc = liveObject<Desc>(descHandle);
    a = liveObject<Layout>(aHandle), b = liveObject<Layout>(bHandle), c = liveObject<Layout>(cHandle),
    d = liveObject<Layout>(dHandle);
    return desc && a && b && c && d;
  }
  cublasStatus_t shape(GemmShape &shape) const {
    auto dtypeA = dtypeOf(a->type), dtypeB = dtypeOf(b->type), dtypeC = dtypeOf(c->type), dtypeD = dtypeOf(d->type);
    bool wide = dtypeA == plan::F64;
    if (!dtypeA || dtypeA != dtypeB || !dtypeD || dtypeC != dtypeD ||
        desc->compute != (wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F) ||
        desc->scale != (wide ? CUDA_R_64F : CUDA_R_32F))
      return CUBLAS_STATUS_NOT_SUPPORTED;
    auto rows = [](const Layout &layout, int32_t transposed) {
      return static_cast<int64_t>(transposed ? layout.columns : layout.rows);
    };
    auto columns = [](const Layout &layout, int32_t transposed) {
      return static_cast<int64_t>(transposed ? layout.rows : layout.columns);
    };
    shape.dtype = *dtypeA, shape.resultDtype = *dtypeD;
    shape.n = rows(*a, desc->transposeA), shape.k = columns(*a, desc->transposeA);
    shape.m = columns(*b, desc->transposeB);
    if (rows(*b, desc->transposeB) != shape.k || rows(*d, 0) != shape.n || columns(*d, 0) != shape.m ||
        rows(*c, 0) != shape.n || columns(*c, 0) != shape.m)
      return CUBLAS_STATUS_INVALID_VALUE;
    for (const Layout *layout : {a, b, c, d})
      if (layout->ld < static_cast<int64_t>(layout->rows) || layout->batch != d->batch || layout->batch < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    shape.transposeA = desc->transposeB == CUBLAS_OP_T, shape.transposeB = desc->transposeA == CUBLAS_OP_T;
    shape.lda = b->ld, shape.ldb = a->ld, shape.ldc = c->ld, shape.ldd = d->ld;
    shape.batch = {{d->batch, b->stride, a->stride, c->stride, d->stride}};
    if (!readEpilogue(shape))
      return CUBLAS_STATUS_NOT_SUPPORTED;
    shape.spanD = static_cast<uint64_t>((shape.m - 1) * shape.ldd + shape.n + (d->batch - 1) * d->stride);
    return declineGemm(shape) ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
  }
  bool readEpilogue(GemmShape &shape) const {
    uint32_t function = desc->epilogue & ~uint32_t(CUBLASLT_EPILOGUE_BIAS);
    if (desc->epilogue & CUBLASLT_EPILOGUE_BIAS) {
      if (!desc->bias || desc->biasType != d->type)
        return false;
      shape.addend = GemmShape::Addend::Row;
      shape.batch[0].strideC = 0;
    } else if (function == CUBLASLT_EPILOGUE_DEFAULT) {
      return true;
    }
    using Epilogue = GemmShape::Epilogue;
    if (function == CUBLASLT_EPILOGUE_BGRADA || function == CUBLASLT_EPILOGUE_BGRADB) {
      (function == CUBLASLT_EPILOGUE_BGRADA ? shape.sumsOperand : shape.sumsLeft) = true;
      return desc->bias && desc->biasType == d->type && shape.addend == GemmShape::Addend::None;
    }
    shape.keepsInput = function == CUBLASLT_EPILOGUE_GELU_AUX;
    shape.keepsMask = function == CUBLASLT_EPILOGUE_RELU_AUX;
    switch (function) {
    case 0:
      return true;
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_RELU_AUX:
      shape.epilogue = Epilogue::Relu;
      break;
    case CUBLASLT_EPILOGUE_DRELU:
      shape.epilogue = Epilogue::ReluGrad;
      break;
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_AUX:
      shape.epilogue = Epilogue::Gelu;
      break;
    case CUBLASLT_EPILOGUE_DGELU:
      shape.epilogue = Epilogue::GeluGrad;
      break;
    default:
      return false;
    }
    if (!shape.keepsInput && !shape.keepsMask && !shape.isDerivative())
      return true;
    // Bits lie in rows of a multiple of 128; here, of the next one.
    const bool hasBits = shape.keepsMask || shape.epilogue == Epilogue::ReluGrad;
    const int64_t ld = hasBits ? static_cast<int64_t>(shape.maskRowBytes() * 8) : d->ld;
    return desc->auxiliary && desc->auxiliary % 16 == 0 && desc->auxiliaryLd == ld;
  }
};

cublasStatus_t heuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                         cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                         cublasLtMatmulPreference_t preference, int requested, cublasLtMatmulHeuristicResult_t *results,
                         int *returned) {
  ENTER(cublasLtMatmulAlgoGetHeuristic);
  *returned = 0;
  Problem problem;
  if (!liveObject<Handle>(handle) || !liveObject<Preference>(preference) || requested < 1 ||
      !problem.read(desc, a, b, c, d))
    return CUBLAS_STATUS_INVALID_VALUE;
  GemmShape shape;
  if (cublasStatus_t status = problem.shape(shape); status != CUBLAS_STATUS_SUCCESS)
    return status;
  results[0] = {};
  results[0].state = CUBLAS_STATUS_SUCCESS;
  results[0].algo.data[0] = 1;
  results[0].workspaceSize = liveObject<Preference>(preference)->workspace;
  *returned = 1;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t algoGet(const cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t, void *value,
                       size_t bytes, size_t *written) {
  ENTER(cublasLtMatmulAlgoConfigGetAttribute);
  int32_t number = static_cast<int32_t>(algo->data[0]);
  if (bytes != sizeof number)
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, &number, bytes);
  *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t matmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t descHandle, const void *alpha, const void *a,
                      cublasLtMatrixLayout_t layoutA, const void *b, cublasLtMatrixLayout_t layoutB, const void *beta,
                      const void *c, cublasLtMatrixLayout_t layoutC, void *d, cublasLtMatrixLayout_t layoutD,
                      const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspaceBytes, CUstream stream) {
  ENTER(cublasLtMatmul);
  Problem problem;
  Stream *queue = liveObject<Stream>(stream);
  if (!liveObject<Handle>(handle) || !algo || algo->data[0] != 1 || !queue ||
      !problem.read(descHandle, layoutA, layoutB, layoutC, layoutD))
    return CUBLAS_STATUS_INVALID_VALUE;
  GemmShape shape;
  if (cublasStatus_t status = problem.shape(shape); status != CUBLAS_STATUS_SUCCESS)
    return status;
  auto number = [&](const void *from) {
    return shape.dtype == plan::F64 ? *static_cast<const double *>(from)
                                    : static_cast<double>(*static_cast<const float *>(from));
  };
  shape.alpha = number(alpha);
  double factor = number(beta);
  const void *third = nullptr;
  if (shape.addend == GemmShape::Addend::Row) {
    third = reinterpret_cast<const void *>(problem.desc->bias);
    if (factor != 0)
      return CUBLAS_STATUS_NOT_SUPPORTED;
  } else if (factor == 1) {
    shape.addend = GemmShape::Addend::Full;
    third = c;
  } else if (factor != 0) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  // Everything that the operands' strides reach must be memory of the device.
  const GemmShape::BatchDim &batch = shape.batch[0];
  auto reach = [&](int64_t rows, int64_t columns, int64_t ld, int64_t stride, uint64_t element) {
    return static_cast<size_t>((rows - 1) * ld + columns + (batch.extent - 1) * stride) * element;
  };
  uint64_t element = elementBytes(shape.dtype), resultElement = elementBytes(shape.resultDtype);
  bool inside = machine().holds(b,
                                reach(shape.transposeA ? shape.k : shape.m, shape.transposeA ? shape.m : shape.k,
                                      shape.lda, batch.strideA, element),
                                false) &&
                machine().holds(a,
                                reach(shape.transposeB ? shape.n : shape.k, shape.transposeB ? shape.k : shape.n,
                                      shape.ldb, batch.strideB, element),
                                false) &&
                machine().holds(d, reach(shape.m, shape.n, shape.ldd, batch.strideD, resultElement), false) &&
                (!workspaceBytes || (reinterpret_cast<uintptr_t>(workspace) % libraryWorkspaceAlignment == 0 &&
                                     machine().holds(workspace, workspaceBytes, false)));
  if (shape.addend != GemmShape::Addend::None)
    inside &= machine().holds(third,
                              shape.addend == GemmShape::Addend::Row
                                  ? static_cast<size_t>(shape.n) * resultElement
                                  : reach(shape.m, shape.n, shape.ldc, batch.strideC, resultElement),
                              false);
  if (!inside)
    return CUBLAS_STATUS_INVALID_VALUE;
  std::vector<const void *> reads = {b, a};
  if (third)
    reads.push_back(third);
  std::vector<void *> writes = {d};
  auto *auxiliary = reinterpret_cast<void *>(problem.desc->auxiliary);
  if (shape.keepsInput || shape.keepsMask)
    writes.push_back(auxiliary);
  else if (shape.isDerivative())
    reads.push_back(auxiliary);
  const bool hasBits = shape.keepsMask || shape.epilogue == GemmShape::Epilogue::ReluGrad;
  if ((writes.size() > 1 || shape.isDerivative()) &&
      !machine().holds(auxiliary, hasBits ? shape.maskBytes() : shape.spanD * resultElement, false))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (shape.hasSums()) {
    auto *sums = reinterpret_cast<void *>(problem.desc->bias);
    if (!machine().holds(sums, static_cast<uint64_t>(shape.sumsCount()) * resultElement, false))
      return CUBLAS_STATUS_INVALID_VALUE;
    writes.push_back(sums);
  }
  CallOperands operands{reads, writes, nullptr};
  std::shared_ptr<PreparedCall> call = prepareGemmWithEpilogue(shape, operands);
  machine().enqueue(*queue, [call, workspace, workspaceBytes] {
    // What the real library writes there is its own business, but it may write everywhere.
    if (workspaceBytes)
      std::memset(workspace, 0xFF, workspaceBytes);
    runPrepared(*call);
    return std::string();
  });
  return CUBLAS_STATUS_SUCCESS;
}

} // namespace

void runPrepared(const PreparedCall &call) {
  for (int phase = 0; phase < call.phases(); ++phase)
    machine().pool().run(call.tasks(phase), [&](int64_t task, unsigned) { call.run(phase, task); });
}

CublasLtApi cublasLtApi() {
  CublasLtApi api;
  api.cublasLtCreate = create;
  api.cublasLtDestroy = destroy;
  api.cublasLtGetProperty = getProperty;
  api.cublasLtMatmulDescCreate = descCreate;
  api.cublasLtMatmulDescDestroy = descDestroy;
  api.cublasLtMatmulDescSetAttribute = descSet;
  api.cublasLtMatrixLayoutCreate = layoutCreate;
  api.cublasLtMatrixLayoutDestroy = layoutDestroy;
  api.cublasLtMatrixLayoutSetAttribute = layoutSet;
  api.cublasLtMatmulPreferenceCreate = preferenceCreate;
  api.cublasLtMatmulPreferenceDestroy = preferenceDestroy;
  api.cublasLtMatmulPreferenceSetAttribute = preferenceSet;
  api.cublasLtMatmulAlgoGetHeuristic = heuristic;
  api.cublasLtMatmulAlgoConfigGetAttribute = algoGet;
  api.cublasLtMatmul = matmul;
  return api;
}

} // namespace lowtide::rt::cuda::fake

//===- CublasLt.h - the part of cuBLASLt that the runtime uses -------------===//
//
// Declared here so that neither CUDA's headers nor its libraries are needed to build. Names, values and signatures
// after cublasLt.h of the CUDA toolkit 13.0 and the cuBLASLt chapter of NVIDIA's cuBLAS documentation.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CUDA_CUBLASLT_H
#define LOWTIDE_RUNTIME_DEVICES_CUDA_CUBLASLT_H

#include "runtime/devices/Cuda/Driver.h"

namespace lowtide::rt::cuda {

using cublasLtHandle_t = struct cublasLtContext *;
using cublasLtMatmulDesc_t = struct cublasLtMatmulDescOpaque *;
using cublasLtMatrixLayout_t = struct cublasLtMatrixLayoutOpaque *;
using cublasLtMatmulPreference_t = struct cublasLtMatmulPreferenceOpaque *;

enum cublasStatus_t : int {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
};
enum cudaDataType_t : int { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
/// CUBLAS_COMPUTE_32F does not round f32 operands to TF32.
enum cublasComputeType_t : int { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_64F = 70 };
enum cublasOperation_t : int { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
/// Bits, but for the first: a bias goes with a function. GELU is the tanh form. 128: reads or writes the auxiliary
/// matrix.
enum cublasLtEpilogue_t : int {
  CUBLASLT_EPILOGUE_DEFAULT = 1,
  CUBLASLT_EPILOGUE_RELU = 2,
  CUBLASLT_EPILOGUE_RELU_AUX = 2 | 128, ///< the auxiliary matrix has bits
  CUBLASLT_EPILOGUE_BIAS = 4,
  CUBLASLT_EPILOGUE_DRELU = 8 | 128,
  CUBLASLT_EPILOGUE_GELU = 32,
  CUBLASLT_EPILOGUE_GELU_AUX = 32 | 128,
  CUBLASLT_EPILOGUE_DGELU = 64 | 128,
  CUBLASLT_EPILOGUE_BGRADA = 256, ///< sums of the rows of op(A) (column-major) into the bias
  CUBLASLT_EPILOGUE_BGRADB = 512, ///< sums of the columns of op(B) (column-major) into the bias
};
enum cublasLtMatrixLayoutAttribute_t : int {
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,          ///< int32
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6, ///< int64, elements
};
enum cublasLtMatmulDescAttributes_t : int {
  CUBLASLT_MATMUL_DESC_TRANSA = 3,                ///< int32
  CUBLASLT_MATMUL_DESC_TRANSB = 4,                ///< int32
  CUBLASLT_MATMUL_DESC_EPILOGUE = 7,              ///< uint32
  CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,          ///< device address
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER = 11, ///< device address; elements of D's type, ReLU: bits
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD = 12,      ///< int64, elements, a multiple of 8 for GELU, 128 for ReLU
  CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26        ///< int32
};
enum cublasLtMatmulPreferenceAttributes_t : int {
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,   ///< uint64
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3, ///< uint32
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5, ///< uint32; B, C, D follow
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8,
};
enum cublasLtMatmulAlgoConfigAttributes_t : int {
  CUBLASLT_ALGO_CONFIG_ID = 0,
  CUBLASLT_ALGO_CONFIG_TILE_ID = 1,
  CUBLASLT_ALGO_CONFIG_SPLITK_NUM = 2,
  CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME = 3,
};

struct cublasLtMatmulAlgo_t {
  uint64_t data[8];
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
};

/// X(name, parameters). All return cublasStatus_t.
#define LOWTIDE_CUBLASLT(X)                                                                                            \
  X(cublasLtCreate, (cublasLtHandle_t * handle))                                                                       \
  X(cublasLtDestroy, (cublasLtHandle_t handle))                                                                        \
  X(cublasLtGetProperty, (libraryPropertyType property, int *value))                                                   \
  X(cublasLtMatmulDescCreate, (cublasLtMatmulDesc_t * desc, cublasComputeType_t compute, cudaDataType_t scale))        \
  X(cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t desc))                                                            \
  X(cublasLtMatmulDescSetAttribute,                                                                                    \
    (cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const void *value, size_t bytes))            \
  X(cublasLtMatrixLayoutCreate,                                                                                        \
    (cublasLtMatrixLayout_t * layout, cudaDataType_t type, uint64_t rows, uint64_t columns, int64_t ld))               \
  X(cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout))                                                      \
  X(cublasLtMatrixLayoutSetAttribute,                                                                                  \
    (cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const void *value, size_t bytes))       \
  X(cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * preference))                                         \
  X(cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t preference))                                          \
  X(cublasLtMatmulPreferenceSetAttribute,                                                                              \
    (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const void *value,         \
     size_t bytes))                                                                                                    \
  X(cublasLtMatmulAlgoGetHeuristic,                                                                                    \
    (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,           \
     cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int requested,         \
     cublasLtMatmulHeuristicResult_t *results, int *returned))                                                         \
  X(cublasLtMatmulAlgoConfigGetAttribute,                                                                              \
    (const cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t attribute, void *value, size_t bytes,      \
     size_t *written))                                                                                                 \
  X(cublasLtMatmul, (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a,             \
                     cublasLtMatrixLayout_t layoutA, const void *b, cublasLtMatrixLayout_t layoutB, const void *beta,  \
                     const void *c, cublasLtMatrixLayout_t layoutC, void *d, cublasLtMatrixLayout_t layoutD,           \
                     const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspaceBytes, CUstream stream))

struct CublasLtApi {
#define LOWTIDE_CUDA_POINTER(name, parameters) cublasStatus_t(*name) parameters = nullptr;
  LOWTIDE_CUBLASLT(LOWTIDE_CUDA_POINTER)
#undef LOWTIDE_CUDA_POINTER
};

} // namespace lowtide::rt::cuda

#endif // LOWTIDE_RUNTIME_DEVICES_CUDA_CUBLASLT_H

//===- CublasLtGemm.cpp - a gemm of the plan on cuBLASLt ------------------===//
//
// The plan's matrices are row-major, cuBLASLt's column-major: D = op(A) · op(B) is asked for as Dᵀ = op(B)ᵀ · op(A)ᵀ,
// so that the plan's B is cuBLASLt's A, and values per column of D are cuBLASLt's bias (one per row of Dᵀ). Of several
// batch dimensions those that lie one after another become one; the longest becomes cuBLASLt's batch; the others are
// calls of their own.
//
//===----------------------------------------------------------------------===//

#include "runtime/calls/Gemm/GemmShape.h"
#include "runtime/devices/Cuda/LibraryCall.h"

#include "runtime/Verify.h"

#include <algorithm>

namespace lowtide::rt::cuda {
namespace {

using BatchDim = GemmShape::BatchDim;

cudaDataType_t dataType(plan::DType dtype) {
  return dtype == plan::F64    ? CUDA_R_64F
         : dtype == plan::F16  ? CUDA_R_16F
         : dtype == plan::BF16 ? CUDA_R_16BF
                               : CUDA_R_32F;
}

constexpr uint32_t auxiliary = 128;

uint32_t epilogueOf(const GemmShape &shape) {
  using Epilogue = GemmShape::Epilogue;
  uint32_t bits = shape.addend == GemmShape::Addend::Row ? CUBLASLT_EPILOGUE_BIAS : 0;
  if (shape.epilogue == Epilogue::Relu)
    bits |= shape.keepsMask ? CUBLASLT_EPILOGUE_RELU_AUX : CUBLASLT_EPILOGUE_RELU;
  else if (shape.epilogue == Epilogue::Gelu)
    bits |= shape.keepsInput ? CUBLASLT_EPILOGUE_GELU_AUX : CUBLASLT_EPILOGUE_GELU;
  else if (shape.epilogue == Epilogue::GeluGrad)
    bits |= CUBLASLT_EPILOGUE_DGELU;
  else if (shape.epilogue == Epilogue::ReluGrad)
    bits |= CUBLASLT_EPILOGUE_DRELU;
  else if (shape.sumsOperand) // cuBLASLt's A is B here
    bits |= CUBLASLT_EPILOGUE_BGRADA;
  else if (shape.sumsLeft)
    bits |= CUBLASLT_EPILOGUE_BGRADB;
  return bits ? bits : uint32_t(CUBLASLT_EPILOGUE_DEFAULT);
}

/// Batch dimensions without those of one element, with neighbours joined where every operand allows it.
std::vector<BatchDim> joinedBatch(const GemmShape &shape) {
  std::vector<BatchDim> joined;
  for (const BatchDim &dim : shape.batch) {
    if (dim.extent == 1)
      continue;
    if (!joined.empty()) {
      BatchDim &outer = joined.back();
      auto follows = [&](int64_t BatchDim::*stride) { return outer.*stride == dim.extent * (dim.*stride); };
      if (follows(&BatchDim::strideA) && follows(&BatchDim::strideB) && follows(&BatchDim::strideC) &&
          follows(&BatchDim::strideD)) {
        outer = {outer.extent * dim.extent, dim.strideA, dim.strideB, dim.strideC, dim.strideD};
        continue;
      }
    }
    joined.push_back(dim);
  }
  return joined;
}

class GemmCall final : public LibraryCall {
public:
  GemmCall(const Api &api, cublasLtHandle_t handle, const GemmShape &shape, const CallAddresses &addresses)
      : api_(api), handle_(handle), shape_(shape), addresses_(addresses) {}

  Status prepare(Resources &resources);
  Status enqueue(CUstream stream) override;
  std::string choice() const override { return choice_; }

private:
  Status makeLayouts(Resources &resources);
  Status makeLayout(Resources &resources, cudaDataType_t type, int64_t rows, int64_t columns, int64_t ld,
                    int64_t stride, cublasLtMatrixLayout_t &layout);
  Status choose(Resources &resources);
  bool biased() const { return shape_.addend == GemmShape::Addend::Row; }

  const Api &api_;
  cublasLtHandle_t handle_;
  GemmShape shape_;
  CallAddresses addresses_;
  BatchDim strided_;
  std::vector<BatchDim> looped_;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr, d_ = nullptr; ///< of the plan's operands
  cublasLtMatmulAlgo_t algorithm_ = {};
  size_t workspace_ = 0;
  std::string choice_;
};

Status GemmCall::prepare(Resources &resources) {
  looped_ = joinedBatch(shape_);
  // A bias is the same for all products of a batch.
  auto fits = [&](const BatchDim &dim) { return !biased() || dim.strideC == 0; };
  auto longest = looped_.end();
  for (auto it = looped_.begin(); it != looped_.end(); ++it)
    if (fits(*it) && (longest == looped_.end() || it->extent > longest->extent))
      longest = it;
  if (longest != looped_.end()) {
    strided_ = *longest;
    looped_.erase(longest);
  }
  LOWTIDE_TRY(makeLayouts(resources));
  return choose(resources);
}

Status GemmCall::makeLayout(Resources &resources, cudaDataType_t type, int64_t rows, int64_t columns, int64_t ld,
                            int64_t stride, cublasLtMatrixLayout_t &layout) {
  LOWTIDE_CUDA(api_, cublasLt, cublasLtMatrixLayoutCreate, &layout, type, static_cast<uint64_t>(rows),
               static_cast<uint64_t>(columns), std::max(ld, rows));
  resources.onClose([&api = api_, made = layout] {
    return api.check(api.cublasLt.cublasLtMatrixLayoutDestroy(made), "cublasLtMatrixLayoutDestroy");
  });
  int32_t count = static_cast<int32_t>(strided_.extent);
  LOWTIDE_CUDA(api_, cublasLt, cublasLtMatrixLayoutSetAttribute, layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
               sizeof count);
  LOWTIDE_CUDA(api_, cublasLt, cublasLtMatrixLayoutSetAttribute, layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
               &stride, sizeof stride);
  return Status::ok();
}

Status GemmCall::makeLayouts(Resources &resources) {
  bool wide = shape_.dtype == plan::F64;
  LOWTIDE_CUDA(api_, cublasLt, cublasLtMatmulDescCreate, &desc_, wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
               wide ? CUDA_R_64F : CUDA_R_32F);
  resources.onClose([&api = api_, desc = desc_] {
    return api.check(api.cublasLt.cublasLtMatmulDescDestroy(desc), "cublasLtMatmulDescDestroy");
  });
  auto set = [&](cublasLtMatmulDescAttributes_t attribute, auto value) -> Status {
    LOWTIDE_CUDA(api_, cublasLt, cublasLtMatmulDescSetAttribute, desc_, attribute, &value, sizeof value);
    return Status::ok();
  };
  LOWTIDE_TRY(set(CUBLASLT_MATMUL_DESC_TRANSA, int32_t(shape_.transposeB ? CUBLAS_OP_T : CUBLAS_OP_N)));
  LOWTIDE_TRY(set(CUBLASLT_MATMUL_DESC_TRANSB, int32_t(shape_.transposeA ? CUBLAS_OP_T : CUBLAS_OP_N)));
  uint32_t epilogue = epilogueOf(shape_);
  LOWTIDE_TRY(set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue));
  if (epilogue & auxiliary) {
    CUdeviceptr input = shape_.isDerivative() ? addresses_.reads[size_t(shape_.reads()) - 1] : addresses_.writes[1];
    if (input % 16)
      return {StatusCode::VerifyFailed, "the input of an epilogue does not lie at a multiple of 16 bytes"};
    LOWTIDE_TRY(set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, input));
    const bool hasBits = shape_.keepsMask || shape_.epilogue == GemmShape::Epilogue::ReluGrad;
    const int64_t ld = hasBits ? static_cast<int64_t>(shape_.maskRowBytes() * 8) : shape_.ldd;
    LOWTIDE_TRY(set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, ld));
  }
  if (biased() || shape_.hasSums()) {
    LOWTIDE_TRY(set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, int32_t(dataType(shape_.resultDtype))));
    LOWTIDE_TRY(set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, biased() ? addresses_.reads[2] : addresses_.writes[1]));
  }
  cudaDataType_t type = dataType(shape_.dtype), resultType = dataType(shape_.resultDtype);
  int64_t m = shape_.m, n = shape_.n, k = shape_.k;
  // Stored rows of the plan are cuBLASLt's columns.
  LOWTIDE_TRY(makeLayout(resources, type, shape_.transposeA ? m : k, shape_.transposeA ? k : m, shape_.lda,
                         strided_.strideA, a_));
  LOWTIDE_TRY(makeLayout(resources, type, shape_.transposeB ? k : n, shape_.transposeB ? n : k, shape_.ldb,
                         strided_.strideB, b_));
  bool added = shape_.addend == GemmShape::Addend::Full;
  LOWTIDE_TRY(makeLayout(resources, resultType, n, m, added ? shape_.ldc : shape_.ldd,
                         added ? strided_.strideC : strided_.strideD, c_));
  return makeLayout(resources, resultType, n, m, shape_.ldd, strided_.strideD, d_);
}

/// The largest power of two up to 256 that divides what an operand's addresses are made of.
uint32_t alignmentOf(CUdeviceptr address, uint64_t element, std::initializer_list<int64_t> strides) {
  uint64_t bits = address | 256;
  for (int64_t stride : strides)
    bits |= static_cast<uint64_t>(stride) * element;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

Status GemmCall::choose(Resources &resources) {
  cublasLtMatmulPreference_t preference = nullptr;
  LOWTIDE_CUDA(api_, cublasLt, cublasLtMatmulPreferenceCreate, &preference);
  resources.onClose([&api = api_, preference] {
    return api.check(api.cublasLt.cublasLtMatmulPreferenceDestroy(preference), "cublasLtMatmulPreferenceDestroy");
  });
  auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) -> Status {
    LOWTIDE_CUDA(api_, cublasLt, cublasLtMatmulPreferenceSetAttribute, preference, attribute, &value, sizeof value);
    return Status::ok();
  };
  // Partial sums only through the workspace: they are added in a fixed order there.
  constexpr uint32_t reductionsInComputeType = 2;
  LOWTIDE_TRY(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t(addresses_.workspaceBytes)));
  LOWTIDE_TRY(set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductionsInComputeType));
  uint64_t element = elementBytes(shape_.dtype), resultElement = elementBytes(shape_.resultDtype);
  auto align = [&](CUdeviceptr address, uint64_t size, int64_t ld, int64_t BatchDim::*stride) {
    uint32_t alignment = alignmentOf(address, size, {ld, strided_.*stride});
    for (const BatchDim &dim : looped_)
      alignment = std::min(alignment, alignmentOf(address, size, {dim.*stride}));
    return alignment;
  };
  bool added = shape_.addend == GemmShape::Addend::Full;
  LOWTIDE_TRY(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                  align(addresses_.reads[1], element, shape_.ldb, &BatchDim::strideB)));
  LOWTIDE_TRY(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                  align(addresses_.reads[0], element, shape_.lda, &BatchDim::strideA)));
  LOWTIDE_TRY(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                  added ? align(addresses_.reads[2], resultElement, shape_.ldc, &BatchDim::strideC)
                        : align(addresses_.writes[0], resultElement, shape_.ldd, &BatchDim::strideD)));
  LOWTIDE_TRY(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
                  align(addresses_.writes[0], resultElement, shape_.ldd, &BatchDim::strideD)));
  // The heuristics are a function of the problem and the library's version: the first result is the choice.
  cublasLtMatmulHeuristicResult_t result = {};
  int found = 0;
  LOWTIDE_CUDA(api_, cublasLt, cublasLtMatmulAlgoGetHeuristic, handle_, desc_, b_, a_, c_, d_, preference, 1, &result,
               &found);
  if (found < 1 || result.state != CUBLAS_STATUS_SUCCESS)
    return {StatusCode::Device, "cublasLtMatmulAlgoGetHeuristic found no algorithm within " +
                                    std::to_string(addresses_.workspaceBytes) + " bytes of workspace for " +
                                    std::to_string(shape_.m) + "×" + std::to_string(shape_.n) + "×" +
                                    std::to_string(shape_.k) + "; update cuBLASLt, or compile with --target=cpu"};
  algorithm_ = result.algo;
  workspace_ = result.workspaceSize;
  auto attribute = [&](cublasLtMatmulAlgoConfigAttributes_t name) {
    int32_t value = -1;
    size_t written = 0;
    (void)api_.cublasLt.cublasLtMatmulAlgoConfigGetAttribute(&algorithm_, name, &value, sizeof value, &written);
    return std::to_string(value);
  };
  if (uint32_t epilogue = epilogueOf(shape_); epilogue != CUBLASLT_EPILOGUE_DEFAULT)
    choice_ = "epilogue " + std::to_string(epilogue) + ", ";
  choice_ += "cuBLASLt algorithm " + attribute(CUBLASLT_ALGO_CONFIG_ID) + ", tile " +
             attribute(CUBLASLT_ALGO_CONFIG_TILE_ID) + ", split " + attribute(CUBLASLT_ALGO_CONFIG_SPLITK_NUM) + ", " +
             std::to_string(workspace_) + " bytes of workspace";
  return Status::ok();
}

Status GemmCall::enqueue(CUstream stream) {
  bool wide = shape_.dtype == plan::F64, added = shape_.addend == GemmShape::Addend::Full;
  float alpha = static_cast<float>(shape_.alpha), beta = added ? 1 : 0;
  double wideAlpha = shape_.alpha, wideBeta = added ? 1 : 0;
  uint64_t element = elementBytes(shape_.dtype), resultElement = elementBytes(shape_.resultDtype);
  int64_t count = 1;
  for (const BatchDim &dim : looped_)
    count *= dim.extent;
  for (int64_t index = 0; index < count; ++index) {
    int64_t rest = index, offsetA = 0, offsetB = 0, offsetC = 0, offsetD = 0;
    for (size_t i = looped_.size(); i-- > 0;) {
      int64_t at = rest % looped_[i].extent;
      rest /= looped_[i].extent;
      offsetA += at * looped_[i].strideA, offsetB += at * looped_[i].strideB;
      offsetC += at * looped_[i].strideC, offsetD += at * looped_[i].strideD;
    }
    auto pointer = [](CUdeviceptr base, int64_t offset, uint64_t size) {
      return reinterpret_cast<void *>(base + static_cast<uint64_t>(offset) * size);
    };
    void *d = pointer(addresses_.writes[0], offsetD, resultElement);
    void *c = added ? pointer(addresses_.reads[2], offsetC, resultElement) : d;
    // Also that of the first product: the descriptor still has what the last round set.
    if (biased() && count > 1) {
      CUdeviceptr bias = addresses_.reads[2] + static_cast<uint64_t>(offsetC) * resultElement;
      LOWTIDE_CUDA(api_, cublasLt, cublasLtMatmulDescSetAttribute, desc_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                   sizeof bias);
    }
    LOWTIDE_CUDA(api_, cublasLt, cublasLtMatmul, handle_, desc_, wide ? static_cast<const void *>(&wideAlpha) : &alpha,
                 pointer(addresses_.reads[1], offsetB, element), b_, pointer(addresses_.reads[0], offsetA, element), a_,
                 wide ? static_cast<const void *>(&wideBeta) : &beta, c, c_, d, d_, &algorithm_,
                 reinterpret_cast<void *>(addresses_.workspace), workspace_, stream);
  }
  return Status::ok();
}

} // namespace

Expected<std::unique_ptr<LibraryCall>> prepareCublasLtGemm(Libraries &libraries, const GemmShape &shape,
                                                           const CallAddresses &addresses) {
  Expected<cublasLtHandle_t> handle = libraries.openCublasLt();
  if (!handle)
    return handle.takeStatus();
  auto call = std::make_unique<GemmCall>(libraries.api(), *handle, shape, addresses);
  LOWTIDE_TRY(call->prepare(libraries.resources()));
  return std::unique_ptr<LibraryCall>(std::move(call));
}

} // namespace lowtide::rt::cuda

//===- CudnnFusion.cpp - graphs of several operations on the fake cuDNN ----===//

#include "runtime/devices/FakeCuda/CudnnFusion.h"

#include "runtime/Element.h"
#include "runtime/Verify.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lowtide::rt::cuda::fake {

namespace {

Machine &machine() { return Machine::get(); }

bool isFloat(const TensorView &tensor) {
  return tensor.type == CUDNN_DATA_FLOAT || tensor.type == CUDNN_DATA_HALF || tensor.type == CUDNN_DATA_BFLOAT16;
}

/// Elements from the first to one past the last one.
uint64_t spanOf(const TensorView &tensor) {
  int64_t last = 0;
  for (size_t i = 0; i < 4; ++i)
    last += (tensor.dims[i] - 1) * tensor.strides[i];
  return static_cast<uint64_t>(last) + 1;
}

/// Visits where each element is.
template <typename Visit> void forEachElement(const TensorView &tensor, Visit visit) {
  const auto &dims = tensor.dims, &strides = tensor.strides;
  for (int64_t a = 0; a < dims[0]; ++a)
    for (int64_t b = 0; b < dims[1]; ++b)
      for (int64_t c = 0; c < dims[2]; ++c)
        for (int64_t d = 0; d < dims[3]; ++d)
          visit(static_cast<size_t>(a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3]));
}

float rounded(const TensorView &tensor, float value) {
  if (tensor.type != CUDNN_DATA_HALF && tensor.type != CUDNN_DATA_BFLOAT16)
    return value;
  uint64_t bits = 0;
  storeElement(tensor.dtype, &bits, value);
  return static_cast<float>(loadElement(tensor.dtype, &bits));
}

/// Strides with which a tensor follows the index of a larger one: 0 where it has one element.
std::array<int64_t, 4> following(const TensorView &tensor) {
  std::array<int64_t, 4> strides;
  for (size_t i = 0; i < 4; ++i)
    strides[i] = tensor.dims[i] == 1 ? 0 : tensor.strides[i];
  return strides;
}

bool fits(const TensorView &small, const TensorView &large) {
  for (size_t i = 0; i < 4; ++i)
    if (small.dims[i] != 1 && small.dims[i] != large.dims[i])
      return false;
  return true;
}

} // namespace

int Fusion::find(const Descriptor &operation, int name) {
  std::optional<TensorView> view = readTensor(inner(operation, name));
  if (!view || view->dims.size() != 4)
    return -1;
  for (size_t i = 0; i < tensors_.size(); ++i)
    if (tensors_[i].id == view->id)
      return static_cast<int>(i);
  tensors_.push_back(std::move(*view));
  return static_cast<int>(tensors_.size()) - 1;
}

bool Fusion::readStep(const Descriptor &operation) {
  auto isF32 = [&](int desc, int name) {
    const Descriptor *how = inner(operation, desc);
    return how && how->final && one<int>(*how, name) == CUDNN_DATA_FLOAT;
  };
  Step step;
  switch (operation.type) {
  case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    step.kind = Kind::Matmul;
    step.x = find(operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
    step.b = find(operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
    step.y = find(operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    if (!isF32(CUDNN_ATTR_OPERATION_MATMUL_DESC, CUDNN_ATTR_MATMUL_COMP_TYPE) || step.b < 0)
      return false;
    break;
  case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: {
    step.kind = Kind::Reduction;
    step.x = find(operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
    step.y = find(operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    const Descriptor *how = inner(operation, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    if (!isF32(CUDNN_ATTR_OPERATION_REDUCTION_DESC, CUDNN_ATTR_REDUCTION_COMP_TYPE))
      return false;
    step.mode = one<int>(*how, CUDNN_ATTR_REDUCTION_OPERATOR).value_or(-1);
    break;
  }
  case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
    step.kind = Kind::Reshape;
    step.x = find(operation, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
    step.y = find(operation, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
    break;
  case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: {
    step.kind = Kind::Pointwise;
    const Descriptor *how = inner(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    if (!how || !how->final)
      return false;
    step.mode = one<int>(*how, CUDNN_ATTR_POINTWISE_MODE).value_or(-1);
    step.axis = one<int64_t>(*how, CUDNN_ATTR_POINTWISE_AXIS).value_or(-1);
    step.x = find(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
    step.b = find(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    step.t = find(operation, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    step.y = find(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    break;
  }
  default:
    return false;
  }
  steps_.push_back(step);
  return step.x >= 0 && step.y >= 0;
}

/// Shapes agree, and what is inside the graph is made before it is read.
bool Fusion::isWellFormed() const {
  std::vector<bool> known;
  for (const TensorView &tensor : tensors_)
    known.push_back(!tensor.isVirtual);
  for (const Step &step : steps_) {
    const TensorView &x = tensors_[static_cast<size_t>(step.x)], &y = tensors_[static_cast<size_t>(step.y)];
    for (int read : {step.x, step.b, step.t})
      if (read >= 0 && !known[static_cast<size_t>(read)])
        return false;
    known[static_cast<size_t>(step.y)] = true;
    if (y.isByValue)
      return false;
    switch (step.kind) {
    case Kind::Matmul: {
      const TensorView &b = tensors_[static_cast<size_t>(step.b)];
      if (x.dims[0] != y.dims[0] || b.dims[0] != y.dims[0] || y.dims[1] % x.dims[1] || y.dims[1] % b.dims[1] ||
          x.dims[2] != y.dims[2] || x.dims[3] != b.dims[2] || b.dims[3] != y.dims[3])
        return false;
      break;
    }
    case Kind::Reduction:
      if (step.mode != CUDNN_REDUCE_TENSOR_ADD && step.mode != CUDNN_REDUCE_TENSOR_MAX)
        return false;
      for (size_t i = 0; i < 4; ++i)
        if (x.dims[i] % y.dims[i])
          return false;
      break;
    case Kind::Reshape:
      if (spanOf(x) != spanOf(y))
        return false;
      break;
    case Kind::Pointwise: {
      bool isUnary = step.mode == CUDNN_POINTWISE_EXP || step.mode == CUDNN_POINTWISE_LOG ||
                     step.mode == CUDNN_POINTWISE_GEN_INDEX;
      bool isBinary = step.mode == CUDNN_POINTWISE_ADD || step.mode == CUDNN_POINTWISE_MUL ||
                      step.mode == CUDNN_POINTWISE_DIV || step.mode == CUDNN_POINTWISE_SUB ||
                      step.mode == CUDNN_POINTWISE_CMP_GE;
      bool isSelect = step.mode == CUDNN_POINTWISE_BINARY_SELECT;
      if (!(isUnary || isBinary || isSelect) || (step.b >= 0) == isUnary || (step.t >= 0) != isSelect ||
          (step.mode == CUDNN_POINTWISE_GEN_INDEX && (step.axis < 0 || step.axis > 3)))
        return false;
      for (int read : {step.x, step.b, step.t})
        if (read >= 0 && !fits(tensors_[static_cast<size_t>(read)], y))
          return false;
      break;
    }
    }
  }
  return true;
}

/// Finds q, k, v and the mask by the products: the table decides whether they are taken.
bool Fusion::readShape() {
  std::vector<const Step *> products;
  for (const Step &step : steps_)
    if (step.kind == Kind::Matmul)
      products.push_back(&step);
  if (products.size() != 2 && products.size() != 5)
    return false;
  shape_.isGradient = products.size() == 5;
  auto at = [&](int tensor) -> const TensorView & { return tensors_[static_cast<size_t>(tensor)]; };
  const TensorView &q = at(products[0]->x), &k = at(products[0]->b), &v = at(products[shape_.isGradient ? 2 : 1]->b);
  shape_.dtype = q.dtype;
  shape_.batch = q.dims[0], shape_.heads = q.dims[1], shape_.rows = q.dims[2], shape_.depth = q.dims[3];
  shape_.keyHeads = k.dims[1], shape_.columns = k.dims[3];
  shape_.valueDepth = v.dims[shape_.isGradient ? 2 : 3];
  for (const Step &step : steps_)
    if (step.kind == Kind::Pointwise && step.mode == CUDNN_POINTWISE_ADD && step.b >= 0 && !at(step.b).isVirtual &&
        !at(step.b).isByValue && at(step.b).dims[3] != 1) {
      shape_.hasMask = true;
      shape_.maskDtype = at(step.b).dtype;
      std::copy(at(step.b).dims.begin(), at(step.b).dims.end(), shape_.mask.begin());
    }
  for (int i = 0; i < AttentionShape::numTensors; ++i)
    shape_.pack(static_cast<AttentionShape::Tensor>(i));
  auto lay = [&](AttentionShape::Tensor tensor, const TensorView &view, bool isTransposed) {
    auto &strides = shape_.layouts[tensor].strides;
    std::copy(view.strides.begin(), view.strides.end(), strides.begin());
    if (isTransposed)
      std::swap(strides[2], strides[3]);
  };
  lay(AttentionShape::Q, q, false);
  lay(AttentionShape::K, k, true);
  lay(AttentionShape::V, v, shape_.isGradient);
  if (!shape_.isGradient)
    lay(AttentionShape::O, at(products[1]->y), false);
  // In memory: operands and results of the operands' type, f32 for one number per row; q, k and v of one type.
  for (const TensorView &tensor : tensors_)
    if (!isFloat(tensor) && !tensor.isVirtual)
      return false;
  return k.dtype == q.dtype && v.dtype == q.dtype && !declineAttention(shape_);
}

std::optional<Fusion> readFusion(const Descriptor &graph) {
  std::vector<void *> handles = list<void *>(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  Fusion fusion;
  if (handles.size() < 2)
    return std::nullopt;
  for (void *handle : handles) {
    const Descriptor *operation = liveObject<Descriptor>(handle);
    if (!operation || !operation->final || !fusion.readStep(*operation))
      return std::nullopt;
  }
  return fusion.isWellFormed() && fusion.readShape() ? std::optional(std::move(fusion)) : std::nullopt;
}

uint64_t Fusion::workspaceBytes() const {
  auto tiles = [](int64_t size, int64_t tile) { return static_cast<uint64_t>((size + tile - 1) / tile * tile); };
  return shape_.isGradient ? static_cast<uint64_t>(shape_.batch * shape_.heads) * tiles(shape_.rows, 64) *
                                 tiles(shape_.columns, 128) * 2
                           : 0;
}

void Fusion::runPointwise(const Step &step, Buffers &buffers) const {
  const TensorView &y = tensors_[static_cast<size_t>(step.y)];
  struct Operand {
    const float *data = nullptr;
    std::array<int64_t, 4> strides{};
  };
  Operand operands[3];
  for (auto [number, operand] : {std::pair(step.x, &operands[0]), {step.b, &operands[1]}, {step.t, &operands[2]}})
    if (number >= 0)
      *operand = {buffers[static_cast<size_t>(number)].data(), following(tensors_[static_cast<size_t>(number)])};
  float *result = buffers[static_cast<size_t>(step.y)].data();
  machine().pool().run(y.dims[0] * y.dims[1], [&](int64_t outer, unsigned) {
    int64_t index[4] = {outer / y.dims[1], outer % y.dims[1], 0, 0};
    for (index[2] = 0; index[2] < y.dims[2]; ++index[2])
      for (index[3] = 0; index[3] < y.dims[3]; ++index[3]) {
        float value[3] = {};
        for (int i = 0; i < 3; ++i)
          if (operands[i].data) {
            int64_t offset = 0;
            for (size_t d = 0; d < 4; ++d)
              offset += index[d] * operands[i].strides[d];
            value[i] = operands[i].data[offset];
          }
        auto [x, b, t] = value;
        int64_t offset = 0;
        for (size_t d = 0; d < 4; ++d)
          offset += index[d] * y.strides[d];
        float &to = result[offset];
        switch (step.mode) {
        case CUDNN_POINTWISE_ADD:
          to = x + b;
          break;
        case CUDNN_POINTWISE_MUL:
          to = x * b;
          break;
        case CUDNN_POINTWISE_DIV:
          to = x / b;
          break;
        case CUDNN_POINTWISE_SUB:
          to = x - b;
          break;
        case CUDNN_POINTWISE_EXP:
          to = std::exp(x);
          break;
        case CUDNN_POINTWISE_LOG:
          to = std::log(x);
          break;
        case CUDNN_POINTWISE_CMP_GE:
          to = x >= b;
          break;
        case CUDNN_POINTWISE_GEN_INDEX:
          to = static_cast<float>(index[step.axis]);
          break;
        case CUDNN_POINTWISE_BINARY_SELECT:
          to = t != 0 ? x : b;
          break;
        }
        to = rounded(y, to);
      }
  });
}

void Fusion::runMatmul(const Step &step, Buffers &buffers) const {
  const TensorView &a = tensors_[static_cast<size_t>(step.x)], &b = tensors_[static_cast<size_t>(step.b)],
                   &c = tensors_[static_cast<size_t>(step.y)];
  const float *left = buffers[static_cast<size_t>(step.x)].data(), *right = buffers[static_cast<size_t>(step.b)].data();
  float *result = buffers[static_cast<size_t>(step.y)].data();
  machine().pool().run(c.dims[0] * c.dims[1], [&](int64_t outer, unsigned) {
    int64_t sample = outer / c.dims[1], head = outer % c.dims[1];
    const float *from = left + sample * a.strides[0] + head * a.dims[1] / c.dims[1] * a.strides[1];
    const float *with = right + sample * b.strides[0] + head * b.dims[1] / c.dims[1] * b.strides[1];
    float *to = result + sample * c.strides[0] + head * c.strides[1];
    for (int64_t m = 0; m < c.dims[2]; ++m)
      for (int64_t n = 0; n < c.dims[3]; ++n) {
        float sum = 0;
        for (int64_t k = 0; k < a.dims[3]; ++k)
          sum += from[m * a.strides[2] + k * a.strides[3]] * with[k * b.strides[2] + n * b.strides[3]];
        to[m * c.strides[2] + n * c.strides[3]] = rounded(c, sum);
      }
  });
}

void Fusion::runReduction(const Step &step, Buffers &buffers) const {
  const TensorView &x = tensors_[static_cast<size_t>(step.x)], &y = tensors_[static_cast<size_t>(step.y)];
  const float *from = buffers[static_cast<size_t>(step.x)].data();
  std::vector<float> &to = buffers[static_cast<size_t>(step.y)];
  bool isSum = step.mode == CUDNN_REDUCE_TENSOR_ADD;
  std::fill(to.begin(), to.end(), isSum ? 0 : -std::numeric_limits<float>::infinity());
  int64_t index[4];
  for (index[0] = 0; index[0] < x.dims[0]; ++index[0])
    for (index[1] = 0; index[1] < x.dims[1]; ++index[1])
      for (index[2] = 0; index[2] < x.dims[2]; ++index[2])
        for (index[3] = 0; index[3] < x.dims[3]; ++index[3]) {
          int64_t source = 0, target = 0;
          for (size_t d = 0; d < 4; ++d) {
            source += index[d] * x.strides[d];
            target += index[d] * y.dims[d] / x.dims[d] * y.strides[d];
          }
          float &total = to[static_cast<size_t>(target)];
          total = isSum ? total + from[source] : std::max(total, from[source]);
        }
  for (float &value : to)
    value = rounded(y, value);
}

void Fusion::runStep(const Step &step, Buffers &buffers) const {
  const TensorView &y = tensors_[static_cast<size_t>(step.y)];
  buffers[static_cast<size_t>(step.y)].resize(spanOf(y));
  switch (step.kind) {
  case Kind::Pointwise:
    return runPointwise(step, buffers);
  case Kind::Matmul:
    return runMatmul(step, buffers);
  case Kind::Reduction:
    return runReduction(step, buffers);
  case Kind::Reshape: // The same memory.
    std::transform(buffers[static_cast<size_t>(step.x)].begin(), buffers[static_cast<size_t>(step.x)].end(),
                   buffers[static_cast<size_t>(step.y)].begin(), [&](float value) { return rounded(y, value); });
    return;
  }
}

cudnnStatus_t Fusion::enqueue(Stream &stream, std::span<const int64_t> ids, std::span<void *const> pointers,
                              void *workspace) const {
  std::vector<uint8_t *> places(tensors_.size());
  Buffers given(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const TensorView &tensor = tensors_[i];
    for (size_t j = 0; j < ids.size() && j < pointers.size(); ++j)
      if (ids[j] == tensor.id)
        places[i] = static_cast<uint8_t *>(pointers[j]);
    if (tensor.isVirtual)
      continue;
    if (!places[i])
      return CUDNN_STATUS_BAD_PARAM;
    if (tensor.isByValue)
      given[i] = {static_cast<float>(loadElement(tensor.dtype, places[i]))};
    else if (!machine().holds(places[i], spanOf(tensor) * elementBytes(tensor.dtype), false))
      return CUDNN_STATUS_BAD_PARAM;
  }
  machine().enqueue(stream, [fusion = *this, places, given, workspace] {
    if (uint64_t bytes = fusion.workspaceBytes())
      std::memset(workspace, 0xFF, bytes);
    Buffers buffers = given;
    auto isInMemory = [&](int i) {
      const TensorView &tensor = fusion.tensors_[static_cast<size_t>(i)];
      return !tensor.isVirtual && !tensor.isByValue;
    };
    for (const Step &step : fusion.steps_) {
      for (int read : {step.x, step.b, step.t})
        if (read >= 0 && isInMemory(read)) {
          const TensorView &tensor = fusion.tensors_[static_cast<size_t>(read)];
          const uint8_t *from = places[static_cast<size_t>(read)];
          std::vector<float> &to = buffers[static_cast<size_t>(read)];
          to.resize(spanOf(tensor));
          for (size_t i = 0; i < to.size(); ++i)
            to[i] = static_cast<float>(loadElement(tensor.dtype, from + i * elementBytes(tensor.dtype)));
        }
      fusion.runStep(step, buffers);
      if (isInMemory(step.y)) {
        const TensorView &tensor = fusion.tensors_[static_cast<size_t>(step.y)];
        const std::vector<float> &from = buffers[static_cast<size_t>(step.y)];
        // Its own elements: what is between them may belong to others.
        forEachElement(tensor, [&](size_t i) {
          storeElement(tensor.dtype, places[static_cast<size_t>(step.y)] + i * elementBytes(tensor.dtype), from[i]);
        });
      }
    }
    return std::string();
  });
  return CUDNN_STATUS_SUCCESS;
}

} // namespace lowtide::rt::cuda::fake

//===- Attention.cpp - attention in tiles of scores ------------------------===//
//
// Scores are computed in tiles of rows × columns, which stay on the stack; nothing of their size is in memory. The
// forward pass keeps the highest score and the sum of each row as it goes along the columns (Milakov and Gimelshein,
// "Online normalizer calculation for softmax", 2018); the derivative computes the probabilities from the logarithms of
// the sums (Dao et al., "FlashAttention", 2022, algorithms 1 and 4).
//
// A task of the forward pass is a block of rows of one head. One of the derivative is a key head of one sample, with
// all heads that share it: its blocks are added in ascending order, whatever the number of threads.
//
// 16-bit operands are widened tile by tile; scores, probabilities and sums are f32, results are rounded once. The
// cotangents of q, to which every tile of columns adds, lie in the workspace until then.
//
//===----------------------------------------------------------------------===//

#include "runtime/calls/Attention/AttentionTiles.h"

#include "runtime/kernels/Narrow.h"
#include "runtime/kernels/Panel.h"
#include "runtime/kernels/PreparedCall.h"
#include "runtime/kernels/VectorExp.h"

#include <cmath>
#include <limits>
#include <type_traits>

namespace lowtide::rt {
namespace {

using namespace kernels;

constexpr int64_t w = lanes<float>, p = panel<float>;
constexpr int64_t maxDepth = attentionDepth, tileScores = 128;
constexpr int64_t forwardRows = 96, gradientRows = 48;
constexpr float hidden = -std::numeric_limits<float>::infinity();

/// Rows of a matrix whose elements lie side by side.
template <typename T> struct Rows {
  T *first;
  int64_t stride;

  T *at(int64_t row) const { return first + row * stride; }
};

/// Elements of a buffer for widened rows; f32 needs none.
template <typename S> constexpr int64_t roomFor(int64_t elements) { return std::is_same_v<S, float> ? 1 : elements; }
/// Rows in f32: widened into `to`, or where they are.
template <typename S> Rows<const float> widened(Rows<const S> from, int64_t rows, int64_t width, float *to) {
  if constexpr (std::is_same_v<S, float>) {
    return from;
  } else {
    for (int64_t i = 0; i < rows; ++i)
      widenRun(to + i * width, from.at(i), width);
    return {to, width};
  }
}

/// B of a product: `columns` columns in panels, each `depth` rows long.
void pack(float *to, Rows<const float> from, int64_t depth, int64_t columns) {
  for (int64_t n = 0; n < columns; n += p)
    packPanel(to + n * depth, from.first + n, from.stride, depth, std::min(p, columns - n));
}
/// The same of the transpose: `from` has a row for each column.
void packTransposed(float *to, Rows<const float> from, int64_t depth, int64_t columns) {
  for (int64_t n = 0; n < columns; n += p)
    packPanelTransposed(to + n * depth, from.at(n), from.stride, depth, std::min(p, columns - n));
}
/// d = alpha · a b (+ d where it `adds`).
template <Left storage>
void multiply(int64_t rows, int64_t columns, int64_t depth, Rows<const float> a, const float *b, Rows<float> d,
              float alpha, bool adds) {
  for (int64_t n = 0; n < columns; n += p)
    for (int64_t m = 0; m < rows; m += tileRows) {
      Epilogue<float> epilogue;
      epilogue.alpha = alpha;
      if (adds)
        epilogue.source = d.at(m) + n, epilogue.sourceRow = d.stride;
      const float *left = storage == Left::Columns ? a.first + m : a.at(m);
      tile<float, storage>(std::min(tileRows, rows - m), std::min(p, columns - n), depth, left, a.stride, b + n * depth,
                           d.at(m) + n, d.stride, epilogue);
    }
}

/// The sum of products of two rows, in as many partial sums as a vector has lanes.
template <typename S> float multiplyRows(const S *a, const float *b, int64_t count) {
  float partial[w] = {}, sum = 0;
  int64_t j = 0;
  for (; j + w <= count; j += w)
    for (int64_t x = 0; x < w; ++x)
      partial[x] += widen(a[j + x]) * b[j + x];
  for (float part : partial)
    sum += part;
  for (; j < count; ++j)
    sum += widen(a[j]) * b[j];
  return sum;
}

float sumOf(Vec<float> v) {
  float sum = 0;
  for (int64_t i = 0; i < w; ++i)
    sum += v[i];
  return sum;
}

/// `S`: the operands' type in memory.
template <typename S> class Attention : public PreparedCall {
protected:
  Attention(const AttentionShape &shape, const CallOperands &operands) : shape_(shape) {
    std::transform(operands.reads.begin(), operands.reads.end(), reads_.begin(),
                   [](const void *read) { return static_cast<const S *>(read); });
    std::transform(operands.writes.begin(), operands.writes.end(), writes_.begin(),
                   [](void *write) { return static_cast<S *>(write); });
    if (shape_.hasMask)
      mask_ = operands.reads.back();
    int64_t stride = 1;
    for (size_t d = 4; d-- > 0; stride *= shape.mask[d])
      maskStrides_[d] = shape.mask[d] == 1 ? 0 : stride;
  }

  /// The rows of one head of an operand or a result.
  template <typename T> Rows<T> rowsOf(T *bytes, AttentionShape::Tensor tensor, int64_t sample, int64_t head) const {
    const TensorLayout &layout = shape_.layouts[tensor];
    return {bytes + layout.offset + sample * layout.strides[0] + head * layout.strides[1], layout.strides[2]};
  }
  Rows<const S> read(int i, AttentionShape::Tensor tensor, int64_t sample, int64_t head) const {
    return rowsOf(reads_[static_cast<size_t>(i)], tensor, sample, head);
  }

  /// Columns that one of the rows up to `rowEnd` sees.
  int64_t seenColumns(int64_t rowEnd) const {
    return shape_.isCausal ? std::min(shape_.columns, rowEnd) : shape_.columns;
  }

  template <typename M> void addMask(float *line, int64_t at, int64_t columns) const {
    const M *mask = static_cast<const M *>(mask_) + at;
    for (int64_t j = 0; j < columns; ++j)
      line[j] += widen(mask[j * maskStrides_[3]]);
  }

  /// A tile of scores: scale · q kᵀ + mask, −∞ where a row does not see, up to whole vectors of columns. `q` begins at
  /// `row`.
  void computeScores(float *scores, Rows<const float> q, const float *packedKeys, int64_t sample, int64_t head,
                     int64_t row, int64_t rows, int64_t column, int64_t columns) const {
    multiply<Left::Rows>(rows, columns, shape_.depth, q, packedKeys, {scores, tileScores},
                         static_cast<float>(shape_.scale), false);
    for (int64_t i = 0; i < rows; ++i) {
      float *line = scores + i * tileScores;
      if (mask_) {
        const int64_t at =
            sample * maskStrides_[0] + head * maskStrides_[1] + (row + i) * maskStrides_[2] + column * maskStrides_[3];
        shape_.maskDtype == plan::F32 ? addMask<float>(line, at, columns) : addMask<S>(line, at, columns);
      }
      const int64_t seen = shape_.isCausal ? std::clamp<int64_t>(row + i + 1 - column, 0, columns) : columns;
      std::fill(line + seen, line + ceilDiv(columns, w) * w, hidden);
    }
  }

  AttentionShape shape_;
  std::array<const S *, 7> reads_{};
  std::array<S *, 3> writes_{};
  const void *mask_ = nullptr;
  std::array<int64_t, 4> maskStrides_{};
};

template <typename S> class Forward final : public Attention<S> {
  using Attention<S>::read, Attention<S>::rowsOf, Attention<S>::seenColumns, Attention<S>::computeScores;
  using Attention<S>::shape_, Attention<S>::writes_;

public:
  Forward(const AttentionShape &shape, const CallOperands &operands)
      : Attention<S>(shape, operands), blocks_(ceilDiv(shape.rows, forwardRows)),
        logarithms_(static_cast<float *>(operands.writes[1])) {}

  int64_t tasks(int) const override { return shape_.batch * shape_.heads * blocks_; }

  void run(int, int64_t task) const noexcept override {
    using enum AttentionShape::Tensor;
    const int64_t sample = task / blocks_ / shape_.heads, head = task / blocks_ % shape_.heads;
    const int64_t keyHead = head / (shape_.heads / shape_.keyHeads);
    const int64_t row = task % blocks_ * forwardRows, rows = std::min(forwardRows, shape_.rows - row);
    const Rows<const S> q = read(0, Q, sample, head), k = read(1, K, sample, keyHead), v = read(2, V, sample, keyHead);
    const Rows<S> o = rowsOf(writes_[0], O, sample, head);
    float *logarithms = logarithms_ + (sample * shape_.heads + head) * shape_.rows + row;
    alignas(64) float scores[forwardRows * tileScores], sums[forwardRows * maxDepth];
    alignas(64) float keys[maxDepth * tileScores], values[tileScores * (maxDepth + p)];
    alignas(64) float wideRows[roomFor<S>(forwardRows * maxDepth)], wideColumns[roomFor<S>(tileScores * maxDepth)];
    float highest[forwardRows], total[forwardRows];
    const Rows<const float> rowsOfQ = widened<S>({q.at(row), q.stride}, rows, shape_.depth, wideRows);
    const int64_t width = ceilDiv(shape_.valueDepth, w) * w;
    std::fill(highest, highest + rows, hidden);
    std::fill(total, total + rows, 0.0f);
    std::fill(sums, sums + rows * width, 0.0f);
    for (int64_t column = 0, end = seenColumns(row + rows); column < end; column += tileScores) {
      const int64_t columns = std::min(tileScores, end - column);
      packTransposed(keys, widened<S>({k.at(column), k.stride}, columns, shape_.depth, wideColumns), shape_.depth,
                     columns);
      pack(values, widened<S>({v.at(column), v.stride}, columns, shape_.valueDepth, wideColumns), columns,
           shape_.valueDepth);
      computeScores(scores, rowsOfQ, keys, sample, head, row, rows, column, columns);
      for (int64_t i = 0; i < rows; ++i)
        total[i] = exponentiate(scores + i * tileScores, columns, highest[i], total[i], sums + i * width, width);
      multiply<Left::Rows>(rows, shape_.valueDepth, columns, {scores, tileScores}, values, {sums, width}, 1.0f, true);
    }
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < shape_.valueDepth; ++j)
        narrow(sums[i * width + j] / total[i], o.at(row + i)[j]);
      logarithms[i] = highest[i] + std::log(total[i]);
    }
  }

private:
  /// Makes of scores their exponentials over the highest score so far, to which the sums of the row are brought;
  /// returns the row's new total.
  static float exponentiate(float *line, int64_t columns, float &highest, float total, float *sums, int64_t width) {
    Vec<float> most = load(line);
    for (int64_t j = w; j < columns; j += w) {
      const Vec<float> next = load(line + j);
      most = next > most || next != next ? next : most;
    }
    float above = highest;
    for (int64_t i = 0; i < w; ++i)
      above = most[i] > above || std::isnan(most[i]) ? most[i] : above;
    // Where all that was seen is hidden, there is nothing to subtract.
    const float shift = above == hidden ? 0.0f : above;
    const float factor = std::exp(highest - shift);
    highest = above;
    Vec<float> sum{};
    for (int64_t j = 0; j < columns; j += w) {
      const Vec<float> e = exponential(load(line + j) - shift);
      store(line + j, e);
      sum += e;
    }
    if (factor != 1.0f)
      for (int64_t j = 0; j < width; j += w)
        store(sums + j, load(sums + j) * factor);
    return total * factor + sumOf(sum);
  }

  int64_t blocks_;
  float *logarithms_;
};

template <typename S> class Gradient final : public Attention<S> {
  using Attention<S>::read, Attention<S>::rowsOf, Attention<S>::seenColumns, Attention<S>::computeScores;
  using Attention<S>::shape_, Attention<S>::writes_;

public:
  Gradient(const AttentionShape &shape, const CallOperands &operands)
      : Attention<S>(shape, operands), logarithms_(static_cast<const float *>(operands.reads[4])),
        queries_(static_cast<float *>(operands.workspace)) {}

  int64_t tasks(int) const override { return shape_.batch * shape_.keyHeads; }

  void run(int, int64_t task) const noexcept override {
    using enum AttentionShape::Tensor;
    const int64_t sample = task / shape_.keyHeads, keyHead = task % shape_.keyHeads;
    const int64_t group = shape_.heads / shape_.keyHeads, depth = shape_.depth, valueDepth = shape_.valueDepth;
    const Rows<const S> k = read(1, K, sample, keyHead), v = read(2, V, sample, keyHead);
    const Rows<S> dk = result(GradK, sample, keyHead), dv = result(GradV, sample, keyHead);
    Stack stack;
    for (int64_t column = 0; column < shape_.columns; column += tileScores) {
      const int64_t columns = std::min(tileScores, shape_.columns - column);
      const auto keys = widened<S>({k.at(column), k.stride}, columns, depth, stack.wideColumns);
      packTransposed(stack.keysAcross, keys, depth, columns);
      pack(stack.keys, keys, columns, depth);
      packTransposed(stack.valuesAcross, widened<S>({v.at(column), v.stride}, columns, valueDepth, stack.wideColumns),
                     valueDepth, columns);
      std::fill(stack.gradKeys, stack.gradKeys + columns * depth, 0.0f);
      std::fill(stack.gradValues, stack.gradValues + columns * valueDepth, 0.0f);
      for (int64_t head = keyHead * group; head < (keyHead + 1) * group; ++head)
        for (int64_t row = 0; row < shape_.rows; row += gradientRows)
          if (const int64_t rows = std::min(gradientRows, shape_.rows - row); column < seenColumns(row + rows))
            addTile(stack, sample, head, row, rows, column, columns);
      for (int64_t j = 0; j < columns; ++j) {
        narrowRun(dk.at(column + j), stack.gradKeys + j * depth, depth);
        narrowRun(dv.at(column + j), stack.gradValues + j * valueDepth, valueDepth);
      }
    }
    if constexpr (!std::is_same_v<S, float>)
      for (int64_t head = keyHead * group; head < (keyHead + 1) * group; ++head)
        for (int64_t row = 0; row < shape_.rows; ++row)
          narrowRun(result(GradQ, sample, head).at(row), sumsOfQueries(sample, head).at(row), depth);
  }

private:
  /// Panels of keys and values, of a tile and of the rows; sums of the keys' cotangents; widened operands.
  struct Stack {
    alignas(64) float keysAcross[maxDepth * tileScores], keys[tileScores * (maxDepth + p)];
    alignas(64) float valuesAcross[maxDepth * tileScores];
    alignas(64) float gradKeys[tileScores * maxDepth], gradValues[tileScores * maxDepth];
    alignas(64) float probabilities[gradientRows * tileScores], gradScores[gradientRows * tileScores];
    alignas(64) float right[gradientRows * (maxDepth + p)];
    alignas(64) float wideColumns[roomFor<S>(tileScores * maxDepth)];
    alignas(64) float wideQ[roomFor<S>(gradientRows * maxDepth)], wideGradO[roomFor<S>(gradientRows * maxDepth)];
  };

  /// Where the cotangents of a head's queries are summed: in the result, or in the workspace.
  Rows<float> sumsOfQueries(int64_t sample, int64_t head) const {
    if constexpr (std::is_same_v<S, float>)
      return result(AttentionShape::GradQ, sample, head);
    else
      return {queries_ + (sample * shape_.heads + head) * shape_.rows * shape_.depth, shape_.depth};
  }

  Rows<S> result(AttentionShape::Tensor tensor, int64_t sample, int64_t head) const {
    const size_t i = shape_.sharesResult ? 0 : static_cast<size_t>(tensor - AttentionShape::GradQ);
    return rowsOf(writes_[i], tensor, sample, head);
  }

  /// What a tile of scores adds to the cotangents of its rows of q and its columns of k and v.
  void addTile(Stack &stack, int64_t sample, int64_t head, int64_t row, int64_t rows, int64_t column,
               int64_t columns) const {
    using enum AttentionShape::Tensor;
    const int64_t depth = shape_.depth, valueDepth = shape_.valueDepth;
    const Rows<const S> q = read(0, Q, sample, head), o = read(3, O, sample, head),
                        gradO = read(5, GradO, sample, head);
    const Rows<const float> rowsOfQ = widened<S>({q.at(row), q.stride}, rows, depth, stack.wideQ),
                            rowsOfGradO = widened<S>({gradO.at(row), gradO.stride}, rows, valueDepth, stack.wideGradO);
    const Rows<float> dq = sumsOfQueries(sample, head);
    const float *logarithms = logarithms_ + (sample * shape_.heads + head) * shape_.rows + row;
    computeScores(stack.probabilities, rowsOfQ, stack.keysAcross, sample, head, row, rows, column, columns);
    multiply<Left::Rows>(rows, columns, valueDepth, rowsOfGradO, stack.valuesAcross, {stack.gradScores, tileScores},
                         1.0f, false);
    const float scale = static_cast<float>(shape_.scale);
    for (int64_t i = 0; i < rows; ++i) {
      float *line = stack.probabilities + i * tileScores, *gradient = stack.gradScores + i * tileScores;
      const float dot = multiplyRows(o.at(row + i), rowsOfGradO.at(i), valueDepth);
      for (int64_t j = 0; j < columns; j += w) {
        const Vec<float> e = exponential(load(line + j) - logarithms[i]);
        store(line + j, e);
        store(gradient + j, (load(gradient + j) - dot) * e * scale);
      }
    }
    pack(stack.right, rowsOfGradO, rows, valueDepth);
    multiply<Left::Columns>(columns, valueDepth, rows, {stack.probabilities, tileScores}, stack.right,
                            {stack.gradValues, valueDepth}, 1.0f, true);
    pack(stack.right, rowsOfQ, rows, depth);
    multiply<Left::Columns>(columns, depth, rows, {stack.gradScores, tileScores}, stack.right, {stack.gradKeys, depth},
                            1.0f, true);
    multiply<Left::Rows>(rows, depth, columns, {stack.gradScores, tileScores}, stack.keys, {dq.at(row), dq.stride},
                         1.0f, column > 0);
  }

  const float *logarithms_;
  float *queries_;
};

template <typename S> std::unique_ptr<PreparedCall> prepare(const AttentionShape &shape, const CallOperands &operands) {
  if (shape.isGradient)
    return std::make_unique<Gradient<S>>(shape, operands);
  return std::make_unique<Forward<S>>(shape, operands);
}

} // namespace

std::unique_ptr<PreparedCall> prepareAttention(const AttentionShape &shape, const CallOperands &operands) {
  if (shape.dtype == plan::BF16)
    return prepare<BFloat16>(shape, operands);
  return shape.dtype == plan::F16 ? prepare<Float16>(shape, operands) : prepare<float>(shape, operands);
}

} // namespace lowtide::rt

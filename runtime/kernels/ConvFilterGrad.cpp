//===- ConvFilterGrad.cpp - the gradient of a convolution's filter ---------===//
//
//   filter'[o][c][tap] = Σ_(image, pixel)  input[c][pixel · stride + tap · dilation − pad] · output'[o][pixel]
//
// Rows (c, tap) are gathered as they lie, columns o are packed by transposing the output gradient; the long sum over
// pixels runs through the register tile. Partial sums (FilterGradCut) go to the workspace and are added in order by a
// second phase, which also turns (c, tap) × o into the filter's layout.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Gather.h"
#include "runtime/kernels/PreparedCall.h"

namespace lowtide::rt {
namespace {

using namespace kernels;

constexpr int64_t maxRows = 96, maxOut = 256;

template <typename T> class ConvFilterGrad final : public PreparedCall {
public:
  ConvFilterGrad(const ConvShape &shape, const CallOperands &operands) : shape_(shape), cut_(shape) {
    outputGrad_ = static_cast<const T *>(operands.reads[1]);
    filterGrad_ = static_cast<T *>(operands.writes[0]);
    partial_ = static_cast<T *>(operands.workspace);
    gather_.source = static_cast<const T *>(operands.reads[0]);
    gather_.channelStride = ConvShape::volume(shape.input);
    gather_.imageStride = shape.groups * shape.channels * gather_.channelStride;
    gather_.size = shape.input, gather_.grid = shape.output, gather_.scale = shape.stride;
    const ConvShape::Dims &f = shape.filter;
    for (int64_t z = 0; z < f[0]; ++z)
      for (int64_t y = 0; y < f[1]; ++y)
        for (int64_t x = 0; x < f[2]; ++x)
          gather_.taps.push_back({z * shape.dilation[0] - shape.padBegin[0], y * shape.dilation[1] - shape.padBegin[1],
                                  x * shape.dilation[2] - shape.padBegin[2]});
    // Chunks of pixels stay inside a part; parts are balanced.
    perPart_ = ceilDiv(shape.batch * gather_.pixels(), cut_.parts);
    outTiles_ = ceilDiv(shape.outChannels, tileColumns);
  }

  int phases() const override { return 2; }
  int64_t tasks(int phase) const override {
    return phase == 0 ? shape_.groups * cut_.parts * cut_.blocks : shape_.groups * cut_.blocks * outTiles_;
  }
  void run(int phase, int64_t task) const noexcept override {
    if (phase == 0)
      return sum(task % cut_.blocks, task / cut_.blocks % cut_.parts, task / (cut_.blocks * cut_.parts));
    reduce(task % outTiles_, task / outTiles_ % cut_.blocks, task / (outTiles_ * cut_.blocks));
  }

private:
  T *partial(int64_t part, int64_t group) const {
    return partial_ + (part * shape_.groups + group) * cut_.rows * cut_.paddedOut;
  }

  void sum(int64_t block, int64_t part, int64_t group) const {
    int64_t pixels = gather_.pixels(), total = shape_.batch * pixels;
    int64_t k0 = block * cut_.rowsPerBlock, k1 = std::min(cut_.rows, k0 + cut_.rowsPerBlock);
    int64_t q0 = std::min(total, part * perPart_), q1 = std::min(total, q0 + perPart_);
    T *result = partial(part, group);
    alignas(64) T left[maxRows * blockK<T>];
    alignas(64) T right[maxOut * blockK<T>];
    typename Gather<T>::Piece pieces[blockK<T>];
    Gather<T> const &gather = gather_;
    int64_t channelShift = group * shape_.channels * gather.channelStride;
    if (q0 == q1) {
      std::memset(result + k0 * cut_.paddedOut, 0, static_cast<size_t>((k1 - k0) * cut_.paddedOut) * sizeof(T));
      return;
    }
    for (int64_t q = q0; q < q1; q += blockK<T>) {
      int64_t count = std::min(blockK<T>, q1 - q);
      gather.packRows(left, blockK<T>, q, count, k0, k1, pieces, channelShift);
      for (int64_t o0 = 0; o0 < shape_.outChannels; o0 += maxOut) {
        int64_t o1 = std::min(shape_.outChannels, o0 + maxOut);
        packOutput(right, q, count, group * shape_.outChannels, o0, o1);
        for (int64_t o = o0; o < o1; o += panel<T>) {
          const T *b = right + (o - o0) * count;
          for (int64_t k = k0; k < k1; k += tileRows) {
            T *d = result + k * cut_.paddedOut + o;
            Epilogue<T> epilogue;
            if (q != q0)
              epilogue.source = d, epilogue.sourceRow = cut_.paddedOut;
            // The workspace has room for whole panels.
            int64_t columns = shape_.outChannels - o > lanes<T> ? panel<T> : lanes<T>;
            tile<T, false>(std::min(tileRows, k1 - k), columns, count, left + (k - k0) * blockK<T>, blockK<T>, b, d,
                           cut_.paddedOut, epilogue);
          }
        }
      }
    }
  }

  /// Panels of output channels [o0, o1) for columns [q, q + count), image by image.
  void packOutput(T *to, int64_t q, int64_t count, int64_t firstChannel, int64_t o0, int64_t o1) const {
    int64_t pixels = gather_.pixels(), imageStride = shape_.groups * shape_.outChannels * pixels;
    for (int64_t o = o0; o < o1; o += panel<T>, to += count * panel<T>) {
      int64_t columns = std::min(panel<T>, o1 - o);
      for (int64_t at = 0; at < count;) {
        int64_t image = (q + at) / pixels, pixel = (q + at) % pixels;
        int64_t length = std::min(count - at, pixels - pixel);
        packPanelTransposed(to + at * panel<T>, outputGrad_ + image * imageStride + (firstChannel + o) * pixels + pixel,
                            pixels, length, columns);
        at += length;
      }
    }
  }

  void reduce(int64_t outTile, int64_t block, int64_t group) const {
    int64_t k0 = block * cut_.rowsPerBlock, k1 = std::min(cut_.rows, k0 + cut_.rowsPerBlock);
    int64_t o0 = outTile * tileColumns, o1 = std::min(shape_.outChannels, o0 + tileColumns);
    T *to = filterGrad_ + group * shape_.outChannels * cut_.rows;
    for (int64_t k = k0; k < k1; ++k) {
      T total[tileColumns] = {};
      for (int64_t part = 0; part < cut_.parts; ++part) {
        const T *from = partial(part, group) + k * cut_.paddedOut;
        for (int64_t o = o0; o < o1; ++o)
          total[o - o0] += from[o];
      }
      for (int64_t o = o0; o < o1; ++o)
        to[o * cut_.rows + k] = total[o - o0];
    }
  }

  ConvShape shape_;
  FilterGradCut cut_;
  Gather<T> gather_;
  const T *outputGrad_;
  T *filterGrad_, *partial_;
  int64_t perPart_ = 0, outTiles_ = 0;
};

} // namespace

std::unique_ptr<PreparedCall> prepareConvFilterGrad(const ConvShape &shape, const CallOperands &operands) {
  if (shape.dtype == plan::F64)
    return std::make_unique<ConvFilterGrad<double>>(shape, operands);
  return std::make_unique<ConvFilterGrad<float>>(shape, operands);
}

} // namespace lowtide::rt

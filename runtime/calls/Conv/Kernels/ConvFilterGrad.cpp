//===- ConvFilterGrad.cpp - the gradient of a convolution's filter ---------===//
//
//   filter'[o][c][tap] = Σ_(image, pixel)  input[c][pixel · stride + tap · dilation − pad] · output'[o][pixel]
//
// Rows (c, tap) are shifted readings of a padded tile of the input (PaddedTile.h) or, in three dimensions, gathered;
// columns o are packed by transposing the output gradient; the long sum over pixels runs through the register tile:
//
//   for each chunk of rows of pixels:  fill the tile, pack the output gradient
//     for each panel of o, for each six (c, tap):  accumulate in registers over the pixels, add to the partial sums
//
// Where there is one output channel per group (depthwise), vectors run along x instead, and their lanes are added up.
//
// Partial sums (FilterGradCut) go to the workspace and are added in order by a second phase, which also turns
// (c, tap) × o into the filter's layout.
//
//===----------------------------------------------------------------------===//

#include "runtime/calls/Conv/PaddedTile.h"
#include "runtime/kernels/Panel.h"
#include "runtime/kernels/PreparedCall.h"

namespace lowtide::rt {
namespace {

using namespace kernels;

constexpr int64_t maxOut = 256;
/// Bytes of the padded tile on the stack; pixels that a chunk aims at.
constexpr int64_t tileBytes = 96 * 1024, wantedPixels = 256, wantedPixelsOfOne = 2048;

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
    outTiles_ = ceilDiv(shape.outChannels, tileColumns);
    createTile();
    // Chunks stay inside a part; parts are balanced.
    int64_t units =
        tile_ ? ceilDiv(shape.batch, images_) * ceilDiv(gather_.grid[1], rows_) : shape.batch * gather_.pixels();
    perPart_ = ceilDiv(units, cut_.parts), units_ = units;
  }

  int phases() const override { return 2; }
  int64_t tasks(int phase) const override {
    return phase == 0 ? shape_.groups * cut_.parts * cut_.blocks : shape_.groups * cut_.blocks * outTiles_;
  }
  void run(int phase, int64_t task) const noexcept override {
    if (phase == 1)
      return reduce(task % outTiles_, task / outTiles_ % cut_.blocks, task / (outTiles_ * cut_.blocks));
    int64_t block = task % cut_.blocks, part = task / cut_.blocks % cut_.parts,
            group = task / (cut_.blocks * cut_.parts);
    int64_t k0 = block * cut_.rowsPerBlock, k1 = std::min(cut_.rows, k0 + cut_.rowsPerBlock);
    int64_t first = std::min(units_, part * perPart_), last = std::min(units_, first + perPart_);
    T *result = partial(part, group);
    if (first == last)
      std::memset(result + k0 * cut_.paddedOut, 0, static_cast<size_t>((k1 - k0) * cut_.paddedOut) * sizeof(T));
    else if (tile_)
      sumTiles(k0, k1, first, last, group, result);
    else
      sumGathered(k0, k1, first, last, group, result);
  }

private:
  T *partial(int64_t part, int64_t group) const {
    return partial_ + (part * shape_.groups + group) * cut_.rows * cut_.paddedOut;
  }

  void createTile() {
    Gather<T> flat = gather_;
    flattenPoints(flat);
    width_ = shape_.outChannels == 1 ? ceilDiv(flat.grid[2], lanes<T>) * lanes<T> : flat.grid[2];
    tile_ = PaddedTile<T>::create(flat, width_);
    if (!tile_)
      return;
    int64_t channels = cut_.channelsPerBlock(shape_), height = flat.grid[1];
    int64_t wanted = shape_.outChannels == 1 ? wantedPixelsOfOne : wantedPixels;
    rows_ = std::clamp<int64_t>(wanted / width_, 1, height);
    images_ = rows_ == height ? std::clamp<int64_t>(wanted / (width_ * height), 1, shape_.batch) : 1;
    while (tile_->elements(images_, rows_, channels) * static_cast<int64_t>(sizeof(T)) > tileBytes) {
      if (images_ > 1)
        images_ = ceilDiv(images_, 2);
      else if (rows_ > 1)
        rows_ = ceilDiv(rows_, 2);
      else
        return tile_.reset();
    }
    if (images_ * rows_ * width_ > (shape_.outChannels == 1 ? maxPixels * panel<T> : maxPixels))
      return tile_.reset();
    gather_ = flat;
    tile_->setShape(rows_, channels);
    for (int64_t k = 0; k < channels * gather_.tapCount(); ++k)
      offsets_.push_back(
          tile_->offset(k / gather_.tapCount(), gather_.taps[static_cast<size_t>(k % gather_.tapCount())]));
  }

  /// Chunks [first, last): so many images, or so many rows of one.
  void sumTiles(int64_t k0, int64_t k1, int64_t first, int64_t last, int64_t group, T *result) const {
    int64_t height = gather_.grid[1], width = gather_.grid[2], perImage = ceilDiv(height, rows_);
    int64_t c0 = group * shape_.channels + k0 / gather_.tapCount(),
            c1 = group * shape_.channels + ceilDiv(k1, gather_.tapCount());
    alignas(64) T tile[tileBytes / sizeof(T)];
    alignas(64) T right[maxPixels * panel<T>];
    for (int64_t chunk = first; chunk < last; ++chunk) {
      int64_t image0 = chunk / perImage * images_, image1 = std::min(shape_.batch, image0 + images_);
      int64_t y0 = chunk % perImage * rows_, y1 = std::min(height, y0 + rows_);
      tile_->fill(tile, image0, image1, y0, y1, c0, c1);
      if (shape_.outChannels == 1) {
        copyOutput(right, image0, image1, y0, y1, group);
        for (int64_t k = k0; k < k1; k += tileRows)
          withTileShape(std::min(tileRows, k1 - k), 1, [&](auto rows, auto) {
            addDots<rows>(tile, offsets_.data() + k - k0, image1 - image0, y1 - y0, right, result + k * cut_.paddedOut,
                          chunk != first);
          });
        continue;
      }
      for (int64_t o = 0; o < shape_.outChannels; o += panel<T>) {
        int64_t perRows = (y1 - y0) * width, columns = std::min(panel<T>, shape_.outChannels - o);
        for (int64_t image = image0; image < image1; ++image)
          packOutput(right + (image - image0) * perRows * panel<T>, image, y0 * width, perRows,
                     group * shape_.outChannels + o, columns);
        for (int64_t k = k0; k < k1; k += tileRows)
          withTileShape(std::min(tileRows, k1 - k), columns > lanes<T> ? 2 : 1, [&](auto rows, auto vectors) {
            addProduct<rows, vectors>(tile, offsets_.data() + k - k0, image1 - image0, y1 - y0, right,
                                      result + k * cut_.paddedOut + o, chunk != first);
          });
      }
    }
  }

  /// Six rows (c, tap) at `offsets` times one panel, over all pixels of a chunk.
  template <int rows, int vectors>
  [[gnu::always_inline]] void addProduct(const T *tile, const int64_t *offsets, int64_t images, int64_t ys,
                                         const T *right, T *d, bool add) const {
    Vec<T> sum[rows][vectors];
    clear<T>(sum);
    const T *a[rows];
    int64_t width = gather_.grid[2];
    for (int64_t image = 0; image < images; ++image)
      for (int64_t y = 0; y < ys; ++y, right += width * panel<T>) {
#pragma clang loop unroll(full)
        for (int i = 0; i < rows; ++i)
          a[i] = tile + tile_->position(image, y) + offsets[i];
        accumulate<T, rows, vectors>(
            width, [&](int64_t p, int i) { return a[i][p]; },
            [&](int64_t p, int v) { return load(right + p * panel<T> + v * lanes<T>); }, sum);
      }
#pragma clang loop unroll(full)
    for (int i = 0; i < rows; ++i)
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; ++v) {
        T *to = d + i * cut_.paddedOut + v * lanes<T>;
        store(to, add ? sum[i][v] + load(to) : sum[i][v]);
      }
  }

  /// The rows of the group's one output channel, each filled up with zeros to whole vectors.
  void copyOutput(T *to, int64_t image0, int64_t image1, int64_t y0, int64_t y1, int64_t channel) const {
    int64_t width = gather_.grid[2];
    for (int64_t image = image0; image < image1; ++image)
      for (int64_t y = y0; y < y1; ++y, to += width_) {
        store(to + width_ - lanes<T>, Vec<T>{});
        copyRun(to, outputGrad_ + (image * shape_.groups + channel) * gather_.pixels() + y * width, width, 1);
      }
  }

  /// Six rows (c, tap) at `offsets` times the one output channel.
  template <int rows>
  [[gnu::always_inline]] void addDots(const T *tile, const int64_t *offsets, int64_t images, int64_t ys, const T *right,
                                      T *d, bool add) const {
    Vec<T> sum[rows];
    for (auto &v : sum)
      v = Vec<T>{};
    for (int64_t image = 0; image < images; ++image)
      for (int64_t y = 0; y < ys; ++y, right += width_) {
        const T *a = tile + tile_->position(image, y);
        for (int64_t x = 0; x < width_; x += lanes<T>) {
          Vec<T> g = load(right + x);
#pragma clang loop unroll(full)
          for (int i = 0; i < rows; ++i)
            sum[i] += load(a + offsets[i] + x) * g;
        }
      }
    for (int i = 0; i < rows; ++i) {
      T parts[lanes<T>];
      store(parts, sum[i]);
      for (int64_t half = lanes<T> / 2; half > 0; half /= 2)
        for (int64_t j = 0; j < half; ++j)
          parts[j] += parts[j + half];
      T &to = d[i * cut_.paddedOut];
      to = add ? to + parts[0] : parts[0];
    }
  }

  /// A panel of `columns` output channels for pixels [pixel, pixel + count) of an image.
  void packOutput(T *to, int64_t image, int64_t pixel, int64_t count, int64_t channel, int64_t columns) const {
    int64_t pixels = gather_.pixels();
    packPanelTransposed(to, outputGrad_ + (image * shape_.groups * shape_.outChannels + channel) * pixels + pixel,
                        pixels, count, columns);
  }

  /// Pixels [q0, q1) of all images, gathered.
  void sumGathered(int64_t k0, int64_t k1, int64_t q0, int64_t q1, int64_t group, T *result) const {
    alignas(64) T left[tileRows * blockK<T>];
    alignas(64) T right[maxOut * blockK<T>];
    typename Gather<T>::Piece pieces[blockK<T>];
    int64_t channelShift = group * shape_.channels * gather_.channelStride, pixels = gather_.pixels();
    for (int64_t q = q0; q < q1; q += blockK<T>) {
      int64_t count = std::min(blockK<T>, q1 - q);
      for (int64_t o0 = 0; o0 < shape_.outChannels; o0 += maxOut) {
        int64_t o1 = std::min(shape_.outChannels, o0 + maxOut);
        for (int64_t o = o0; o < o1; o += panel<T>)
          for (int64_t at = 0; at < count;) {
            int64_t pixel = (q + at) % pixels, length = std::min(count - at, pixels - pixel);
            packOutput(right + (o - o0) * count + at * panel<T>, (q + at) / pixels, pixel, length,
                       group * shape_.outChannels + o, std::min(panel<T>, o1 - o));
            at += length;
          }
        for (int64_t k = k0; k < k1; k += tileRows) {
          int64_t rows = std::min(tileRows, k1 - k);
          gather_.packRows(left, blockK<T>, q, count, k, k + rows, pieces, channelShift);
          for (int64_t o = o0; o < o1; o += panel<T>) {
            T *d = result + k * cut_.paddedOut + o;
            Epilogue<T> epilogue;
            if (q != q0)
              epilogue.source = d, epilogue.sourceRow = cut_.paddedOut;
            // The workspace has room for whole panels.
            int64_t columns = shape_.outChannels - o > lanes<T> ? panel<T> : lanes<T>;
            tile<T, Left::Rows>(rows, columns, count, left, blockK<T>, right + (o - o0) * count, d, cut_.paddedOut,
                                epilogue);
          }
        }
      }
    }
  }

  void reduce(int64_t outTile, int64_t block, int64_t group) const {
    int64_t k0 = block * cut_.rowsPerBlock, k1 = std::min(cut_.rows, k0 + cut_.rowsPerBlock);
    int64_t o0 = outTile * tileColumns, o1 = std::min(shape_.outChannels, o0 + tileColumns);
    constexpr int64_t w = lanes<T>;
    alignas(64) T totals[w * w], turned[w * w];
    T *to = filterGrad_ + group * shape_.outChannels * cut_.rows;
    for (int64_t o = o0; o < o1; o += w)
      for (int64_t k = k0; k < k1; k += w) {
        int64_t rows = std::min(w, k1 - k), columns = std::min(w, o1 - o);
        for (int64_t i = 0; i < rows; ++i) {
          Vec<T> total{};
          for (int64_t part = 0; part < cut_.parts; ++part)
            total += load(partial(part, group) + (k + i) * cut_.paddedOut + o);
          store(totals + i * w, total);
        }
        transposeSquare(totals, w, turned, w);
        for (int64_t j = 0; j < columns; ++j)
          copyRun(to + (o + j) * cut_.rows + k, turned + j * w, rows, 1);
      }
  }

  /// Pixels of a chunk at most.
  static constexpr int64_t maxPixels = 512;

  ConvShape shape_;
  FilterGradCut cut_;
  Gather<T> gather_;
  std::optional<PaddedTile<T>> tile_;
  std::vector<int64_t> offsets_;  ///< of the rows (c, tap) of a block in the tile
  int64_t images_ = 1, rows_ = 1; ///< of a chunk
  int64_t width_ = 0;             ///< columns of a row of pixels in a chunk
  const T *outputGrad_;
  T *filterGrad_, *partial_;
  int64_t perPart_ = 0, units_ = 0, outTiles_ = 0;
};

} // namespace

std::unique_ptr<PreparedCall> prepareConvFilterGrad(const ConvShape &shape, const CallOperands &operands) {
  if (shape.dtype == plan::F64)
    return std::make_unique<ConvFilterGrad<double>>(shape, operands);
  return std::make_unique<ConvFilterGrad<float>>(shape, operands);
}

} // namespace lowtide::rt

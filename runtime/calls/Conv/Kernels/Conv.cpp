//===- Conv.cpp - convolutions and the gradients of their inputs -----------===//
//
// Both are matrix products with a gathered right side (Gather.h); columns are (image, pixel).
//
//   forward:     output[o]  = Σ_(c, tap)  filter[o][c][tap]  · input[c][pixel · stride + tap · dilation − pad]
//   input grad:  input'[c]  = Σ_(o, tap)  filter[o][c][tap]  · output'[o][(pixel + pad − tap · dilation) / stride]
//
// In the second only taps with a whole quotient count. Pixels with equal remainder modulo the stride meet the same
// taps: each such class (`Residue`) is a dense product of its own, so no zeros are multiplied. Its left side, the
// transposed filter, is packed into the workspace first.
//
// Where rows of pixels fill vectors and few channels use them, the right side is not gathered but read from padded
// tiles (DirectConv.h).
//
//===----------------------------------------------------------------------===//

#include "runtime/calls/Conv/DirectConv.h"
#include "runtime/calls/Conv/Gather.h"
#include "runtime/kernels/PreparedCall.h"

namespace lowtide::rt {
namespace {

using namespace kernels;
using Dims = ConvShape::Dims;

constexpr int64_t maxColumns = 256;

/// Whether the right side is gathered for a result of so many channels: what that takes is little next to their
/// products, and panels have no missing columns at the ends of rows of pixels. Points are copied from where they are.
template <typename T> bool isGathered(const Gather<T> &gather, int64_t channels) {
  return channels >= (gather.hasOnlyPoints() ? 32 : 128);
}

/// How the result of `rows` channels and `columns` pixels becomes tasks.
struct ConvCut {
  int64_t rows, columns, rowBlocks, columnBlocks;

  ConvCut(int64_t groups, int64_t totalRows, int64_t totalColumns, int64_t depth, bool splitRows) {
    rows = totalRows, columns = std::min(maxColumns, ceilDiv(totalColumns, tileColumns) * tileColumns);
    auto count = [&] { return groups * ceilDiv(totalRows, rows) * ceilDiv(totalColumns, columns); };
    auto worth = [&] { return rows * columns * depth > 512 * 1024; };
    // Blocks of columns gather their own part; blocks of rows would each gather all of it.
    while (count() < 16 && columns > 2 * tileColumns && worth())
      columns = ceilDiv(columns / 2, tileColumns) * tileColumns;
    while (splitRows && count() < 16 && rows > 96 && worth())
      rows = ceilDiv(ceilDiv(rows, 2), tileRows) * tileRows;
    rowBlocks = ceilDiv(totalRows, rows), columnBlocks = ceilDiv(totalColumns, columns);
  }
};

/// Walks the rows (channel, tap) of a gather in blocks of at most blockK; `visit(c0, c1, t0, t1, first row)`.
template <typename T, typename Visit> void forBlocksOfK(int64_t channels, int64_t taps, Visit &&visit) {
  if (taps <= blockK<T>) {
    int64_t perBlock = ceilDiv(channels, ceilDiv(channels, blockK<T> / taps));
    for (int64_t c = 0; c < channels; c += perBlock)
      visit(c, std::min(channels, c + perBlock), int64_t(0), taps, c * taps);
    return;
  }
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t t = 0; t < taps; t += blockK<T>)
      visit(c, c + 1, t, std::min(taps, t + blockK<T>), c * taps + t);
}

template <typename T> class ConvForward final : public PreparedCall {
public:
  ConvForward(const ConvShape &shape, const CallOperands &operands)
      : shape_(shape), cut_(shape.groups, shape.outChannels, shape.batch * ConvShape::volume(shape.output),
                            shape.channels * ConvShape::volume(shape.filter), true) {
    filter_ = static_cast<const T *>(operands.reads[1]);
    bias_ = operands.reads.size() > 2 ? static_cast<const T *>(operands.reads[2]) : nullptr;
    output_ = static_cast<T *>(operands.writes[0]);
    gather_.source = static_cast<const T *>(operands.reads[0]);
    gather_.channelStride = ConvShape::volume(shape.input);
    gather_.imageStride = shape.groups * shape.channels * gather_.channelStride;
    gather_.size = shape.input, gather_.grid = shape.output, gather_.scale = shape.stride;
    const Dims &f = shape.filter;
    for (int64_t z = 0; z < f[0]; ++z)
      for (int64_t y = 0; y < f[1]; ++y)
        for (int64_t x = 0; x < f[2]; ++x)
          gather_.taps.push_back({z * shape.dilation[0] - shape.padBegin[0], y * shape.dilation[1] - shape.padBegin[1],
                                  x * shape.dilation[2] - shape.padBegin[2]});
    int64_t pixels = gather_.pixels(), depth = shape.channels * gather_.tapCount();
    if (isGathered(gather_, shape.outChannels)) {
      gather_.joinRows();
      return;
    }
    direct_ = DirectConv<T>::create(
        gather_, shape.batch, shape.groups, shape.channels, shape.outChannels,
        {shape.groups * shape.outChannels * pixels, shape.outChannels * pixels, pixels, shape.output[2], 1, bias_},
        {{gather_.taps, gather_.grid, {filter_, shape.outChannels * depth, depth, false}, output_}});
  }

  int64_t tasks(int) const override {
    return direct_ ? direct_->tasks() : shape_.groups * cut_.rowBlocks * cut_.columnBlocks;
  }

  void run(int, int64_t task) const noexcept override {
    if (direct_)
      return direct_->run(task);
    int64_t rowBlock = task % cut_.rowBlocks, columnBlock = task / cut_.rowBlocks % cut_.columnBlocks;
    int64_t group = task / (cut_.rowBlocks * cut_.columnBlocks);
    int64_t pixels = gather_.pixels(), total = shape_.batch * pixels, depth = shape_.channels * gather_.tapCount();
    int64_t q0 = columnBlock * cut_.columns, q1 = std::min(total, q0 + cut_.columns);
    int64_t o0 = rowBlock * cut_.rows, o1 = std::min(shape_.outChannels, o0 + cut_.rows);
    int64_t imageStride = shape_.groups * shape_.outChannels * pixels, firstChannel = group * shape_.channels;
    const T *filter = filter_ + group * shape_.outChannels * depth;
    T *output = output_ + group * shape_.outChannels * pixels;
    const T *bias = bias_ ? bias_ + group * shape_.outChannels : nullptr;
    alignas(64) T panels[blockK<T> * maxColumns];
    alignas(64) T corner[tileRows * panel<T>];

    forBlocksOfK<T>(
        shape_.channels, gather_.tapCount(), [&](int64_t c0, int64_t c1, int64_t t0, int64_t t1, int64_t k0) {
          int64_t k = (c1 - c0) * (t1 - t0);
          for (int64_t q = q0; q < q1; q += panel<T>) {
            T *b = panels + (q - q0) * k;
            int64_t columns = std::min(panel<T>, q1 - q), pixel = q % pixels;
            gather_.packPanel(b, q, columns, firstChannel + c0, firstChannel + c1, t0, t1);
            bool oneImage = pixel + columns <= pixels;
            for (int64_t o = o0; o < o1; o += tileRows) {
              int64_t rows = std::min(tileRows, o1 - o);
              const T *a = filter + o * depth + k0;
              if (oneImage) {
                T *d = output + q / pixels * imageStride + o * pixels + pixel;
                Epilogue<T> epilogue;
                if (k0 != 0)
                  epilogue.source = d, epilogue.sourceRow = pixels;
                else if (bias)
                  epilogue.rowBias = bias + o;
                tile<T, Left::Rows>(rows, columns, k, a, depth, b, d, pixels, epilogue);
                continue;
              }
              tile<T, Left::Rows>(rows, columns, k, a, depth, b, corner, panel<T>, Epilogue<T>{});
              for (int64_t j = 0; j < columns; ++j) {
                T *d = output + (q + j) / pixels * imageStride + o * pixels + (q + j) % pixels;
                for (int64_t i = 0; i < rows; ++i)
                  d[i * pixels] = corner[i * panel<T> + j] + (k0 != 0 ? d[i * pixels] : bias ? bias[o + i] : T(0));
              }
            }
          }
        });
  }

private:
  ConvShape shape_;
  ConvCut cut_;
  Gather<T> gather_;
  std::optional<DirectConv<T>> direct_;
  const T *filter_, *bias_;
  T *output_;
};

template <typename T> class ConvInputGrad final : public PreparedCall {
public:
  ConvInputGrad(const ConvShape &shape, const CallOperands &operands)
      : shape_(shape), cut_(shape.groups, shape.channels, shape.batch * largestGrid(shape),
                            shape.outChannels * ConvShape::volume(shape.filter), false) {
    outputGrad_ = static_cast<const T *>(operands.reads[0]);
    filter_ = static_cast<const T *>(operands.reads[1]);
    inputGrad_ = static_cast<T *>(operands.writes[0]);
    packed_ = static_cast<T *>(operands.workspace);
    tiles_ = ceilDiv(shape.channels, tileRows);
    Dims phase;
    for (phase[0] = 0; phase[0] < shape.stride[0]; ++phase[0])
      for (phase[1] = 0; phase[1] < shape.stride[1]; ++phase[1])
        for (phase[2] = 0; phase[2] < shape.stride[2]; ++phase[2])
          addResidue(phase);
    if (!isGathered(residues_[0].gather, shape.channels))
      createDirect();
    else if (shape.stride == Dims{1, 1, 1}) // else pixels of the result are apart
      residues_[0].gather.joinRows();
  }

  /// First the packing, then everything from padded tiles; or one phase per residue: they differ in work.
  int phases() const override { return direct_ ? 2 : 1 + static_cast<int>(residues_.size()); }
  int64_t tasks(int phase) const override {
    if (phase == 0)
      return shape_.groups * tiles_;
    return direct_ ? direct_->tasks() : shape_.groups * cut_.columnBlocks;
  }
  void run(int phase, int64_t task) const noexcept override {
    if (phase == 0)
      return pack(task / tiles_, task % tiles_);
    if (direct_)
      return direct_->run(task);
    multiply(residues_[static_cast<size_t>(phase - 1)], task / cut_.columnBlocks, task % cut_.columnBlocks);
  }

private:
  /// Pixels of the input with the same remainder modulo the stride.
  struct Residue {
    Dims phase;
    std::vector<int64_t> taps; ///< positions in the filter
    Gather<T> gather;
    int64_t packedOffset; ///< elements in front of it, per tile row of six and output channel
  };

  static int64_t largestGrid(const ConvShape &shape) {
    int64_t pixels = 1;
    for (int d = 0; d < ConvShape::spatial; ++d)
      pixels *= ceilDiv(shape.input[d], shape.stride[d]);
    return pixels;
  }

  void addResidue(const Dims &phase) {
    Residue residue;
    residue.phase = phase;
    Gather<T> &gather = residue.gather;
    gather.source = outputGrad_;
    gather.channelStride = ConvShape::volume(shape_.output);
    gather.imageStride = shape_.groups * shape_.outChannels * gather.channelStride;
    gather.size = shape_.output;
    for (size_t d = 0; d < ConvShape::spatial; ++d) {
      if (phase[d] >= shape_.input[d])
        return; // no such pixel
      gather.grid[d] = ceilDiv(shape_.input[d] - phase[d], shape_.stride[d]);
    }
    Dims tap;
    const Dims &f = shape_.filter;
    for (tap[0] = 0; tap[0] < f[0]; ++tap[0])
      for (tap[1] = 0; tap[1] < f[1]; ++tap[1])
        for (tap[2] = 0; tap[2] < f[2]; ++tap[2]) {
          TapOffset offset;
          bool whole = true;
          for (size_t d = 0; d < ConvShape::spatial; ++d) {
            int64_t distance = phase[d] + shape_.padBegin[d] - tap[d] * shape_.dilation[d];
            whole &= distance % shape_.stride[d] == 0;
            offset[d] = distance / shape_.stride[d];
          }
          if (!whole)
            continue;
          residue.taps.push_back((tap[0] * f[1] + tap[1]) * f[2] + tap[2]);
          gather.taps.push_back(offset);
        }
    residue.packedOffset = packedTaps_;
    packedTaps_ += static_cast<int64_t>(residue.taps.size());
    residues_.push_back(std::move(residue));
  }

  void createDirect() {
    const Dims &in = shape_.input;
    int64_t pixels = ConvShape::volume(in),
            tileElements = tileRows * shape_.outChannels * ConvShape::volume(shape_.filter);
    std::vector<ConvVariant<T>> variants;
    for (const Residue &residue : residues_) {
      const Dims &phase = residue.phase;
      ConvLeft<T> left{packed_ + residue.packedOffset * shape_.outChannels * tileRows, tiles_ * tileElements,
                       tileElements, true};
      variants.push_back({residue.gather.taps, residue.gather.grid, left,
                          inputGrad_ + (phase[0] * in[1] + phase[1]) * in[2] + phase[2]});
    }
    // The first residue has the largest grid.
    direct_ =
        DirectConv<T>::create(residues_[0].gather, shape_.batch, shape_.groups, shape_.outChannels, shape_.channels,
                              {shape_.groups * shape_.channels * pixels, shape_.channels * pixels, pixels,
                               shape_.stride[1] * in[2], shape_.stride[2], nullptr},
                              std::move(variants));
  }

  /// Panels of six input channels: for every residue, (output channel, tap) rows of six.
  T *packedPanel(int64_t group, int64_t tile) const {
    return packed_ + (group * tiles_ + tile) * tileRows * shape_.outChannels * ConvShape::volume(shape_.filter);
  }
  void pack(int64_t group, int64_t tile) const {
    int64_t volume = ConvShape::volume(shape_.filter), c0 = tile * tileRows;
    int64_t width = std::min(tileRows, shape_.channels - c0);
    for (const Residue &residue : residues_) {
      T *to = packedPanel(group, tile) + residue.packedOffset * shape_.outChannels * tileRows;
      for (int64_t o = 0; o < shape_.outChannels; ++o) {
        const T *from = filter_ + ((group * shape_.outChannels + o) * shape_.channels + c0) * volume;
        for (int64_t tap : residue.taps) {
          if (width == tileRows) // constant counts: no branches inside
            for (int64_t i = 0; i < tileRows; ++i)
              *to++ = from[i * volume + tap];
          else
            for (int64_t i = 0; i < tileRows; ++i)
              *to++ = i < width ? from[i * volume + tap] : T(0);
        }
      }
    }
  }

  void multiply(const Residue &residue, int64_t group, int64_t block) const {
    Gather<T> const &shared = residue.gather;
    int64_t pixels = shared.pixels(), total = shape_.batch * pixels, inputPixels = ConvShape::volume(shape_.input);
    int64_t q0 = block * cut_.columns, q1 = std::min(total, q0 + cut_.columns);
    int64_t imageStride = shape_.groups * shape_.channels * inputPixels;
    T *result = inputGrad_ + group * shape_.channels * inputPixels;
    bool dense = shape_.stride == Dims{1, 1, 1};
    alignas(64) T panels[blockK<T> * maxColumns];
    alignas(64) T corner[tileRows * panel<T>];
    int64_t place[panel<T>];

    auto scatter = [&](int64_t c, int64_t rows, int64_t columns, bool add) {
      for (int64_t j = 0; j < columns; ++j) {
        T *d = result + place[j] + c * inputPixels;
        for (int64_t i = 0; i < rows; ++i)
          d[i * inputPixels] = corner[i * panel<T> + j] + (add ? d[i * inputPixels] : T(0));
      }
    };
    auto locate = [&](int64_t q, int64_t columns) {
      for (int64_t j = 0; j < columns; ++j) {
        int64_t image = (q + j) / pixels, rest = (q + j) % pixels;
        const Dims &grid = shared.grid;
        int64_t x = rest % grid[2] * shape_.stride[2] + residue.phase[2];
        int64_t y = rest / grid[2] % grid[1] * shape_.stride[1] + residue.phase[1];
        int64_t z = rest / (grid[2] * grid[1]) * shape_.stride[0] + residue.phase[0];
        place[j] = image * imageStride + (z * shape_.input[1] + y) * shape_.input[2] + x;
      }
    };
    if (residue.taps.empty()) { // no output looks at these pixels
      std::memset(corner, 0, sizeof corner);
      for (int64_t q = q0; q < q1; q += panel<T>) {
        int64_t columns = std::min(panel<T>, q1 - q);
        locate(q, columns);
        for (int64_t c = 0; c < shape_.channels; c += tileRows)
          scatter(c, std::min(tileRows, shape_.channels - c), columns, false);
      }
      return;
    }
    int64_t fromGroup = group * shape_.outChannels;
    forBlocksOfK<T>(
        shape_.outChannels, shared.tapCount(), [&](int64_t o0, int64_t o1, int64_t t0, int64_t t1, int64_t k0) {
          int64_t k = (o1 - o0) * (t1 - t0);
          for (int64_t q = q0; q < q1; q += panel<T>) {
            T *b = panels + (q - q0) * k;
            int64_t columns = std::min(panel<T>, q1 - q), pixel = q % pixels;
            shared.packPanel(b, q, columns, fromGroup + o0, fromGroup + o1, t0, t1);
            bool direct = dense && pixel + columns <= pixels;
            if (!direct)
              locate(q, columns);
            for (int64_t tile6 = 0; tile6 < tiles_; ++tile6) {
              int64_t c = tile6 * tileRows, rows = std::min(tileRows, shape_.channels - c);
              const T *a = packedPanel(group, tile6) + (residue.packedOffset * shape_.outChannels + k0) * tileRows;
              if (direct) {
                T *d = result + q / pixels * imageStride + c * inputPixels + pixel;
                Epilogue<T> epilogue;
                if (k0 != 0)
                  epilogue.source = d, epilogue.sourceRow = inputPixels;
                tile<T, Left::Columns>(rows, columns, k, a, tileRows, b, d, inputPixels, epilogue);
                continue;
              }
              tile<T, Left::Columns>(rows, columns, k, a, tileRows, b, corner, panel<T>, Epilogue<T>{});
              scatter(c, rows, columns, k0 != 0);
            }
          }
        });
  }

  ConvShape shape_;
  ConvCut cut_;
  const T *outputGrad_, *filter_;
  T *inputGrad_, *packed_;
  int64_t tiles_ = 0, packedTaps_ = 0;
  std::vector<Residue> residues_;
  std::optional<DirectConv<T>> direct_;
};

template <typename T> std::unique_ptr<PreparedCall> prepare(const ConvShape &shape, const CallOperands &operands) {
  if (shape.kind == ConvShape::Kind::Forward)
    return std::make_unique<ConvForward<T>>(shape, operands);
  return std::make_unique<ConvInputGrad<T>>(shape, operands);
}

} // namespace

std::unique_ptr<PreparedCall> prepareConv(const ConvShape &shape, const CallOperands &operands) {
  return shape.dtype == plan::F64 ? prepare<double>(shape, operands) : prepare<float>(shape, operands);
}

} // namespace lowtide::rt

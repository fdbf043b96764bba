//===- Layouts.h - how state is stored --------------------------*- C++ -*-===//
//
// The codecs of Layouts.td by name, and what their records call.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/NN/Storage.h"
#include "lowtide/Dialect/Train/Train.h"

namespace lowtide::train {

/// On a module whose steps become a model file: codecs are those that are named `inModel`.
inline constexpr llvm::StringLiteral inModelAttrName = "train.in_model";

/// What a codec stores.
enum class CodecUse : uint8_t { Moments, Master };

/// What storing a number changes.
enum class Exactness : uint8_t {
  Exact,    ///< nothing
  Rounding, ///< as much as rounding to another float type
  Lossy,    ///< more
};

/// A tensor that is stored for an f32 one.
struct StoredPart {
  llvm::StringLiteral suffix; ///< of its name in checkpoints; empty: the tensor's own
  mlir::Type (*element)(mlir::Builder &b);
  double (*initial)(double initial, bool nonNegative); ///< its first value where the tensor's is `initial`
  bool ofBlock;                                        ///< one element per block
  unsigned bytes;                                      ///< of an element
};

/// What a record says about a codec.
struct CodecInfo {
  llvm::StringLiteral name;
  llvm::StringLiteral meaning;
  CodecUse use;
  Exactness exactness;
  int64_t block;    ///< elements of a block, in row-major order; 0: each stands alone
  int64_t smallest; ///< tensors of fewer elements stay as they are
  llvm::ArrayRef<StoredPart> parts;
  llvm::StringLiteral inModel; ///< the codec of the same numbers whose parts a model file can name; empty: this one

  /// Whether a tensor of so many elements is stored by this codec. Asked of a whole parameter, never of a piece.
  bool takes(int64_t elements) const;
  /// Bytes in which it stores a tensor of so many elements, of which it takes all.
  uint64_t countBytes(int64_t elements) const;
};

/// The codec of that name and use; null if there is none. The train dialect must be loaded.
const CodecInfo *findCodec(mlir::MLIRContext *context, llvm::StringRef name, CodecUse use);
/// Names of all codecs of a use, sorted; `f32` is none of them.
llvm::SmallVector<llvm::StringRef> listCodecs(mlir::MLIRContext *context, CodecUse use);
/// "exact", "rounding", "lossy".
llvm::StringRef describe(Exactness exactness);

/// How encoders that round by chance draw: i64 scalars, and which tensor of the step this is.
struct Draws {
  mlir::Value seed, step;
  int64_t stream = 0;
};

/// The f32 tensor stored in `parts`; blocks lie along dimension 1.
mlir::Value buildDecode(mlir::OpBuilder &builder, mlir::Location loc, const CodecInfo &codec, mlir::ValueRange parts,
                        bool nonNegative);
/// The parts in which an f32 tensor is stored. `draws`: of codecs that round by chance.
llvm::SmallVector<mlir::Value> buildEncode(mlir::OpBuilder &builder, mlir::Location loc, const CodecInfo &codec,
                                           mlir::Value x, bool nonNegative, const Draws &draws = {});
/// Whether encoding takes draws.
bool drawsNumbers(mlir::MLIRContext *context, const CodecInfo &codec);

// Called by the records.

llvm::LogicalResult verifyCodec(mlir::Operation *op, const CodecInfo &codec);
uint64_t countCodecFlops(mlir::Operation *op);
/// The code of a dynamic map for a tensor full of `initial`, of which a block's scale is the largest.
double initialCode(double initial, bool nonNegative);
/// An i32 number from [0, 2^16) for each element of x.
nn::Expr drawHalves(nn::Expr x, nn::Expr seed, nn::Expr step, int64_t stream);

} // namespace lowtide::train

#include "lowtide/Dialect/Train/LayoutInterface.h.inc"

#define GET_OP_CLASSES
#include "lowtide/Dialect/Train/Layouts.h.inc"

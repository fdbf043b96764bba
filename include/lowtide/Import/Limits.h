//===- Limits.h - what a file may ask of us
//------------------------------------===//
//
// Bounds that hold before any other code looks at a model. Each refusal prints
// the bound; `docs/import.md` lists them.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_IMPORT_LIMITS_H
#define LOWTIDE_IMPORT_LIMITS_H

#include <cstdint>

namespace lowtide {

struct ImportLimits {
  /// Bytes of the model file itself (protobuf's own bound).
  uint64_t fileBytes = (uint64_t(1) << 31) - 1;
  /// Nodes, counted with those of subgraphs, after functions are inlined.
  uint64_t nodes = 1'000'000;
  /// Local functions.
  uint64_t functions = 10'000;
  /// Inlining may grow the file to this many times its nodes, or to
  /// `expansionFloor` nodes if that is more.
  uint64_t expansionFactor = 10;
  uint64_t expansionFloor = 100'000;
  /// Graphs within graphs.
  unsigned subgraphDepth = 32;
  unsigned rank = 16;
  /// Bytes of any name.
  unsigned nameBytes = 4096;
  /// Errors printed one by one; the rest are counted.
  unsigned errors = 100;
  /// Elements up to which integers, booleans (and floats that are no
  /// parameters) become constants of the IR.
  int64_t constantIntegers = 65'536;
  int64_t constantFloats = 16;
};

} // namespace lowtide

#endif // LOWTIDE_IMPORT_LIMITS_H

//===- MutantMaker.h - texts of changed modules -----------------*- C++ -*-===//
//
// A process of its own changes modules by force, and sends their texts. What that does to its memory stays there: one
// that ends is replaced.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "IrMutations.h"
#include "mlir/IR/MLIRContext.h"
#include <memory>
#include <string>
#include <vector>

namespace lowtide::fuzz {

/// All dialects, loaded; one thread.
std::unique_ptr<mlir::MLIRContext> createContext();

struct Mutant {
  uint64_t seed = 0;
  /// The first change: its number in `irMutations()`; after those, of the text, and none.
  uint32_t kind = 0;
  bool isMade = false;
  std::string file, story, text;
};

class MutantMaker {
public:
  /// Of seeds [first, end), from the modules of these files (split at `// -----`). Starts its process.
  MutantMaker(const std::vector<std::string> &files, uint64_t first, uint64_t end);
  ~MutantMaker() { stop(); }
  MutantMaker(const MutantMaker &) = delete;
  MutantMaker &operator=(const MutantMaker &) = delete;

  /// The next seed's. Not made, where a process that has done nothing else ends over it or takes a minute.
  Mutant next();

private:
  void start();
  void stop();
  bool read(Mutant &mutant);

  const std::vector<std::string> &files;
  uint64_t seed, end;
  pid_t child = -1;
  int pipe = -1;
};

} // namespace lowtide::fuzz

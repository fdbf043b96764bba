//===- KernelCache.h - objects of kernels, kept between compiles -*- C++ -*-===//
//
// Most of a compile's time is LLVM's, and most kernels of a model are those of its last compile: under another budget,
// with another rate, in another entry.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <memory>
#include <string>

namespace llvm {
class MemoryBuffer;
} // namespace llvm

namespace lowtide::codegen {

/// A folder of object files by the number of all that they depend on. Nothing that goes wrong with it is an error: what
/// cannot be read or is damaged is compiled again, what cannot be written is not kept. Several compiles may share it.
class KernelCache {
public:
  /// Empty: nothing is found, nothing is kept.
  explicit KernelCache(std::string folder) : folder(std::move(folder)) {}
  /// At most `mostBytes` of the folder stay, those that were used last.
  ~KernelCache();

  bool isOff() const { return folder.empty(); }
  /// The key of a kernel: `text` says everything that its code depends on but the compiler itself, which is added.
  static std::string getKey(llvm::StringRef text);
  /// Null: not there, or damaged.
  std::unique_ptr<llvm::MemoryBuffer> find(llvm::StringRef key) const;
  void keep(llvm::StringRef key, llvm::ArrayRef<char> object);

  static constexpr uint64_t mostBytes = uint64_t(512) << 20;

private:
  std::string getPath(llvm::StringRef key) const;

  std::string folder;
  bool isGrown = false;
};

} // namespace lowtide::codegen

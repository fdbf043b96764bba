//===- GuardedArrays.h - arrays between pages that no one may touch -*- C++ -*-===//
//
// What an emulated kernel is given: a read or write past the end of an array, or before its start, stops the process
// with a message. The few bytes between the end of an array and its page are checked for writes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "FunctionRunner.h"

namespace lowtide::test {

class GuardedArrays {
public:
  /// From now on a touched guard says that `kernel` touched it.
  explicit GuardedArrays(llvm::StringRef kernel);
  ~GuardedArrays();
  GuardedArrays(const GuardedArrays &) = delete;

  /// A copy of `content`, at a multiple of 16 bytes.
  void *add(const Buffer &content);
  /// What array number `number` holds now.
  Buffer get(size_t number) const;
  /// Whether nothing was written past an array.
  bool isWhole() const;

private:
  struct Array {
    char *pages;
    size_t mapped;
    char *data;
    size_t bytes;
  };
  llvm::SmallVector<Array> arrays;
};

} // namespace lowtide::test

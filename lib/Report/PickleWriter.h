//===- PickleWriter.h - plain values as a Python pickle ---------*- C++ -*-===//
//
// Protocol 2 with the opcodes of dictionaries, lists, text and numbers and no others: PyTorch's memory viewer reads no
// more. Pickles are written here, never read.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/EndianStream.h"
#include "llvm/Support/raw_ostream.h"

namespace lowtide::report {

/// Writes one value; keys and values of a dictionary in turn.
class PickleWriter {
public:
  explicit PickleWriter(llvm::raw_ostream &os) : os(os), binary(os, llvm::endianness::little) { os << "\x80\x02"; }

  void dictionary(llvm::function_ref<void()> items) {
    os << "}(";
    items();
    os << 'u';
  }
  void list(llvm::function_ref<void()> items) {
    os << "](";
    items();
    os << 'e';
  }
  void pair(int32_t first, int32_t second) {
    value(int64_t(first));
    value(int64_t(second));
    os << '\x86';
  }
  void value(int64_t number) {
    if (number >= INT32_MIN && number <= INT32_MAX) {
      os << 'J';
      binary.write<int32_t>(int32_t(number));
    } else {
      os << "\x8a\x08";
      binary.write<int64_t>(number);
    }
  }
  void value(llvm::StringRef text) {
    os << 'X';
    binary.write<uint32_t>(uint32_t(text.size()));
    os << text;
  }
  void value(const char *text) { value(llvm::StringRef(text)); }
  void value(const std::string &text) { value(llvm::StringRef(text)); }
  void value(bool truth) { os << (truth ? '\x88' : '\x89'); }

  void key(llvm::StringRef name) { value(name); }
  template <typename T> void field(llvm::StringRef name, T &&content) {
    key(name);
    value(std::forward<T>(content));
  }
  /// Ends the pickle.
  void stop() { os << '.'; }

private:
  llvm::raw_ostream &os;
  llvm::support::endian::Writer binary;
};

} // namespace lowtide::report

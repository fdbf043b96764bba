//===- KernelCache.cpp - objects of kernels, kept between compiles --------===//
//
// A file is a digest and the object that it holds for. It is written under another name and renamed.
//
//===----------------------------------------------------------------------===//

#include "KernelCache.h"
#include "lowtide/Codegen/KernelModule.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include <dlfcn.h>

using namespace lowtide;
using llvm::StringRef;

static std::string digest(llvm::ArrayRef<uint8_t> bytes) {
  llvm::XXH128_hash_t hash = llvm::xxh3_128bits(bytes);
  return llvm::utohexstr(hash.high64, /*LowerCase=*/true, 16) + llvm::utohexstr(hash.low64, /*LowerCase=*/true, 16);
}

static llvm::ArrayRef<uint8_t> bytesOf(StringRef text) { return llvm::arrayRefFromStringRef(text); }

constexpr size_t digestBytes = 32;

/// Another build of the compiler writes other code: size and time of the file that holds this function stand for it.
static std::string describeCompiler() {
  std::string text = "llvm " LLVM_VERSION_STRING;
  Dl_info library{};
  llvm::sys::fs::file_status status;
  if (dladdr(reinterpret_cast<void *>(&describeCompiler), &library) && library.dli_fname &&
      !llvm::sys::fs::status(library.dli_fname, status))
    text += " " + std::to_string(status.getSize()) + " " +
            std::to_string(status.getLastModificationTime().time_since_epoch().count());
  return text;
}

std::string codegen::KernelCache::getKey(StringRef text) {
  static const std::string compiler = describeCompiler();
  return digest(bytesOf(compiler + "\n" + text.str()));
}

std::string codegen::KernelCache::getPath(StringRef key) const {
  // LLVM's pruning, which caches of link-time optimization use, looks at files of this name alone.
  return folder + "/llvmcache-" + key.str();
}

std::unique_ptr<llvm::MemoryBuffer> codegen::KernelCache::find(StringRef key) const {
  if (isOff())
    return nullptr;
  auto file = llvm::MemoryBuffer::getFile(getPath(key), /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return nullptr;
  StringRef text = (*file)->getBuffer();
  if (text.size() <= digestBytes || digest(bytesOf(text.drop_front(digestBytes))) != text.take_front(digestBytes))
    return nullptr;
  return llvm::MemoryBuffer::getMemBufferCopy(text.drop_front(digestBytes), key);
}

void codegen::KernelCache::keep(StringRef key, llvm::ArrayRef<char> object) {
  if (isOff() || llvm::sys::fs::create_directories(folder))
    return;
  llvm::SmallString<128> unfinished;
  int descriptor = -1;
  if (llvm::sys::fs::createUniqueFile(folder + "/unfinished-%%%%%%%%", descriptor, unfinished))
    return;
  const StringRef text(object.data(), object.size());
  bool isWritten;
  {
    llvm::raw_fd_ostream out(descriptor, /*shouldClose=*/true);
    out << digest(bytesOf(text)) << text;
    out.close();
    isWritten = !out.has_error();
    out.clear_error(); // or LLVM ends the process
  }
  if (!isWritten || llvm::sys::fs::rename(unfinished, getPath(key)))
    llvm::sys::fs::remove(unfinished);
  isGrown |= isWritten;
}

codegen::KernelCache::~KernelCache() {
  if (!isGrown)
    return;
  llvm::CachePruningPolicy policy;
  policy.Expiration = std::chrono::hours(30 * 24);
  policy.MaxSizeBytes = mostBytes;
  llvm::pruneCache(folder, policy);
}

std::string codegen::findKernelCache(StringRef flag) {
  if (flag == "off")
    return "";
  if (flag != "auto")
    return flag.str();
  if (auto caches = llvm::sys::Process::GetEnv("XDG_CACHE_HOME"); caches && llvm::sys::path::is_absolute(*caches))
    return *caches + "/lowtide/kernels";
  if (auto home = llvm::sys::Process::GetEnv("HOME"); home && llvm::sys::path::is_absolute(*home))
    return *home + "/.cache/lowtide/kernels";
  return "";
}

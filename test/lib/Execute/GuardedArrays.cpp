//===- GuardedArrays.cpp - arrays between pages that no one may touch -*- C++ -*-===//

#include "GuardedArrays.h"

#include <csignal>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace lowtide;
using namespace lowtide::test;

static constexpr size_t kPage = 4096, kAlignment = 16;
static constexpr char kSlack = '\xA5';

/// The kernel that runs, for the handler.
static char running[256];

static void stop(int) {
  const char text[] = "error: touches memory that it was not given, and stops on an emulated GPU: ";
  (void)!write(STDERR_FILENO, text, sizeof text - 1);
  (void)!write(STDERR_FILENO, running, std::strlen(running));
  (void)!write(STDERR_FILENO, "\n", 1);
  _exit(1);
}

GuardedArrays::GuardedArrays(llvm::StringRef kernel) {
  static bool installed = [] {
    // Threads of kernels have small stacks of their own.
    static char stack[1 << 16];
    stack_t alternative = {};
    alternative.ss_sp = stack;
    alternative.ss_size = sizeof stack;
    sigaltstack(&alternative, nullptr);
    struct sigaction action = {};
    action.sa_handler = stop;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGBUS, &action, nullptr);
    return true;
  }();
  (void)installed;
  std::strncpy(running, kernel.str().c_str(), sizeof running - 1);
}

GuardedArrays::~GuardedArrays() {
  for (const Array &array : arrays)
    munmap(array.pages, array.mapped);
}

void *GuardedArrays::add(const Buffer &content) {
  const size_t inner = (content.size() + kPage - 1) / kPage * kPage;
  const size_t rounded = (content.size() + kAlignment - 1) / kAlignment * kAlignment;
  Array array{nullptr, inner + 2 * kPage, nullptr, content.size()};
  void *memory = mmap(nullptr, array.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    llvm::report_fatal_error("no memory for the arrays of a kernel");
  array.pages = static_cast<char *>(memory);
  if (inner)
    mprotect(array.pages + kPage, inner, PROT_READ | PROT_WRITE);
  // The end lies at a page; the bytes before the start are not watched closer than that.
  array.data = array.pages + kPage + inner - rounded;
  std::memset(array.pages + kPage, kSlack, inner);
  std::memcpy(array.data, content.data(), content.size());
  arrays.push_back(array);
  return array.data;
}

Buffer GuardedArrays::get(size_t number) const {
  const Array &array = arrays[number];
  return Buffer(array.data, array.data + array.bytes);
}

bool GuardedArrays::isWhole() const {
  for (const Array &array : arrays) {
    const char *end = array.pages + array.mapped - kPage;
    for (const char *at = array.pages + kPage; at < end; ++at)
      if ((at < array.data || at >= array.data + array.bytes) && *at != kSlack)
        return false;
  }
  return true;
}

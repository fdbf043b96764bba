// Calls of the C library that change files, in a process that is told to die, or to be refused, at one of them. To be
// preloaded: LOWTIDE_ACCIDENT is "count:<file>" (appends the number of calls to the file at the end), "kill:<n>"
// (SIGKILL in place of call n), "fail:<n>:<errno>" (call n is refused) or "fails:<n>:<errno>" (n and all after it are).
// LOWTIDE_TRANSFER is the same for calls that move bytes between memory and a place in a file, or make room there; also
// "short:<bytes>": none of them moves more at once. With liburing these are also what is handed to io_uring.
// LOWTIDE_NO_RING: the kernel has no io_uring for this process.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef LOWTIDE_HAVE_LIBURING
#include <liburing.h>
#endif

struct Accident {
  enum { none, counting, killing, failing, failingOn, shortening } kind;
  long when, why;
  const char *report;
  atomic_long calls;
};
static struct Accident changes, transfers;

static void prepare(struct Accident *accident, const char *text) {
  if (!text)
    return;
  if (strncmp(text, "count:", 6) == 0)
    accident->kind = counting, accident->report = text + 6;
  else if (sscanf(text, "kill:%ld", &accident->when) == 1)
    accident->kind = killing;
  else if (sscanf(text, "fails:%ld:%ld", &accident->when, &accident->why) == 2)
    accident->kind = failingOn;
  else if (sscanf(text, "fail:%ld:%ld", &accident->when, &accident->why) == 2)
    accident->kind = failing;
  else if (sscanf(text, "short:%ld", &accident->when) == 1)
    accident->kind = shortening;
}

__attribute__((constructor)) static void start(void) {
  prepare(&changes, getenv("LOWTIDE_ACCIDENT"));
  prepare(&transfers, getenv("LOWTIDE_TRANSFER"));
}

static void sum(struct Accident *accident) {
  FILE *file = accident->kind == counting ? fopen(accident->report, "a") : NULL;
  if (file)
    fprintf(file, "%ld\n", atomic_load(&accident->calls)), fclose(file);
}

__attribute__((destructor)) static void end(void) {
  sum(&changes);
  sum(&transfers);
}

// Whether this call is refused.
static int refused(struct Accident *accident) {
  if (accident->kind == none)
    return 0;
  const long call = atomic_fetch_add(&accident->calls, 1) + 1;
  if (accident->kind == killing && call == accident->when)
    kill(getpid(), SIGKILL);
  if ((accident->kind == failing && call == accident->when) ||
      (accident->kind == failingOn && call >= accident->when)) {
    errno = (int)accident->why;
    return 1;
  }
  return 0;
}

#define CALL(accident, result, name, parameters, refusal, arguments)                                                   \
  result name parameters {                                                                                             \
    static result(*next) parameters;                                                                                   \
    if (!next)                                                                                                         \
      next = (result(*) parameters)dlsym(RTLD_NEXT, #name);                                                            \
    return refused(&accident) ? (refusal) : next arguments;                                                            \
  }
#define WRAP(result, name, parameters, arguments) CALL(changes, result, name, parameters, -1, arguments)

WRAP(ssize_t, write, (int file, const void *data, size_t bytes), (file, data, bytes))
WRAP(int, fsync, (int file), (file))
WRAP(int, rename, (const char *from, const char *to), (from, to))
WRAP(int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags))
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(int, unlink, (const char *path), (path))
WRAP(int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags))
WRAP(int, rmdir, (const char *path), (path))

// Files that are opened to be written.
static int opened(int (*next)(const char *, int, ...), const char *path, int flags, mode_t mode) {
  return (flags & O_ACCMODE) != O_RDONLY && refused(&changes) ? -1 : next(path, flags, mode);
}
#define WRAP_OPEN(name)                                                                                                \
  int name(const char *path, int flags, ...) {                                                                         \
    va_list more;                                                                                                      \
    va_start(more, flags);                                                                                             \
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;                                      \
    va_end(more);                                                                                                      \
    return opened((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name), path, flags, mode);                        \
  }
WRAP_OPEN(open)
WRAP_OPEN(open64)

static size_t shorten(size_t bytes) {
  return transfers.kind == shortening && bytes > (size_t)transfers.when ? (size_t)transfers.when : bytes;
}
#define TRANSFER(name, memory)                                                                                         \
  CALL(transfers, ssize_t, name, (int file, memory data, size_t bytes, off_t at), -1, (file, data, shorten(bytes), at))
TRANSFER(pread, void *)
TRANSFER(pread64, void *)
TRANSFER(pwrite, const void *)
TRANSFER(pwrite64, const void *)
// These return the error.
CALL(transfers, int, posix_fallocate, (int file, off_t at, off_t bytes), errno, (file, at, bytes))
CALL(transfers, int, posix_fallocate64, (int file, off_t at, off_t bytes), errno, (file, at, bytes))

#ifdef LOWTIDE_HAVE_LIBURING
// A refused transfer does nothing, and its result is the error: this bit of its data says so.
#define REFUSED (1ULL << 63)

// What is in the queue and was not handed over yet.
static void disturb(struct io_uring *ring) {
  for (unsigned at = ring->sq.sqe_head; at != ring->sq.sqe_tail; ++at) {
    struct io_uring_sqe *entry = &ring->sq.sqes[at & *ring->sq.kring_mask];
    if (entry->opcode != IORING_OP_READ && entry->opcode != IORING_OP_WRITE)
      continue;
    if (refused(&transfers)) {
      const __u64 data = entry->user_data;
      io_uring_prep_nop(entry);
      entry->user_data = data | REFUSED;
    } else {
      entry->len = (__u32)shorten(entry->len);
    }
  }
}
int io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags) {
  static int (*next)(unsigned, struct io_uring *, unsigned);
  if (!next)
    next = (int (*)(unsigned, struct io_uring *, unsigned))dlsym(RTLD_NEXT, "io_uring_queue_init");
  return getenv("LOWTIDE_NO_RING") ? -EPERM : next(entries, ring, flags);
}
int io_uring_submit(struct io_uring *ring) {
  static int (*next)(struct io_uring *);
  if (!next)
    next = (int (*)(struct io_uring *))dlsym(RTLD_NEXT, "io_uring_submit");
  disturb(ring);
  return next(ring);
}
int io_uring_submit_and_wait(struct io_uring *ring, unsigned count) {
  static int (*next)(struct io_uring *, unsigned);
  if (!next)
    next = (int (*)(struct io_uring *, unsigned))dlsym(RTLD_NEXT, "io_uring_submit_and_wait");
  disturb(ring);
  return next(ring, count);
}
unsigned io_uring_peek_batch_cqe(struct io_uring *ring, struct io_uring_cqe **done, unsigned count) {
  static unsigned (*next)(struct io_uring *, struct io_uring_cqe **, unsigned);
  if (!next)
    next =
        (unsigned (*)(struct io_uring *, struct io_uring_cqe **, unsigned))dlsym(RTLD_NEXT, "io_uring_peek_batch_cqe");
  const unsigned found = next(ring, done, count);
  for (unsigned i = 0; i < found; ++i)
    if (done[i]->user_data & REFUSED) {
      done[i]->user_data &= ~REFUSED;
      done[i]->res = (__s32)-transfers.why;
    }
  return found;
}
#endif

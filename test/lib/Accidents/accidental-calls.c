// Calls of the C library that change files, in a process that is told to die, or to be refused, at one of them. To be
// preloaded: LOWTIDE_ACCIDENT is "count:<file>" (appends the number of calls to the file at the end), "kill:<n>"
// (SIGKILL in place of call n), "fail:<n>:<errno>" (call n is refused) or "fails:<n>:<errno>" (n and all after it are).
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

static enum { none, counting, killing, failing, failingOn } accident;
static long when, why;
static const char *report;
static atomic_long calls;

__attribute__((constructor)) static void start(void) {
  const char *text = getenv("LOWTIDE_ACCIDENT");
  if (!text)
    return;
  if (strncmp(text, "count:", 6) == 0)
    accident = counting, report = text + 6;
  else if (sscanf(text, "kill:%ld", &when) == 1)
    accident = killing;
  else if (sscanf(text, "fails:%ld:%ld", &when, &why) == 2)
    accident = failingOn;
  else if (sscanf(text, "fail:%ld:%ld", &when, &why) == 2)
    accident = failing;
}

__attribute__((destructor)) static void end(void) {
  FILE *file = accident == counting ? fopen(report, "a") : NULL;
  if (file)
    fprintf(file, "%ld\n", atomic_load(&calls)), fclose(file);
}

// Whether this call is refused.
static int refused(void) {
  if (accident == none)
    return 0;
  const long call = atomic_fetch_add(&calls, 1) + 1;
  if (accident == killing && call == when)
    kill(getpid(), SIGKILL);
  if ((accident == failing && call == when) || (accident == failingOn && call >= when)) {
    errno = (int)why;
    return 1;
  }
  return 0;
}

#define WRAP(result, name, parameters, arguments)                                                                      \
  result name parameters {                                                                                             \
    static result(*next) parameters;                                                                                   \
    if (!next)                                                                                                         \
      next = (result(*) parameters)dlsym(RTLD_NEXT, #name);                                                            \
    return refused() ? -1 : next arguments;                                                                            \
  }

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
  return (flags & O_ACCMODE) != O_RDONLY && refused() ? -1 : next(path, flags, mode);
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

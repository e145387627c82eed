/* Preloaded into the command: from the N-th write (or sync, or read) below FAIL_UNDER on, the system call fails FAIL_TIMES times. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long seen;

static int setting(const char *name, int otherwise) {
  const char *text = getenv(name);
  return text ? atoi(text) : otherwise;
}

static int fails(int fd, const char *kind) {
  const char *under = getenv("FAIL_UNDER"), *what = getenv("FAIL_CALL");
  char link[64], path[PATH_MAX];
  if (!under || !what || strcmp(what, kind)) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  if (!strstr(path, under)) return 0;
  long number = atomic_fetch_add(&seen, 1), first = setting("FAIL_AT", 0);
  if (number < first || number >= first + setting("FAIL_TIMES", INT_MAX / 2)) return 0;
  errno = setting("FAIL_ERRNO", EIO);
  return 1;
}

#define REPLACE(name, kind, result, declared, passed)                 \
  result name declared {                                              \
    static result(*real) declared;                                    \
    if (!real) real = (result(*) declared)dlsym(RTLD_NEXT, #name);    \
    return fails(fd, kind) ? -1 : real passed;                        \
  }

REPLACE(write, "write", ssize_t, (int fd, const void *data, size_t size), (fd, data, size))
REPLACE(pwrite, "write", ssize_t, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
REPLACE(pwrite64, "write", ssize_t, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at))
REPLACE(fsync, "sync", int, (int fd), (fd))
REPLACE(fdatasync, "sync", int, (int fd), (fd))
REPLACE(pread, "read", ssize_t, (int fd, void *data, size_t size, off_t at), (fd, data, size, at))
REPLACE(pread64, "read", ssize_t, (int fd, void *data, size_t size, off64_t at), (fd, data, size, at))

// A library to preload: files whose name ends in ".blocks", or that have lost their name, live on a disk that fails.
//
// The folder BAD_DISK holds what goes wrong: `errors` has the percentages of reads and of writes that end with EIO,
// `full` the bytes beyond which nothing can be written (ENOSPC), and each file `hang-N` makes one read wait for
// N seconds. An absent file makes nothing go wrong.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_ulong calls;

static int is_ours(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, sizeof path - 1);
  if (n < 0) return 0;
  path[n] = 0;
  return strstr(path, ".blocks") != NULL || strstr(path, "twill-offload-") != NULL;
}

static long number_in(const char *name, int which) {
  char path[4096];
  long values[2] = {-1, -1};
  snprintf(path, sizeof path, "%s/%s", getenv("BAD_DISK"), name);
  FILE *file = fopen(path, "r");
  if (file == NULL) return -1;
  if (fscanf(file, "%ld %ld", &values[0], &values[1]) < 1) values[0] = -1;
  fclose(file);
  return values[which];
}

static int fails(int which) {
  const unsigned long n = atomic_fetch_add(&calls, 1) + 1;
  return (long)((n * 2654435761UL >> 8) % 100) < number_in("errors", which);
}

static void hang(void) {
  static const int seconds[] = {1, 60};
  for (int i = 0; i < 2; ++i) {
    char path[4096];
    snprintf(path, sizeof path, "%s/hang-%d", getenv("BAD_DISK"), seconds[i]);
    if (unlink(path) == 0) sleep((unsigned)seconds[i]);
  }
}

ssize_t pread64(int fd, void *to, size_t bytes, off64_t at) {
  static ssize_t (*next)(int, void *, size_t, off64_t);
  if (next == NULL) next = (ssize_t(*)(int, void *, size_t, off64_t))dlsym(RTLD_NEXT, "pread64");
  if (is_ours(fd)) {
    hang();
    if (fails(0)) return errno = EIO, -1;
  }
  return next(fd, to, bytes, at);
}

ssize_t pwrite64(int fd, const void *from, size_t bytes, off64_t at) {
  static ssize_t (*next)(int, const void *, size_t, off64_t);
  if (next == NULL) next = (ssize_t(*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
  if (is_ours(fd)) {
    const long full = number_in("full", 0);
    if (full >= 0 && at + (off64_t)bytes > full) return errno = ENOSPC, -1;
    if (fails(1)) return errno = EIO, -1;
  }
  return next(fd, from, bytes, at);
}

ssize_t pread(int fd, void *to, size_t bytes, off_t at) { return pread64(fd, to, bytes, at); }
ssize_t pwrite(int fd, const void *from, size_t bytes, off_t at) { return pwrite64(fd, from, bytes, at); }

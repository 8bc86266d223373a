// For LD_PRELOAD: pread() of files whose path has TWILL_FAILING_PATH in it does what the file
// TWILL_FAILING_ORDERS says at that moment: "hang" waits until it says something else, "fail N"
// fails one read in N with EIO, anything else reads.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_uint_fast64_t n_reads;

static int is_watched(int fd) {
  const char* part = getenv("TWILL_FAILING_PATH");
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, sizeof path - 1);
  if (part == NULL || n < 0) return 0;
  path[n] = 0;
  return strstr(path, part) != NULL;
}

static void read_orders(char* to, size_t size) {
  const char* path = getenv("TWILL_FAILING_ORDERS");
  const int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t n = fd < 0 ? 0 : read(fd, to, size - 1);
  to[n > 0 ? n : 0] = 0;
  if (fd >= 0) close(fd);
}

/// Whether this read is to fail; returns late while reads hang.
static int fails(int fd) {
  if (!is_watched(fd)) return 0;
  char orders[32];
  for (read_orders(orders, sizeof orders); strncmp(orders, "hang", 4) == 0;
       read_orders(orders, sizeof orders))
    usleep(10000);
  if (strncmp(orders, "fail ", 5) != 0) return 0;
  const unsigned long one_in = strtoul(orders + 5, NULL, 10);
  // Spread, and the same in each run.
  const unsigned long draw = (atomic_fetch_add(&n_reads, 1) * 6364136223846793005UL) >> 33;
  return one_in > 0 && draw % one_in == 0;
}

typedef ssize_t (*pread_function)(int, void*, size_t, off_t);

static ssize_t read_or_fail(const char* name, int fd, void* to, size_t bytes, off_t at) {
  if (fails(fd)) {
    errno = EIO;
    return -1;
  }
  return ((pread_function)dlsym(RTLD_NEXT, name))(fd, to, bytes, at);
}

ssize_t pread(int fd, void* to, size_t bytes, off_t at) {
  return read_or_fail("pread", fd, to, bytes, at);
}

ssize_t pread64(int fd, void* to, size_t bytes, off_t at) {
  return read_or_fail("pread64", fd, to, bytes, at);
}

// tests/support/host_shim.c — a library for LD_PRELOAD that simulates a difficult host: each
// reading of the clock advances it by SHIM_CLOCK_MS, and call number SHIM_CALLOC_FAILS of calloc
// fails. With SHIM_CALLOC_COUNT, the number of those calls is written to that file at the end.
// SHIM_MALLOC_FAILS and SHIM_MALLOC_COUNT are the same for malloc and realloc.
//
// SHIM_BLOCK_COUNT reports the number of blocks of memory that were not freed, SHIM_WRITE_COUNT the
// number of writes to standard output or error. With SHIM_PIECE_BYTES, a call reads or writes at
// most that many bytes; every third call is interrupted, and every fourth finds the pipe full or
// empty.
//
// SHIM_CLOCK_STEP_US makes runs reproducible: clocks advance only when they are read, by this much
// each time, or by up to SHIM_CLOCK_SPREAD times as much. SHIM_TIME_S is the time of day, in
// seconds since 1970.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern void *__libc_calloc(size_t count, size_t size_bytes);
extern void *__libc_malloc(size_t size_bytes);
extern void *__libc_realloc(void *block, size_t size_bytes);
extern void *__libc_memalign(size_t alignment, size_t size_bytes);
extern void __libc_free(void *block);

static unsigned long calls, malloc_calls, aligned_calls, writes;
static long blocks;  // not freed yet

static unsigned long setting(const char *name) {
  const char *text = getenv(name);
  return text == NULL ? 0 : strtoul(text, NULL, 10);
}

static int is_refused(unsigned long *count, const char *name) {
  const unsigned long call = __atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
  if (call != setting(name)) return 0;
  errno = ENOMEM;
  return 1;
}

static void *held(void *block) {
  if (block != NULL) __atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED);
  return block;
}

void *calloc(size_t count, size_t size_bytes) {
  return is_refused(&calls, "SHIM_CALLOC_FAILS") ? NULL : held(__libc_calloc(count, size_bytes));
}

void *malloc(size_t size_bytes) {
  return is_refused(&malloc_calls, "SHIM_MALLOC_FAILS") ? NULL : held(__libc_malloc(size_bytes));
}

void *realloc(void *block, size_t size_bytes) {
  if (is_refused(&malloc_calls, "SHIM_MALLOC_FAILS")) return NULL;
  void *moved = __libc_realloc(block, size_bytes);
  return block == NULL ? held(moved) : moved;
}

void *aligned_alloc(size_t alignment, size_t size_bytes) {
  if (is_refused(&aligned_calls, "SHIM_ALIGNED_FAILS")) return NULL;
  return held(__libc_memalign(alignment, size_bytes));
}

void free(void *block) {
  if (block != NULL) __atomic_sub_fetch(&blocks, 1, __ATOMIC_RELAXED);
  __libc_free(block);
}

// Returns the size for a call to read or write, or 0 if it fails, with the reason in errno.
static size_t part_of(size_t size_bytes) {
  static unsigned long pieces;
  const unsigned long piece_bytes = setting("SHIM_PIECE_BYTES");
  if (piece_bytes == 0) return size_bytes;
  const unsigned long piece = __atomic_add_fetch(&pieces, 1, __ATOMIC_RELAXED);
  errno = piece % 3 == 0 ? EINTR : EAGAIN;
  if (piece % 3 == 0 || piece % 4 == 0) return 0;
  return size_bytes < piece_bytes ? size_bytes : piece_bytes;
}

ssize_t write(int descriptor, const void *bytes, size_t size_bytes) {
  const int is_standard = descriptor == 1 || descriptor == 2;
  if (is_standard) __atomic_add_fetch(&writes, 1, __ATOMIC_RELAXED);
  const size_t part_bytes = is_standard ? part_of(size_bytes) : size_bytes;
  return part_bytes == 0 && size_bytes != 0 ? -1
                                            : syscall(SYS_write, descriptor, bytes, part_bytes);
}

ssize_t read(int descriptor, void *bytes, size_t size_bytes) {
  const size_t part_bytes = descriptor == 0 ? part_of(size_bytes) : size_bytes;
  return part_bytes == 0 && size_bytes != 0 ? -1 : syscall(SYS_read, descriptor, bytes, part_bytes);
}

// Advances the clock by one reading, and returns its time in us.
static unsigned long look_us(unsigned long step_us) {
  static unsigned long looks, now_us = 1000000000;
  const unsigned long look = __atomic_add_fetch(&looks, 1, __ATOMIC_RELAXED);
  const unsigned long spread = setting("SHIM_CLOCK_SPREAD");
  const unsigned long times = spread == 0 ? 1 : 1 + look * 2654435761u / 65536 % spread;
  return __atomic_add_fetch(&now_us, step_us * times, __ATOMIC_RELAXED);
}

time_t time(time_t *out) {
  const unsigned long set_s = setting("SHIM_TIME_S");
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
  const time_t now_s = set_s == 0 ? now.tv_sec : (time_t)set_s;
  if (out != NULL) *out = now_s;
  return now_s;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static unsigned long ahead_ms;
  if (getenv("SHIM_CLOCK_STEP_US") != NULL) {
    const unsigned long now_us = look_us(setting("SHIM_CLOCK_STEP_US"));
    now->tv_sec = (time_t)(now_us / 1000000);
    now->tv_nsec = (long)(now_us % 1000000) * 1000;
    return 0;
  }
  const int result = (int)syscall(SYS_clock_gettime, clock, now);
  const unsigned long ms =
      __atomic_add_fetch(&ahead_ms, setting("SHIM_CLOCK_MS"), __ATOMIC_RELAXED);
  now->tv_sec += (time_t)(ms / 1000);
  now->tv_nsec += (long)(ms % 1000) * 1000000;
  if (now->tv_nsec >= 1000000000) {
    now->tv_nsec -= 1000000000;
    now->tv_sec++;
  }
  return result;
}

static void write_count(const char *name, unsigned long count) {
  const char *path = getenv(name);
  FILE *file = path == NULL ? NULL : fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "%lu", count);
  fclose(file);
}

__attribute__((destructor)) static void report_calls(void) {
  write_count("SHIM_BLOCK_COUNT", (unsigned long)blocks);
  write_count("SHIM_WRITE_COUNT", writes);
  write_count("SHIM_CALLOC_COUNT", calls);
  write_count("SHIM_MALLOC_COUNT", malloc_calls);
  write_count("SHIM_ALIGNED_COUNT", aligned_calls);
}

// component/llm_wasi.c — replaces WASI, so that the component of wick:llm imports nothing: it reads
// no files, prints nothing, and its clock does not advance (the engine counts units of work
// instead).
#include <stdint.h>

enum { ERRNO_BADF = 8 };  // from WASI 0.1

// The names of wasi-libc's imports.
#define WASI(name) __imported_wasi_snapshot_preview1_##name
int32_t WASI(clock_time_get)(int32_t clock, int64_t precision, int32_t time);
int32_t WASI(fd_close)(int32_t file);
int32_t WASI(fd_seek)(int32_t file, int64_t offset, int32_t whence, int32_t position);
int32_t WASI(fd_write)(int32_t file, int32_t pieces, int32_t count, int32_t written);

int32_t WASI(clock_time_get)(int32_t clock, int64_t precision, int32_t time) {
  (void)clock, (void)precision;
  *(uint64_t *)(uintptr_t)(uint32_t)time = 0;
  return 0;
}

int32_t WASI(fd_close)(int32_t file) {
  (void)file;
  return ERRNO_BADF;
}

int32_t WASI(fd_seek)(int32_t file, int64_t offset, int32_t whence, int32_t position) {
  (void)file, (void)offset, (void)whence, (void)position;
  return ERRNO_BADF;
}

int32_t WASI(fd_write)(int32_t file, int32_t pieces, int32_t count, int32_t written) {
  (void)file, (void)pieces, (void)count, (void)written;
  return ERRNO_BADF;
}

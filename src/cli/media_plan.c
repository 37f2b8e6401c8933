// cli/media_plan.c — see media_plan.h.
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L  // pread
#endif
#include "cli/media_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static size_t read_some(void *context, uint32_t file, uint64_t offset_bytes, void *bytes,
                        size_t size_bytes) {
  const int *fd = context;
  (void)file;
  const ssize_t got = pread(*fd, bytes, size_bytes, (off_t)offset_bytes);
  return got < 0 ? SIZE_MAX : (size_t)got;
}

exit_code media_plan_load(wick_engine *engine, const char *path) {
  uint8_t piece[4096];
  wick_error error;
  int fd = open(path, O_RDONLY);
  if (fd < 0) {
    report("cannot open %s: %s", path, strerror(errno));
    return EXIT_FILE;
  }
  const wick_reader reader = {&fd, read_some, piece, sizeof piece};
  const wick_status status = wick_media_load_from(engine, &reader, &error);
  close(fd);
  return status == WICK_OK ? EXIT_DONE : report_error(path, &error);
}

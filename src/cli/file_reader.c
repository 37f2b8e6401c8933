// cli/file_reader.c — see file_reader.h.
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L  // pread
#endif
#include "cli/file_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 1024 * 1024 };

static size_t read_file(void *context, uint32_t file, uint64_t offset_bytes, void *bytes,
                        size_t size_bytes) {
  const file_reader *from = context;
  (void)file;
  const ssize_t got = pread(from->fd, bytes, size_bytes, (off_t)offset_bytes);
  return got < 0 ? SIZE_MAX : (size_t)got;
}

exit_code file_reader_open(file_reader *from, const char *path) {
  from->fd = open(path, O_RDONLY);
  if (from->fd < 0) {
    report("cannot open %s: %s", path, strerror(errno));
    return EXIT_FILE;
  }
  from->reader = (wick_reader){from, read_file, malloc(PIECE_BYTES), PIECE_BYTES};
  if (from->reader.piece == NULL) {
    report("out of memory for reading %s", path);
    close(from->fd);
    return EXIT_MEMORY;
  }
  return EXIT_DONE;
}

void file_reader_close(file_reader *from) {
  free(from->reader.piece);
  close(from->fd);
}

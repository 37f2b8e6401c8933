// cli/media_files.c — reads the GGUF files of media.h.
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L  // pread
#endif
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/input.h"
#include "cli/media.h"
#include "media/formats.h"

enum { PIECE_BYTES = 64 * 1024 };

static exit_code feed(gguf_file *file, uint8_t *piece) {
  wick_error error;
  while (!gguf_directory_is_complete(file->directory)) {
    size_t got_bytes, used;
    if (!input_read_fd(file->fd, piece, PIECE_BYTES, &got_bytes)) {
      report("cannot read %s: %s", file->path, strerror(errno));
      return EXIT_FILE;
    }
    if (got_bytes == 0) {
      (void)gguf_directory_finish(file->directory, &error);
      return report_error(file->path, &error);
    }
    if (gguf_directory_feed(file->directory, piece, got_bytes, &used, &error) != WICK_OK) {
      return report_error(file->path, &error);
    }
  }
  return EXIT_DONE;
}

// Checks that the file is long enough for all tensors.
static exit_code check_length(const gguf_file *file) {
  struct stat of;
  const off_t end = fstat(file->fd, &of) == 0 ? of.st_size : -1;
  if (end >= 0 && (uint64_t)end >= gguf_directory_needs(file->directory)) return EXIT_DONE;
  report("%s: the file ends within its tensors (%lld of %llu bytes)", file->path, (long long)end,
         (unsigned long long)gguf_directory_needs(file->directory));
  return EXIT_FILE;
}

exit_code gguf_file_open(memory_gate *memory, const char *path, gguf_file *out) {
  wick_error error;
  *out = (gguf_file){.path = path, .fd = open(path, O_RDONLY)};
  if (out->fd < 0) {
    report("cannot open %s: %s", path, strerror(errno));
    return EXIT_FILE;
  }
  uint8_t *piece = memory_alloc(memory, PIECE_BYTES);
  exit_code code = EXIT_MEMORY;
  if (piece == NULL) {
    report("out of memory for reading %s", path);
  } else if (gguf_directory_create(memory, &out->directory, &error) != WICK_OK) {
    code = report_error(path, &error);
  } else {
    code = feed(out, piece);
  }
  memory_free(memory, piece);
  return code == EXIT_DONE ? check_length(out) : code;
}

void gguf_file_close(gguf_file *file) {
  gguf_directory_destroy(file->directory);
  if (file->path != NULL && file->fd >= 0) close(file->fd);
  *file = (gguf_file){0};
}

exit_code media_check_size(const char *path) {
  struct stat of;
  if (stat(path, &of) != 0 || of.st_size <= MEDIA_FILE_BYTES_MAX) return EXIT_DONE;
  report("%s: file has %lld bytes, limit is %u", path, (long long)of.st_size,
         (unsigned)MEDIA_FILE_BYTES_MAX);
  return EXIT_USAGE;
}

static bool read_at(void *context, uint64_t offset_bytes, void *out, size_t size_bytes) {
  const gguf_file *file = context;
  uint8_t *to = out;
  while (size_bytes != 0) {
    const ssize_t got = pread(file->fd, to, size_bytes, (off_t)offset_bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    offset_bytes += (uint64_t)got;
    size_bytes -= (size_t)got;
  }
  return true;
}

media_reader gguf_file_reader(gguf_file *file) { return (media_reader){read_at, file}; }

// library/load_file.c — wick_load_file and wick_media_load_file, the only functions of the
// engine that read files. They are in the archives of the C library, not in the web's modules.
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L  // fseeko
#endif
#define _FILE_OFFSET_BITS 64
#include <stdio.h>
#include <stdlib.h>

#include "base/split_name.h"
#include "base/status.h"

enum { PIECE_BYTES = 1 << 20, NAME_BYTES_MAX = 4096 };

typedef struct model_files {
  const char *first;
  char name[NAME_BYTES_MAX];  // of the open file, or of the file that failed
  FILE *stream;               // NULL: no file is open
  uint32_t file;              // index of the open file
  bool has_opened;
} model_files;

static void close_file(model_files *files) {
  if (files->stream != NULL) fclose(files->stream);
  files->stream = NULL;
}

static bool open_file(model_files *files, uint32_t file) {
  if (files->stream != NULL && files->file == file) return true;
  close_file(files);
  files->has_opened = split_name(files->first, file, files->name, sizeof files->name) &&
                      (files->stream = fopen(files->name, "rb")) != NULL;
  files->file = file;
  // pieces are large and used immediately, so a buffer has no benefit
  if (files->has_opened) setvbuf(files->stream, NULL, _IONBF, 0);
  return files->has_opened;
}

static size_t read_files(void *context, uint32_t file, uint64_t offset_bytes, void *bytes,
                         size_t size_bytes) {
  model_files *files = context;
  if (!open_file(files, file)) return SIZE_MAX;
  if (fseeko(files->stream, (off_t)offset_bytes, SEEK_SET) != 0) return SIZE_MAX;
  const size_t got = fread(bytes, 1, size_bytes, files->stream);
  return got == 0 && ferror(files->stream) ? SIZE_MAX : got;
}

typedef wick_status (*load_from)(wick_engine *engine, const wick_reader *reader, wick_error *error);

static wick_status load_by(wick_engine *engine, const char *path, load_from load,
                           wick_error *error) {
  model_files *files = calloc(1, sizeof *files);
  void *piece = malloc(PIECE_BYTES);
  wick_status status;
  if (files == NULL || piece == NULL) {
    status = fail_with(error, WICK_E_NOMEM, WICK_NO_OFFSET, "out of memory for reading a file");
  } else {
    files->first = path;
    const wick_reader reader = {files, read_files, piece, PIECE_BYTES};
    status = load(engine, &reader, error);
    if (status == WICK_E_IO) {
      fail_with(error, status, WICK_NO_OFFSET, "cannot %s %.128s",
                files->has_opened ? "read" : "open", files->name[0] == '\0' ? path : files->name);
    }
    close_file(files);
  }
  free(piece);
  free(files);
  return status;
}

wick_status wick_load_file(wick_engine *engine, const char *path, wick_error *error) {
  return load_by(engine, path, wick_load_from, error);
}

wick_status wick_media_load_file(wick_engine *engine, const char *path, wick_error *error) {
  return load_by(engine, path, wick_media_load_from, error);
}

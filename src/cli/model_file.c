// cli/model_file.c — feeds models to engines: the engine requests a range, and receives its bytes
// (load/load.h).
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L  // pread
#endif
#include "cli/model_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/split_name.h"
#include "cli/input.h"
#include "platform/platform.h"

enum { PIECE_BYTES = 1024 * 1024, NAME_BYTES_MAX = 4096, NONE = -1 };

typedef struct model_source {
  const char *path;           // as specified by the user
  char name[NAME_BYTES_MAX];  // of the open file, for messages
  int fd;                     // NONE: no file is open
  uint32_t file;              // index among the files of a split model
  uint64_t position_bytes;
  bool is_regular;         // the file has a size and can be read at any offset
  uint8_t *piece;          // PIECE_BYTES
  wick_reader reader;      // for tables that stay in the file
  struct timespec newest;  // latest modification time of the files when they were loaded
} model_source;

// ---- names of split models ----

static exit_code name_file(model_source *source, uint32_t file) {
  const size_t path_bytes = strlen(source->path);
  if (path_bytes >= sizeof source->name) {
    report("the model's path is longer than %d bytes", NAME_BYTES_MAX);
    return EXIT_FILE;
  }
  if (split_name(source->path, file, source->name, sizeof source->name)) return EXIT_DONE;
  report(
      "%s: the model is split into several files; pass the first one, named "
      "like model-00001-of-00003.gguf",
      source->path);
  return EXIT_FILE;
}

// ---- one file ----

static void close_file(model_source *source) {
  if (source->fd != NONE && source->fd != STDIN_FILENO) close(source->fd);
  source->fd = NONE;
}

static bool is_newer(const struct stat *facts, const struct timespec *than) {
  const struct timespec *written = &facts->st_mtim;
  return written->tv_sec != than->tv_sec ? written->tv_sec > than->tv_sec
                                         : written->tv_nsec > than->tv_nsec;
}

// Sets is_regular. If the file has a size, passes it to the engine, so that a truncated file is
// rejected before it is read.
static exit_code measure_file(model_source *source, wick_engine *engine) {
  struct stat facts;
  source->is_regular =
      source->fd != STDIN_FILENO && fstat(source->fd, &facts) == 0 && S_ISREG(facts.st_mode);
  wick_error error;
  if (source->is_regular && is_newer(&facts, &source->newest)) source->newest = facts.st_mtim;
  if (!source->is_regular ||
      wick_load_end(engine, source->file, (uint64_t)facts.st_size, &error) == WICK_OK)
    return EXIT_DONE;
  return report_error(source->name, &error);
}

// Opens a different file of the model; fd is NONE if that failed.
static exit_code change_file(model_source *source, uint32_t file) {
  close_file(source);
  source->file = file;
  source->position_bytes = 0;
  const exit_code named = name_file(source, file);
  if (named != EXIT_DONE) return named;
  if (strcmp(source->path, "-") == 0) {
    memcpy(source->name, "standard input", sizeof "standard input");
    source->fd = STDIN_FILENO;
  } else {
    source->fd = open(source->name, O_RDONLY);
  }
  return EXIT_DONE;
}

static exit_code open_file(model_source *source, uint32_t file, wick_engine *engine) {
  const exit_code changed = change_file(source, file);
  if (changed != EXIT_DONE) return changed;
  if (source->fd >= 0) return measure_file(source, engine);
  report("cannot open %s: %s", source->name, strerror(errno));
  return EXIT_FILE;
}

static exit_code end_of_file(const model_source *source, wick_engine *engine) {
  wick_error error;
  const uint64_t size_bytes = source->position_bytes;
  if (wick_load_end(engine, source->file, size_bytes, &error) != WICK_OK)
    return report_error(source->name, &error);
  report("%s: ends after %llu bytes, before the model is complete", source->name,
         (unsigned long long)size_bytes);
  return EXIT_FILE;
}

// Reads the next bytes at the source's position. Reading a pipe waits until the buffer is full or
// the pipe ends.
static bool read_piece(const model_source *source, size_t size_bytes, size_t *got_bytes) {
  if (!source->is_regular) return input_read_fd(source->fd, source->piece, size_bytes, got_bytes);
  const ssize_t got = pread(source->fd, source->piece, size_bytes, (off_t)source->position_bytes);
  *got_bytes = got > 0 ? (size_t)got : 0;
  return got >= 0;
}

// Feeds the next piece at the source's position, at most `wanted_bytes`.
static exit_code feed_piece(model_source *source, wick_engine *engine, uint64_t wanted_bytes) {
  const size_t piece = wanted_bytes < PIECE_BYTES ? (size_t)wanted_bytes : PIECE_BYTES;
  size_t got;
  if (!read_piece(source, piece, &got)) {
    report("cannot read %s: %s", source->name, strerror(errno));
    return EXIT_FILE;
  }
  if (got == 0) return end_of_file(source, engine);
  wick_error error;
  if (wick_load_feed(engine, source->file, source->position_bytes, source->piece, got, &error) !=
      WICK_OK)
    return report_error(source->name, &error);
  source->position_bytes += got;
  return EXIT_DONE;
}

static bool is_loaded(const wick_engine *engine) {
  wick_load_state state;
  wick_load_get_state(engine, &state);
  return state.is_complete;
}

// Reads one range that the engine requested. For a pipe, reads the next piece instead.
static exit_code feed_range(model_source *source, wick_engine *engine, uint64_t offset_bytes,
                            uint64_t length_bytes) {
  if (!source->is_regular) return feed_piece(source, engine, PIECE_BYTES);
  source->position_bytes = offset_bytes;
  exit_code code = EXIT_DONE;
  for (uint64_t left = length_bytes; code == EXIT_DONE && left > 0 && !is_loaded(engine);) {
    const uint64_t before = source->position_bytes;
    code = feed_piece(source, engine, left);
    left -= source->position_bytes - before;
  }
  return code;
}

static exit_code feed_model(model_source *source, wick_engine *engine) {
  while (!is_loaded(engine)) {
    uint32_t file;
    uint64_t offset_bytes, length_bytes;
    wick_load_next_range(engine, &file, &offset_bytes, &length_bytes);
    if (length_bytes == 0) return end_of_file(source, engine);  // the file is truncated
    // after opening a file, ask the engine again, because it now knows the file's size
    const bool is_open = source->fd != NONE && source->file == file;
    const exit_code code = is_open ? feed_range(source, engine, offset_bytes, length_bytes)
                                   : open_file(source, file, engine);
    if (code != EXIT_DONE) return code;
  }
  return EXIT_DONE;
}

// ---- tables outside memory ----

// Implements wick_reader for tables. The file stays open after loading, so that rows come from the
// loaded file even if its name now refers to a different one. Files of a split model are reopened.
// A file that was modified after loading is not read, because its rows may have changed.
static size_t read_table(void *context, uint32_t file, uint64_t offset_bytes, void *bytes,
                         size_t size_bytes) {
  model_source *source = context;
  const bool is_open = source->fd != NONE && source->file == file;
  if (!is_open && change_file(source, file) != EXIT_DONE) return SIZE_MAX;
  if (source->fd < 0) return SIZE_MAX;
  struct stat facts;
  if (fstat(source->fd, &facts) != 0 || is_newer(&facts, &source->newest)) return SIZE_MAX;
  const ssize_t got = pread(source->fd, bytes, size_bytes, (off_t)offset_bytes);
  return got < 0 ? SIZE_MAX : (size_t)got;
}

// Checks before opening whether the file can be read at any offset.
static bool can_read_tables(const char *path) {
  struct stat facts;
  return strcmp(path, "-") != 0 && stat(path, &facts) == 0 && S_ISREG(facts.st_mode);
}

static void free_source(model_source *source) {
  close_file(source);
  free(source->piece);
  free(source);
}

void model_close(wick_engine *engine) {
  if (engine == NULL) return;
  const wick_reader *reader = wick_engine_config(engine)->tables_reader;
  wick_engine_destroy(engine);
  if (reader != NULL) free_source(reader->context);
}

// ---- models ----

static exit_code refuse_memory(const char *path) {
  report("out of memory for reading %s", path);
  return EXIT_MEMORY;
}

static model_source *make_source(const char *path) {
  model_source *source = calloc(1, sizeof *source);
  if (source == NULL) return NULL;
  *source = (model_source){.path = path, .fd = NONE, .piece = malloc(PIECE_BYTES)};
  source->reader = (wick_reader){.context = source, .read = read_table};
  if (source->piece != NULL) return source;
  free(source);
  return NULL;
}

exit_code model_open(const char *path, const wick_config *config, wick_engine **engine) {
  wick_error error;
  wick_config chosen = *config;
  *engine = NULL;
  if (config->tables == WICK_TABLES_OUTSIDE && !config->directory_only && !can_read_tables(path)) {
    report("--tables outside: %s cannot be read while the model runs",
           strcmp(path, "-") == 0 ? "standard input" : path);
    return EXIT_USAGE;
  }
  model_source *source = make_source(path);
  if (source == NULL) return refuse_memory(path);
  const bool is_kept = config->tables != WICK_TABLES_INSIDE && can_read_tables(path);
  if (is_kept) chosen.tables_reader = &source->reader;
  if (wick_engine_create(&chosen, engine, &error) != WICK_OK) {
    *engine = NULL;
    free_source(source);
    return report_error("settings", &error);
  }
  const exit_code code = feed_model(source, *engine);
  free(source->piece);
  source->piece = NULL;
  if (!is_kept) free_source(source);
  if (code == EXIT_DONE) return EXIT_DONE;
  model_close(*engine);
  *engine = NULL;
  return code;
}

exit_code model_open_vocabulary(const char *path, const char *pre_tokenizer, wick_engine **engine) {
  wick_config config;
  wick_config_default(&config);
  config.directory_only = true;
  config.pre_tokenizer = pre_tokenizer;
  exit_code code = model_open(path, &config, engine);
  wick_error error;
  if (code != EXIT_DONE || wick_tokenizer_status(*engine, &error) == WICK_OK) return code;
  code = report_error(path, &error);
  model_close(*engine);
  *engine = NULL;
  return code;
}

// cli/adapter_files.c — see adapter_files.h.
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L  // access
#endif
#include "cli/adapter_files.h"

#include <string.h>
#include <unistd.h>

#include "base/decimal.h"
#include "base/math.h"
#include "cli/file_reader.h"

enum { PATH_BYTES_MAX = 4096 };

args_option adapter_files_option(adapter_files *adapters) {
  return args_string_list("--lora", &adapters->files, "FILE[:SCALE]",
                          "use this adapter (repeatable)");
}

// Reads the scale after the last ':', and sets *path_bytes to the number of bytes before it. Text
// that is not a number belongs to the path. Returns false if only the path without that text
// exists, or if the number is too large.
static bool read_scale(const char *given, size_t *path_bytes, float *scale) {
  const char *colon = strrchr(given, ':');
  char path[PATH_BYTES_MAX];
  *path_bytes = strlen(given);
  *scale = 1;
  if (colon == NULL) return true;
  const size_t before = (size_t)(colon - given);
  double number;
  if (decimal_read_f64(colon + 1, strlen(colon + 1), &number)) {
    *path_bytes = before;
    *scale = (float)number;
    if (math_is_finite_f32(*scale)) return true;
  } else {
    if (before >= sizeof path || access(given, F_OK) == 0) return true;
    memcpy(path, given, before);
    path[before] = '\0';
    if (access(path, F_OK) != 0) return true;
  }
  report("--lora: the scale '%s' after the last ':' is not a finite 32-bit number", colon + 1);
  return false;
}

static exit_code load_file(const char *path, wick_engine *engine, uint32_t *adapter) {
  wick_error error;
  file_reader from;
  exit_code code = file_reader_open(&from, path);
  if (code != EXIT_DONE) return code;
  if (wick_adapter_load_from(engine, &from.reader, adapter, &error) != WICK_OK) {
    code = report_error(path, &error);
  }
  file_reader_close(&from);
  return code;
}

exit_code adapter_files_load(adapter_files *adapters, wick_engine *engine) {
  exit_code code = EXIT_DONE;
  for (uint32_t i = 0; i < adapters->files.count && code == EXIT_DONE; i++) {
    char path[PATH_BYTES_MAX];
    size_t path_bytes;
    if (!read_scale(adapters->files.items[i], &path_bytes, &adapters->uses[i].scale)) {
      return EXIT_USAGE;
    }
    if (path_bytes >= sizeof path) {
      report("the adapter's path is longer than %d bytes", PATH_BYTES_MAX);
      return EXIT_FILE;
    }
    memcpy(path, adapters->files.items[i], path_bytes);
    path[path_bytes] = '\0';
    code = load_file(path, engine, &adapters->uses[i].adapter);
  }
  return code;
}

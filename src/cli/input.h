// cli/input.h — the input text of a command: an argument, a file, or standard input.
#ifndef WICK_CLI_INPUT_H
#define WICK_CLI_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/command.h"

typedef struct input_text {
  char *bytes;  // freed by input_free
  size_t size_bytes, room_bytes;
  bool is_lost;  // memory ran out in input_append
} input_text;

// Reads from a descriptor until `out` is full or the file ends, and waits if a non-blocking pipe
// has no data yet. Returns false if reading failed (errno), regardless of *got.
bool input_read_fd(int fd, void *out, size_t size_bytes, size_t *got_bytes);

// Reads the text of `-p` (text), the file of `-f` (path) or, without these options, standard input,
// byte for byte. Using both options, or standard input if the model is read from it, is a usage
// error.
exit_code input_read(const char *text, const char *path, const char *model, input_text *out);
void input_free(input_text *input);
// Appends bytes; a json_sink (base/json.h) whose context is an input_text.
void input_append(void *text, const char *bytes, size_t size_bytes);

// Sets the engine's chat template from a file, unless `path` is NULL. Reports errors.
exit_code input_use_template(wick_engine *engine, const char *path, const char *model);

#endif

// cli/command.h — the commands of the command line, one file each, and what they have in common.
// Text goes to stdout, everything else to stderr.
#ifndef WICK_CLI_COMMAND_H
#define WICK_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "wick.h"

typedef enum exit_code {
  EXIT_DONE = 0,
  EXIT_USAGE = 2,  // the command line, or a request that the model cannot take
  EXIT_FILE = 3,   // a file or the model in it
  EXIT_MEMORY = 4,
  EXIT_INTERNAL = 5
} exit_code;

// `argv` holds the arguments behind the command's name.
typedef struct command {
  const char *name, *summary;
  exit_code (*run)(int argc, char **argv);
} command;

exit_code command_run(int argc, char **argv);
exit_code command_logits(int argc, char **argv);
exit_code command_tokenize(int argc, char **argv);
exit_code command_detokenize(int argc, char **argv);
exit_code command_inspect(int argc, char **argv);
exit_code command_synth(int argc, char **argv);

// ---- messages (report.c) ----

// One line on stderr: "wick: ...".
void report(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Names in a file may hold anything: what could steer a terminal becomes '?'.
void replace_controls(char *text);
// The error of a call about `subject` (a file, a command), and the exit code of its kind.
exit_code report_error(const char *subject, const wick_error *error);

// ---- standard output (report.c) ----

// Writes and flushes. False when nobody reads any more or the write fails: time to stop.
bool output_write(const void *bytes, size_t size_bytes);
// A json_sink (base/json.h) into a FILE.
void output_json(void *file, const char *bytes, size_t size_bytes);
// The exit code of a command that ended well: EXIT_DONE, unless what it wrote was lost. A reader
// that went away (EPIPE) has had enough; that is no error.
exit_code output_end(void);

#endif

// cli/command.h — the commands of the command-line program, each in its own file, and their common
// parts.
#ifndef WICK_CLI_COMMAND_H
#define WICK_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/output.h"
#include "wick.h"

typedef enum exit_code {
  EXIT_NOT_YET = -1,  // the command continues
  EXIT_DONE = 0,
  EXIT_USAGE = 2,  // a usage error, or a request that the model cannot handle
  EXIT_FILE = 3,   // an error in a file or in the model in it
  EXIT_MEMORY = 4,
  EXIT_INTERNAL = 5
} exit_code;

// `argv` contains the arguments after the command's name.
typedef struct command {
  const char *name, *summary;
  exit_code (*run)(int argc, char **argv);  // NULL: another program has the command (commands.h)
} command;

exit_code command_run(int argc, char **argv);
exit_code command_logits(int argc, char **argv);
exit_code command_embed(int argc, char **argv);
exit_code command_rerank(int argc, char **argv);
exit_code command_tokenize(int argc, char **argv);
exit_code command_detokenize(int argc, char **argv);
exit_code command_template(int argc, char **argv);
exit_code command_chat(int argc, char **argv);
exit_code command_inspect(int argc, char **argv);
exit_code command_bench(int argc, char **argv);
exit_code command_perplexity(int argc, char **argv);
exit_code command_quantize(int argc, char **argv);
exit_code command_synth(int argc, char **argv);
exit_code command_embed_component(int argc, char **argv);
exit_code command_constrain(int argc, char **argv);
exit_code command_media(int argc, char **argv);

// ---- messages (report.c) ----

// Prints one line to stderr, prefixed with the program's name ("wick: ...").
void report(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Replaces bytes that could control a terminal with '?', because names in a file may contain any
// bytes.
void replace_controls(char *text);
// Reports the error of a call about `subject` (a file, a command), and returns the exit code for
// its kind.
exit_code report_error(const char *subject, const wick_error *error);

// Returns the exit code of a successful command: EXIT_DONE, unless its output was lost.
exit_code output_end(void);
// Returns the exit code of a command that writes a file: EXIT_FILE if it could not be created or
// written. A closed pipe is not an error.
exit_code output_file_check(const output_file *file);
// Closes the file. Returns the exit code for a command that ended with `code`.
exit_code output_file_end(output_file *file, exit_code code);

#endif

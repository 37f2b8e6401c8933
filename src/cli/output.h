// cli/output.h — text to standard output, everything else to standard error. Both may be pipes that
// do not block (Node's are), which stdio would take for a failure; so these write by themselves.
#ifndef WICK_CLI_OUTPUT_H
#define WICK_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef enum output_stream { OUTPUT_TEXT = 1, OUTPUT_LOG = 2 } output_stream;  // descriptors

// Buffered until the flush. A failure stays in the stream: what follows is dropped.
void output_put(output_stream to, const void *bytes, size_t size_bytes);
void output_format(output_stream to, const char *format, ...) __attribute__((format(printf, 2, 3)));
// False when nobody reads any more or a write failed: time to stop.
bool output_flush(output_stream to);

// Whether a person sits at the descriptor. Natively alone: some WASI runtimes (Deno) call a pipe a
// terminal.
bool output_is_terminal(int descriptor);

// json_sinks (base/json.h); the context is not used.
void output_text_json(void *context, const char *bytes, size_t size_bytes);
void output_log_json(void *context, const char *bytes, size_t size_bytes);

// 0, or the errno of the first write to standard output that failed. A reader that went away
// (EPIPE) has had enough; that is no failure.
int output_failure(void);

// A file that a command makes, or standard output for the path "-". What has this name is replaced
// at the first write, so a command that is refused before has harmed nothing.
typedef struct output_file {
  const char *path;
  FILE *stream;  // NULL: standard output, or nothing was written
  bool is_made;
  int failed_errno;  // of the first write that failed, 0: none
} output_file;

bool output_file_write(output_file *file, const void *bytes, size_t size_bytes);
void output_file_close(output_file *file);  // look at failed_errno afterwards

#endif

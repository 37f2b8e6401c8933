// cli/output.h — writes text to standard output, and everything else to standard error. Both may be
// non-blocking pipes (Node's are). stdio would report an error on them, so these functions call
// write directly.
#ifndef WICK_CLI_OUTPUT_H
#define WICK_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

typedef enum output_stream {
  OUTPUT_TEXT = 1,
  OUTPUT_LOG = 2,
  OUTPUT_FILE = 3  // the file of output_file_write
} output_stream;
enum { OUTPUT_FORMAT_BYTES_MAX = 4096 };

// Writes bytes, which are buffered until the flush. After a failure, further output is dropped.
void output_put(output_stream to, const void *bytes, size_t size_bytes);
// Formats with base/text.h; writes at most OUTPUT_FORMAT_BYTES_MAX - 1 bytes.
void output_format(output_stream to, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Like output_format, with the C library's printf, for widths and decimals; small programs do not
// contain it.
void output_printf(output_stream to, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Writes a line with two columns; the first is padded to `width` bytes.
void output_row(output_stream to, size_t width, const char *name, const char *says);
// Writes the buffered output. Returns false if the reader has closed its end or a write failed, so
// the command should stop.
bool output_flush(output_stream to);

// Whether the descriptor is a terminal. Always false in WASI builds: some runtimes (Deno) mistake a
// pipe for a terminal.
bool output_is_terminal(int descriptor);

// The functions below are json_sinks (base/json.h) that do not use the context.
void output_text_json(void *context, const char *bytes, size_t size_bytes);
void output_log_json(void *context, const char *bytes, size_t size_bytes);

// Returns 0, or the errno of the first failed write to standard output. A closed pipe (EPIPE) is
// not a failure.
int output_failure(void);

// A file that a command writes, or standard output for the path "-". An existing file is replaced
// at the first write, so a command that fails before that changes nothing. Only one file can be
// written at a time.
typedef struct output_file {
  const char *path;
  bool is_made, is_open;
  bool is_regular;   // not a device, pipe or socket
  int failed_errno;  // of the first failed write; 0: none
} output_file;

bool output_file_write(output_file *file, const void *bytes, size_t size_bytes);
void output_file_close(output_file *file);  // then check failed_errno

// Deletes a partly written file, but not a device or a pipe.
void output_file_remove(const output_file *file);

#endif

// cli/output.h — text goes to standard output, everything else to standard error. Both may be pipes
// that do not block (those of Node are). stdio would report an error on them, so these functions
// call write directly.
#ifndef WICK_CLI_OUTPUT_H
#define WICK_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

typedef enum output_stream {
  OUTPUT_TEXT = 1,
  OUTPUT_LOG = 2,
  OUTPUT_FILE = 3  // that of output_file_write
} output_stream;
enum { OUTPUT_FORMAT_BYTES_MAX = 4096 };

// Buffered until the flush. After a failure, further text is dropped.
void output_put(output_stream to, const void *bytes, size_t size_bytes);
// Text formatted by base/text.h, at most OUTPUT_FORMAT_BYTES_MAX - 1 bytes.
void output_format(output_stream to, const char *format, ...) __attribute__((format(printf, 2, 3)));
// The same by the C library's printf, whose code a small program lacks: widths and decimals.
void output_printf(output_stream to, const char *format, ...) __attribute__((format(printf, 2, 3)));
// A line of two columns, of which the first has at least `width` bytes.
void output_row(output_stream to, size_t width, const char *name, const char *says);
// False when the reader went away or a write failed: time to stop.
bool output_flush(output_stream to);

// Whether the descriptor is a terminal. Only natively: some WASI runtimes (Deno) take a pipe for a
// terminal.
bool output_is_terminal(int descriptor);

// json_sinks (base/json.h); the context is not used.
void output_text_json(void *context, const char *bytes, size_t size_bytes);
void output_log_json(void *context, const char *bytes, size_t size_bytes);

// 0, or the errno of the first write to standard output that failed. A reader that went away
// (EPIPE) is not a failure.
int output_failure(void);

// A file that a command makes, or standard output for the path "-". An existing file is replaced at
// the first write, so a command that fails before changes nothing. One file is made at a time.
typedef struct output_file {
  const char *path;
  bool is_made, is_open;
  bool is_regular;   // no device, pipe or socket
  int failed_errno;  // of the first write that failed, 0: none
} output_file;

bool output_file_write(output_file *file, const void *bytes, size_t size_bytes);
void output_file_close(output_file *file);  // look at failed_errno afterwards

// A half-written file is deleted; a device or a pipe stays.
void output_file_remove(const output_file *file);

#endif

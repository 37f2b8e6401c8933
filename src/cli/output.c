// cli/output.c — writing to the standard streams and to files.
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L  // nanosleep
#endif
#include "cli/output.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER_BYTES = 64 * 1024, FORMAT_BYTES_MAX = 4096, PAUSE_NS = 1000 * 1000 };

typedef struct buffer {
  char bytes[BUFFER_BYTES];
  size_t used_bytes;
  int failed_errno;
} buffer;

static buffer buffers[2];

static buffer *buffer_of(output_stream to) { return &buffers[to - OUTPUT_TEXT]; }

static void write_all(output_stream to, const char *bytes, size_t size_bytes) {
  buffer *state = buffer_of(to);
  while (size_bytes > 0 && state->failed_errno == 0) {
    const ssize_t written = write((int)to, bytes, size_bytes);
    if (written > 0) {
      bytes += written;
      size_bytes -= (size_t)written;
    } else if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);  // the pipe is full
    } else if (written == 0 || errno != EINTR) {
      state->failed_errno = written == 0 ? EIO : errno;
    }
  }
}

bool output_flush(output_stream to) {
  buffer *state = buffer_of(to);
  write_all(to, state->bytes, state->used_bytes);
  state->used_bytes = 0;
  return state->failed_errno == 0;
}

void output_put(output_stream to, const void *bytes, size_t size_bytes) {
  buffer *state = buffer_of(to);
  if (size_bytes > BUFFER_BYTES - state->used_bytes) output_flush(to);
  if (size_bytes > BUFFER_BYTES) {
    write_all(to, bytes, size_bytes);
    return;
  }
  memcpy(state->bytes + state->used_bytes, bytes, size_bytes);
  state->used_bytes += size_bytes;
}

void output_format(output_stream to, const char *format, ...) {
  char text[FORMAT_BYTES_MAX];
  va_list arguments;
  va_start(arguments, format);
  const int size = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (size > 0) output_put(to, text, (size_t)size < sizeof text ? (size_t)size : sizeof text - 1);
}

bool output_is_terminal(int descriptor) {
#if defined(__wasi__)
  (void)descriptor;
  return false;
#else
  return isatty(descriptor) == 1;
#endif
}

void output_text_json(void *context, const char *bytes, size_t size_bytes) {
  (void)context;
  output_put(OUTPUT_TEXT, bytes, size_bytes);
}

void output_log_json(void *context, const char *bytes, size_t size_bytes) {
  (void)context;
  output_put(OUTPUT_LOG, bytes, size_bytes);
}

int output_failure(void) {
  const int failed_errno = buffer_of(OUTPUT_TEXT)->failed_errno;
  return failed_errno == EPIPE ? 0 : failed_errno;
}

static bool is_standard(const output_file *file) { return strcmp(file->path, "-") == 0; }

static void make_file(output_file *file) {
  file->stream = fopen(file->path, "wb");
  file->is_made = file->stream != NULL;
  if (!file->is_made) file->failed_errno = errno;
}

bool output_file_write(output_file *file, const void *bytes, size_t size_bytes) {
  if (!is_standard(file) && !file->is_made && file->failed_errno == 0) make_file(file);
  if (file->failed_errno != 0) return false;
  if (file->stream == NULL) {
    output_put(OUTPUT_TEXT, bytes, size_bytes);
    file->failed_errno = buffer_of(OUTPUT_TEXT)->failed_errno;
  } else {
    errno = 0;
    const bool is_written = fwrite(bytes, 1, size_bytes, file->stream) == size_bytes;
    if (!is_written) file->failed_errno = errno != 0 ? errno : EIO;
  }
  return file->failed_errno == 0;
}

void output_file_close(output_file *file) {
  if (is_standard(file)) {
    if (!output_flush(OUTPUT_TEXT)) file->failed_errno = output_failure();
  } else if (file->stream != NULL && fclose(file->stream) != 0) {
    file->failed_errno = errno;
  }
  file->stream = NULL;
}

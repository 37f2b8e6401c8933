// cli/output.c — writing to the standard streams and to files.
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L  // nanosleep
#endif
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

enum { BUFFER_BYTES = 64 * 1024, PAUSE_NS = 1000 * 1000 };

typedef struct buffer {
  char bytes[BUFFER_BYTES];
  size_t used_bytes;
  int failed_errno;
} buffer;

static buffer buffers[OUTPUT_FILE];
static int file_fd;

static buffer *buffer_of(output_stream to) { return &buffers[to - OUTPUT_TEXT]; }

static void write_all(output_stream to, const char *bytes, size_t size_bytes) {
  buffer *state = buffer_of(to);
  const int fd = to == OUTPUT_FILE ? file_fd : (int)to;
  while (size_bytes > 0 && state->failed_errno == 0) {
    const ssize_t written = write(fd, bytes, size_bytes);
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
  char text[OUTPUT_FORMAT_BYTES_MAX];
  va_list arguments;
  va_start(arguments, format);
  output_put(to, text, text_format_list(text, sizeof text, format, arguments));
  va_end(arguments);
}

void output_row(output_stream to, size_t width, const char *name, const char *says) {
  output_format(to, "  %s", name);
  for (size_t used = strlen(name); used < width; used++) output_put(to, " ", 1);
  output_format(to, " %s\n", says);
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
  file_fd = open(file->path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  struct stat facts;
  file->is_made = file->is_open = file_fd >= 0;
  if (!file->is_made) file->failed_errno = errno;
  file->is_regular = file->is_made && fstat(file_fd, &facts) == 0 && S_ISREG(facts.st_mode);
  buffer_of(OUTPUT_FILE)->used_bytes = 0;
  buffer_of(OUTPUT_FILE)->failed_errno = 0;
}

bool output_file_write(output_file *file, const void *bytes, size_t size_bytes) {
  if (!is_standard(file) && !file->is_made && file->failed_errno == 0) make_file(file);
  if (file->failed_errno != 0) return false;
  const output_stream to = file->is_open ? OUTPUT_FILE : OUTPUT_TEXT;
  output_put(to, bytes, size_bytes);
  file->failed_errno = buffer_of(to)->failed_errno;
  return file->failed_errno == 0;
}

void output_file_close(output_file *file) {
  if (is_standard(file)) {
    if (!output_flush(OUTPUT_TEXT)) file->failed_errno = output_failure();
  } else if (file->is_open) {
    if (!output_flush(OUTPUT_FILE)) file->failed_errno = buffer_of(OUTPUT_FILE)->failed_errno;
    if (close(file_fd) != 0 && file->failed_errno == 0) {
      file->failed_errno = errno;
    }
  }
  file->is_open = false;
}

void output_file_remove(const output_file *file) {
  if (file->is_regular) remove(file->path);
}

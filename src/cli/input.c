// cli/input.c — reads prompts.
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L  // nanosleep
#endif
#include "cli/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { INPUT_BYTES_MAX = 256 * 1024 * 1024, INPUT_BYTES_FIRST = 64 * 1024, PAUSE_NS = 1000 * 1000 };

bool input_read_fd(int fd, void *out, size_t size_bytes, size_t *got_bytes) {
  *got_bytes = 0;
  while (*got_bytes < size_bytes) {
    const ssize_t got = read(fd, (char *)out + *got_bytes, size_bytes - *got_bytes);
    if (got == 0) break;
    if (got > 0) {
      *got_bytes += (size_t)got;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);  // the pipe is currently empty
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

static exit_code read_descriptor(int fd, const char *name, input_text *out) {
  size_t room_bytes = INPUT_BYTES_FIRST;
  out->bytes = malloc(room_bytes);
  while (out->bytes != NULL) {
    const size_t wanted = room_bytes - out->size_bytes;
    size_t got;
    if (!input_read_fd(fd, out->bytes + out->size_bytes, wanted, &got)) {
      report("cannot read %s: %s", name, strerror(errno));
      return EXIT_FILE;
    }
    out->size_bytes += got;
    if (got < wanted) return EXIT_DONE;
    if (room_bytes == INPUT_BYTES_MAX) {
      report("%s: more than %d bytes of text", name, INPUT_BYTES_MAX);
      return EXIT_USAGE;
    }
    room_bytes *= 2;
    char *more = realloc(out->bytes, room_bytes);
    if (more == NULL) break;
    out->bytes = more;
  }
  report("out of memory for the text of %s", name);
  return EXIT_MEMORY;
}

static exit_code read_file(const char *path, input_text *out) {
  const int fd = open(path, O_RDONLY);
  if (fd < 0) {
    report("cannot open %s: %s", path, strerror(errno));
    return EXIT_FILE;
  }
  const exit_code code = read_descriptor(fd, path, out);
  close(fd);
  return code;
}

static exit_code copy_text(const char *text, input_text *out) {
  out->size_bytes = strlen(text);
  out->bytes = malloc(out->size_bytes + 1);
  if (out->bytes == NULL) {
    report("out of memory for the text");
    return EXIT_MEMORY;
  }
  memcpy(out->bytes, text, out->size_bytes + 1);
  return EXIT_DONE;
}

exit_code input_read(const char *text, const char *path, const char *model, input_text *out) {
  *out = (input_text){0};
  if (text != NULL && path != NULL) {
    report("give the text with -p or -f, not both");
    return EXIT_USAGE;
  }
  if (text != NULL) return copy_text(text, out);
  const bool is_stdin = path == NULL || strcmp(path, "-") == 0;
  if (is_stdin && strcmp(model, "-") == 0) {
    report("standard input is the model already: give the text with -p or -f");
    return EXIT_USAGE;
  }
  // a user at a terminal would not see what the program is waiting for
  if (is_stdin && output_is_terminal(STDIN_FILENO))
    report("type the text; Ctrl-D on an empty line ends it");
  const exit_code code =
      is_stdin ? read_descriptor(STDIN_FILENO, "standard input", out) : read_file(path, out);
  if (code != EXIT_DONE) input_free(out);
  return code;
}

void input_free(input_text *input) {
  free(input->bytes);
  *input = (input_text){0};
}

void input_append(void *context, const char *bytes, size_t size_bytes) {
  enum { ROOM_FIRST = 256 };
  input_text *text = context;
  const size_t needed = text->size_bytes + size_bytes;
  if (text->is_lost) return;
  if (needed > text->room_bytes) {
    const size_t room_bytes = 2 * needed + ROOM_FIRST;
    char *more = realloc(text->bytes, room_bytes);
    text->is_lost = more == NULL;
    if (more == NULL) return;
    text->bytes = more;
    text->room_bytes = room_bytes;
  }
  memcpy(text->bytes + text->size_bytes, bytes, size_bytes);
  text->size_bytes = needed;
}

exit_code input_use_template(wick_engine *engine, const char *path, const char *model) {
  input_text source;
  wick_error error;
  if (path == NULL) return EXIT_DONE;
  exit_code code = input_read(NULL, path, model, &source);
  if (code != EXIT_DONE) return code;
  if (wick_chat_set_template(engine, source.bytes, source.size_bytes, &error) != WICK_OK) {
    code = report_error(path, &error);
  }
  input_free(&source);
  return code;
}

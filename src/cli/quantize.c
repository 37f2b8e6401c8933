// cli/quantize.c — converts a model file to a different type.
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L  // fstat
#endif
#include "quantize/quantize.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/args.h"
#include "cli/command.h"
#include "cli/input.h"
#include "platform/platform.h"

enum { PIECE_BYTES = 1024 * 1024 };

typedef struct quantize_job {
  const char *in;
  int fd;
  quantize_settings settings;
  output_file out;
  bool is_quiet;
  uint64_t bytes_before, bytes_after;
} quantize_job;

static bool write_bytes(void *context, const void *bytes, size_t size_bytes) {
  quantize_job *job = context;
  return output_file_write(&job->out, bytes, size_bytes);
}

// Prints, for example, "[ 12/290] blk.0.ffn_down.weight   F16 -> Q6_K   2.62 MB".
static void report_tensor(void *context, const quantize_report *report) {
  quantize_job *job = context;
  job->bytes_before += report->bytes_before;
  job->bytes_after += report->bytes_after;
  if (job->is_quiet) return;
  char name[GGUF_QUOTE_BYTES];
  output_printf(OUTPUT_LOG, "[%4u/%4u] %-40s %5s -> %-5s %9.2f MB\n", report->index + 1,
                report->count, gguf_quote(report->name, name), type_facts(report->from)->name,
                type_facts(report->to)->name, (double)report->bytes_after / 1e6);
  output_flush(OUTPUT_LOG);
}

// ---- the stream ----

static exit_code feed_pieces(quantize_job *job, quantizer *quantizer, uint8_t *piece) {
  wick_error error;
  for (;;) {
    size_t got_bytes;
    if (!input_read_fd(job->fd, piece, PIECE_BYTES, &got_bytes)) {
      report("cannot read %s: %s", job->in, strerror(errno));
      return EXIT_FILE;
    }
    if (got_bytes == 0) break;
    if (quantizer_feed(quantizer, piece, got_bytes, &error) != WICK_OK) {
      return error.status == WICK_E_IO ? EXIT_FILE : report_error(job->in, &error);
    }
  }
  if (quantizer_finish(quantizer, &error) == WICK_OK) return EXIT_DONE;
  return error.status == WICK_E_IO ? EXIT_FILE : report_error(job->in, &error);
}

static exit_code quantize_stream(quantize_job *job) {
  memory_gate memory;
  memory_init(&memory, 0, platform_alloc, platform_free);
  wick_error error;
  quantizer *quantizer = NULL;
  if (quantizer_create(&memory, &job->settings, &quantizer, &error) != WICK_OK) {
    return report_error("quantize", &error);
  }
  uint8_t *piece = memory_alloc(&memory, PIECE_BYTES);
  exit_code code = EXIT_MEMORY;
  if (piece == NULL) {
    report("out of memory for reading %s", job->in);
  } else {
    code = feed_pieces(job, quantizer, piece);
  }
  memory_free(&memory, piece);
  quantizer_destroy(quantizer);
  return code;
}

// ---- the files ----

// Whether OUT is the file that is being read, which the first write would truncate.
static bool is_same_file(const quantize_job *job) {
  struct stat in, out;
  return strcmp(job->out.path, "-") != 0 && fstat(job->fd, &in) == 0 &&
         stat(job->out.path, &out) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino &&
         S_ISREG(in.st_mode);
}

static exit_code open_input(quantize_job *job) {
  job->fd = strcmp(job->in, "-") == 0 ? STDIN_FILENO : open(job->in, O_RDONLY);
  if (job->fd < 0) {
    report("cannot open %s: %s", job->in, strerror(errno));
    return EXIT_FILE;
  }
  if (!is_same_file(job)) return EXIT_DONE;
  report("%s is both IN and OUT. Choose a different name for OUT", job->in);
  return EXIT_USAGE;
}

static void report_sum(const quantize_job *job) {
  if (job->is_quiet) return;
  output_printf(OUTPUT_LOG, "weights: %.2f MB -> %.2f MB\n", (double)job->bytes_before / 1e6,
                (double)job->bytes_after / 1e6);
  output_flush(OUTPUT_LOG);
}

// Converts the file. A half-written file is not a model, so it is deleted.
static exit_code run(quantize_job *job) {
  exit_code code = open_input(job);
  if (code == EXIT_DONE) code = quantize_stream(job);
  if (job->fd > STDIN_FILENO) close(job->fd);
  const exit_code written = output_file_end(&job->out, EXIT_DONE);
  if (code == EXIT_DONE || (code == EXIT_FILE && written != EXIT_DONE)) code = written;
  if (code != EXIT_DONE) output_file_remove(&job->out);
  if (code == EXIT_DONE) report_sum(job);
  return code;
}

// Writes "types: f32 f16 ...".
static void list_types(char *out, size_t size_bytes) {
  size_t used = (size_t)snprintf(out, size_bytes, "types:");
  for (uint32_t i = 0; quantize_mix_at(i) != NULL; i++) {
    used += (size_t)snprintf(out + used, size_bytes - used, " %s", quantize_mix_at(i)->name);
  }
}

exit_code command_quantize(int argc, char **argv) {
  quantize_job job = {.fd = -1, .settings = {.threads = 1}};
  char types[256];
  list_types(types, sizeof types);
  const args_option options[] = {
      args_u32("--threads", &job.settings.threads, "N", 1, WICK_THREADS_MAX,
               "use N threads (default: 1)"),
      args_flag("--requantize", &job.settings.takes_quantised,
                "accept tensors that are already quantised; their errors add up"),
      args_flag("--quiet", &job.is_quiet, "do not list the tensors"),
  };
  const args_spec spec = {
      "wick quantize IN OUT TYPE   (IN: F32, F16 or BF16, or -; OUT: a file, or -)", types, options,
      sizeof options / sizeof options[0], 3};
  const char *given[ARGS_POSITIONALS_MAX];
  const exit_code parsed = args_parse(&spec, argc, argv, given);
  if (parsed != EXIT_NOT_YET) return parsed;
  job.in = given[0];
  job.out.path = given[1];
  job.settings.mix = quantize_find_mix(given[2]);
  job.settings.write = write_bytes;
  job.settings.on_tensor = report_tensor;
  job.settings.context = &job;
  if (job.settings.mix == NULL) {
    report("unknown type '%s' ('wick quantize --help' lists them)", given[2]);
    return EXIT_USAGE;
  }
  return run(&job);
}

// lab/run_report.h — shared parts of the serving benchmarks: their options, the engine that they
// measure, and the report of a run, as JSON (raw samples and summary) or as tables.
#ifndef WICK_LAB_RUN_REPORT_H
#define WICK_LAB_RUN_REPORT_H

#include "base/json.h"
#include "cli/args.h"
#include "cli/settings.h"
#include "lab/serve_run.h"
#include "lab/summary.h"

typedef struct serve_options {
  model_settings model;
  uint32_t kv_tokens;  // 0: the engine's default
  uint64_t seed;
  uint32_t format;  // SERVE_MD, SERVE_JSON
  uint32_t clock;   // SERVE_WALL, SERVE_CPU
  const char *path;
} serve_options;

enum { SERVE_MD, SERVE_JSON, SERVE_OPTIONS_MAX = 7 };

serve_options serve_options_default(void);
// Appends the options that all benchmarks have: --seed, --kv-tokens, --clock, --format and the
// model settings.
size_t serve_options_list(serve_options *options, args_option *list);

typedef struct bench_host {
  const serve_options *options;
  wick_engine *engine;
  double load_ms,
      cold_start_ms;  // time until the model is loaded; until the first token of the first request
  uint64_t timestamp_s;  // Unix time
} bench_host;

// Opens the model without a prefix cache for any number of requests, and warms it up. Call
// bench_host_close even after a failure.
exit_code bench_host_open(const serve_options *options, bench_host *host);
void bench_host_close(bench_host *host);
// Reports an error for a class that does not fit the context.
exit_code bench_host_check(const bench_host *host, const workload_class *class);

// The raw samples of the finished requests of a run. Freed by bench_samples_free.
typedef struct bench_samples {
  bench_outcome result;
  bench_summary summary;
  double *values;   // the values of all series
  double *scratch;  // as long as the longest series
} bench_samples;

enum { BENCH_EVERY_KIND = WORKLOAD_CLASSES_MAX };
// Collects the samples of one class's items, or of all items.
exit_code bench_samples_make(const bench_host *host, const serve_run *run, const workload *workload,
                             uint32_t kind, bench_samples *out);
void bench_samples_free(bench_samples *samples);
// Writes null if there are too few values for the percentile (stat_has_tail).
void bench_write_percentile(json_writer *json, const char *key, const bench_samples *samples,
                            bench_series series, uint32_t permille);
// Prints "p50 / p95 / p99", with a dash if there are too few values.
void bench_print_percentiles(const bench_samples *samples, bench_series series);
// Prints a line that explains that the p99 of few requests is the slowest request. Prints nothing
// if there are enough requests.
void bench_print_few(uint32_t requests);

// Write members of the open object.
void bench_write_host(json_writer *json, const bench_host *host);      // environment
void bench_write_samples(json_writer *json, const bench_samples *of);  // result, summary
void bench_write_load(json_writer *json, const char *key, const serve_run *run);
void bench_write_class(json_writer *json, const workload_class *class);
// Writes one row per request, with names from `classes`.
void bench_write_requests(json_writer *json, const workload *workload,
                          const workload_class *classes);

// Prints a line with machine, model and settings above the tables.
void bench_print_host(const bench_host *host);
void bench_print_load(const serve_run *run);

#endif

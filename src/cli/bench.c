// cli/bench.c — measures the speed of prefill and decode like llama-bench: random tokens, greedy,
// one warm-up, then repetitions, for each number of threads.
#include <string.h>

#include "base/json.h"
#include "bench/stats.h"
#include "cli/args.h"
#include "cli/bench_run.h"
#include "cli/model_file.h"
#include "cli/settings.h"
#include "platform/platform.h"

typedef struct bench_options {
  bench_setup setup;
  model_settings model;
  args_tokens threads;
  uint32_t format;  // index into format_names
  bool wants_metrics;
  const char *path;
} bench_options;

static const char *const format_names[] = {"md", "json", NULL};
enum { FORMAT_MD, FORMAT_JSON };

typedef struct summary {
  double median, mean, stddev;
  stat_interval interval;  // 95% confidence interval of the mean
} summary;

static summary summarise(const double *values, size_t count, double *scratch) {
  summary of = {.mean = stat_mean(values, count), .stddev = stat_stddev(values, count)};
  stat_median(values, count, scratch, &of.median);
  stat_bootstrap_ci(values, count, 0.95, BENCH_RESAMPLES, BOOTSTRAP_SEED_DEFAULT, scratch,
                    &of.interval);
  return of;
}

static double percentile(const bench_result *result, uint32_t permille) {
  double value = 0;
  stat_percentile(result->itl_ms, result->itl_count, permille, result->scratch, &value);
  return value;
}

// Writes the members of a row other than its measurements.
typedef struct bench_run {
  bench_options *options;
  wick_engine *engine;
  bench_result result;
  double load_ms;
} bench_run;

// ---- Markdown ----

static void print_row(const bench_run *run, const char *test, uint32_t tokens,
                      const double *values) {
  const summary of = summarise(values, run->options->setup.repetitions, run->result.scratch);
  output_printf(OUTPUT_TEXT, "| %u | %s | %s %u | %.2f | %.2f | %.2f to %.2f |\n",
                (unsigned)wick_engine_threads(run->engine),
                wick_engine_config(run->engine)->kernels, test, (unsigned)tokens, of.median,
                of.stddev, of.interval.low, of.interval.high);
}

static void print_header(const bench_run *run) {
  wick_model_info info;
  wick_plan plan;
  if (wick_model_get_info(run->engine, &info, NULL) != WICK_OK) return;
  if (wick_memory_plan(run->engine, &plan, NULL) != WICK_OK) return;
  output_printf(OUTPUT_TEXT, "%s: %.*s, %.1f million parameters, weights %.1f MB\n\n",
                run->options->path, (int)info.architecture.size_bytes, info.architecture.bytes,
                (double)info.parameters / 1e6, (double)plan.weights_bytes / 1e6);
  output_format(OUTPUT_TEXT,
                "| threads | kernels | test | tok/s, median | standard deviation | mean, 95 %% |\n"
                "|---|---|---|---|---|---|\n");
}

// Prints the time of each op of a pass, below the rows for its number of threads.
static void print_metrics(const wick_engine *engine) {
  const char *pass = "";
  wick_op_metrics row;
  for (uint32_t i = 0; wick_metrics_get(engine, i, &row); i++) {
    if (strcmp(row.pass, pass) != 0) {
      output_format(OUTPUT_TEXT,
                    "\n| %s | count | mean us | p50 us | p99 us | GB/s | GMAC/s | share |\n"
                    "|---|---|---|---|---|---|---|---|\n",
                    row.pass);
    }
    pass = row.pass;
    if (row.time_us == 0) continue;
    const double time_us = (double)row.time_us;
    output_printf(OUTPUT_TEXT, "| %s | %llu | %.1f | %.0f | %.0f | %.2f | %.2f | %.1f %% |\n",
                  row.op, (unsigned long long)row.count, row.mean_us, row.p50_us, row.p99_us,
                  (double)row.bytes / time_us * 1e-3, (double)row.macs / time_us * 1e-3,
                  row.share * 100);
  }
}

static void print_rows(bench_run *run, bool is_first) {
  const bench_setup *setup = &run->options->setup;
  if (is_first) print_header(run);
  print_row(run, "prefill", setup->prompt_tokens, run->result.prefill_tok_s);
  if (setup->decode_tokens > 0)
    print_row(run, "decode", setup->decode_tokens, run->result.decode_tok_s);
}

// Prints the latencies of the last number of threads, below the table.
static void print_latencies(bench_run *run) {
  bench_result *result = &run->result;
  const summary ttft = summarise(result->ttft_ms, run->options->setup.repetitions, result->scratch);
  output_printf(OUTPUT_TEXT, "\nload %.1f ms, time to the first token %.2f ms (median)",
                run->load_ms, ttft.median);
  if (result->itl_count > 0)
    output_printf(OUTPUT_TEXT, ", between tokens p50 %.3f ms", percentile(result, 500));
  if (stat_has_tail(result->itl_count, 950))
    output_printf(OUTPUT_TEXT, ", p95 %.3f ms", percentile(result, 950));
  if (stat_has_tail(result->itl_count, 990))
    output_printf(OUTPUT_TEXT, ", p99 %.3f ms", percentile(result, 990));
  output_format(OUTPUT_TEXT, "\n");
}

// ---- JSON ----

static void write_summary(json_writer *json, const char *key, const bench_run *run,
                          const double *values) {
  const uint32_t count = run->options->setup.repetitions;
  const summary of = summarise(values, count, run->result.scratch);
  json_open(json, key, '{');
  json_f64(json, "median", of.median);
  json_f64(json, "mean", of.mean);
  json_f64(json, "stddev", of.stddev);
  json_f64(json, "mean_low", of.interval.low);
  json_f64(json, "mean_high", of.interval.high);
  json_open(json, "values", '[');
  for (uint32_t i = 0; i < count; i++) json_f64(json, NULL, values[i]);
  json_close(json, '[');
  json_close(json, '{');
}

static void write_percentile(json_writer *json, const char *key, const bench_result *result,
                             uint32_t permille) {
  if (stat_has_tail(result->itl_count, permille)) {
    json_f64(json, key, percentile(result, permille));
  } else {
    json_text(json, key, NULL);
  }
}

static void write_run(json_writer *json, const bench_run *run) {
  const bench_setup *setup = &run->options->setup;
  wick_plan plan = {0};
  wick_memory_state memory;
  wick_memory_plan(run->engine, &plan, NULL);
  wick_memory_get_state(run->engine, &memory);
  json_open(json, NULL, '{');
  json_u64(json, "threads", wick_engine_threads(run->engine));
  json_text(json, "kernels", wick_engine_config(run->engine)->kernels);
  json_f64(json, "load_ms", run->load_ms);
  json_u64(json, "weights_bytes", plan.weights_bytes);
  json_u64(json, "memory_bytes_peak", memory.bytes_peak);
  json_u64(json, "decode_allocations", run->result.decode_allocations);
  write_summary(json, "prefill_tok_s", run, run->result.prefill_tok_s);
  write_summary(json, "ttft_ms", run, run->result.ttft_ms);
  if (setup->decode_tokens > 0) {
    write_summary(json, "decode_tok_s", run, run->result.decode_tok_s);
    json_open(json, "itl_ms", '{');
    write_percentile(json, "p50", &run->result, 500);
    write_percentile(json, "p95", &run->result, 950);
    write_percentile(json, "p99", &run->result, 990);
    json_close(json, '{');
  }
  if (run->options->wants_metrics) {
    json_member(json, "metrics");
    wick_metrics_json(run->engine, json->sink, json->context);
  }
  json_close(json, '{');
}

static void begin_json(json_writer *json, const bench_options *options) {
  json_begin(json, output_text_json, NULL);
  json_open(json, NULL, '{');
  json_text(json, "model", options->path);
  json_u64(json, "prompt_tokens", options->setup.prompt_tokens);
  json_u64(json, "decode_tokens", options->setup.decode_tokens);
  json_u64(json, "repetitions", options->setup.repetitions);
  json_open(json, "runs", '[');
}

// ---- the command ----

static exit_code measure(bench_run *run, uint32_t threads) {
  wick_config config;
  model_settings model = run->options->model;
  model.threads = threads;
  exit_code code = settings_apply(&model, &config);
  config.metrics = run->options->wants_metrics;
  config.no_prefix_cache = true;  // every prompt is computed completely
  const uint64_t start_us = platform_now_us();
  if (code == EXIT_DONE) code = model_open(run->options->path, &config, &run->engine);
  run->load_ms = (double)(platform_now_us() - start_us) / 1e3;
  if (code == EXIT_DONE) code = settings_check_threads(&model, run->engine);
  if (code == EXIT_DONE) code = adapter_files_load(&run->options->setup.adapters, run->engine);
  if (code == EXIT_DONE) code = bench_measure(run->engine, &run->options->setup, &run->result);
  return code;
}

static exit_code measure_all(bench_options *options) {
  const bool wants_json = options->format == FORMAT_JSON;
  json_writer json;
  if (wants_json) begin_json(&json, options);
  for (size_t i = 0; i < options->threads.count; i++) {
    bench_run run = {.options = options};
    const exit_code code = measure(&run, (uint32_t)options->threads.ids[i]);
    if (code == EXIT_DONE && wants_json) write_run(&json, &run);
    if (code == EXIT_DONE && !wants_json) {
      print_rows(&run, i == 0);
      if (i + 1 == options->threads.count) print_latencies(&run);
      print_metrics(run.engine);
    }
    output_flush(OUTPUT_TEXT);
    bench_result_free(&run.result);
    model_close(run.engine);
    if (code != EXIT_DONE) return code;
  }
  if (wants_json) {
    json_close(&json, '[');
    json_close(&json, '{');
    output_put(OUTPUT_TEXT, "\n", 1);
  }
  return output_end();
}

static exit_code check_options(const bench_options *options) {
  if (options->threads.count == 0) {
    report("--threads takes numbers from 1 to %d, but there are none", WICK_THREADS_MAX);
    return EXIT_USAGE;
  }
  for (size_t i = 0; i < options->threads.count; i++) {
    if (options->threads.ids[i] >= 1 && options->threads.ids[i] <= WICK_THREADS_MAX) continue;
    report("--threads takes numbers from 1 to %d, not %d", WICK_THREADS_MAX,
           (int)options->threads.ids[i]);
    return EXIT_USAGE;
  }
  if (options->threads.count > 1 && strcmp(options->path, "-") == 0) {
    report("a model from standard input can be measured with only one number of threads");
    return EXIT_USAGE;
  }
  return EXIT_DONE;
}

exit_code command_bench(int argc, char **argv) {
  enum { TOKENS_MAX = 1000000, REPETITIONS_MAX = 10000 };
  int32_t one_thread[] = {1};
  bench_options bench = {.setup = {.prompt_tokens = 128, .decode_tokens = 32, .repetitions = 5},
                         .model = settings_default()};
  args_option options[11] = {
      args_u32("-p", &bench.setup.prompt_tokens, "N", 1, TOKENS_MAX,
               "prefill N tokens (default 128)"),
      args_u32("-n", &bench.setup.decode_tokens, "N", 0, TOKENS_MAX,
               "decode N tokens after the prompt (default 32)"),
      args_u32("-r", &bench.setup.repetitions, "N", 1, REPETITIONS_MAX,
               "repeat N times, after one warm-up run (default 5)"),
      args_token_list("--threads", &bench.threads, "1,2",
                      "measure with these numbers of threads (default 1)"),
      args_choice("--format", &bench.format, "md|json", format_names, "default: md"),
      args_flag("--metrics", &bench.wants_metrics, "print each op's time, GB/s and GMAC/s"),
      adapter_files_option(&bench.setup.adapters),
  };
  const args_spec spec = {
      "wick bench MODEL [options]",
      "Uses random tokens and greedy sampling. The interval is a bootstrap interval.", options,
      7 + settings_list(&bench.model, SETTINGS_CTX | SETTINGS_KV | SETTINGS_TABLES, options + 7),
      1};
  const char *model[ARGS_POSITIONALS_MAX];
  exit_code code = args_parse(&spec, argc, argv, model);
  if (code == EXIT_NOT_YET) {
    bench_options chosen = bench;
    chosen.path = model[0];
    if (!chosen.threads.is_given) chosen.threads = (args_tokens){.ids = one_thread, .count = 1};
    code = check_options(&chosen);
    if (code == EXIT_DONE) code = measure_all(&chosen);
  }
  args_tokens_free(&bench.threads);
  return code;
}

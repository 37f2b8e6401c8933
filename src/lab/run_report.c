// lab/run_report.c — the measured engine, and the report of a run.
#include "lab/run_report.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/model_file.h"
#include "platform/platform.h"

#if defined(__wasi__)
static const char runtime_name[] = "WASI";
#else
static const char runtime_name[] = "native";
#endif

static const char *const format_names[] = {"md", "json", NULL};
static const char *const clock_names[] = {"wall", "cpu", NULL};

serve_options serve_options_default(void) {
  return (serve_options){.model = settings_default(), .seed = 1};
}

size_t serve_options_list(serve_options *options, args_option *list) {
  enum { TOKENS_MAX = 1000000000 };
  list[0] = args_u64("--seed", &options->seed, "S", "seed arrivals and prompts (default 1)");
  list[1] = args_u32("--kv-tokens", &options->kv_tokens, "N", 1, TOKENS_MAX,
                     "reserve KV pages for N tokens in total (default: 4 contexts)");
  list[2] = args_choice("--format", &options->format, "md|json", format_names,
                        "print Markdown or JSON (default md)");
  list[3] = args_choice("--clock", &options->clock, "wall|cpu", clock_names,
                        "measure wall time or cpu time (default wall)");
  return 4 + settings_list(&options->model, SETTINGS_ALL, list + 4);
}

// ---- The engine ----

// Runs one short warm-up request, so that everything that is bound or allocated only once is ready.
static exit_code warm_up(bench_host *host) {
  const workload_class class = {.tokens_in = 16, .tokens_out = 4};
  workload one;
  exit_code code = workload_repeat(&class, 0, 1, 0, 0, &one);
  if (code != EXIT_DONE) return code;
  serve_run run = {.open = &one, .clock = host->options->clock};
  code = serve_run_all(host->engine, &run);
  if (code == EXIT_DONE) host->cold_start_ms = host->load_ms + workload_ttft_ms(&one.items[0]);
  workload_free(&one);
  return code;
}

exit_code bench_host_open(const serve_options *options, bench_host *host) {
  wick_config config;
  *host = (bench_host){.options = options, .timestamp_s = (uint64_t)time(NULL)};
  if (options->clock == SERVE_CPU && options->model.threads > 1) {
    report("--clock cpu counts one thread: it cannot be combined with --threads %u",
           (unsigned)options->model.threads);
    return EXIT_USAGE;
  }
  exit_code code = settings_apply(&options->model, &config);
  if (code != EXIT_DONE) return code;
  config.kv_tokens_max = options->kv_tokens;
  config.no_prefix_cache = true;
  config.requests_max = WORKLOAD_REQUESTS_MAX;
  const uint64_t start_us = platform_now_us();
  code = model_open(options->path, &config, &host->engine);
  host->load_ms = (double)(platform_now_us() - start_us) / 1e3;
  if (code == EXIT_DONE) code = settings_check_threads(&options->model, host->engine);
  return code == EXIT_DONE ? warm_up(host) : code;
}

void bench_host_close(bench_host *host) {
  model_close(host->engine);
  host->engine = NULL;
}

static uint32_t context_tokens(const bench_host *host) {
  wick_plan plan = {.context_tokens = 0};
  wick_memory_plan(host->engine, &plan, NULL);
  return plan.context_tokens;
}

// Returns the maximum number of tokens that the pages of all requests can hold.
static uint64_t kv_tokens(const bench_host *host) {
  wick_pages_state pages;
  wick_pages_get_state(host->engine, &pages);
  return ((uint64_t)pages.pages_used + pages.pages_available) * pages.page_tokens;
}

exit_code bench_host_check(const bench_host *host, const workload_class *class) {
  const uint32_t context = context_tokens(host);
  const uint32_t needed = class->tokens_in + class->tokens_out;
  if (needed <= context) return EXIT_DONE;
  report("requests of class %s need %u tokens; the context is %u", class->name, (unsigned)needed,
         (unsigned)context);
  return EXIT_USAGE;
}

// ---- Samples ----

static bool is_of(const workload_item *item, uint32_t kind) {
  return workload_is_finished(item) && (kind == BENCH_EVERY_KIND || item->kind == kind);
}

static bench_config describe(const bench_host *host) {
  return (bench_config){.model = host->options->path,
                        .format = "gguf",
                        .runtime = runtime_name,
                        .engine_build = wick_engine_config(host->engine)->kernels,
                        .threads = wick_engine_threads(host->engine)};
}

static void fill(bench_outcome *result, const workload *workload, uint32_t kind, double *ttft,
                 double *speed, double *prefill, double *gaps) {
  result->ttft_ms.values = ttft;
  result->generation_tok_s.values = speed;
  result->prefill_tok_s.values = prefill;
  result->itl_ms.values = gaps;
  for (size_t i = 0; i < workload->count; i++) {
    const workload_item *item = &workload->items[i];
    if (!is_of(item, kind)) continue;
    const double ttft_ms = workload_ttft_ms(item);
    ttft[result->ttft_ms.count++] = ttft_ms;
    if (ttft_ms > 0) prefill[result->prefill_tok_s.count++] = item->tokens_in * 1e3 / ttft_ms;
    const double gap_ms = workload_gap_ms_mean(item);
    if (gap_ms > 0) speed[result->generation_tok_s.count++] = 1e3 / gap_ms;
    memcpy(gaps + result->itl_ms.count, item->gaps_ms, (item->tokens - 1) * sizeof *gaps);
    result->itl_ms.count += item->tokens - 1;
    result->tokens_generated += item->tokens;
    result->iterations++;
  }
}

exit_code bench_samples_make(const bench_host *host, const serve_run *run, const workload *workload,
                             uint32_t kind, bench_samples *out) {
  size_t count = 0, gaps = 0;
  for (size_t i = 0; i < workload->count; i++) {
    const workload_item *item = &workload->items[i];
    if (!is_of(item, kind)) continue;
    count++;
    gaps += item->tokens;
  }
  wick_memory_state used;
  wick_memory_get_state(host->engine, &used);
  *out = (bench_samples){.result = {.config = describe(host),
                                    .cold_start_ms = host->cold_start_ms,
                                    .load_ms = host->load_ms,
                                    .memory_bytes_peak = used.bytes_peak,
                                    .kv_waste_pct = serve_run_waste_pct(run),
                                    .cv_at_stop = run->cv_at_stop,
                                    .timestamp_s = host->timestamp_s}};
  out->values = calloc(3 * count + gaps + 1, sizeof *out->values);
  out->scratch = calloc(count + gaps + 1, sizeof *out->scratch);
  if (out->values == NULL || out->scratch == NULL) {
    report("out of memory for the measurements");
    return EXIT_MEMORY;
  }
  double *at = out->values;
  fill(&out->result, workload, kind, at, at + count, at + 2 * count, at + 3 * count);
  memory_gate memory;
  wick_error error;
  memory_init(&memory, 0, platform_alloc, platform_free);
  if (bench_summarize(&memory, &out->result, &out->summary, &error) != WICK_OK)
    return report_error("measurement", &error);
  return EXIT_DONE;
}

void bench_samples_free(bench_samples *samples) {
  free(samples->values);
  free(samples->scratch);
  *samples = (bench_samples){.values = NULL};
}

static void write_tail(json_writer *json, const char *key, size_t count, uint32_t permille,
                       double value) {
  if (stat_has_tail(count, permille)) {
    json_f64(json, key, value);
  } else {
    json_text(json, key, NULL);
  }
}

void bench_write_percentile(json_writer *json, const char *key, const bench_samples *samples,
                            bench_series series, uint32_t permille) {
  double value = 0;
  stat_percentile(series.values, series.count, permille, samples->scratch, &value);
  write_tail(json, key, series.count, permille, value);
}

void bench_print_percentiles(const bench_samples *samples, bench_series series) {
  static const uint32_t permilles[] = {500, 950, 990};
  for (int i = 0; i < 3; i++) {
    const char *gap = i == 0 ? "" : " / ";
    double value = 0;
    stat_percentile(series.values, series.count, permilles[i], samples->scratch, &value);
    if (stat_has_tail(series.count, permilles[i])) {
      output_printf(OUTPUT_TEXT, "%s%.2f", gap, value);
    } else {
      output_format(OUTPUT_TEXT, "%s-", gap);
    }
  }
}

void bench_print_few(uint32_t requests) {
  if (stat_has_tail(requests, 990)) return;
  output_format(OUTPUT_TEXT,
                "With fewer than 100 requests, there is no p99: for %u, it is the time of the "
                "slowest request.\n",
                (unsigned)requests);
}

// ---- JSON ----

void bench_write_host(json_writer *json, const bench_host *host) {
  const wick_config *config = wick_engine_config(host->engine);
  wick_model_info info = {.layers = 0};
  wick_model_get_info(host->engine, &info, NULL);
  json_open(json, "environment", '{');
  json_text(json, "model", host->options->path);
  json_string(json, "architecture", info.architecture.bytes, (size_t)info.architecture.size_bytes);
  json_u64(json, "parameters", info.parameters);
  json_text(json, "runtime", runtime_name);
  json_text(json, "kernels", wick_engine_config(host->engine)->kernels);
  json_u64(json, "threads", wick_engine_threads(host->engine));
  json_u64(json, "context_tokens", context_tokens(host));
  json_u64(json, "batch_tokens", config->batch_tokens);
  json_u64(json, "kv_tokens", kv_tokens(host));
  json_text(json, "k_type", wick_kv_type_name(config->k_type));
  json_text(json, "v_type", wick_kv_type_name(config->v_type));
  json_text(json, "clock", clock_names[host->options->clock]);
  json_u64(json, "seed", host->options->seed);
  json_u64(json, "timestamp_s", host->timestamp_s);
  json_close(json, '{');
}

static void write_series(json_writer *json, const char *key, bench_series series) {
  json_open(json, key, '[');
  for (size_t i = 0; i < series.count; i++) json_f64(json, NULL, series.values[i]);
  json_close(json, '[');
}

static void write_result(json_writer *json, const bench_outcome *result) {
  json_open(json, "result", '{');
  json_f64(json, "cold_start_ms", result->cold_start_ms);
  json_f64(json, "load_ms", result->load_ms);
  write_series(json, "ttft_ms", result->ttft_ms);
  write_series(json, "itl_ms", result->itl_ms);
  write_series(json, "prefill_tok_s", result->prefill_tok_s);
  write_series(json, "generation_tok_s", result->generation_tok_s);
  json_u64(json, "memory_bytes_peak", result->memory_bytes_peak);
  json_f64(json, "kv_waste_pct", result->kv_waste_pct);
  json_text(json, "energy_j", NULL);  // no host reports it
  json_u64(json, "tokens_generated", result->tokens_generated);
  json_u64(json, "iterations", result->iterations);
  json_f64(json, "cv_at_stop", result->cv_at_stop);
  json_u64(json, "timestamp_s", result->timestamp_s);
  json_close(json, '{');
}

static void write_summary(json_writer *json, const bench_summary *of) {
  json_open(json, "summary", '{');
  json_f64(json, "ttft_ms_mean", of->ttft_ms_mean);
  json_f64(json, "ttft_ms_p50", of->ttft_ms_p50);
  write_tail(json, "ttft_ms_p95", of->ttft_count, 950, of->ttft_ms_p95);
  write_tail(json, "ttft_ms_p99", of->ttft_count, 990, of->ttft_ms_p99);
  write_tail(json, "ttft_ms_p999", of->ttft_count, 999, of->ttft_ms_p999);
  json_f64(json, "itl_ms_median", of->itl_ms_median);
  json_f64(json, "itl_ms_stddev", of->itl_ms_stddev);
  write_tail(json, "itl_ms_p99", of->itl_count, 990, of->itl_ms_p99);
  json_f64(json, "prefill_tok_s_median", of->prefill_tok_s_median);
  json_f64(json, "throughput_tok_s_median", of->throughput_tok_s_median);
  json_f64(json, "throughput_tok_s_mean", of->throughput_tok_s_mean);
  json_f64(json, "throughput_tok_s_mean_low", of->throughput_tok_s_ci95.low);
  json_f64(json, "throughput_tok_s_mean_high", of->throughput_tok_s_ci95.high);
  json_text(json, "token_j", NULL);
  json_f64(json, "kv_waste_pct", of->kv_waste_pct);
  json_u64(json, "memory_bytes_peak", of->memory_bytes_peak);
  json_u64(json, "iterations", of->iterations);
  json_f64(json, "cv_final", of->cv_final);
  json_close(json, '{');
}

void bench_write_samples(json_writer *json, const bench_samples *of) {
  write_result(json, &of->result);
  write_summary(json, &of->summary);
}

void bench_write_load(json_writer *json, const char *key, const serve_run *run) {
  json_open(json, key, '{');
  json_f64(json, "elapsed_ms", run->elapsed_ms);
  json_u64(json, "submitted", run->submitted);
  json_u64(json, "refused", run->refused);
  json_u64(json, "tokens_out", run->tokens_out);
  json_f64(json, "tokens_per_s", serve_run_tokens_per_s(run));
  json_u64(json, "passes", run->passes);
  json_u64(json, "rows", run->rows);
  json_u64(json, "preempted", run->preempted);
  json_u64(json, "queue_max", run->waiting_max);
  json_u64(json, "running_max", run->running_max);
  json_u64(json, "pages_max", run->pages_max);
  json_f64(json, "kv_waste_pct", serve_run_waste_pct(run));
  json_f64(json, "kv_fragmentation_pct", serve_run_fragmentation_pct(run));
  json_close(json, '{');
}

void bench_write_class(json_writer *json, const workload_class *class) {
  json_text(json, "class", class->name);
  json_u64(json, "tokens_in", class->tokens_in);
  json_u64(json, "tokens_out", class->tokens_out);
}

void bench_write_requests(json_writer *json, const workload *workload,
                          const workload_class *classes) {
  json_open(json, "requests", '[');
  for (size_t i = 0; i < workload->count; i++) {
    const workload_item *item = &workload->items[i];
    if (item->gaps_ms == NULL) continue;  // the run ended before the request arrived
    json_open(json, NULL, '{');
    json_text(json, "class", classes[item->kind].name);
    json_f64(json, "arrival_ms", (double)item->arrival_us / 1e3);
    json_u64(json, "tokens_out", item->tokens);
    json_bool(json, "refused", item->is_refused);
    json_bool(json, "finished", workload_is_finished(item));
    if (workload_is_finished(item)) {
      json_f64(json, "read_ms", (double)(item->read_us - item->arrival_us) / 1e3);
      json_f64(json, "ttft_ms", workload_ttft_ms(item));
      json_f64(json, "itl_ms_mean", workload_gap_ms_mean(item));
      json_f64(json, "total_ms", workload_total_ms(item));
    }
    json_close(json, '{');
  }
  json_close(json, '[');
}

// ---- Markdown ----

void bench_print_host(const bench_host *host) {
  output_format(OUTPUT_TEXT, "%s, %s, %s kernels, %u thread%s, context %u, seed %llu, %s\n\n",
                host->options->path, runtime_name, wick_engine_config(host->engine)->kernels,
                (unsigned)wick_engine_threads(host->engine),
                wick_engine_threads(host->engine) == 1 ? "" : "s", (unsigned)context_tokens(host),
                (unsigned long long)host->options->seed,
                host->options->clock == SERVE_CPU ? "CPU time" : "wall time");
}

void bench_print_load(const serve_run *run) {
  output_printf(OUTPUT_TEXT,
                "%.1f s, %.1f tokens/s out, %llu passes of %.1f rows, at most %u running and %u "
                "waiting, %llu preempted, %zu refused, %u KV pages at once, %.1f %% of their slots "
                "without a token, %.1f %% of those of pages in use\n",
                run->elapsed_ms / 1e3, serve_run_tokens_per_s(run), (unsigned long long)run->passes,
                run->passes == 0 ? 0 : (double)run->rows / (double)run->passes,
                (unsigned)run->running_max, (unsigned)run->waiting_max,
                (unsigned long long)run->preempted, run->refused, (unsigned)run->pages_max,
                serve_run_waste_pct(run), serve_run_fragmentation_pct(run));
}

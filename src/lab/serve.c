// lab/serve.c — wick-lab serve MODEL: requests of several classes arrive at fixed times, even if
// the engine does not keep up. The report shows how many requests were served well, and how fast.
//
// A request was served well if the time to its first token and the mean gap between its tokens were
// within their limits. Goodput is the number of such requests per second (Zhong et al. 2024,
// DistServe).
#include "lab/lab.h"
#include "lab/run_report.h"

typedef struct serve_job {
  serve_options common;
  float rate, ttft_ms_max, itl_ms_max;
  uint32_t requests;  // 0: chosen during the run
  const char *mix_text;
  workload_mix mix;
} serve_job;

static bool is_well_served(const serve_job *job, const workload_item *item) {
  return workload_is_finished(item) && workload_ttft_ms(item) <= (double)job->ttft_ms_max &&
         workload_gap_ms_mean(item) <= (double)job->itl_ms_max;
}

typedef struct class_count {
  size_t requests, finished, well;
} class_count;

static class_count count_class(const serve_job *job, const workload *workload, uint32_t kind) {
  class_count count = {0};
  for (size_t i = 0; i < workload->count; i++) {
    const workload_item *item = &workload->items[i];
    const bool was_submitted = item->gaps_ms != NULL;
    if (!was_submitted || (kind != BENCH_EVERY_KIND && item->kind != kind)) continue;
    count.requests++;
    count.finished += workload_is_finished(item);
    count.well += is_well_served(job, item);
  }
  return count;
}

static double per_second(size_t count, const serve_run *run) {
  return run->elapsed_ms > 0 ? (double)count * 1e3 / run->elapsed_ms : 0;
}

// ---- JSON ----

static void write_percentiles(json_writer *json, const char *key, const bench_samples *samples,
                              bench_series series) {
  json_open(json, key, '{');
  json_u64(json, "count", series.count);
  bench_write_percentile(json, "p50", samples, series, 500);
  bench_write_percentile(json, "p95", samples, series, 950);
  bench_write_percentile(json, "p99", samples, series, 990);
  json_close(json, '{');
}

static void write_counts(json_writer *json, const class_count *count, const serve_run *run) {
  json_u64(json, "requests", count->requests);
  json_u64(json, "finished", count->finished);
  json_u64(json, "served_well", count->well);
  json_f64(json, "goodput_per_s", per_second(count->well, run));
}

static void write_setup(json_writer *json, const serve_job *job) {
  json_open(json, "workload", '{');
  json_f64(json, "rate_per_s", (double)job->rate);
  json_bool(json, "adaptive", job->requests == 0);
  json_f64(json, "ttft_ms_max", (double)job->ttft_ms_max);
  json_f64(json, "itl_ms_max", (double)job->itl_ms_max);
  json_open(json, "mix", '[');
  for (uint32_t i = 0; i < job->mix.count; i++) {
    json_open(json, NULL, '{');
    bench_write_class(json, &job->mix.classes[i]);
    json_f64(json, "share", job->mix.classes[i].share);
    json_close(json, '{');
  }
  json_close(json, '[');
  json_close(json, '{');
}

static exit_code write_class(json_writer *json, const serve_job *job, const bench_host *host,
                             const serve_run *run, uint32_t kind) {
  bench_samples samples;
  const class_count count = count_class(job, run->open, kind);
  const exit_code code = bench_samples_make(host, run, run->open, kind, &samples);
  if (code == EXIT_DONE) {
    json_open(json, NULL, '{');
    bench_write_class(json, &job->mix.classes[kind]);
    write_counts(json, &count, run);
    write_percentiles(json, "ttft_ms", &samples, samples.result.ttft_ms);
    write_percentiles(json, "itl_ms", &samples, samples.result.itl_ms);
    json_close(json, '{');
  }
  bench_samples_free(&samples);
  return code;
}

static exit_code write_json(const serve_job *job, const bench_host *host, const serve_run *run,
                            const bench_samples *all) {
  json_writer json;
  json_begin(&json, output_text_json, NULL);
  json_open(&json, NULL, '{');
  json_text(&json, "kind", "serve");
  bench_write_host(&json, host);
  write_setup(&json, job);
  const class_count count = count_class(job, run->open, BENCH_EVERY_KIND);
  json_open(&json, "overall", '{');
  write_counts(&json, &count, run);
  json_close(&json, '{');
  bench_write_load(&json, "load", run);
  exit_code code = EXIT_DONE;
  json_open(&json, "classes", '[');
  for (uint32_t i = 0; i < job->mix.count && code == EXIT_DONE; i++) {
    code = write_class(&json, job, host, run, i);
  }
  json_close(&json, '[');
  bench_write_samples(&json, all);
  bench_write_requests(&json, run->open, job->mix.classes);
  json_close(&json, '{');
  output_put(OUTPUT_TEXT, "\n", 1);
  return code;
}

// ---- Markdown ----

static void print_row(const char *name, const class_count *count, const serve_run *run,
                      const bench_samples *of) {
  output_printf(OUTPUT_TEXT, "| %s | %zu | %zu | %.2f | ", name, count->requests, count->well,
                per_second(count->well, run));
  bench_print_percentiles(of, of->result.ttft_ms);
  output_format(OUTPUT_TEXT, " | ");
  bench_print_percentiles(of, of->result.itl_ms);
  output_format(OUTPUT_TEXT, " |\n");
}

static exit_code print_classes(const serve_job *job, const bench_host *host, const serve_run *run,
                               const bench_samples *all) {
  bench_print_host(host);
  output_format(OUTPUT_TEXT,
                "| class | requests | served well | goodput, requests/s | TTFT ms, p50 / p95 / p99 "
                "| ITL ms, p50 / p95 / p99 |\n|---|---|---|---|---|---|\n");
  exit_code code = EXIT_DONE;
  for (uint32_t i = 0; i < job->mix.count && code == EXIT_DONE; i++) {
    bench_samples samples;
    const class_count count = count_class(job, run->open, i);
    code = bench_samples_make(host, run, run->open, i, &samples);
    if (code == EXIT_DONE) print_row(job->mix.classes[i].name, &count, run, &samples);
    bench_samples_free(&samples);
  }
  const class_count count = count_class(job, run->open, BENCH_EVERY_KIND);
  print_row("all", &count, run, all);
  output_printf(
      OUTPUT_TEXT,
      "\nServed well: the first token within %.0f ms, the mean gap within %.0f ms. Arrivals "
      "%.2f/s.\n",
      (double)job->ttft_ms_max, (double)job->itl_ms_max, (double)job->rate);
  bench_print_load(run);
  output_printf(OUTPUT_TEXT, "peak memory %.1f MB, load %.1f ms, cold start %.1f ms\n",
                (double)all->result.memory_bytes_peak / 1e6, host->load_ms, host->cold_start_ms);
  return code;
}

// ---- The command ----

static exit_code serve(const serve_job *job) {
  bench_host host;
  workload open = {0};
  bench_samples all = {.values = NULL};
  const size_t count = job->requests == 0 ? BENCH_SAMPLES_MAX : job->requests;
  exit_code code = bench_host_open(&job->common, &host);
  for (uint32_t i = 0; code == EXIT_DONE && i < job->mix.count; i++) {
    code = bench_host_check(&host, &job->mix.classes[i]);
  }
  if (code == EXIT_DONE) {
    code = workload_draw(&job->mix, count, (double)job->rate, job->common.seed, &open);
  }
  serve_run run = {.open = &open,
                   .is_adaptive = job->requests == 0,
                   .seed = job->common.seed,
                   .clock = job->common.clock};
  if (code == EXIT_DONE) code = serve_run_all(host.engine, &run);
  if (code == EXIT_DONE) code = bench_samples_make(&host, &run, &open, BENCH_EVERY_KIND, &all);
  if (code == EXIT_DONE) {
    code = job->common.format == SERVE_JSON ? write_json(job, &host, &run, &all)
                                            : print_classes(job, &host, &run, &all);
  }
  bench_samples_free(&all);
  workload_free(&open);
  bench_host_close(&host);
  return code == EXIT_DONE ? output_end() : code;
}

exit_code lab_serve(int argc, char **argv) {
  enum { RATE_MAX = 100000, MS_MAX = 10000000 };
  serve_job job = {.common = serve_options_default(),
                   .rate = 1,
                   .ttft_ms_max = 1000,
                   .itl_ms_max = 100,
                   .requests = 100,
                   .mix_text = "chat:0.7,short:0.2,long:0.1"};
  args_option options[5 + SERVE_OPTIONS_MAX] = {
      args_f32("--rate", &job.rate, "R", 0, RATE_MAX,
               "start R requests per second, Poisson (default 1, 0: all at once)"),
      args_u32("--requests", &job.requests, "N", 0, WORKLOAD_REQUESTS_MAX,
               "serve N requests (default 100, 0: until their speed is steady)"),
      args_string("--mix", &job.mix_text, "CLASS:SHARE,...",
                  "mix chat (256 tokens in, 128 out), short (32, 64), long (2048, 512) or IN/OUT"),
      args_f32("--ttft", &job.ttft_ms_max, "MS", 0, MS_MAX,
               "limit the time to the first token of a well-served request to MS (default 1000)"),
      args_f32("--itl", &job.itl_ms_max, "MS", 0, MS_MAX,
               "limit the mean gap of a well-served request to MS (default 100)"),
  };
  const args_spec spec = {
      "wick-lab serve MODEL [options]",
      "Random tokens, greedy, no prefix cache, no speculation. The default mix is "
      "chat:0.7,short:0.2,long:0.1.",
      options, 5 + serve_options_list(&job.common, options + 5), 1};
  const char *model[ARGS_POSITIONALS_MAX];
  const exit_code parsed = args_parse(&spec, argc, argv, model);
  if (parsed != EXIT_NOT_YET) return parsed;
  job.common.path = model[0];
  exit_code code = workload_check_rate((double)job.rate);
  if (code == EXIT_DONE) code = workload_parse_mix(job.mix_text, &job.mix);
  return code == EXIT_DONE ? serve(&job) : code;
}

// lab/saturation.c — wick-lab saturation MODEL: tests the engine under load. A chain of short
// requests runs, each starting when the previous one has ended: first alone, then alongside similar
// requests that arrive at half the rate at which the engine served them without load.
#include <stdlib.h>

#include "lab/lab.h"
#include "lab/run_report.h"
#include "lab/verdict.h"

typedef struct saturation_job {
  serve_options common;
  const char *group_text;
  workload_class class;
  uint32_t requests;
  bool is_adaptive;
} saturation_job;

typedef struct saturation_pass {
  workload chain, load;
  serve_run run;
  bench_samples samples;  // samples of the chain
  double tok_s, ms_p99;   // figures of the chain; 0 if nothing has finished
} saturation_pass;

typedef struct saturation_outcome {
  saturation_pass alone, loaded;
  double rate;  // arrivals per second of the load
  bool passed;
} saturation_outcome;

static exit_code measure(const saturation_job *job, const bench_host *host, saturation_pass *pass) {
  pass->run = (serve_run){.open = &pass->load,
                          .chain = &pass->chain,
                          .seed = job->common.seed,
                          .clock = job->common.clock,
                          .is_adaptive = job->is_adaptive};
  exit_code code = workload_repeat(&job->class, 0, job->requests, 0, 0, &pass->chain);
  if (code == EXIT_DONE) code = serve_run_all(host->engine, &pass->run);
  if (code == EXIT_DONE) {
    code = bench_samples_make(host, &pass->run, &pass->chain, BENCH_EVERY_KIND, &pass->samples);
  }
  if (code != EXIT_DONE) return code;
  double *total_ms = calloc(2 * pass->chain.count + 1, sizeof *total_ms);
  if (total_ms == NULL) {
    report("out of memory for the measurements");
    return EXIT_MEMORY;
  }
  size_t count = 0;
  double busy_ms = 0;
  for (size_t i = 0; i < pass->chain.count; i++) {
    if (!workload_is_finished(&pass->chain.items[i])) continue;
    total_ms[count] = workload_total_ms(&pass->chain.items[i]);
    busy_ms += total_ms[count++];
  }
  if (busy_ms > 0) pass->tok_s = (double)pass->samples.result.tokens_generated * 1e3 / busy_ms;
  stat_percentile(total_ms, count, 990, total_ms + count, &pass->ms_p99);
  free(total_ms);
  return EXIT_DONE;
}

static exit_code run_both(const saturation_job *job, const bench_host *host,
                          saturation_outcome *out) {
  const saturation_config *limits = &SATURATION_CONFIG_DEFAULT;
  exit_code code = measure(job, host, &out->alone);
  if (code != EXIT_DONE) return code;
  if (!(out->alone.tok_s > 0)) {
    report("no request of %s took a measurable time, so the load cannot be chosen",
           job->class.name);
    return EXIT_INTERNAL;
  }
  // the rate at which the engine ended requests without a load, times the share
  out->rate = out->alone.tok_s / job->class.tokens_out * limits->load_pct / 100;
  // more requests than can arrive during the run, which ends with the chain
  code = workload_repeat(&job->class, 0, WORKLOAD_REQUESTS_MAX, out->rate, job->common.seed,
                         &out->loaded.load);
  if (code == EXIT_DONE) code = measure(job, host, &out->loaded);
  if (code != EXIT_DONE) return code;
  out->passed = saturation_passes(limits, out->alone.tok_s, out->loaded.tok_s, out->alone.ms_p99,
                                  out->loaded.ms_p99);
  return EXIT_DONE;
}

static void pass_free(saturation_pass *pass) {
  bench_samples_free(&pass->samples);
  workload_free(&pass->chain);
  workload_free(&pass->load);
}

static double change_pct(double from, double to) { return from > 0 ? (to - from) / from * 100 : 0; }

// ---- Reporting ----

static void write_pass(json_writer *json, const char *key, const saturation_job *job,
                       const saturation_pass *pass) {
  json_open(json, key, '{');
  json_f64(json, "throughput_tok_s", pass->tok_s);
  json_f64(json, "total_ms_p99", pass->ms_p99);
  bench_write_load(json, "load", &pass->run);
  bench_write_samples(json, &pass->samples);
  bench_write_requests(json, &pass->chain, &job->class);
  json_close(json, '{');
}

static void write_json(const saturation_job *job, const bench_host *host,
                       const saturation_outcome *of) {
  const saturation_config *limits = &SATURATION_CONFIG_DEFAULT;
  json_writer json;
  json_begin(&json, output_text_json, NULL);
  json_open(&json, NULL, '{');
  json_text(&json, "kind", "saturation");
  bench_write_host(&json, host);
  json_open(&json, "config", '{');
  bench_write_class(&json, &job->class);
  json_bool(&json, "adaptive", job->is_adaptive);
  json_f64(&json, "load_pct", limits->load_pct);
  json_f64(&json, "throughput_drop_pct_max", limits->throughput_drop_pct_max);
  json_f64(&json, "p99_increase_pct_max", limits->p99_increase_pct_max);
  json_close(&json, '{');
  write_pass(&json, "alone", job, &of->alone);
  write_pass(&json, "loaded", job, &of->loaded);
  json_open(&json, "verdict", '{');
  json_f64(&json, "load_rate_per_s", of->rate);
  json_f64(&json, "throughput_drop_pct", -change_pct(of->alone.tok_s, of->loaded.tok_s));
  json_f64(&json, "p99_increase_pct", change_pct(of->alone.ms_p99, of->loaded.ms_p99));
  json_bool(&json, "passed", of->passed);
  json_close(&json, '{');
  json_close(&json, '{');
  output_put(OUTPUT_TEXT, "\n", 1);
}

static void print_row(const char *name, const saturation_pass *pass) {
  output_printf(OUTPUT_TEXT, "| %s | %u | %.1f | %.1f | ", name,
                (unsigned)pass->samples.result.iterations, pass->tok_s, pass->ms_p99);
  bench_print_percentiles(&pass->samples, pass->samples.result.ttft_ms);
  output_format(OUTPUT_TEXT, " | ");
  bench_print_percentiles(&pass->samples, pass->samples.result.itl_ms);
  output_format(OUTPUT_TEXT, " |\n");
}

static void print_tables(const saturation_job *job, const bench_host *host,
                         const saturation_outcome *of) {
  const saturation_config *limits = &SATURATION_CONFIG_DEFAULT;
  bench_print_host(host);
  output_format(OUTPUT_TEXT,
                "| %s, one by one | requests | tok/s | p99 of a request, ms | TTFT ms, p50 / p95 / "
                "p99 | ITL ms, p50 / p95 / p99 |\n|---|---|---|---|---|---|\n",
                job->class.name);
  print_row("alone", &of->alone);
  print_row("under load", &of->loaded);
  output_printf(OUTPUT_TEXT,
                "\nSaturation at %.0f %% load (%.2f arrivals/s): %s. Throughput %+.1f %% (limit "
                "-%.0f %%), p99 %+.1f %% (limit +%.0f %%).\n",
                limits->load_pct, of->rate, of->passed ? "passed" : "failed",
                change_pct(of->alone.tok_s, of->loaded.tok_s), limits->throughput_drop_pct_max,
                change_pct(of->alone.ms_p99, of->loaded.ms_p99), limits->p99_increase_pct_max);
  bench_print_few(of->alone.samples.result.iterations);
  output_format(OUTPUT_TEXT, "Under load: ");
  bench_print_load(&of->loaded.run);
}

// ---- The command ----

static exit_code saturate(const saturation_job *job) {
  bench_host host;
  saturation_outcome outcome = {.passed = false};
  exit_code code = bench_host_open(&job->common, &host);
  if (code == EXIT_DONE) code = bench_host_check(&host, &job->class);
  if (code == EXIT_DONE) code = run_both(job, &host, &outcome);
  if (code == EXIT_DONE && job->common.format == SERVE_JSON) write_json(job, &host, &outcome);
  if (code == EXIT_DONE && job->common.format == SERVE_MD) print_tables(job, &host, &outcome);
  pass_free(&outcome.alone);
  pass_free(&outcome.loaded);
  bench_host_close(&host);
  return code == EXIT_DONE ? output_end() : code;
}

exit_code lab_saturation(int argc, char **argv) {
  saturation_job job = {.common = serve_options_default(), .group_text = "100x32/64"};
  args_option options[2 + SERVE_OPTIONS_MAX] = {
      args_string("--short", &job.group_text, "COUNTxIN/OUT",
                  "run COUNT requests of IN and OUT tokens (default 100x32/64)"),
      args_flag("--adaptive", &job.is_adaptive,
                "end when their speed is steady, but after COUNT at the latest"),
  };
  const args_spec spec = {"wick-lab saturation MODEL [options]",
                          "Random tokens, greedy, no prefix cache, no speculation.", options,
                          2 + serve_options_list(&job.common, options + 2), 1};
  const char *model[ARGS_POSITIONALS_MAX];
  const exit_code parsed = args_parse(&spec, argc, argv, model);
  if (parsed != EXIT_NOT_YET) return parsed;
  job.common.path = model[0];
  const exit_code code = workload_parse_group("--short", job.group_text, &job.requests, &job.class);
  return code == EXIT_DONE ? saturate(&job) : code;
}

// lab/convoy.c — wick-lab convoy MODEL: measures how much slower short requests become if long
// requests are served at the same time. The short requests run twice with the same arrivals: alone,
// and with long requests that all arrive at the beginning.
//
// A short request is blocked while the first token of its prompt has not been processed and prompts
// of long requests are waiting or being processed. The blocked time is at most its extra wait
// compared with the run alone, because waiting for other short requests is not caused by the long
// requests. Fragmentation is counted over pages that contain tokens. Space that is reserved for the
// rest of a prompt will be filled, and is reported separately (as in Kwon et al. 2023).
#include <stdlib.h>

#include "lab/lab.h"
#include "lab/run_report.h"
#include "lab/verdict.h"

enum { KIND_LONG, KIND_SHORT, KINDS };

typedef struct convoy_job {
  serve_options common;
  float rate;
  const char *group_texts[KINDS];
  workload_class classes[KINDS];
  uint32_t counts[KINDS];
} convoy_job;

typedef struct convoy_pass {
  workload requests;
  serve_run run;
  bench_samples all;
  double *short_ms;  // [short_count] total latencies
  size_t short_count;
} convoy_pass;

typedef struct convoy_outcome {
  convoy_pass alone, beside;
  double *blocked_ms;  // [blocked_count] for requests that ended in both runs
  size_t blocked_count;
  double overlap_ms_max;  // the longest time that a request waited while long prompts were waiting
                          // or being processed
  convoy_result verdict;
} convoy_outcome;

// ---- Measuring ----

static exit_code take_latencies(convoy_pass *pass) {
  pass->short_ms = calloc(pass->requests.count + 1, sizeof *pass->short_ms);
  if (pass->short_ms == NULL) {
    report("out of memory for the measurements");
    return EXIT_MEMORY;
  }
  for (size_t i = 0; i < pass->requests.count; i++) {
    const workload_item *item = &pass->requests.items[i];
    if (item->kind != KIND_SHORT || !workload_is_finished(item)) continue;
    pass->short_ms[pass->short_count++] = workload_total_ms(item);
  }
  return EXIT_DONE;
}

static exit_code measure(const bench_host *host, convoy_pass *pass) {
  pass->run = (serve_run){
      .open = &pass->requests, .seed = host->options->seed, .clock = host->options->clock};
  exit_code code = serve_run_all(host->engine, &pass->run);
  if (code == EXIT_DONE) {
    code = bench_samples_make(host, &pass->run, &pass->requests, BENCH_EVERY_KIND, &pass->all);
  }
  return code == EXIT_DONE ? take_latencies(pass) : code;
}

static void pass_free(convoy_pass *pass) {
  bench_samples_free(&pass->all);
  workload_free(&pass->requests);
  free(pass->short_ms);
}

static double wait_ms(const workload_item *item) {
  return (double)(item->read_us - item->arrival_us) / 1e3;
}

// Returns the time during which the request waited while prompts of long requests were waiting or
// being processed. The long requests arrive together at the beginning, so this time ends with the
// last of their prompts.
static double overlap_ms(const workload *requests, const workload_item *item) {
  uint64_t end_us = 0;
  for (size_t i = 0; i < requests->count; i++) {
    const workload_item *other = &requests->items[i];
    if (other->kind == KIND_LONG && other->first_us > end_us) end_us = other->first_us;
  }
  if (end_us > item->read_us) end_us = item->read_us;
  return end_us > item->arrival_us ? (double)(end_us - item->arrival_us) / 1e3 : 0;
}

// Computes the blocked times. Both runs have the same short requests in the same order.
static size_t find_blocked(convoy_outcome *out) {
  const workload *requests = &out->beside.requests;
  size_t count = 0, number = 0;
  for (size_t i = 0; i < requests->count; i++) {
    const workload_item *item = &requests->items[i];
    if (item->kind != KIND_SHORT) continue;
    const workload_item *alone = &out->alone.requests.items[number++];
    if (!workload_is_finished(item) || !workload_is_finished(alone)) continue;
    const double overlap = overlap_ms(requests, item), more = wait_ms(item) - wait_ms(alone);
    if (overlap > out->overlap_ms_max) out->overlap_ms_max = overlap;
    const double blocked = more < overlap ? more : overlap;
    out->blocked_ms[count++] = blocked > 0 ? blocked : 0;
  }
  return count;
}

static exit_code judge(const convoy_job *job, convoy_outcome *out) {
  const workload *requests = &out->beside.requests;
  const size_t room = requests->count + 1;
  double *scratch = calloc(room, sizeof *scratch);
  out->blocked_ms = calloc(room, sizeof *out->blocked_ms);
  if (scratch == NULL || out->blocked_ms == NULL) {
    free(scratch);
    report("out of memory for the measurements");
    return EXIT_MEMORY;
  }
  out->blocked_count = find_blocked(out);
  convoy_config config = CONVOY_CONFIG_DEFAULT;
  config.long_requests = job->counts[KIND_LONG];
  config.short_requests = job->counts[KIND_SHORT];
  convoy_judge(&config, (convoy_samples){out->alone.short_ms, out->alone.short_count},
               (convoy_samples){out->beside.short_ms, out->beside.short_count},
               (convoy_samples){out->blocked_ms, out->blocked_count},
               serve_run_fragmentation_pct(&out->beside.run), scratch, &out->verdict);
  free(scratch);
  return EXIT_DONE;
}

static exit_code run_both(const convoy_job *job, const bench_host *host, convoy_outcome *out) {
  workload longs;
  exit_code code = workload_repeat(&job->classes[KIND_SHORT], KIND_SHORT, job->counts[KIND_SHORT],
                                   (double)job->rate, job->common.seed, &out->alone.requests);
  if (code != EXIT_DONE) return code;
  code = workload_repeat(&job->classes[KIND_LONG], KIND_LONG, job->counts[KIND_LONG], 0, 0, &longs);
  if (code != EXIT_DONE) return code;
  code = workload_merge(&longs, &out->alone.requests, &out->beside.requests);
  workload_free(&longs);
  if (code == EXIT_DONE) code = measure(host, &out->alone);
  if (code == EXIT_DONE) code = measure(host, &out->beside);
  return code == EXIT_DONE ? judge(job, out) : code;
}

// ---- Reporting ----

static const char *const reason_names[] = {"P99_INCREASE", "HOL_BLOCKING", "KV_FRAGMENTATION",
                                           "NO_DATA"};
enum { REASONS = 4 };

static void write_pass(json_writer *json, const char *key, const convoy_job *job,
                       const convoy_pass *pass) {
  json_open(json, key, '{');
  bench_write_load(json, "load", &pass->run);
  bench_write_samples(json, &pass->all);
  bench_write_requests(json, &pass->requests, job->classes);
  json_close(json, '{');
}

static void write_setup(json_writer *json, const convoy_job *job) {
  const convoy_config *limits = &CONVOY_CONFIG_DEFAULT;
  json_open(json, "config", '{');
  json_f64(json, "rate_per_s", (double)job->rate);
  for (int kind = 0; kind < KINDS; kind++) {
    json_open(json, kind == KIND_LONG ? "long" : "short", '{');
    json_u64(json, "requests", job->counts[kind]);
    bench_write_class(json, &job->classes[kind]);
    json_close(json, '{');
  }
  json_f64(json, "p99_increase_pct_max", limits->p99_increase_pct_max);
  json_f64(json, "hol_blocking_ms_max", limits->hol_blocking_ms_max);
  json_f64(json, "kv_fragmentation_pct_max", limits->kv_fragmentation_pct_max);
  json_close(json, '{');
}

static void write_verdict(json_writer *json, const convoy_outcome *of) {
  const convoy_result *verdict = &of->verdict;
  json_open(json, "verdict", '{');
  json_u64(json, "short_requests", verdict->short_requests);
  json_f64(json, "baseline_short_ms_p99", verdict->baseline_short_ms_p99);
  json_f64(json, "convoy_short_ms_p99", verdict->convoy_short_ms_p99);
  json_f64(json, "p99_increase_pct", verdict->p99_increase_pct);
  json_f64(json, "hol_blocking_ms_max", verdict->hol_blocking_ms_max);
  json_f64(json, "hol_blocking_ms_mean", verdict->hol_blocking_ms_mean);
  json_f64(json, "wait_overlap_ms_max", of->overlap_ms_max);
  json_f64(json, "kv_fragmentation_pct", verdict->kv_fragmentation_pct);
  json_open(json, "hol_blocking_ms", '[');
  for (size_t i = 0; i < of->blocked_count; i++) json_f64(json, NULL, of->blocked_ms[i]);
  json_close(json, '[');
  json_bool(json, "passed", verdict->passed);
  json_open(json, "reasons", '[');
  for (int i = 0; i < REASONS; i++) {
    if (verdict->reasons >> i & 1) json_text(json, NULL, reason_names[i]);
  }
  json_close(json, '[');
  json_close(json, '{');
}

static void write_json(const convoy_job *job, const bench_host *host, const convoy_outcome *of) {
  json_writer json;
  json_begin(&json, output_text_json, NULL);
  json_open(&json, NULL, '{');
  json_text(&json, "kind", "convoy");
  bench_write_host(&json, host);
  write_setup(&json, job);
  write_pass(&json, "baseline", job, &of->alone);
  write_pass(&json, "convoy", job, &of->beside);
  write_verdict(&json, of);
  json_close(&json, '{');
  output_put(OUTPUT_TEXT, "\n", 1);
}

static void print_row(const char *name, const bench_samples *of) {
  output_format(OUTPUT_TEXT, "| %s | %u | ", name, (unsigned)of->result.iterations);
  bench_print_percentiles(of, of->result.ttft_ms);
  output_format(OUTPUT_TEXT, " | ");
  bench_print_percentiles(of, of->result.itl_ms);
  output_format(OUTPUT_TEXT, " |\n");
}

static exit_code print_rows(const bench_host *host, const convoy_outcome *of) {
  print_row("short, alone", &of->alone.all);
  static const char *const names[] = {"long", "short, convoy"};
  for (uint32_t kind = KINDS; kind-- > 0;) {
    bench_samples samples;
    const exit_code code =
        bench_samples_make(host, &of->beside.run, &of->beside.requests, kind, &samples);
    if (code == EXIT_DONE) print_row(names[kind], &samples);
    bench_samples_free(&samples);
    if (code != EXIT_DONE) return code;
  }
  return EXIT_DONE;
}

static void print_limit(const char *what, double value, double most, const char *unit) {
  output_printf(OUTPUT_TEXT, "| %s | %.1f %s | %.0f %s | %s |\n", what, value, unit, most, unit,
                value > most ? "exceeded" : "kept");
}

static exit_code print_tables(const convoy_job *job, const bench_host *host,
                              const convoy_outcome *of) {
  const convoy_config *limits = &CONVOY_CONFIG_DEFAULT;
  const convoy_result *verdict = &of->verdict;
  bench_print_host(host);
  output_format(OUTPUT_TEXT,
                "| requests | count | TTFT ms, p50 / p95 / p99 | ITL ms, p50 / p95 / p99 "
                "|\n|---|---|---|---|\n");
  const exit_code code = print_rows(host, of);
  output_format(OUTPUT_TEXT, "\nConvoy of %u x %s, %u x %s ", (unsigned)job->counts[KIND_LONG],
                job->classes[KIND_LONG].name, (unsigned)job->counts[KIND_SHORT],
                job->classes[KIND_SHORT].name);
  if (job->rate > 0) output_printf(OUTPUT_TEXT, "at %.2f/s: ", (double)job->rate);
  if (job->rate <= 0) output_format(OUTPUT_TEXT, "at once: ");
  output_format(OUTPUT_TEXT, "%s", verdict->passed ? "passed" : "failed by");
  for (int i = 0; i < REASONS; i++) {
    if (verdict->reasons >> i & 1) output_format(OUTPUT_TEXT, " %s", reason_names[i]);
  }
  output_format(OUTPUT_TEXT, "\n\n| | measured | limit | |\n|---|---|---|---|\n");
  print_limit("p99 of short requests, increase", verdict->p99_increase_pct,
              limits->p99_increase_pct_max, "%");
  print_limit("head-of-line blocking, maximum", verdict->hol_blocking_ms_max,
              limits->hol_blocking_ms_max, "ms");
  print_limit("KV fragmentation", verdict->kv_fragmentation_pct, limits->kv_fragmentation_pct_max,
              "%");
  output_printf(OUTPUT_TEXT,
                "\np99 of short requests %.1f ms alone, %.1f ms in the convoy; blocked %.1f ms in "
                "the mean; at most %.1f ms waited while long prompts were processed.\n",
                verdict->baseline_short_ms_p99, verdict->convoy_short_ms_p99,
                verdict->hol_blocking_ms_mean, of->overlap_ms_max);
  bench_print_few(job->counts[KIND_SHORT]);
  output_format(OUTPUT_TEXT, "Alone: ");
  bench_print_load(&of->alone.run);
  output_format(OUTPUT_TEXT, "Convoy: ");
  bench_print_load(&of->beside.run);
  return code;
}

// ---- The command ----

static exit_code convoy(const convoy_job *job) {
  bench_host host;
  convoy_outcome outcome = {.blocked_ms = NULL};
  exit_code code = bench_host_open(&job->common, &host);
  for (int kind = 0; code == EXIT_DONE && kind < KINDS; kind++) {
    code = bench_host_check(&host, &job->classes[kind]);
  }
  if (code == EXIT_DONE) code = run_both(job, &host, &outcome);
  if (code == EXIT_DONE && job->common.format == SERVE_JSON) write_json(job, &host, &outcome);
  if (code == EXIT_DONE && job->common.format == SERVE_MD) {
    code = print_tables(job, &host, &outcome);
  }
  pass_free(&outcome.alone);
  pass_free(&outcome.beside);
  free(outcome.blocked_ms);
  bench_host_close(&host);
  return code == EXIT_DONE ? output_end() : code;
}

exit_code lab_convoy(int argc, char **argv) {
  enum { RATE_MAX = 100000 };
  convoy_job job = {.common = serve_options_default(), .group_texts = {"10x2048/512", "100x32/64"}};
  args_option options[3 + SERVE_OPTIONS_MAX] = {
      args_string("--long", &job.group_texts[KIND_LONG], "COUNTxIN/OUT",
                  "run COUNT long requests of IN and OUT tokens (default 10x2048/512)"),
      args_string("--short", &job.group_texts[KIND_SHORT], "COUNTxIN/OUT",
                  "run COUNT short requests of IN and OUT tokens (default 100x32/64)"),
      args_f32("--rate", &job.rate, "R", 0, RATE_MAX,
               "start R short requests per second, Poisson (default 0: all at once)"),
  };
  const args_spec spec = {
      "wick-lab convoy MODEL [options]",
      "Random tokens, greedy, no prefix cache, no speculation. The long requests "
      "arrive first, together.",
      options, 3 + serve_options_list(&job.common, options + 3), 1};
  const char *model[ARGS_POSITIONALS_MAX];
  const exit_code parsed = args_parse(&spec, argc, argv, model);
  if (parsed != EXIT_NOT_YET) return parsed;
  job.common.path = model[0];
  static const char *const names[] = {"--long", "--short"};
  exit_code code = workload_check_rate((double)job.rate);
  for (int kind = 0; code == EXIT_DONE && kind < KINDS; kind++) {
    code = workload_parse_group(names[kind], job.group_texts[kind], &job.counts[kind],
                                &job.classes[kind]);
  }
  return code == EXIT_DONE ? convoy(&job) : code;
}

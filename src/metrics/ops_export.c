// metrics/ops_export.c — the ops' records as JSON and as Prometheus text.
#include "base/text.h"
#include "metrics/ops.h"

static const char *const OP_NAMES[OP_COUNT] = {
    "embed", "norm",  "qkv",     "kv_store", "attention", "attn_output", "gate_up", "silu",
    "down",  "route", "experts", "conv",     "delta",     "scan",        "logits",  "sample"};
static const char *const PASS_NAMES[PASS_COUNT] = {"prefill", "decode"};

const char *op_name(op_kind op) { return OP_NAMES[op]; }
const char *pass_name(pass_kind pass) { return PASS_NAMES[pass]; }

typedef unsigned long long ull;

// ---- JSON ----

// Writes a rate per second, in units of 1e9: bytes or multiply-adds over microseconds, times 1e-3.
static void put_rate(json_writer *json, const char *key, uint64_t count, uint64_t time_us) {
  if (time_us == 0) {
    json_text(json, key, NULL);
  } else {
    json_f64(json, key, (double)count / (double)time_us * 1e-3);
  }
}

static void put_latency(json_writer *json, const latency_histogram *latency) {
  json_open(json, "latency_us", '{');
  json_f64(json, "mean", latency->mean_us);
  json_u64(json, "min", latency->latency_count == 0 ? 0 : latency->latency_us_min);
  json_u64(json, "max", latency->latency_us_max);
  json_f64(json, "stddev", latency_stddev(latency));
  json_f64(json, "p50", latency_percentile(latency, 500));
  json_f64(json, "p95", latency_percentile(latency, 950));
  json_f64(json, "p99", latency_percentile(latency, 990));
  json_close(json, '{');
}

static void put_op(json_writer *json, const char *name, const op_record *record, uint64_t pass_us) {
  const uint64_t time_us = record->latency.latency_us_sum;
  json_open(json, name, '{');
  json_u64(json, "count", record->latency.dispatches);
  json_u64(json, "timed", record->latency.latency_count);
  json_u64(json, "time_us", time_us);
  put_latency(json, &record->latency);
  json_u64(json, "bytes", record->bytes);
  json_u64(json, "macs", record->macs);
  put_rate(json, "gb_per_s", record->timed_bytes, time_us);
  put_rate(json, "gmac_per_s", record->timed_macs, time_us);
  json_f64(json, "share", pass_us == 0 ? 0 : (double)time_us / (double)pass_us);
  json_close(json, '{');
}

static void put_pass(json_writer *json, const op_records *ops, int pass) {
  uint64_t pass_us = 0;
  for (int op = 0; op < OP_COUNT; op++) {
    pass_us += ops->records[pass][op].latency.latency_us_sum;
  }
  json_open(json, PASS_NAMES[pass], '{');
  for (int op = 0; op < OP_COUNT; op++) {
    put_op(json, OP_NAMES[op], &ops->records[pass][op], pass_us);
  }
  json_close(json, '{');
}

void ops_json(const op_records *ops, json_writer *json, const char *key) {
  const uint64_t now_us = ops->now_us();
  dispatch_metrics dispatch;
  ops_dispatch(ops, &dispatch);
  json_open(json, key, '{');
  json_f64(json, "elapsed_s", dispatch_elapsed_s(&dispatch, now_us));
  json_u64(json, "timer_grain_us", ops->timer_grain_us);
  json_text(json, "kernels", lane_name(ops->lane));
  json_open(json, "passes", '{');
  for (int pass = 0; pass < PASS_COUNT; pass++) put_pass(json, ops, pass);
  json_close(json, '{');
  dispatch_json(&dispatch, now_us, json, "dispatch");
  json_close(json, '{');
}

// ---- Prometheus ----

static void put_counter(const text_sink *to, const op_records *ops, const char *metric,
                        const char *help, uint64_t (*value_of)(const op_record *record)) {
  metrics_put(to, "# HELP %s %s\n# TYPE %s counter\n", metric, help, metric);
  for (int pass = 0; pass < PASS_COUNT; pass++) {
    for (int op = 0; op < OP_COUNT; op++) {
      metrics_put(to, "%s{pass=\"%s\",op=\"%s\"} %llu\n", metric, PASS_NAMES[pass], OP_NAMES[op],
                  (ull)value_of(&ops->records[pass][op]));
    }
  }
}

static uint64_t count_of(const op_record *record) { return record->latency.dispatches; }
static uint64_t time_of(const op_record *record) { return record->latency.latency_us_sum; }
static uint64_t bytes_of(const op_record *record) { return record->bytes; }
static uint64_t macs_of(const op_record *record) { return record->macs; }

static void put_histograms(const text_sink *to, const op_records *ops) {
  static const char *const metric = "wick_op_latency_us";  // of timed ops
  metrics_put(to, "# HELP %s Time per op.\n# TYPE %s histogram\n", metric, metric);
  for (int pass = 0; pass < PASS_COUNT; pass++) {
    for (int op = 0; op < OP_COUNT; op++) {
      char labels[64];
      text_format(labels, sizeof labels, "pass=\"%s\",op=\"%s\"", PASS_NAMES[pass], OP_NAMES[op]);
      metrics_put_histogram(to, metric, labels, &ops->records[pass][op].latency);
    }
  }
}

void ops_prometheus(const op_records *ops, json_sink sink, void *context) {
  const text_sink to = {sink, context};
  dispatch_metrics dispatch;
  ops_dispatch(ops, &dispatch);
  dispatch_prometheus(&dispatch, ops->now_us(), &to);
  put_counter(&to, ops, "wick_ops_total", "Ops of forward passes.", count_of);
  put_counter(&to, ops, "wick_op_time_us_total", "Time spent in the ops that were timed.", time_of);
  put_counter(&to, ops, "wick_op_bytes_total", "Bytes that ops read and wrote.", bytes_of);
  put_counter(&to, ops, "wick_op_macs_total", "Multiply-adds in products.", macs_of);
  put_histograms(&to, ops);
}

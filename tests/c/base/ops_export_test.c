// The op records as Prometheus text: one line per value of each op.
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "metrics/ops.h"

static uint64_t clock_us;
static uint64_t read_clock(void) { return clock_us; }

static op_records ops;

static char text[65536];
static size_t text_bytes;

static void keep_text(void *context, const char *bytes, size_t size_bytes) {
  (void)context;
  if (text_bytes + size_bytes >= sizeof text) return;
  memcpy(text + text_bytes, bytes, size_bytes);
  text_bytes += size_bytes;
  text[text_bytes] = '\0';
}

// The clock's resolution is included in the exported op metrics.
TEST(the_timer_grain_is_exported) {
  static dispatch_metrics dispatch;
  ops_init(&ops, LANE_SIMD128, read_clock, 100);
  ops_dispatch(&ops, &dispatch);
  CHECK_EQ_UINT(dispatch.timer_grain_us, 100);
}

// Every op of every pass has its own values, and each metric has a line for each of them.
TEST(prometheus_has_a_line_for_each_value) {
  static const char *const edges[] = {"100",   "500",    "1000",   "5000",    "10000",
                                      "50000", "100000", "500000", "1000000", "+Inf"};
  static const uint64_t inclusive[] = {100,   500,    1000,   5000,    10000,
                                       50000, 100000, 500000, 1000000, UINT64_MAX};
  static const char *const metrics[] = {"wick_ops_total", "wick_op_time_us_total",
                                        "wick_op_bytes_total", "wick_op_macs_total"};
  clock_us = 0;
  ops_init(&ops, LANE_SIMD128, read_clock, 1);
  uint64_t figures[PASS_COUNT][OP_COUNT][4] = {0}, taken[PASS_COUNT][OP_COUNT] = {0};
  for (int pass = 0; pass < PASS_COUNT; pass++) {
    ops_begin(&ops, (pass_kind)pass);
    for (int op = 0; op < OP_COUNT; op++) {
      const uint64_t us = 100 + (uint64_t)(op * op) * 137 + (uint64_t)pass * 40000;
      clock_us += us;
      ops_lap(&ops, (op_kind)op, us * 3 + 1, us * 5 + 2);
      taken[pass][op] = us;
      const uint64_t own[4] = {1, us, us * 3 + 1, us * 5 + 2};
      memcpy(figures[pass][op], own, sizeof own);
    }
  }
  text_bytes = 0;
  ops_prometheus(&ops, keep_text, NULL);
  for (int pass = 0; pass < PASS_COUNT; pass++) {
    for (int op = 0; op < OP_COUNT; op++) {
      char line[160], names[80];
      snprintf(names, sizeof names, "pass=\"%s\",op=\"%s\"", pass_name((pass_kind)pass),
               op_name((op_kind)op));
      for (int metric = 0; metric < 4; metric++) {
        snprintf(line, sizeof line, "\n%s{%s} %llu\n", metrics[metric], names,
                 (unsigned long long)figures[pass][op][metric]);
        if (!CHECK(strstr(text, line) != NULL)) printf("# %s\n", line);
      }
      for (int edge = 0; edge < 10; edge++) {
        snprintf(line, sizeof line, "\nwick_op_latency_us_bucket{%s,le=\"%s\"} %d\n", names,
                 edges[edge], taken[pass][op] <= inclusive[edge]);
        if (!CHECK(strstr(text, line) != NULL)) printf("# %s\n", line);
      }
      snprintf(line, sizeof line,
               "\nwick_op_latency_us_sum{%s} %llu\nwick_op_latency_us_count{%s} 1\n", names,
               (unsigned long long)taken[pass][op], names);
      if (!CHECK(strstr(text, line) != NULL)) printf("# %s\n", line);
    }
  }
  for (int metric = 0; metric < 4; metric++) {
    char line[80];
    snprintf(line, sizeof line, "\n# TYPE %s counter\n", metrics[metric]);
    CHECK(strstr(text, line) != NULL);
  }
  CHECK(strstr(text, "\n# TYPE wick_op_latency_us histogram\n") != NULL);
}

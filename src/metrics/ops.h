// metrics/ops.h — time, bytes and multiply-adds of each op of the forward pass, separately for
// prefill and decode. The thread that runs the pass records wall time, which includes helpers and
// barriers. An op reads the clock once: its time counts from the end of the op before. All passes
// are counted; every prefill pass and one decode pass in four are timed, because reading the clock
// is a call into JavaScript and the ops of a small model are short.
#ifndef WICK_METRICS_OPS_H
#define WICK_METRICS_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "metrics/dispatch.h"

typedef enum wick_op {
  WICK_OP_EMBED = 0,
  WICK_OP_NORM,
  WICK_OP_QKV,
  WICK_OP_KV_STORE,
  WICK_OP_ATTENTION,
  WICK_OP_ATTN_OUTPUT,
  WICK_OP_GATE_UP,
  WICK_OP_SILU,
  WICK_OP_DOWN,
  WICK_OP_ROUTE,
  WICK_OP_EXPERTS,
  WICK_OP_CONV,
  WICK_OP_DELTA,
  WICK_OP_LOGITS,
  WICK_OP_SAMPLE,
  WICK_OP_COUNT
} wick_op;

// A pass that computes logits for every token is decode.
typedef enum wick_pass {
  WICK_PASS_PREFILL = 0,
  WICK_PASS_DECODE = 1,
  WICK_PASS_COUNT = 2
} wick_pass;

enum { WICK_OPS_DECODE_TIMED_EVERY = 4 };

typedef struct wick_op_record {
  wick_latency latency;  // dispatches: all of them; latency_count: the timed ones
  uint64_t bytes;  // weights, keys and values, or activations that the op has to read and write
  uint64_t macs;   // multiply-adds of products
  uint64_t timed_bytes, timed_macs;  // of the timed ones
} wick_op_record;

typedef struct wick_ops {
  wick_op_record records[WICK_PASS_COUNT][WICK_OP_COUNT];
  uint64_t (*now_us)(void);
  uint64_t start_us;  // of recording
  uint64_t lap_us;    // end of the last op
  wick_pass pass;
  bool is_timed;
  uint64_t pass_counts[WICK_PASS_COUNT];
  wick_lane lane;  // of the kernels that run
  uint32_t timer_grain_us;
} wick_ops;

void wick_ops_init(wick_ops *ops, wick_lane lane, uint64_t (*now_us)(void),
                   uint32_t timer_grain_us);
// Forgets what was recorded.
void wick_ops_reset(wick_ops *ops);

// The functions below do nothing when the first argument is NULL: metrics are off.
// A pass of this kind begins, and its first op.
void wick_ops_begin(wick_ops *ops, wick_pass pass);
// The same pass continues after a pause, when wick_step begins.
void wick_ops_resume(wick_ops *ops);
// The op has ended, and the next begins.
void wick_ops_lap(wick_ops *ops, wick_op op, uint64_t bytes, uint64_t macs);

// {elapsed_s, timer_grain_us, kernels, passes: {prefill: {OP: {count, timed, time_us, latency_us:
// {mean,
// ...}, bytes, macs, gb_per_s, gmac_per_s, share}}, decode: {...}}, dispatch: as dispatch.h}. Rates
// are null when the clock saw no time pass. `key` as json_open takes it.
void wick_ops_json(const wick_ops *ops, json_writer *json, const char *key);
// Prometheus text format 0.0.4.
void wick_ops_prometheus(const wick_ops *ops, json_sink sink, void *context);
// All ops in their lane: what dispatch.h exports.
void wick_ops_dispatch(const wick_ops *ops, wick_dispatch *dispatch);
const char *wick_op_name(wick_op op);
const char *wick_pass_name(wick_pass pass);

#endif

// metrics/ops.h — time, bytes and multiply-adds of each op of the forward pass, separately for
// prefill and decode. The thread that runs the pass records wall time, which includes helpers and
// barriers. Each op reads the clock once: its time is measured from the end of the previous op. All
// passes are counted; every prefill pass and one decode pass in four are timed, because reading the
// clock is a call into JavaScript and the ops of a small model are short.
#ifndef WICK_METRICS_OPS_H
#define WICK_METRICS_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "metrics/dispatch.h"

typedef enum op_kind {
  OP_EMBED = 0,
  OP_NORM,
  OP_QKV,
  OP_KV_STORE,
  OP_ATTENTION,
  OP_ATTN_OUTPUT,
  OP_GATE_UP,
  OP_SILU,
  OP_DOWN,
  OP_ROUTE,
  OP_EXPERTS,
  OP_CONV,
  OP_DELTA,
  OP_SCAN,
  OP_LOGITS,
  OP_SAMPLE,
  OP_COUNT
} op_kind;

// A pass that computes logits for every token counts as decode.
typedef enum pass_kind { PASS_PREFILL = 0, PASS_DECODE = 1, PASS_COUNT = 2 } pass_kind;

enum { OPS_DECODE_TIMED_EVERY = 4 };

typedef struct op_record {
  latency_histogram latency;  // `dispatches` counts all ops, `latency_count` the timed ones
  uint64_t bytes;  // weights, keys and values, or activations that the op has to read and write
  uint64_t macs;   // multiply-adds in matrix products
  uint64_t timed_bytes, timed_macs;  // of timed ops
} op_record;

typedef struct op_records {
  op_record records[PASS_COUNT][OP_COUNT];
  uint64_t (*now_us)(void);
  uint64_t start_us;  // start of recording
  uint64_t lap_us;    // end of the last op
  pass_kind pass;
  bool is_timed;
  uint64_t pass_counts[PASS_COUNT];
  op_lane lane;  // of the kernels in use
  uint32_t timer_grain_us;
} op_records;

void ops_init(op_records *ops, op_lane lane, uint64_t (*now_us)(void), uint32_t timer_grain_us);
// Resets the records.
void ops_reset(op_records *ops);

// The functions below do nothing if the first argument is NULL, that is, if metrics are off.
// ops_begin is called when a pass of this kind and its first op begin.
void ops_begin(op_records *ops, pass_kind pass);
// Called when a paused pass continues, at the beginning of wick_step.
void ops_resume(op_records *ops);
// Records an op that has ended. The next op begins.
void ops_lap(op_records *ops, op_kind op, uint64_t bytes, uint64_t macs);

// Writes {elapsed_s, timer_grain_us, kernels, passes: {prefill: {OP: {count, timed, time_us,
// latency_us: {mean, ...}, bytes, macs, gb_per_s, gmac_per_s, share}}, decode: {...}}, dispatch: as
// in dispatch.h}. Rates are null if the measured time is 0. `key` is passed to json_open.
void ops_json(const op_records *ops, json_writer *json, const char *key);
// Writes the Prometheus text format 0.0.4.
void ops_prometheus(const op_records *ops, json_sink sink, void *context);
// Merges all ops into their lane, for the export of dispatch.h.
void ops_dispatch(const op_records *ops, dispatch_metrics *dispatch);
const char *op_name(op_kind op);
const char *pass_name(pass_kind pass);

#endif

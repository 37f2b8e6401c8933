// metrics/ops.c — see ops.h.
#include "metrics/ops.h"

void wick_ops_init(wick_ops *ops, wick_lane lane, uint64_t (*now_us)(void),
                   uint32_t timer_grain_us) {
  ops->lane = lane;
  ops->now_us = now_us;
  ops->timer_grain_us = timer_grain_us;
  ops->pass = WICK_PASS_PREFILL;
  ops->is_timed = true;
  wick_ops_reset(ops);
}

void wick_ops_reset(wick_ops *ops) {
  for (int pass = 0; pass < WICK_PASS_COUNT; pass++) {
    for (int op = 0; op < WICK_OP_COUNT; op++) {
      wick_op_record *record = &ops->records[pass][op];
      wick_latency_clear(&record->latency);
      record->bytes = record->macs = record->timed_bytes = record->timed_macs = 0;
    }
    ops->pass_counts[pass] = 0;
  }
  ops->start_us = ops->lap_us = ops->now_us();
}

void wick_ops_begin(wick_ops *ops, wick_pass pass) {
  if (ops == NULL) return;
  ops->pass = pass;
  ops->is_timed =
      pass != WICK_PASS_DECODE || ops->pass_counts[pass] % WICK_OPS_DECODE_TIMED_EVERY == 0;
  ops->pass_counts[pass]++;
  if (ops->is_timed) ops->lap_us = ops->now_us();
}

void wick_ops_resume(wick_ops *ops) {
  if (ops != NULL && ops->is_timed) ops->lap_us = ops->now_us();
}

void wick_ops_lap(wick_ops *ops, wick_op op, uint64_t bytes, uint64_t macs) {
  if (ops == NULL) return;
  wick_op_record *record = &ops->records[ops->pass][op];
  record->latency.dispatches++;
  record->bytes += bytes;
  record->macs += macs;
  if (!ops->is_timed) return;
  const uint64_t now_us = ops->now_us();
  record->timed_bytes += bytes;
  record->timed_macs += macs;
  wick_latency_record(&record->latency, now_us > ops->lap_us ? now_us - ops->lap_us : 0);
  ops->lap_us = now_us;
}

void wick_ops_dispatch(const wick_ops *ops, wick_dispatch *dispatch) {
  wick_dispatch_init(dispatch, ops->start_us, ops->timer_grain_us);
  for (int pass = 0; pass < WICK_PASS_COUNT; pass++) {
    for (int op = 0; op < WICK_OP_COUNT; op++) {
      wick_latency_merge(&dispatch->lanes[ops->lane], &ops->records[pass][op].latency);
    }
  }
}

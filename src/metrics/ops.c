// metrics/ops.c — see ops.h.
#include "metrics/ops.h"

void ops_init(op_records *ops, op_lane lane, uint64_t (*now_us)(void), uint32_t timer_grain_us) {
  ops->lane = lane;
  ops->now_us = now_us;
  ops->timer_grain_us = timer_grain_us;
  ops->pass = PASS_PREFILL;
  ops->is_timed = true;
  ops_reset(ops);
}

void ops_reset(op_records *ops) {
  for (int pass = 0; pass < PASS_COUNT; pass++) {
    for (int op = 0; op < OP_COUNT; op++) {
      op_record *record = &ops->records[pass][op];
      latency_clear(&record->latency);
      record->bytes = record->macs = record->timed_bytes = record->timed_macs = 0;
    }
    ops->pass_counts[pass] = 0;
  }
  ops->start_us = ops->lap_us = ops->now_us();
}

void ops_begin(op_records *ops, pass_kind pass) {
  if (ops == NULL) return;
  ops->pass = pass;
  ops->is_timed = pass != PASS_DECODE || ops->pass_counts[pass] % OPS_DECODE_TIMED_EVERY == 0;
  ops->pass_counts[pass]++;
  if (ops->is_timed) ops->lap_us = ops->now_us();
}

void ops_resume(op_records *ops) {
  if (ops != NULL && ops->is_timed) ops->lap_us = ops->now_us();
}

void ops_lap(op_records *ops, op_kind op, uint64_t bytes, uint64_t macs) {
  if (ops == NULL) return;
  op_record *record = &ops->records[ops->pass][op];
  record->latency.dispatches++;
  record->bytes += bytes;
  record->macs += macs;
  if (!ops->is_timed) return;
  const uint64_t now_us = ops->now_us();
  record->timed_bytes += bytes;
  record->timed_macs += macs;
  latency_record(&record->latency, now_us > ops->lap_us ? now_us - ops->lap_us : 0);
  ops->lap_us = now_us;
}

void ops_dispatch(const op_records *ops, dispatch_metrics *dispatch) {
  dispatch_init(dispatch, ops->start_us, ops->timer_grain_us);
  for (int pass = 0; pass < PASS_COUNT; pass++) {
    for (int op = 0; op < OP_COUNT; op++) {
      latency_merge(&dispatch->lanes[ops->lane], &ops->records[pass][op].latency);
    }
  }
}

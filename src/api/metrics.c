// api/metrics.c — the functions of wick.h for times of the ops of the forward pass.
#include "api/insides.h"

void wick_metrics_json(const wick_engine *engine, wick_text_sink sink, void *context) {
  json_writer json;
  json_begin(&json, sink, context);
  if (engine->ops != NULL) ops_json(engine->ops, &json, NULL);
}

void wick_metrics_prometheus(const wick_engine *engine, wick_text_sink sink, void *context) {
  if (engine->ops != NULL) ops_prometheus(engine->ops, sink, context);
}

void wick_metrics_reset(wick_engine *engine) {
  if (engine->ops != NULL) ops_reset(engine->ops);
}

bool wick_metrics_get(const wick_engine *engine, uint32_t index, wick_op_metrics *metrics) {
  if (engine->ops == NULL || index >= (uint32_t)PASS_COUNT * OP_COUNT) return false;
  const pass_kind pass = (pass_kind)(index / OP_COUNT);
  const op_kind op = (op_kind)(index % OP_COUNT);
  const op_record *records = engine->ops->records[pass];
  uint64_t pass_us = 0;
  for (int i = 0; i < OP_COUNT; i++) pass_us += records[i].latency.latency_us_sum;
  const latency_histogram *latency = &records[op].latency;
  *metrics = (wick_op_metrics){.pass = pass_name(pass),
                               .op = op_name(op),
                               .count = latency->dispatches,
                               .time_us = latency->latency_us_sum,
                               .bytes = records[op].timed_bytes,
                               .macs = records[op].timed_macs,
                               .mean_us = latency->mean_us,
                               .p50_us = latency_percentile(latency, 500),
                               .p99_us = latency_percentile(latency, 990)};
  if (pass_us != 0) metrics->share = (double)latency->latency_us_sum / (double)pass_us;
  return true;
}

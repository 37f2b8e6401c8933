// api/stats_json.c — the scheduler's counters as JSON.
#include "api/insides.h"

_Static_assert(SPECULATION_ROWS_MAX == (int)WICK_STATS_ROWS_MAX,
               "passes are distinguished by their rows");

static void write_requests(json_writer *json, const wick_stats *stats) {
  json_open(json, "requests", '{');
  json_u64(json, "running", stats->running);
  json_u64(json, "waiting", stats->waiting);
  json_u64(json, "paused", stats->paused);
  json_u64(json, "running_max", stats->running_max);
  json_u64(json, "waiting_max", stats->waiting_max);
  json_u64(json, "submitted", stats->submitted);
  json_u64(json, "refused", stats->refused);
  json_u64(json, "stopped", stats->stopped);
  json_u64(json, "length", stats->length);
  json_u64(json, "aborted", stats->aborted);
  json_u64(json, "failed", stats->failed);
  json_u64(json, "preempted", stats->preempted);
  json_u64(json, "swapped_out", stats->swapped_out);
  json_u64(json, "swapped_in", stats->swapped_in);
  json_u64(json, "swap_failed", stats->swap_failed);
  json_close(json, '{');
}

static void write_tokens(json_writer *json, const wick_stats *stats) {
  json_open(json, "tokens", '{');
  json_u64(json, "prompt", stats->tokens_prompt);
  json_u64(json, "cached", stats->tokens_cached);
  json_u64(json, "recomputed", stats->tokens_recomputed);
  json_u64(json, "out", stats->tokens_out);
  json_u64(json, "proposed", stats->tokens_proposed);
  json_u64(json, "accepted", stats->tokens_accepted);
  json_close(json, '{');
}

void wick_stats_json(wick_engine *engine, wick_text_sink sink, void *context) {
  wick_stats stats;
  wick_stats_get(engine, &stats);
  json_writer json;
  json_begin(&json, sink, context);
  json_open(&json, NULL, '{');
  write_requests(&json, &stats);
  write_tokens(&json, &stats);
  json_open(&json, "pass_us", '[');
  for (uint32_t rows = 1; rows <= WICK_STATS_ROWS_MAX; rows++) {
    json_f32(&json, NULL, stats.pass_us[rows]);
  }
  json_close(&json, '[');
  json_u64(&json, "passes", stats.passes);
  json_u64(&json, "rows", stats.rows);
  json_u64(&json, "draft_failed", stats.draft_failed);
  json_close(&json, '{');
}

// component/metrics.c — /metrics: counts of answers and of the engine, in Prometheus' text format
// 0.0.4, by the names that createHandler has.
#include <stdio.h>

#include "server.h"

static const uint16_t statuses[SERVER_STATUSES] = {200, 204, 400, 404, 405, 413,
                                                   415, 429, 500, 501, 503};

void server_count(server *of, const answer *told) {
  for (uint32_t i = 0; i < SERVER_STATUSES; i++) {
    if (statuses[i] == told->status) of->responses[told->route][i]++;
  }
}

static void put_head(buffer *out, const char *name, const char *kind, const char *help) {
  char line[256];
  snprintf(line, sizeof line, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
  buffer_put_text(out, line);
}

static void put_value(buffer *out, const char *name, const char *labels, uint64_t value) {
  char line[192];
  snprintf(line, sizeof line, "%s%s %llu\n", name, labels, (unsigned long long)value);
  buffer_put_text(out, line);
}

static void put_answers(const server *of, buffer *out) {
  static const char NAME[] = "wick_http_responses_total";
  put_head(out, NAME, "counter", "Answers by route and status.");
  for (uint32_t route = 0; route < SERVER_ROUTES; route++) {
    for (uint32_t i = 0; i < SERVER_STATUSES; i++) {
      char labels[96];
      if (of->responses[route][i] == 0) continue;
      snprintf(labels, sizeof labels, "{route=\"%s\",status=\"%u\"}", server_route_path(route),
               (unsigned)statuses[i]);
      put_value(out, NAME, labels, of->responses[route][i]);
    }
  }
  uint64_t generations = 0;
  for (const answer *one = of->answers; one != NULL; one = one->next) {
    generations += one->choices_open > 0;
  }
  put_head(out, "wick_http_generations", "gauge", "Requests for text that run or wait.");
  put_value(out, "wick_http_generations", "", generations);
}

static void put_requests(const wick_stats *stats, buffer *out) {
  static const char NOW[] = "wick_requests", ENDED[] = "wick_requests_finished_total";
  put_head(out, NOW, "gauge", "Requests now.");
  put_value(out, NOW, "{state=\"running\"}", stats->running);
  put_value(out, NOW, "{state=\"waiting\"}", stats->waiting);
  put_value(out, NOW, "{state=\"paused\"}", stats->paused);
  put_head(out, "wick_requests_submitted_total", "counter", "Requests taken.");
  put_value(out, "wick_requests_submitted_total", "", stats->submitted);
  put_head(out, "wick_requests_refused_total", "counter", "Refused: the queue was full.");
  put_value(out, "wick_requests_refused_total", "", stats->refused);
  put_head(out, ENDED, "counter", "Requests that ended.");
  put_value(out, ENDED, "{reason=\"stop\"}", stats->stopped);
  put_value(out, ENDED, "{reason=\"length\"}", stats->length);
  put_value(out, ENDED, "{reason=\"abort\"}", stats->aborted);
  put_value(out, ENDED, "{reason=\"error\"}", stats->failed);
}

static void put_tokens(const wick_stats *stats, buffer *out) {
  static const char NAME[] = "wick_tokens_total";
  put_head(out, NAME, "counter", "Tokens: read, taken from the prefix cache, read again, written.");
  put_value(out, NAME, "{kind=\"prompt\"}", stats->tokens_prompt);
  put_value(out, NAME, "{kind=\"cached\"}", stats->tokens_cached);
  put_value(out, NAME, "{kind=\"recomputed\"}", stats->tokens_recomputed);
  put_value(out, NAME, "{kind=\"out\"}", stats->tokens_out);
  put_head(out, "wick_passes_total", "counter", "Passes through the model.");
  put_value(out, "wick_passes_total", "", stats->passes);
  put_head(out, "wick_rows_total", "counter", "Tokens in them.");
  put_value(out, "wick_rows_total", "", stats->rows);
}

void server_put_metrics(const server *of, buffer *out) {
  wick_stats stats;
  wick_stats_get(of->engine, &stats);
  put_answers(of, out);
  put_requests(&stats, out);
  put_tokens(&stats, out);
  wick_metrics_prometheus(of->engine, buffer_put, out);
}

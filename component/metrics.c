// component/metrics.c — /metrics: counters of responses and of the engine, in Prometheus' text
// format 0.0.4, with the same names as in createHandler. A host may run several instances, and one
// of them answers /metrics, so each sample has the instance's name as a label.
#include <stdio.h>
#include <string.h>

#include "facts.h"
#include "platform/platform.h"
#include "server.h"

static const uint16_t statuses[SERVER_STATUSES] = {200, 204, 400, 401, 403, 404, 405,
                                                   408, 413, 415, 429, 500, 501, 503};

// The bounds that OpenTelemetry recommends for these names, in microseconds.
static const uint64_t bounds_us[SERVER_BOUNDS] = {10000,    20000,    40000,    80000,   160000,
                                                  320000,   640000,   1280000,  2560000, 5120000,
                                                  10240000, 20480000, 40960000, 81920000};

static void observe(histogram *to, uint64_t us) {
  uint32_t at = 0;
  while (at < SERVER_BOUNDS && us > bounds_us[at]) at++;
  to->counts[at]++;
  to->sum_us += us;
}

void server_count(server *of, const answer *reply) {
  for (uint32_t i = 0; i < SERVER_STATUSES; i++) {
    if (statuses[i] == reply->status) of->responses[reply->route][i]++;
  }
  if (server_route_operation(reply->route) == NULL || reply->status != 200) return;
  observe(&of->durations[reply->route], platform_now_us() - reply->begun_us);
  if (reply->first_us > 0) {
    observe(&of->first_tokens[reply->route], reply->first_us - reply->begun_us);
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

static void put_metric(buffer *out, const char *name, const char *kind, const char *help,
                       uint64_t value) {
  put_head(out, name, kind, help);
  put_value(out, name, "", value);
}

static void put_answers(const server *of, buffer *out) {
  static const char NAME[] = "wick_http_responses_total";
  put_head(out, NAME, "counter", "Responses by route and status.");
  for (uint32_t route = 0; route < SERVER_ROUTES; route++) {
    for (uint32_t i = 0; i < SERVER_STATUSES; i++) {
      char labels[96];
      if (of->responses[route][i] == 0) continue;
      snprintf(labels, sizeof labels, "{route=\"%s\",status=\"%u\"}", server_route_path(route),
               (unsigned)statuses[i]);
      put_value(out, NAME, labels, of->responses[route][i]);
    }
  }
  put_metric(out, "wick_http_generations", "gauge", "Running and waiting text requests.",
             of->generations);
}

static void put_histogram(buffer *out, const char *name, uint32_t route, const histogram *from) {
  uint64_t below = 0;
  char line[256], labels[128];
  snprintf(labels, sizeof labels, "gen_ai_operation_name=\"%s\",route=\"%s\"",
           server_route_operation(route), server_route_path(route));
  for (uint32_t i = 0; i <= SERVER_BOUNDS; i++) {
    char bound[24] = "+Inf";
    if (i < SERVER_BOUNDS) snprintf(bound, sizeof bound, "%g", (double)bounds_us[i] / 1e6);
    below += from->counts[i];
    snprintf(line, sizeof line, "%s_bucket{%s,le=\"%s\"} %llu\n", name, labels, bound,
             (unsigned long long)below);
    buffer_put_text(out, line);
  }
  snprintf(line, sizeof line, "%s_sum{%s} %.6f\n%s_count{%s} %llu\n", name, labels,
           (double)from->sum_us / 1e6, name, labels, (unsigned long long)below);
  buffer_put_text(out, line);
}

static void put_durations(const server *of, buffer *out) {
  static const char ALL[] = "gen_ai_server_request_duration_seconds";
  static const char FIRST[] = "gen_ai_server_time_to_first_token_seconds";
  put_head(out, ALL, "histogram", "Duration of requests with status 200.");
  for (uint32_t i = 0; i < SERVER_ROUTES; i++) {
    if (server_route_operation(i) != NULL) put_histogram(out, ALL, i, &of->durations[i]);
  }
  put_head(out, FIRST, "histogram", "Time to the first token of text requests.");
  for (uint32_t i = 0; i < SERVER_ROUTES; i++) {
    if (server_route_operation(i) != NULL) put_histogram(out, FIRST, i, &of->first_tokens[i]);
  }
}

static void put_requests(const wick_stats *stats, buffer *out) {
  static const char NOW[] = "wick_requests", ENDED[] = "wick_requests_finished_total";
  put_head(out, NOW, "gauge", "Current requests.");
  put_value(out, NOW, "{state=\"running\"}", stats->running);
  put_value(out, NOW, "{state=\"waiting\"}", stats->waiting);
  put_value(out, NOW, "{state=\"paused\"}", stats->paused);
  put_metric(out, "wick_requests_submitted_total", "counter", "Accepted requests.",
             stats->submitted);
  put_metric(out, "wick_requests_refused_total", "counter",
             "Requests rejected because the queue was full.", stats->refused);
  put_head(out, ENDED, "counter", "Finished requests.");
  put_value(out, ENDED, "{reason=\"stop\"}", stats->stopped);
  put_value(out, ENDED, "{reason=\"length\"}", stats->length);
  put_value(out, ENDED, "{reason=\"abort\"}", stats->aborted);
  put_value(out, ENDED, "{reason=\"error\"}", stats->failed);
}

static void put_preemptions(const wick_stats *stats, buffer *out) {
  static const char SWAPS[] = "wick_swaps_total";
  put_metric(out, "wick_preemptions_total", "counter", "Pages evicted for other requests.",
             stats->preempted);
  put_head(out, SWAPS, "counter", "Preempted requests: pages swapped out, swapped in, failed.");
  put_value(out, SWAPS, "{kind=\"out\"}", stats->swapped_out);
  put_value(out, SWAPS, "{kind=\"in\"}", stats->swapped_in);
  put_value(out, SWAPS, "{kind=\"failed\"}", stats->swap_failed);
}

static void put_tokens(const wick_stats *stats, buffer *out) {
  static const char NAME[] = "wick_tokens_total";
  put_head(out, NAME, "counter",
           "Tokens: prefilled, cached, recomputed, generated, proposed, accepted.");
  put_value(out, NAME, "{kind=\"prompt\"}", stats->tokens_prompt);
  put_value(out, NAME, "{kind=\"cached\"}", stats->tokens_cached);
  put_value(out, NAME, "{kind=\"recomputed\"}", stats->tokens_recomputed);
  put_value(out, NAME, "{kind=\"out\"}", stats->tokens_out);
  put_value(out, NAME, "{kind=\"proposed\"}", stats->tokens_proposed);
  put_value(out, NAME, "{kind=\"accepted\"}", stats->tokens_accepted);
  put_metric(out, "wick_passes_total", "counter", "Passes through the model.", stats->passes);
  put_metric(out, "wick_rows_total", "counter", "Tokens in all passes.", stats->rows);
}

// Returns a number from the engine's state; 0 if it is absent.
static uint64_t count_of(const facts *state, const char *object, const char *name) {
  if (!state->is_read) return 0;
  const body *read = &state->read;
  const uint32_t node = body_find(read, body_field(read, object), name);
  return body_node(read, node)->kind == JSON_NUMBER ? (uint64_t)body_number(read, node) : 0;
}

static void put_pages(const facts *state, buffer *out) {
  static const char PAGES[] = "wick_kv_pages";
  const uint64_t all = count_of(state, "pages", "all");
  const uint64_t free = count_of(state, "pages", "free");
  put_head(out, PAGES, "gauge", "Pages of the KV cache.");
  put_value(out, PAGES, "{state=\"used\"}", all - free);
  put_value(out, PAGES, "{state=\"free\"}", free);
  put_value(out, PAGES, "{state=\"shared\"}", count_of(state, "pages", "shared"));
  put_value(out, PAGES, "{state=\"cached\"}", count_of(state, "pages", "cached"));
  put_metric(out, "wick_kv_bytes", "gauge", "Bytes of used pages.",
             count_of(state, "bytes", "used"));
  put_metric(out, "wick_prefix_hits_total", "counter", "Prompts with a cached prefix.",
             count_of(state, "prefix", "hits"));
  put_metric(out, "wick_prefix_misses_total", "counter", "Prompts without a cached prefix.",
             count_of(state, "prefix", "misses"));
}

static void put_engine(const server *of, buffer *out) {
  wick_stats stats = {0};
  facts state = {0};
  refusal ignored = {0};
  if (of->engine != NULL) {
    wick_stats_get(of->engine, &stats);
    wick_pages_json(of->engine, false, buffer_put, &state.json);
    facts_parse(&state, &ignored);
  }
  put_requests(&stats, out);
  put_preemptions(&stats, out);
  put_tokens(&stats, out);
  put_metric(out, "wick_draft_failures_total", "counter", "Failures of the draft model.",
             stats.draft_failed);
  put_pages(&state, out);
  facts_end(&state);
  if (of->engine != NULL) wick_metrics_prometheus(of->engine, buffer_put, out);
}

// Adds the instance label to each sample of a metrics page.
static void put_labelled(buffer *out, const buffer *page, const char *instance) {
  char label[64];
  for (size_t at = 0; at < page->size_bytes;) {
    const char *line = page->bytes + at;
    const char *end = memchr(line, '\n', page->size_bytes - at);
    const size_t size = end == NULL ? page->size_bytes - at : (size_t)(end - line) + 1;
    size_t name = 0;
    while (name < size && line[name] != ' ' && line[name] != '{') name++;
    if (line[0] == '#' || name == size) {
      buffer_put(out, line, size);
    } else {
      const bool has_more = line[name] == '{';
      snprintf(label, sizeof label, "{wick_instance=\"%s\"%s", instance, has_more ? "," : "}");
      buffer_put(out, line, name);
      buffer_put_text(out, label);
      buffer_put(out, line + name + has_more, size - name - has_more);
    }
    at += size;
  }
}

void server_put_metrics(const server *of, buffer *out) {
  buffer page = {0};
  put_answers(of, &page);
  put_metric(&page, "wick_model_loads_total", "counter", "Loads of the model.", of->loads);
  put_durations(of, &page);
  put_engine(of, &page);
  put_labelled(out, &page, of->instance);
  out->has_failed = out->has_failed || page.has_failed;
  buffer_free(&page);
}

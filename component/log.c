// component/log.c — lines of JSON on stderr: one for each finished request, and one for each time
// that the model was loaded or failed to load. Field names follow OpenTelemetry where it defines
// them.
#include <stdio.h>
#include <time.h>

#include "base/json.h"
#include "platform/platform.h"
#include "server.h"

typedef struct log_line {
  buffer out;
  json_writer json;
} log_line;

static void put_time(json_writer *json) {
  struct timespec now = {0};
  char seconds[32], text[48];
  timespec_get(&now, TIME_UTC);
  strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", gmtime(&now.tv_sec));
  snprintf(text, sizeof text, "%s.%03dZ", seconds, (int)(now.tv_nsec / 1000000));
  json_text(json, "time", text);
}

static void begin(log_line *line, const server *of, const char *level, const char *event) {
  line->out = (buffer){0};
  json_begin(&line->json, buffer_put, &line->out);
  json_open(&line->json, NULL, '{');
  put_time(&line->json);
  json_text(&line->json, "level", level);
  json_text(&line->json, "event.name", event);
  json_text(&line->json, "service.instance.id", of->instance);
}

// Writes the line with one call, so that lines of several instances do not mix.
static void end(log_line *line) {
  json_close(&line->json, '{');
  buffer_put_text(&line->out, "\n");
  if (!line->out.has_failed) fwrite(line->out.bytes, 1, line->out.size_bytes, stderr);
  buffer_free(&line->out);
}

static void put_seconds(log_line *line, const char *key, uint64_t us) {
  json_f64(&line->json, key, (double)us / 1e6);
}

// ---- requests ----

static void put_tokens(log_line *line, const answer *ended) {
  uint64_t prompt = ended->tokens_embedded, cached = 0, out = 0;
  for (uint32_t i = 0; i < ended->choice_count; i++) {
    const choice *one = &ended->choices[i];
    out += one->tokens_out;
    if (i % ended->choices_a_prompt != 0) continue;  // the choices of a prompt share it
    prompt += one->tokens_prompt;
    cached += one->tokens_cached;
  }
  json_u64(&line->json, "gen_ai.usage.input_tokens", prompt);
  json_u64(&line->json, "gen_ai.usage.output_tokens", out);
  json_u64(&line->json, "gen_ai.usage.cache_read.input_tokens", cached);
}

static void put_finishes(log_line *line, const answer *ended) {
  if (ended->choice_count == 0) return;
  json_open(&line->json, "gen_ai.response.finish_reasons", '[');
  for (uint32_t i = 0; i < ended->choice_count; i++) {
    const choice *one = &ended->choices[i];
    const char *finish = one->finish == NULL ? "abort" : one->finish;
    json_text(&line->json, NULL, one->has_called && finish[0] == 's' ? "tool_calls" : finish);
  }
  json_close(&line->json, '[');
}

static void put_generation(log_line *line, const server *of, const answer *ended) {
  const char *operation = server_route_operation(ended->route);
  if (operation == NULL) return;
  json_text(&line->json, "gen_ai.operation.name", operation);
  if (of->model[0] != '\0') json_text(&line->json, "gen_ai.response.model", of->model);
  if (ended->id[0] != '\0') json_text(&line->json, "gen_ai.response.id", ended->id);
  put_tokens(line, ended);
  put_finishes(line, ended);
  if (ended->first_us == 0) return;
  put_seconds(line, "gen_ai.server.time_to_first_token", ended->first_us - ended->begun_us);
}

void log_request(const server *of, const answer *ended) {
  const bool is_cut = !ended->is_done;  // the client disconnected
  const bool has_failed = ended->refused.status >= 500;
  log_line line;
  begin(&line, of, has_failed ? "error" : "info", "http.request");
  json_text(&line.json, "request_id", ended->request_id);
  json_text(&line.json, "http.request.method", ended->method);
  json_text(&line.json, "http.route", server_route_path(ended->route));
  json_u64(&line.json, "http.response.status_code", ended->status);
  put_seconds(&line, "http.server.request.duration", platform_now_us() - ended->begun_us);
  put_generation(&line, of, ended);
  if (ended->refused.status != 0) {
    json_text(&line.json, "error.type", ended->refused.code);
    if (has_failed) json_text(&line.json, "error.message", ended->refused.message);
  } else if (is_cut) {
    json_text(&line.json, "error.type", "client_gone");
  }
  end(&line);
}

// ---- settings ----

void log_unknown_setting(const server *of, const char *name, size_t size_bytes) {
  log_line line;
  begin(&line, of, "warn", "wick.settings.unknown");
  json_string(&line.json, "wick.settings.variable", name, size_bytes);
  json_text(&line.json, "message", "settings: unknown variable, which has no effect");
  end(&line);
}

// ---- the model ----

static void put_source(log_line *line) {
  buffer source = {0};
  model_put_source(&source);
  json_string(&line->json, "wick.model.source", source.bytes, source.size_bytes);
  buffer_free(&source);
}

void log_model_loaded(const server *of, uint64_t duration_us) {
  log_line line;
  begin(&line, of, "warn", "wick.model.loaded");
  put_source(&line);
  put_seconds(&line, "wick.model.load.duration", duration_us);
  json_u64(&line.json, "wick.model.loads", of->loads);
  json_text(&line.json, "message",
            "model: loaded, because this instance did not have it. If this repeats, let the host "
            "keep instances (wasmtime serve: --idle-instance-timeout, --max-instance-reuse-count)");
  end(&line);
}

void log_model_failed(const server *of, const refusal *failure) {
  log_line line;
  begin(&line, of, "error", "wick.model.failed");
  put_source(&line);
  json_text(&line.json, "error.type", failure->code);
  json_text(&line.json, "error.message", failure->message);
  end(&line);
}

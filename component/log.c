// component/log.c — lines of JSON on stderr: one for each finished request, and one for each time
// that the model was loaded or failed to load. Field names follow OpenTelemetry where it defines
// them.
#include <stdio.h>
#include <time.h>

#include "platform/platform.h"
#include "server.h"
#include "shape.h"

static void begin(buffer *line, const server *of, const char *level, const char *event) {
  struct timespec now = {0};
  char seconds[32], time[48];
  timespec_get(&now, TIME_UTC);
  strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", gmtime(&now.tv_sec));
  snprintf(time, sizeof time, "%s.%03dZ", seconds, (int)(now.tv_nsec / 1000000));
  *line = (buffer){0};
  shape_put(line, "{'time':%s,'level':%s,'event.name':%s,'service.instance.id':%s", time, level,
            event, of->instance);
}

// Writes the line with one call, so that lines of several instances do not mix.
static void end(buffer *line) {
  buffer_put_text(line, "}\n");
  if (!line->has_failed) fwrite(line->bytes, 1, line->size_bytes, stderr);
  buffer_free(line);
}

static double seconds_of(uint64_t us) { return (double)us / 1e6; }

// ---- requests ----

static void put_finishes(buffer *line, const answer *ended) {
  for (uint32_t i = 0; i < ended->choice_count; i++) {
    const choice *one = &ended->choices[i];
    shape_put(line, i == 0 ? ",'gen_ai.response.finish_reasons':[%s" : ",%s",
              one->finish == NULL ? "abort" : choice_finish(one));
  }
  if (ended->choice_count > 0) buffer_put_text(line, "]");
}

static void put_generation(buffer *line, const server *of, const answer *ended) {
  const char *operation = server_route_operation(ended->route);
  const token_usage sum = answer_usage(ended);
  if (operation == NULL) return;
  shape_put(line, ",'gen_ai.operation.name':%s", operation);
  if (of->model[0] != '\0') shape_put(line, ",'gen_ai.response.model':%s", of->model);
  if (ended->id[0] != '\0') shape_put(line, ",'gen_ai.response.id':%s", ended->id);
  shape_put(line,
            ",'gen_ai.usage.input_tokens':%U,'gen_ai.usage.output_tokens':%U,"
            "'gen_ai.usage.cache_read.input_tokens':%U",
            sum.prompt + ended->tokens_embedded, sum.out, sum.cached);
  put_finishes(line, ended);
  if (ended->first_us == 0) return;
  shape_put(line, ",'gen_ai.server.time_to_first_token':%f",
            seconds_of(ended->first_us - ended->begun_us));
}

void log_request(const server *of, const answer *ended) {
  const bool is_cut = !ended->is_done;  // the client disconnected
  const bool has_failed = ended->refused.status >= 500;
  buffer line;
  begin(&line, of, has_failed ? "error" : "info", "http.request");
  shape_put(&line,
            ",'request_id':%s,'http.request.method':%s,'http.route':%s,"
            "'http.response.status_code':%u,'http.server.request.duration':%f",
            ended->request_id, ended->method, server_route_path(ended->route),
            (uint32_t)ended->status, seconds_of(platform_now_us() - ended->begun_us));
  put_generation(&line, of, ended);
  if (ended->refused.status != 0) {
    shape_put(&line, ",'error.type':%s", ended->refused.code);
    if (has_failed) shape_put(&line, ",'error.message':%s", ended->refused.message);
  } else if (is_cut) {
    shape_put(&line, ",'error.type':'client_gone'");
  }
  end(&line);
}

// ---- settings ----

void log_unknown_setting(const server *of, const char *name, size_t size_bytes) {
  buffer line;
  begin(&line, of, "warn", "wick.settings.unknown");
  shape_put(&line,
            ",'wick.settings.variable':%t,"
            "'message':'settings: unknown variable, which has no effect'",
            (wick_text){name, size_bytes});
  end(&line);
}

// ---- the model ----

static void put_source(buffer *line) {
  buffer source = {0};
  model_put_source(&source);
  shape_put(line, ",'wick.model.source':%b", &source);
  buffer_free(&source);
}

void log_model_loaded(const server *of, uint64_t duration_us) {
  buffer line;
  begin(&line, of, "warn", "wick.model.loaded");
  put_source(&line);
  shape_put(&line, ",'wick.model.load.duration':%f,'wick.model.loads':%u,'message':%s",
            seconds_of(duration_us), of->loads,
            "model: loaded, because this instance did not have it. If this repeats, let the host "
            "keep instances (wasmtime serve: --idle-instance-timeout, --max-instance-reuse-count)");
  end(&line);
}

void log_model_failed(const server *of, const refusal *failure) {
  buffer line;
  begin(&line, of, "error", "wick.model.failed");
  put_source(&line);
  shape_put(&line, ",'error.type':%s,'error.message':%s", failure->code, failure->message);
  end(&line);
}

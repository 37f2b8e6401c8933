// component/server.c — the routes and their common parts.
#include "server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "media_jobs.h"
#include "platform/platform.h"
#include "shape.h"
#include "url_source.h"

// ---- opening ----

static bool configure(wick_config *config, refusal *refused) {
  wick_config_default(config);
  if (mmproj_is_given())
    config->batch_tokens = WICK_BATCH_TOKENS_MAX;  // some models must process an image in one pass
  return settings_read_flag("WICK_METRICS", &config->metrics, refused) &&
         settings_read_count("WICK_CONTEXT_TOKENS", &config->context_tokens, refused) &&
         settings_read_count("WICK_KV_TOKENS", &config->kv_tokens_max, refused) &&
         settings_read_count("WICK_REQUESTS", &config->requests_max, refused) &&
         settings_read_count("WICK_MAX_TILES", &config->media_tiles_max, refused) &&
         settings_read_count("WICK_MAX_IMAGE_TOKENS", &config->media_rows_max, refused);
}

// Returns an engine with the model loaded, or NULL with the reason.
static wick_engine *read_model(const wick_config *config, refusal *refused) {
  wick_error error;
  wick_engine *engine = NULL;
  if (wick_engine_create(config, &engine, &error) != WICK_OK) {
    refuse(refused, 503, "model", NULL, "%s", error.message);
    return NULL;
  }
  if (model_load(engine, refused) && (config->directory_only || mmproj_load(engine, refused))) {
    return engine;
  }
  wick_engine_destroy(engine);
  return NULL;
}

static void take_name(server *of, const wick_engine *engine) {
  wick_model_info info;
  wick_error error;
  if (of->model[0] != '\0') return;
  if (model_url() != NULL) url_name(model_url(), of->model, sizeof of->model);
  if (of->model[0] != '\0') return;
  if (engine == NULL || wick_model_get_info(engine, &info, &error) != WICK_OK) return;
  const wick_text name = info.name.size_bytes > 0 ? info.name : info.architecture;
  snprintf(of->model, sizeof of->model, "%.*s", (int)name.size_bytes, name.bytes);
}

// Reads the beginning of a file to get the model's name, but does not fetch a URL.
static bool have_name(server *of, refusal *refused) {
  take_name(of, of->engine);
  if (of->model[0] != '\0') return true;
  wick_config config = of->config;
  config.directory_only = true;
  wick_engine *engine = read_model(&config, refused);
  if (engine == NULL) return false;
  take_name(of, engine);
  wick_engine_destroy(engine);
  return true;
}

// Sets the template. Requires a loaded model, because its templates have names.
static bool set_template(server *of, refusal *refused) {
  const char *chosen = of->settings.chat_template;
  wick_error error;
  if (chosen == NULL ||
      wick_chat_set_template(of->engine, chosen, strlen(chosen), &error) == WICK_OK) {
    return true;
  }
  wick_engine_destroy(of->engine);
  of->engine = NULL;
  return refuse(refused, 500, "settings", NULL, "WICK_CHAT_TEMPLATE: %s", error.message);
}

static void load(server *of) {
  const uint64_t begun_us = platform_now_us();
  of->failure = (refusal){0};
  of->engine = read_model(&of->config, &of->failure);
  if (of->engine != NULL) set_template(of, &of->failure);
  if (of->engine == NULL) {
    log_model_failed(of, &of->failure);
    return;
  }
  of->loads++;
  take_name(of, of->engine);
  log_model_loaded(of, platform_now_us() - begun_us);
}

// Loads the model if necessary. A failure is permanent, unless the model's server may respond to a
// later attempt.
static bool have_model(server *of, refusal *refused) {
  const char *code = of->failure.code;
  const bool may_retry = code == NULL || strcmp(code, MODEL_SERVER) == 0;
  if (of->engine == NULL && may_retry) load(of);
  if (of->engine == NULL) *refused = of->failure;
  return of->engine != NULL;
}

static void report_unknown_settings(const server *of) {
  char **at = NULL;
  size_t size_bytes;
  for (const char *name; (name = settings_next_unknown(&at, &size_bytes)) != NULL;) {
    log_unknown_setting(of, name, size_bytes);
  }
}

static bool check_url(const char *name, const char *url, refusal *refused) {
  return url == NULL || url_check(name, url, refused);
}

void server_open(server *opened) {
  if (opened->has_settings) return;
  opened->has_settings = true;
  opened->created_s = (int64_t)time(NULL);
  random_name(opened->instance);
  report_unknown_settings(opened);
  const bool is_right =
      settings_read(&opened->settings, &opened->failure) &&
      configure(&opened->config, &opened->failure) &&
      (opened->engine != NULL || (check_url("WICK_MODEL_URL", model_url(), &opened->failure) &&
                                  check_url("WICK_MMPROJ_URL", mmproj_url(), &opened->failure)));
  const char *name = opened->settings.model_name;
  if (is_right && opened->engine != NULL) set_template(opened, &opened->failure);
  if (is_right && name != NULL) snprintf(opened->model, sizeof opened->model, "%s", name);
}

void __wasilibc_deinitialize_environ(void);  // from wasi-libc, for snapshots

void server_preload(server *opened) {
  if (configure(&opened->config, &opened->failure)) {
    opened->engine = read_model(&opened->config, &opened->failure);
  }
  if (opened->engine == NULL) {
    fprintf(stderr, "%s\n", opened->failure.message);
    abort();
  }
  take_name(opened, opened->engine);
  model_forget_bytes();
  __wasilibc_deinitialize_environ();
}

// ---- routes without a body ----

static bool give_health(const server *of, const http_request *request, answer *to,
                        refusal *refused) {
  (void)of, (void)request, (void)refused;
  buffer_put_text(&to->out, "{\"status\":\"ok\"}");
  return answer_give_json(to);
}

static void put_model(buffer *out, const server *of) {
  shape_put(out, "{'id':%s,'object':'model','created':%D,'owned_by':'wick-llm'}", of->model,
            of->created_s);
}

static bool give_models(const server *of, const http_request *request, answer *to,
                        refusal *refused) {
  (void)request, (void)refused;
  shape_put(&to->out, "{'object':'list','data':[");
  put_model(&to->out, of);
  buffer_put_text(&to->out, "]}");
  return answer_give_json(to);
}

static bool is_escaped(const char *asked, const char *name) {
  for (; *asked != '\0' && *name != '\0'; name++) {
    unsigned code = 0;
    if (asked[0] == '%' && sscanf(asked + 1, "%2x", &code) == 1 && code == (uint8_t)*name) {
      asked += 3;
    } else if (*asked++ != *name) {
      return false;
    }
  }
  return *asked == '\0' && *name == '\0';
}

static bool give_model(const server *of, const http_request *request, answer *to,
                       refusal *refused) {
  if (!is_escaped(request->path + strlen("/v1/models/"), of->model)) {
    return refuse(refused, REFUSE_OTHER_MODEL("model"), of->model);
  }
  put_model(&to->out, of);
  return answer_give_json(to);
}

static bool give_metrics(const server *of, const http_request *request, answer *to,
                         refusal *refused) {
  const char *salt;
  const settings *set = &of->settings;
  if (set->keys.count > 0 && set->metrics_keys.count == 0) {
    return refuse(refused, 403, "metrics_closed", NULL,
                  "/metrics counts the requests of all keys: set WICK_METRICS_KEY to read it");
  }
  if (!keys_check(&set->metrics_keys, request->authorization.bytes, &salt, refused)) return false;
  server_put_metrics(of, &to->out);
  answer_give(to, "text/plain; version=0.0.4; charset=utf-8");
  to->is_done = true;
  return true;
}

// ---- routes with a body ----

static bool has_prefix(const char *text, const char *prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

// Compares the type in lower case and without its parameters.
static bool is_json(const char *type) {
  size_t end = strcspn(type, "; ");
  return has_prefix(type, "application/") && end >= strlen("application/json") &&
         memcmp(type + end - 4, "json", 4) == 0 &&
         (end == strlen("application/json") || type[end - 5] == '+');
}

static bool is_too_large(const server *of, refusal *refused) {
  return refuse(refused, REFUSE_BODY_SIZE(NULL), (unsigned)of->settings.body_bytes_max);
}

// Checks the headers that describe the body.
static bool check_head(const server *of, const http_request *request, refusal *refused) {
  const char *type = request->content_type, *encoding = request->content_encoding;
  if (!is_json(type)) {
    return refuse(refused, REFUSE_BODY_TYPE(NULL), type[0] == '\0' ? "none" : type);
  }
  if (encoding[0] != '\0' && strcmp(encoding, "identity") != 0) {
    return refuse(refused, REFUSE_BODY_CODING(NULL), encoding);
  }
  return strtoull(request->content_length, NULL, 10) <= of->settings.body_bytes_max ||
         is_too_large(of, refused);
}

static bool check_body(const server *of, http_request *request, refusal *refused) {
  if (request->is_body_late) {
    return refuse(refused, REFUSE_BODY_LATE(NULL), (unsigned)of->settings.body_timeout_ms);
  }
  if (request->body.size_bytes > of->settings.body_bytes_max) return is_too_large(of, refused);
  buffer_put(&request->body, "", 1);  // terminates it
  if (request->body.has_failed) {
    return refuse_memory(refused, "the body");
  }
  return request->is_body_read ||
         refuse(refused, 400, "invalid_json", NULL, "The body ended early");
}

// ---- the table of routes ----

typedef struct route {
  const char *path;  // a '/' at the end matches all paths below it
  const char *method, *allow;
  bool (*give)(const server *of, const http_request *request, answer *to, refusal *refused);
  bool (*begin)(server *of, body *read, answer *to, refusal *refused);  // for routes with a body
  const char *operation;  // OpenTelemetry's name, for routes that use the model
  const field *fields;    // of the body
} route;

#define GETS "GET", "GET, HEAD, OPTIONS"
#define POSTS "POST", "POST, OPTIONS", NULL
static const route routes[] = {{"/health", GETS, give_health, NULL, NULL, NULL},
                               {"/metrics", GETS, give_metrics, NULL, NULL, NULL},
                               {"/v1/models", GETS, give_models, NULL, NULL, NULL},
                               {"/v1/models/", GETS, give_model, NULL, NULL, NULL},
                               {"/props", GETS, give_props, NULL, NULL, NULL},
#define ROUTE(path, name, operation) {path, POSTS, name##_begin, operation, fields_##name},
                               BODY_ROUTES(ROUTE)
#undef ROUTE
};

enum { ROUTES = sizeof routes / sizeof routes[0] };
_Static_assert(ROUTES < SERVER_ROUTES, "the last row counts requests to unknown routes");

const char *server_route_path(uint32_t route) {
  return route < ROUTES ? routes[route].path : "none";
}

const char *server_route_operation(uint32_t route) {
  return route < ROUTES ? routes[route].operation : NULL;
}

static const route *find(const char *path) {
#define OTHER_PATH(other, own) \
  if (strcmp(path, other) == 0) path = own;
  PATH_ALIASES(OTHER_PATH)
#undef OTHER_PATH
  for (size_t i = 0; i < ROUTES; i++) {
    const size_t size = strlen(routes[i].path);
    const bool is_folder = routes[i].path[size - 1] == '/';
    if (is_folder ? has_prefix(path, routes[i].path) : strcmp(path, routes[i].path) == 0) {
      return &routes[i];
    }
  }
  return NULL;
}

// ---- requests ----

static void give_options(const route *found, answer *to) {
  answer_give(to, NULL);
  to->status = 204;
  to->allow = found->allow;
  to->is_done = true;
}

static bool check_method(const route *found, const http_request *request, answer *to,
                         refusal *refused) {
  const bool is_head = strcmp(request->method, "HEAD") == 0 && found->give != NULL;
  if (strcmp(request->method, found->method) == 0 || is_head) return true;
  to->allow = found->allow;
  return refuse(refused, REFUSE_WRONG_METHOD(NULL), request->method, request->path);
}

// Checks the client's key and the server's health.
static bool check_access(const server *of, const route *found, const http_request *request,
                         answer *to, refusal *refused) {
  if (!of->has_settings || of->failure.status == 500) {  // the keys are unknown
    *refused = of->failure;
    return false;
  }
  const bool is_open = found->give == give_health || found->give == give_metrics;
  if (!is_open &&
      !keys_check(&of->settings.keys, request->authorization.bytes, &to->tenant, refused)) {
    return false;
  }
  // requests cannot be answered without a model, so clients may try other servers
  if (found->give == give_health && of->failure.status != 0) *refused = of->failure;
  return refused->status == 0;
}

// Routes that do not process text do not load the model: inspecting the server must not cause a
// download.
static bool have_what_it_needs(server *of, const route *found, refusal *refused) {
  if (found->give == give_models || found->give == give_model) return have_name(of, refused);
  return (found->give != NULL && found->give != give_props) || have_model(of, refused);
}

static bool begin_request(server *of, const route *found, const http_request *request, answer *to,
                          refusal *refused) {
  if (!check_method(found, request, to, refused) ||
      !check_access(of, found, request, to, refused) ||
      (found->begin != NULL && !check_head(of, request, refused)) ||
      !have_what_it_needs(of, found, refused)) {
    return false;
  }
  if (found->give != NULL) {
    if (!found->give(of, request, to, refused)) return false;
    if (strcmp(request->method, "HEAD") == 0) buffer_clear(&to->out);
  }
  return true;
}

static void take_origin(const server *of, const http_request *request, answer *to) {
  enum { ORIGIN_BYTES_MAX = 1024, ASKED_BYTES_MAX = 4096 };
  const char *origins = of->settings.origins;
  const bool is_any = settings_have_origin(origins, "*");
  to->varies = origins != NULL && !is_any;
  if (request->origin.size_bytes > ORIGIN_BYTES_MAX || request->origin.size_bytes <= 1) return;
  if (!is_any && !settings_have_origin(origins, request->origin.bytes)) return;
  buffer_put_text(&to->origin, is_any ? "*" : request->origin.bytes);
  buffer_put(&to->origin, "", 1);
  if (strcmp(request->method, "OPTIONS") != 0) return;
  to->is_preflight = true;
  if (request->asked_headers.size_bytes <= ASKED_BYTES_MAX) {
    buffer_put(&to->asked_headers, request->asked_headers.bytes, request->asked_headers.size_bytes);
  }
}

static void refuse_request(server *of, answer *to, const refusal *refused) {
  if (of->engine != NULL) generation_cancel(to);
  answer_refuse(to, refused);
}

bool server_begin(server *of, const http_request *request, answer *to) {
  refusal refused = {0};
  char name[RANDOM_NAME_BYTES];
  memset(to, 0, sizeof *to);
  random_name(name);
  snprintf(to->method, sizeof to->method, "%s", request->method);
  to->begun_us = platform_now_us();
  snprintf(to->request_id, sizeof to->request_id, "req-%s", name);
  to->of = of;
  to->next = of->answers;
  of->answers = to;
  take_origin(of, request, to);
  const route *found = find(request->path);
  to->route = found == NULL ? SERVER_ROUTES - 1 : (uint32_t)(found - routes);
  if (found != NULL && strcmp(request->method, "OPTIONS") == 0) {
    give_options(found, to);
    return false;
  }
  if (found == NULL) {
    refuse(&refused, REFUSE_NO_ROUTE(NULL), request->path);
  } else if (begin_request(of, found, request, to, &refused)) {
    return found->begin != NULL;
  }
  refuse_request(of, to, &refused);
  return false;
}

// Parses the body as JSON. It is kept until the answer no longer needs it. Returns NULL after a
// refusal.
static asked_body *hold_body(const server *of, http_request *request, refusal *refused) {
  asked_body *held = calloc(1, sizeof *held);
  if (held == NULL) {
    refuse_memory(refused, "the body");
    return NULL;
  }
  held->source = request->body;
  request->body = (buffer){0};
  if (body_read(&held->read, held->source.bytes, held->source.size_bytes - 1, refused)) {
    body_check_lists(&held->read, of->settings.items_max, refused);
  }
  return held;
}

// Counts a request once its body has arrived, so that connections which send nothing do not block
// other clients.
static bool count_request(server *of, answer *to, refusal *refused) {
  const uint32_t limit = of->settings.queue_limit;
  if (of->generations >= limit) {
    return refuse(refused, REFUSE_FULL_QUEUE(NULL), (unsigned)limit);
  }
  to->is_generation = true;
  of->generations++;
  return true;
}

// Begins an answer whose body has been parsed, or begins it again once its media are encoded.
static void begin_answer(server *of, answer *to, refusal *refused) {
  const route *found = &routes[to->route];
  const bool is_read = to->asked != NULL && refused->status == 0;
  if (!is_read || !fields_check(&to->asked->read, BODY_ROOT, found->fields, "", refused) ||
      !found->begin(of, &to->asked->read, to, refused)) {
    refuse_request(of, to, refused);
  }
  const bool is_encoding = to->media != NULL && to->media->is_waiting;
  if (to->embedding == NULL && !is_encoding) answer_forget_body(to);
}

void server_take_body(server *of, http_request *request, answer *to) {
  refusal refused = {0};
  if (check_body(of, request, &refused) && count_request(of, to, &refused))
    to->asked = hold_body(of, request, &refused);
  begin_answer(of, to, &refused);
}

// ---- work ----

bool server_step(server *of) {
  if (of->engine == NULL) return false;
  const bool is_idle = wick_step(of->engine, 0) == WICK_STEP_IDLE;
  const bool is_embedding = embeddings_step(of);
  refusal refused = {0};
  answer *encoded;
  const bool is_encoding = media_step(of, &encoded);
  if (encoded != NULL) begin_answer(of, encoded, &refused);
  size_t size_bytes;
  const uint8_t *events = wick_events_take(of->engine, &size_bytes);
  const wick_event *event = NULL;
  while ((event = wick_event_next(events, size_bytes, event)) != NULL) {
    answer *to = of->answers;
    while (to != NULL && !generation_take(to, event)) to = to->next;
  }
  const uint64_t now_us = platform_now_us();
  for (answer *to = of->answers; to != NULL; to = to->next) {
    if (to->is_done && to->choices_open > 0) generation_cancel(to);
    answer_keep_alive(to, now_us, of->settings.silence_ms);
  }
  return !is_idle || is_embedding || is_encoding || size_bytes > 0;
}

bool server_has_cancelled(const server *of) {
  wick_stats stats;
  uint32_t open = 0;
  if (of->engine == NULL) return false;
  for (const answer *at = of->answers; at != NULL; at = at->next) open += at->choices_open;
  wick_stats_get(of->engine, &stats);
  return stats.running + stats.waiting > open;
}

void server_end(server *of, answer *to) {
  answer **link = &of->answers;
  while (*link != NULL && *link != to) link = &(*link)->next;
  if (*link != NULL) *link = (*link)->next;
  server_count(of, to);
  if (of->settings.logs_requests) log_request(of, to);
  if (to->is_generation) of->generations--;
  embeddings_leave(of, to);
  media_leave(of, to);
  generation_free(to);
}

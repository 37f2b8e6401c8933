// component/server.c — the routes, and what all of them share.
#include "server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"

// ---- opening ----

static void name_model(server *opened) {
  wick_model_info info;
  wick_error error;
  if (wick_model_get_info(opened->engine, &info, &error) != WICK_OK) return;
  const wick_text name = info.name.size_bytes > 0 ? info.name : info.architecture;
  snprintf(opened->model, sizeof opened->model, "%.*s", (int)name.size_bytes, name.bytes);
}

// A number of the environment; 0: not given.
static uint32_t setting(const char *name) {
  const char *text = getenv(name);
  return text == NULL ? 0 : (uint32_t)strtoul(text, NULL, 10);
}

void server_open(server *opened) {
  if (opened->engine != NULL || opened->failure.status != 0) return;
  wick_config config;
  wick_error error;
  wick_config_default(&config);
  config.context_tokens = setting("WICK_CONTEXT_TOKENS");
  config.kv_tokens_max = setting("WICK_KV_TOKENS");
  config.requests_max = setting("WICK_REQUESTS");
  config.metrics = setting("WICK_METRICS") != 0;
  wick_engine *engine = NULL;
  if (wick_engine_create(&config, &engine, &error) != WICK_OK) {
    refuse(&opened->failure, 503, "model", NULL, "%s", error.message);
    return;
  }
  if (!model_load(engine, &opened->failure)) {
    wick_engine_destroy(engine);
    return;
  }
  opened->engine = engine;
  opened->created_s = (int64_t)time(NULL);
  name_model(opened);
}

// ---- routes without a body ----

static bool give_health(const server *of, http_request *request, answer *to, refusal *refused) {
  (void)of, (void)request, (void)refused;
  buffer_put_text(&to->out, "{\"status\":\"ok\"}");
  answer_give(to, "application/json");
  to->is_done = true;
  return true;
}

static void put_model(json_writer *json, const server *of) {
  json_open(json, NULL, '{');
  json_text(json, "id", of->model);
  json_text(json, "object", "model");
  json_i64(json, "created", of->created_s);
  json_text(json, "owned_by", "wick-llm");
  json_close(json, '{');
}

static bool give_models(const server *of, http_request *request, answer *to, refusal *refused) {
  (void)request, (void)refused;
  json_writer json;
  json_begin(&json, buffer_put, &to->out);
  json_open(&json, NULL, '{');
  json_text(&json, "object", "list");
  json_open(&json, "data", '[');
  put_model(&json, of);
  json_close(&json, '[');
  json_close(&json, '{');
  answer_give(to, "application/json");
  to->is_done = true;
  return true;
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

static bool give_model(const server *of, http_request *request, answer *to, refusal *refused) {
  json_writer json;
  if (!is_escaped(request->path + strlen("/v1/models/"), of->model)) {
    return refuse(refused, 404, "model_not_found", "model", "The model here is %s", of->model);
  }
  json_begin(&json, buffer_put, &to->out);
  put_model(&json, of);
  answer_give(to, "application/json");
  to->is_done = true;
  return true;
}

static bool give_metrics(const server *of, http_request *request, answer *to, refusal *refused) {
  (void)request, (void)refused;
  server_put_metrics(of, &to->out);
  answer_give(to, "text/plain; version=0.0.4; charset=utf-8");
  to->is_done = true;
  return true;
}

// ---- routes with a body ----

static bool has_prefix(const char *text, const char *prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

// Lower case; the type ends before its parameters.
static bool is_json(const char *type) {
  size_t end = strcspn(type, "; ");
  return has_prefix(type, "application/") && end >= strlen("application/json") &&
         memcmp(type + end - 4, "json", 4) == 0 &&
         (end == strlen("application/json") || type[end - 5] == '+');
}

static bool check_body(const http_request *request, refusal *refused) {
  const char *type = request->content_type, *encoding = request->content_encoding;
  if (!is_json(type)) {
    return refuse(refused, 415, "unsupported_media_type", NULL,
                  "The body must be JSON with Content-Type: application/json, not %s",
                  type[0] == '\0' ? "none" : type);
  }
  if (encoding[0] != '\0' && strcmp(encoding, "identity") != 0) {
    return refuse(refused, 415, "unsupported_media_type", NULL,
                  "A body with Content-Encoding: %s is not understood", encoding);
  }
  if (request->body.size_bytes > BODY_BYTES_MAX) {
    return refuse(refused, 413, "body_too_large", NULL, "The body has more than %d bytes",
                  BODY_BYTES_MAX);
  }
  if (request->body.has_failed) {
    return refuse(refused, 503, "nomem", NULL, "There is no memory for the body");
  }
  return request->is_body_read || refuse(refused, 400, "invalid_json", NULL, "The body broke off");
}

typedef bool (*body_route)(const server *of, body *read, answer *to, refusal *refused);

static bool answer_body(const server *of, http_request *request, body_route begin, answer *to,
                        refusal *refused) {
  body read;
  if (!check_body(request, refused)) return false;
  buffer_put(&request->body, "", 1);  // its end
  if (request->body.has_failed) {
    return refuse(refused, 503, "nomem", NULL, "There is no memory for the body");
  }
  const bool has_begun =
      body_read(&read, request->body.bytes, request->body.size_bytes - 1, refused) &&
      begin(of, &read, to, refused);
  body_end(&read);
  return has_begun;
}

static bool post_chat(const server *of, http_request *request, answer *to, refusal *refused) {
  return answer_body(of, request, chat_begin, to, refused);
}
static bool post_completion(const server *of, http_request *request, answer *to, refusal *refused) {
  return answer_body(of, request, completion_begin, to, refused);
}

// ---- the table of routes ----

typedef struct route {
  const char *path;  // with a '/' at its end: all below it
  const char *method, *allow;
  bool (*give)(const server *of, http_request *request, answer *to, refusal *refused);
} route;

#define GETS "GET", "GET, HEAD, OPTIONS"
#define POSTS "POST", "POST, OPTIONS"
static const route routes[] = {{"/health", GETS, give_health},
                               {"/metrics", GETS, give_metrics},
                               {"/v1/models", GETS, give_models},
                               {"/v1/models/", GETS, give_model},
                               {"/v1/chat/completions", POSTS, post_chat},
                               {"/v1/completions", POSTS, post_completion}};

enum { ROUTES = sizeof routes / sizeof routes[0] };
_Static_assert(ROUTES < SERVER_ROUTES, "the last row counts what is no route");

const char *server_route_path(uint32_t route) {
  return route < ROUTES ? routes[route].path : "none";
}

static const route *find(const char *path) {
  for (size_t i = 0; i < ROUTES; i++) {
    const size_t size = strlen(routes[i].path);
    const bool is_folder = routes[i].path[size - 1] == '/';
    if (is_folder ? has_prefix(path, routes[i].path) : strcmp(path, routes[i].path) == 0) {
      return &routes[i];
    }
  }
  return NULL;
}

static bool answer_request(const server *of, http_request *request, answer *to, refusal *refused) {
  const route *found = find(request->path);
  to->route = found == NULL ? SERVER_ROUTES - 1 : (uint32_t)(found - routes);
  if (found == NULL) {
    return refuse(refused, 404, "not_found", NULL, "There is nothing at %s", request->path);
  }
  if (strcmp(request->method, "OPTIONS") == 0) {
    answer_give(to, NULL);
    to->status = 204;
    to->allow = found->allow;
    to->is_done = true;
    return true;
  }
  const bool is_head = strcmp(request->method, "HEAD") == 0 && found->method[0] == 'G';
  if (strcmp(request->method, found->method) != 0 && !is_head) {
    to->allow = found->allow;
    return refuse(refused, 405, "method_not_allowed", NULL, "%s knows no %s", request->path,
                  request->method);
  }
  if (of->failure.status != 0) {
    *refused = of->failure;
    return false;
  }
  if (!found->give(of, request, to, refused)) return false;
  if (is_head) buffer_clear(&to->out);
  return true;
}

void server_begin(server *of, http_request *request, answer *to) {
  refusal refused = {0};
  char name[RANDOM_NAME_BYTES];
  memset(to, 0, sizeof *to);
  random_name(name);
  snprintf(to->request_id, sizeof to->request_id, "req-%s", name);
  to->next = of->answers;
  of->answers = to;
  if (!answer_request(of, request, to, &refused)) {
    if (of->engine != NULL) generation_cancel(of, to);
    answer_refuse(to, &refused);
  }
}

// ---- work ----

bool server_step(server *of) {
  if (of->engine == NULL) return false;
  const bool is_idle = wick_step(of->engine, 0) == WICK_STEP_IDLE;
  size_t size_bytes;
  const uint8_t *events = wick_events_take(of->engine, &size_bytes);
  const wick_event *event = NULL;
  while ((event = wick_event_next(events, size_bytes, event)) != NULL) {
    answer *to = of->answers;
    while (to != NULL && !generation_take(of, to, event)) to = to->next;
  }
  for (answer *to = of->answers; to != NULL; to = to->next) {
    if (to->is_done && to->choices_open > 0) generation_cancel(of, to);
  }
  return !is_idle || size_bytes > 0;
}

void server_end(server *of, answer *to) {
  answer **link = &of->answers;
  while (*link != NULL && *link != to) link = &(*link)->next;
  if (*link != NULL) *link = (*link)->next;
  server_count(of, to);
  generation_free(of, to);
}

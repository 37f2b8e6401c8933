// component/server.h — OpenAI's API over HTTP. Requests arrive through wasi:http 0.2 (http_p2.c) or
// 0.3 (http_p3.c). Requests share one engine, its batch and its prefix cache.
#ifndef WICK_COMPONENT_SERVER_H
#define WICK_COMPONENT_SERVER_H

#include "answer.h"
#include "settings.h"

enum { SERVER_ROUTES = 20, SERVER_STATUSES = 14, SERVER_BOUNDS = 14 };
enum { SERVER_LOOK_US = 50000 };  // interval between checks whether a client is still connected
enum { SERVER_NAME_BYTES = 128, HTTP_PATH_BYTES = 256, HTTP_VALUE_BYTES = 128 };

// Counts of durations by their upper bounds (metrics.c); the last one has no bound.
typedef struct histogram {
  uint64_t counts[SERVER_BOUNDS + 1];
  uint64_t sum_us;
} histogram;

struct server {
  wick_engine *engine;  // NULL: the model has not been needed yet, or failed to load
  wick_config config;   // of the engine
  uint32_t loads;       // number of times that the model was loaded in this instance
  refusal failure;      // why requests cannot be answered, or why the last request had no model
  char instance[RANDOM_NAME_BYTES];  // the instance's name in logs and metrics; "": not named yet
  bool has_settings;                 // whether the settings have been read
  settings settings;
  char model[SERVER_NAME_BYTES];  // the model's name; "": not known yet
  int64_t created_s;
  answer *answers;       // in progress
  answer *embeddings;    // answers that wait for vectors, in submission order
  answer *encodings;     // answers whose images are being encoded, in submission order
  uint32_t generations;  // number of text requests in progress
  uint64_t responses[SERVER_ROUTES][SERVER_STATUSES];  // counts by route and status (metrics.c)
  histogram durations[SERVER_ROUTES], first_tokens[SERVER_ROUTES];
};

// Strings are terminated, and "" if missing. Strings in arrays are truncated to the size of the
// array.
typedef struct http_request {
  char method[16], path[HTTP_PATH_BYTES];
  char content_type[HTTP_VALUE_BYTES], content_encoding[HTTP_VALUE_BYTES];
  char content_length[HTTP_VALUE_BYTES];
  buffer authorization, origin, asked_headers;  // asked_headers: access-control-request-headers
  buffer body;        // only the beginning if the body exceeds the settings' body_bytes_max
  bool is_body_read;  // false: the body was cut off
  bool is_body_late;  // whether the body did not arrive within the settings' body_timeout_ms
} http_request;

// Reads the settings, once; later calls do nothing. After a failure, all requests are rejected with
// its error. The first request that needs the model loads it; if the model's server fails, the next
// request tries again.
void server_open(server *opened);
// Called before a snapshot of the instance: loads the model and discards the environment, which
// server_open reads again when the snapshot starts to serve. If the model cannot be loaded, traps
// after writing the reason to stderr.
void server_preload(server *opened);
// Answers requests that do not need their body. Returns true if the body is needed: the caller then
// reads it, up to the limit plus one byte, and passes it to server_take_body.
bool server_begin(server *of, const http_request *request, answer *to);
// Answers the request or starts its answer. Takes ownership of its body.
void server_take_body(server *of, http_request *request, answer *to);
// Does a unit of work for all waiting answers. Returns false if no answer is waiting.
bool server_step(server *of);
// Called when the client has disconnected or has received everything. Frees the answer and cancels
// the requests that it still waits for.
void server_end(server *of, answer *to);
// Whether the engine still has requests of ended answers, which server_step will end.
bool server_has_cancelled(const server *of);

// ---- routes: each begins or rejects the answer to a body with valid fields ----

#define ROUTE(path, name, operation) \
  bool name##_begin(server *of, body *read, answer *to, refusal *refused);
BODY_ROUTES(ROUTE)
#undef ROUTE
// Like chat_begin, with an answer of this form.
bool chat_begin_as(server *of, body *read, const answer_form *form, answer *to, refusal *refused);
bool give_props(const server *of, const http_request *request, answer *to, refusal *refused);

// ---- vectors (embedding_jobs.c) ----

// Does a unit of work for the first waiting request. Returns false if no request is waiting.
bool embeddings_step(server *of);
// Removes an answer from the queue and frees its job. Called when the client has disconnected or
// has received everything. The answer need not be waiting for vectors.
void embeddings_leave(server *of, answer *to);

// ---- metrics (metrics.c) ----

void server_count(server *of, const answer *reply);
void server_put_metrics(const server *of, buffer *out);
// Returns the path of a route; "none" for paths without a route.
const char *server_route_path(uint32_t route);
// Returns OpenTelemetry's name of the operation, such as "chat"; NULL for routes that do not
// process text.
const char *server_route_operation(uint32_t route);

// ---- lines of JSON on stderr (log.c) ----

void log_request(const server *of, const answer *ended);
void log_unknown_setting(const server *of, const char *name, size_t size_bytes);
void log_model_loaded(const server *of, uint64_t duration_us);
void log_model_failed(const server *of, const refusal *failure);

// ---- the model (model_source.c) ----

// Feeds the engine from the model that is embedded in the component, or from a file of a preopened
// directory.
bool model_load(wick_engine *engine, refusal *refused);
// Loads the encoders of the mmproj file into an engine with a model, if an mmproj file is
// configured.
bool mmproj_load(wick_engine *engine, refusal *refused);
// Returns the URL of the mmproj file; NULL: the file is local, or there is none.
const char *mmproj_url(void);
bool mmproj_is_given(void);
// Returns the URL of the model; NULL: the model is embedded or a local file.
const char *model_url(void);
// Returns the model's location for logs: without the URL's query, which may contain a key.
void model_put_source(buffer *out);
// Frees the embedded file after it has been loaded, so that a snapshot does not contain it in
// addition to the weights.
void model_forget_bytes(void);

#endif

// component/server.h — OpenAI's interface over HTTP. Requests arrive by wasi:http 0.2 (http_p2.c)
// or 0.3 (http_p3.c). Requests share one engine, its batch and its prefix cache.
#ifndef WICK_COMPONENT_SERVER_H
#define WICK_COMPONENT_SERVER_H

#include "answer.h"
#include "settings.h"

enum { SERVER_ROUTES = 12, SERVER_STATUSES = 14, SERVER_BOUNDS = 14 };
enum { SERVER_LOOK_US = 50000 };  // between two looks whether a client is still connected
enum { SERVER_NAME_BYTES = 128, HTTP_PATH_BYTES = 256, HTTP_VALUE_BYTES = 128 };

// Durations by their upper bounds (metrics.c), the last one without.
typedef struct histogram {
  uint64_t counts[SERVER_BOUNDS + 1];
  uint64_t sum_us;
} histogram;

struct server {
  wick_engine *engine;  // NULL: no request has needed the model yet, or it failed to load
  wick_config config;   // of the engine
  uint32_t loads;       // of the model, in this instance
  refusal failure;      // why no request is answered, or the last one without a model
  char instance[RANDOM_NAME_BYTES];  // its name in logs and metrics; "": not named yet
  bool has_settings;                 // they were read
  settings settings;
  char model[SERVER_NAME_BYTES];  // its name; "": not known yet
  int64_t created_s;
  answer *answers;                                     // on their way
  answer *embeddings;                                  // those that wait for vectors, in order
  answer *encodings;                                   // those whose images are encoded, in order
  uint32_t generations;                                // requests for text under way
  uint64_t responses[SERVER_ROUTES][SERVER_STATUSES];  // that ended; metrics.c has the statuses
  histogram durations[SERVER_ROUTES], first_tokens[SERVER_ROUTES];
};

// Texts are terminated, and "" where there is none. Those in arrays are cut where they are longer.
typedef struct http_request {
  char method[16], path[HTTP_PATH_BYTES];
  char content_type[HTTP_VALUE_BYTES], content_encoding[HTTP_VALUE_BYTES];
  char content_length[HTTP_VALUE_BYTES];
  buffer authorization, origin, asked_headers;  // the last: access-control-request-headers
  buffer body;        // over the settings' body_bytes_max: its beginning, which is refused
  bool is_body_read;  // else it broke off
  bool is_body_late;  // it did not arrive within the settings' body_timeout_ms
} http_request;

// Reads the settings, once; later calls do nothing. A failure is the answer to all requests. The
// model is loaded by the first request that needs it, and after a failure of the model's server
// again by the next one.
void server_open(server *opened);
// Before a snapshot of the instance: loads the model, and forgets the environment, which
// server_open reads when the snapshot serves. Traps without a model, with its reason on stderr.
void server_preload(server *opened);
// Answers requests that need only their head. True: the answer needs the body, which is read next,
// up to a byte more than the settings allow, and given to server_take_body.
bool server_begin(server *of, const http_request *request, answer *to);
// Answers, or begins to. Takes the request's body.
void server_take_body(server *of, http_request *request, answer *to);
// A unit of work for all answers that wait. False: none waits.
bool server_step(server *of);
// The client has gone or has received everything. Frees what the answer holds.
void server_end(server *of, answer *to);

// ---- routes: bodies that were read, into answers that have begun or are refused ----

bool chat_begin(server *of, body *read, answer *to, refusal *refused);
// As /v1/chat/completions, in the form of `kind`.
bool chat_begin_as(server *of, body *read, answer_kind kind, answer *to, refusal *refused);
bool completion_begin(server *of, body *read, answer *to, refusal *refused);
bool responses_begin(server *of, body *read, answer *to, refusal *refused);
bool embedding_begin(server *of, body *read, answer *to, refusal *refused);
bool rerank_begin(server *of, body *read, answer *to, refusal *refused);

// ---- vectors (embedding_jobs.c) ----

// A unit of work for the first that waits. False: no request waits.
bool embeddings_step(server *of);
// The client has gone or has received everything. An answer that waits for no vectors is fine.
void embeddings_leave(server *of, answer *to);

// ---- figures (metrics.c) ----

void server_count(server *of, const answer *reply);
void server_put_metrics(const server *of, buffer *out);
// "none" for paths without a route.
const char *server_route_path(uint32_t route);
// The operation by OpenTelemetry's names, such as "chat"; NULL for routes that read no text.
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
// Loads the encoders of the mmproj file into an engine with a model, if there is one.
bool mmproj_load(wick_engine *engine, refusal *refused);
// The URL that the mmproj file is read from; NULL: it is a file, or there is none.
const char *mmproj_url(void);
bool mmproj_is_given(void);
// The URL that the model is read from; NULL: it is embedded or a file.
const char *model_url(void);
// The model's address for logs: without a URL's query, which may have a key.
void model_put_source(buffer *out);
// The embedded file was read: a snapshot need not hold it in addition to the weights.
void model_forget_bytes(void);

#endif

// component/server.h — OpenAI's interface over HTTP, whoever brings the requests: wasi:http 0.2
// (http_p2.c) or 0.3 (http_p3.c). Requests share one engine, its batch and its prefix cache.
#ifndef WICK_COMPONENT_SERVER_H
#define WICK_COMPONENT_SERVER_H

#include "answer.h"

enum { SERVER_ROUTES = 9, SERVER_STATUSES = 11 };
enum { SERVER_NAME_BYTES = 128, HTTP_PATH_BYTES = 256, HTTP_VALUE_BYTES = 128 };

struct server {
  wick_engine *engine;
  refusal failure;  // why there is none
  char model[SERVER_NAME_BYTES];
  int64_t created_s;
  answer *answers;                                     // on their way
  uint64_t responses[SERVER_ROUTES][SERVER_STATUSES];  // that ended; metrics.c has the statuses
};

// Texts are terminated, cut where they are longer, and "" where there is none.
typedef struct http_request {
  char method[16], path[HTTP_PATH_BYTES];
  char content_type[HTTP_VALUE_BYTES], content_encoding[HTTP_VALUE_BYTES];
  buffer body;        // over BODY_BYTES_MAX: its beginning, which is refused
  bool is_body_read;  // else it broke off
} http_request;

// Loads the model, once; later calls do nothing. A failure is the answer to all requests.
void server_open(server *opened);
// Answers, or begins to.
void server_begin(server *of, http_request *request, answer *to);
// A unit of work for all answers that wait. False: none waits.
bool server_step(server *of);
// Who asked has gone, or has everything. Frees what the answer holds.
void server_end(server *of, answer *to);

// ---- routes: bodies that were read, into answers that have begun or are refused ----

bool chat_begin(const server *of, body *read, answer *to, refusal *refused);
bool completion_begin(const server *of, body *read, answer *to, refusal *refused);

// ---- figures (metrics.c) ----

void server_count(server *of, const answer *told);
void server_put_metrics(const server *of, buffer *out);
// "none" for what is no route.
const char *server_route_path(uint32_t route);

// ---- the model (model_source.c) ----

// Feeds the engine from what is embedded in the component, or from a file of a preopened directory.
bool model_load(wick_engine *engine, refusal *refused);

#endif

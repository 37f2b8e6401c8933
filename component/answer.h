// component/answer.h — the response to a request: its headers, its body while it is being written,
// and the completions that it waits for. Bodies have OpenAI's format.
#ifndef WICK_COMPONENT_ANSWER_H
#define WICK_COMPONENT_ANSWER_H

#include "choice.h"
#include "fields.h"

typedef struct server server;

typedef struct answer answer;

// The format of completions: the fields of their requests, and how their parts are written. NULL:
// nothing is written.
typedef struct answer_form {
  const char *id;                   // the beginning of their ids; NULL: no ids
  const char *prompt, *constraint;  // the fields with the prompt, and with the form of the output
  details_form details;
  void (*begin)(answer *to);  // of a stream
  void (*put_delta)(answer *to, choice *from, const delta *piece);
  void (*put_silence)(answer *to, choice *from);  // tokens without text
  void (*put_end)(answer *to, choice *from);      // of a choice
  void (*end)(answer *to);                        // of a stream
  void (*fail)(answer *to, const char *problem);  // a stream; NULL: the error is its last event
  void (*put_whole)(answer *to);                  // the body of a response that is not streamed
} answer_form;
extern const answer_form form_chat, form_text;  // of /v1/chat/completions and /v1/completions
extern const answer_form form_native;           // of /completion and /infill (native.h)
extern const answer_form form_response;         // of /v1/responses (response.h)

enum { ANSWER_CHOICES_MAX = 16 };

// A request's body, which is freed after its last use.
typedef struct asked_body {
  buffer source;
  body read;
} asked_body;

typedef struct embedding embedding;  // embedding_jobs.c
typedef struct media_job media_job;  // media_jobs.h
typedef struct response response;    // response.h
typedef struct native native;        // native.h

struct answer {
  const server *of;
  struct answer *next;          // in the server's list
  struct answer *next_waiting;  // in the queue for vectors or media
  // The response headers, valid once has_head is set. They are already set when a generation
  // begins, except for the status of a failure.
  bool has_head;
  uint16_t status;                   // the HTTP status
  const char *content_type, *allow;  // NULL: no such header
  char request_id[RANDOM_NAME_BYTES + 4];
  // for CORS: whether the response depends on the origin; the origin that may read the response and
  // the headers that a page may send, both terminated; empty: no such header
  bool varies, is_preflight;
  buffer origin, asked_headers;
  buffer ignored;  // ignored fields of the request, terminated; empty: none
  // The response body. The sender empties `out`; once is_done is set, nothing is added to it.
  buffer out;
  bool is_done;
  const answer_form *form;  // NULL: the answer does not wait for completions
  uint32_t route;           // index in the server's list
  const char *tenant;       // the salt of its key; NULL: no keys are set
  bool is_generation;       // whether it counts as a generation
  asked_body *asked;        // NULL once it was freed
  embedding *embedding;     // NULL: the answer does not wait for vectors
  media_job *media;         // NULL: its messages contain only text
  response *response;       // with form_response
  native *native;           // with form_native
  bool is_streamed, includes_usage, has_logprobs;
  bool has_events;        // for a stream: whether the engine has returned an event
  uint64_t comment_us;    // when the last comment line was added
  bool sends_pieces;      // sends pieces as they arrive; otherwise everything is sent at the end
  uint32_t alternatives;  // reported for each token
  details_form details_form;
  buffer stops;     // the stop strings in JSON, each terminated
  choice *choices;  // [choice_count]; the choices of a prompt are consecutive
  uint32_t choice_count, choices_a_prompt, choices_open;
  char id[RANDOM_NAME_BYTES + 12];
  int64_t created_s;
  // For the log and the metrics.
  char method[16];
  uint64_t begun_us, first_us;  // first_us: when the first token arrived; 0: not yet
  uint64_t tokens_embedded;     // number of tokens processed for vectors
  refusal refused;              // why the request failed; status 0: no failure
};

// ---- bodies (answer.c) ----

// Ends an answer whose headers have not been set yet.
void answer_refuse(answer *to, const refusal *why);
void answer_give(answer *to, const char *content_type);  // status 200; `out` is its body
bool answer_give_json(answer *to);                       // the complete body; returns true
void answer_forget_body(answer *to);
// Passes the answer's headers to `sink`, one after the other.
typedef void (*header_sink)(void *context, const char *name, const char *value);
void answer_put_headers(const answer *reply, header_sink sink, void *context);
// Adds a comment line to a stream that has sent nothing since its headers: clients and proxies time
// out after a minute.
void answer_keep_alive(answer *to, uint64_t now_us, uint32_t silence_ms);
// Writes the members of llama.cpp's timings, from which its clients show the speed.
void answer_put_timings(buffer *out, const choice *from);
// Returns the tokens of an answer: the choices of a prompt share it.
typedef struct token_usage {
  uint64_t prompt, cached, out;
} token_usage;
token_usage answer_usage(const answer *of);
// Returns the stop string that ended a choice, as JSON; NULL: none did.
const char *answer_stop_text(const answer *to, const choice *ended);

// Appends an answer to a queue, and removes it from one; returns false if it was not in the queue.
void answer_enqueue(answer **queue, answer *to);
bool answer_dequeue(answer **queue, answer *to);

// ---- completions (generation.c) ----

// Prepares the answer for this number of choices. Returns false if the request was rejected for
// lack of memory.
bool generation_prepare(answer *to, const answer_form *form, const wanted *asked,
                        uint32_t choice_count, refusal *refused);
// Queues a prompt for the next `asked->request.completions` choices, starting at `first`.
bool generation_submit(answer *to, uint32_t first, const wanted *asked, refusal *refused);
// Starts the answer. Called once all prompts are submitted.
void generation_start(answer *to);
// Handles an event of one of the answer's requests; returns false if the event does not belong to
// any of them. If the answer is done while choices are open, generation_cancel is called once all
// events are handled.
bool generation_take(answer *to, const wick_event *event);
void generation_cancel(answer *to);
// Cancels requests in flight and frees everything except the answer itself.
void generation_free(answer *to);

#endif

// schedule/request.h — the state of one request while it lives.
#ifndef WICK_SCHEDULE_REQUEST_H
#define WICK_SCHEDULE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/salt.h"
#include "base/status.h"
#include "sample/sampler.h"
#include "schedule/session.h"
#include "schedule/speculation.h"
#include "schedule/swap.h"
#include "text/tokenizer.h"

typedef enum request_phase { REQUEST_QUEUED, REQUEST_RUNNING } request_phase;

// A request with everything that it will need until its end: running it allocates nothing.
typedef struct request {
  struct request *next;  // in the order of arrival
  uint32_t id;
  request_phase phase;
  int32_t priority;
  uint64_t pass_submitted;  // passes that the scheduler had begun when it came
  bool is_cancelled;
  bool is_paused;            // keeps what it has, takes part in no pass
  bool was_preempted;        // gave its pages up at least once
  bool runs_alone;           // a pass that it was in failed: whose fault it was shows alone
  struct request *original;  // whose prompt it continues as soon as that is read; NULL: its own
  session *session;          // NULL: none
  cache_salt salt;           // its session's, if any
  int32_t *tokens;  // [tokens_count of prompt_count + tokens_max]: the prompt and what was sampled
  uint32_t prompt_count, tokens_count, tokens_max;  // tokens_max: most that may come out
  uint32_t fed;                                     // tokens in the KV pages
  uint32_t fed_before;                              // that the session had before
  uint32_t cached;                                  // of the prompt, that needed no pass
  uint32_t pass_tokens;                             // in the pass under way; 0: not in it
  uint32_t pass_end;  // rows of the pass from this position on follow a proposal that was wrong
  uint32_t tokens_out;
  uint32_t drop_first, drop_last;  // of its session's tokens, when all is read; both 0: nothing
  kv_seq_id sequence;              // KV_SEQ_NONE until it runs
  swap_record swapped;             // its pages, while it waits after giving way
  bool ignore_end;
  bool is_stopped;  // a stop string came: nothing more is shown
  sampler *sampler;
  stop_matcher *stops;  // NULL: none
  detokenizer detokenizer;
  char *piece, *shown;  // a token's text; what of it may be shown
  int32_t *forced;      // [forced_count]; NULL: none
  uint32_t forced_count;
  bool speculates, always_speculates;
  speculation speculation;
  void (*on_logits)(void *context, uint32_t position, const float *logits, uint32_t vocab);
  void *on_logits_context;
  uint64_t submitted_us, started_us, first_token_us;
} request;

// Copies and tokenises; `session` is the one that `wanted` names, NULL for none. `context_tokens`
// bounds the prompt (WICK_E_FULL with both numbers) and what may follow it. Other errors as
// wick_request_submit says.
wick_status request_create(memory_gate *memory, tokenizer *tokenizer, const wick_request *wanted,
                           session *session, uint32_t vocab, uint32_t context_tokens, request **out,
                           wick_error *error);
void request_destroy(memory_gate *memory, request *request);
// The most text that one token's event can carry.
size_t request_text_bytes_max(const tokenizer *tokenizer);

// Still reading: its prompt, or again what it had read before it gave its pages up.
static inline bool request_is_prefill(const request *request) {
  return request->fed < request->prompt_count || request->tokens_count - request->fed > 1;
}
// Tokens that its pages hold when the last one has come out, which is not read any more.
static inline uint32_t request_tokens_in_the_end(const request *request) {
  return request->prompt_count + (request->tokens_max == 0 ? 0 : request->tokens_max - 1);
}
// It reads its session only to drop tokens from it, and adds none.
static inline bool request_drops(const request *request) { return request->drop_last != 0; }
// Takes a sampled token: its text goes through the detokeniser and the stop strings into
// request->shown. Returns WICK_FINISH_NONE to go on.
wick_finish request_take_token(request *request, const tokenizer *tokenizer, int32_t token,
                               size_t *shown_bytes);
// The end: what was still held back, into request->shown.
size_t request_flush(request *request);

#endif

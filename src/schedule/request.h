// schedule/request.h — the state of one request.
#ifndef WICK_SCHEDULE_REQUEST_H
#define WICK_SCHEDULE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/salt.h"
#include "base/status.h"
#include "grammar/shelf.h"
#include "model/adapter.h"
#include "sample/sampler.h"
#include "schedule/parts.h"
#include "schedule/session.h"
#include "schedule/speculation.h"
#include "schedule/swap.h"
#include "schedule/thought.h"
#include "text/tokenizer.h"

enum { JUMP_TOKENS_MAX = 16 };

typedef enum request_phase { REQUEST_QUEUED, REQUEST_RUNNING } request_phase;

// A request allocates all memory that it needs when it is created, so running it allocates nothing.
typedef struct request {
  struct request *next;  // in order of arrival
  uint32_t id;
  request_phase phase;
  int32_t priority;
  uint64_t pass_submitted;  // passes begun before it arrived (in the host's queue, if any)
  bool is_cancelled;
  bool is_paused;            // keeps its pages, but is skipped by passes
  bool was_preempted;        // has lost its pages at least once
  bool runs_alone;           // after a failed pass, each request runs alone, to find the cause
  struct request *original;  // the completion that processes the prompt for this one; NULL: none
  session *session;          // NULL: none
  adapter_set adapters;
  cache_salt salt;   // from the tenant of the session or request, and the adapters
  media_list media;  // media in the prompt
  int32_t
      *tokens;  // [tokens_count of prompt_count + tokens_max]: the prompt and the sampled tokens
  uint32_t prompt_count, tokens_count, tokens_max;  // tokens_max: limit for sampled tokens
  uint32_t queue_tokens;                            // number of tokens when it started to wait
  bool has_read_prompt;  // the whole prompt was processed, even if its pages have been lost
  uint32_t fed;          // number of tokens whose keys and values are in pages
  uint32_t fed_before;   // the part of `fed` that the session had before the request
  uint32_t cached;       // tokens of the prompt that needed no pass
  uint32_t pass_tokens;  // rows in the current pass; 0: none
  uint32_t pass_end;     // rows of the pass from this position on follow a rejected proposal
  uint32_t tokens_out;
  uint32_t drop_first, drop_last;  // tokens to drop from the session after prefill; both 0: none
  kv_seq_id sequence;              // KV_SEQ_NONE until it runs
  swap_record swapped;  // the host's record of its pages, while it waits after preemption
  bool ignore_end;
  uint32_t stopped_by;         // 1 + the index of the stop string that was found; 0: none
  const tokenizer *tokenizer;  // the engine's
  sampler *sampler;
  stop_matcher *stops;     // NULL: none
  constraint *constraint;  // NULL: any text
  constraint *spent;     // healing's constraint after the end of the prompt is reproduced, or NULL
  size_t healing_bytes;  // bytes of the prompt's end that are not reproduced yet
  bool heals_token;      // these bytes were one token, so the first sampled token begins with them
  grammar_matcher matcher;  // the current position in the grammar
  thought *thought;         // NULL: reasoning has no limit
  reply_parts *parts;       // parts of the reply to a conversation, or NULL
  // Forced tokens (schedule/jump.h): [jump_next, jump_count) will follow. They
  // wait for rows of logits if their logprobs are requested.
  int32_t jump[JUMP_TOKENS_MAX];
  uint32_t jump_next, jump_count;
  uint32_t jump_unread;  // forced tokens that no pass has processed yet
  bool wants_logprobs;
  detokenizer detokenizer;
  char *piece, *shown;  // the text of one token, and the part of it that may be returned
  int32_t *forced;      // [forced_count]; NULL: none
  uint32_t forced_count;
  bool speculates, always_speculates;
  speculation speculation;
  void (*on_logits)(void *context, uint32_t position, const float *logits, uint32_t vocab);
  void *on_logits_context;
  float *logits;   // [vocab]: the row that is passed to the host; NULL: the host is not asked
  bool is_asking;  // skipped by passes until the host has answered
  bool is_answered;
  uint64_t submitted_us, started_us, first_token_us;
} request;

// Copies the host's parameters and tokenizes the prompt. `session` is the session that `wanted`
// refers to, or NULL. `context_tokens` limits prompt and output together; a longer prompt is
// WICK_E_FULL with both numbers. `media`: the images and recordings in wanted->tokens, or NULL.
// Other errors are those of wick_request_submit. `shelf` has the grammars. `wish` has the reasoning
// tags, which a limit on reasoning needs, and the parts of a reply; NULL: neither is needed.
wick_status request_create(memory_gate *memory, tokenizer *tokenizer, grammar_shelf *shelf,
                           const wick_request *wanted, const media_list *media,
                           const reply_wish *wish, session *session, uint32_t vocab,
                           uint32_t context_tokens, request **out, wick_error *error);
void request_destroy(memory_gate *memory, grammar_shelf *shelf, request *request);
// Returns the maximum size of the text in the event of one token.
size_t request_text_bytes_max(const tokenizer *tokenizer);

// Whether the request is in prefill: it processes its prompt, or recomputes tokens after a
// preemption.
static inline bool request_is_prefill(const request *request) {
  return request->fed < request->prompt_count || request->tokens_count - request->fed > 1;
}
// Whether the request keeps its pages but is skipped by passes.
static inline bool request_rests(const request *request) {
  return request->is_paused || request->is_asking;
}
// Returns the number of tokens in the request's pages at its end. The last sampled token is not
// processed.
static inline uint32_t request_tokens_in_the_end(const request *request) {
  return request->prompt_count + (request->tokens_max == 0 ? 0 : request->tokens_max - 1);
}
// Whether the request only drops tokens from its session, and samples none.
static inline bool request_drops(const request *request) { return request->drop_last != 0; }
// Adds a sampled token. Its text passes through the detokenizer and the stop strings to
// request->shown. Returns WICK_FINISH_NONE if the request continues.
wick_finish request_take_token(request *request, const tokenizer *tokenizer, int32_t token,
                               size_t *shown_bytes);
// Called before a token is sampled: *is_complete means that the output matches the request's
// grammar and no token can follow, so the request ends. WICK_E_UNSUPPORTED: the output is
// incomplete, but the vocabulary has no token that the grammar allows.
wick_status request_check_grammar(request *request, bool *is_complete, wick_error *error);
// Returns how many of these tokens, counted from the first, the request's grammar allows next.
uint32_t request_fitting_tokens(request *request, const tokenizer *tokenizer, const int32_t *tokens,
                                uint32_t count);
// Called at the end: writes the text that was held back for a stop string to request->shown.
size_t request_flush(request *request);

#endif

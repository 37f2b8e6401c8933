// schedule/request.h — the state of one request while it lives.
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

// A request has all memory that it will need until its end, so running it allocates nothing.
typedef struct request {
  struct request *next;  // in the order of arrival
  uint32_t id;
  request_phase phase;
  int32_t priority;
  uint64_t pass_submitted;  // passes begun before it arrived (in the host's queue if it has one)
  bool is_cancelled;
  bool is_paused;      // keeps its pages and takes no part in passes
  bool was_preempted;  // has lost its pages at least once
  bool runs_alone;     // after a failed pass each request runs alone, to find the one that failed
  struct request *
      original;  // one of several completions: waits until this one has read the prompt; NULL: none
  session *session;  // NULL: none
  adapter_set adapters;
  cache_salt salt;   // of its session's tenant or its own, and its adapters
  media_list media;  // of the prompt
  int32_t
      *tokens;  // [tokens_count of prompt_count + tokens_max]: the prompt and the sampled tokens
  uint32_t prompt_count, tokens_count, tokens_max;  // tokens_max: of the sampled ones
  uint32_t queue_tokens;                            // number of tokens when it began to wait
  bool has_read_prompt;                             // to the end, even if its pages are gone
  uint32_t fed;                                     // tokens whose keys and values are in pages
  uint32_t fed_before;   // of these, tokens that the session had before the request
  uint32_t cached;       // tokens of the prompt that needed no pass
  uint32_t pass_tokens;  // rows in the pass under way; 0: none
  uint32_t pass_end;     // rows of the pass from this position on follow a rejected proposal
  uint32_t tokens_out;
  uint32_t drop_first, drop_last;  // tokens to drop from the session when all is read; both 0: none
  kv_seq_id sequence;              // KV_SEQ_NONE until it runs
  swap_record swapped;  // the host's record of its pages, while it waits after preemption
  bool ignore_end;
  uint32_t stopped_by;         // 1 + the number of the stop string that was found; 0: none was
  const tokenizer *tokenizer;  // the engine's
  sampler *sampler;
  stop_matcher *stops;     // NULL: none
  constraint *constraint;  // NULL: any text
  constraint *spent;     // healing's constraint, once the end of the prompt is reproduced; or NULL
  size_t healing_bytes;  // of the prompt's end that are still to come
  bool heals_token;      // they were one token, with which the first sampled token begins
  grammar_matcher matcher;  // the position of the text in the grammar
  thought *thought;         // NULL: reasoning has no limit
  reply_parts *parts;       // of the reply to a conversation, or NULL
  // Forced tokens (schedule/jump.h): [jump_next, jump_count) will follow. They
  // wait for rows of logits if their logprobs are requested.
  int32_t jump[JUMP_TOKENS_MAX];
  uint32_t jump_next, jump_count;
  uint32_t jump_unread;  // tokens that no pass has read because of a jump
  bool wants_logprobs;
  detokenizer detokenizer;
  char *piece, *shown;  // the text of one token, and the part of it that may be returned
  int32_t *forced;      // [forced_count]; NULL: none
  uint32_t forced_count;
  bool speculates, always_speculates;
  speculation speculation;
  void (*on_logits)(void *context, uint32_t position, const float *logits, uint32_t vocab);
  void *on_logits_context;
  float *logits;   // [vocab]: the row that the host is asked about; NULL: it is not asked
  bool is_asking;  // is skipped by passes until the host has answered
  bool is_answered;
  uint64_t submitted_us, started_us, first_token_us;
} request;

// Copies the host's parameters and tokenises the prompt. `session` is the session that `wanted`
// names, or NULL. `context_tokens` limits prompt and answer together; a longer prompt is
// WICK_E_FULL with both numbers. `media`: spans among wanted->tokens, or NULL. Other errors are
// those of wick_request_submit. `shelf` has the grammars; `wish` has the marks of reasoning, which
// a limit needs, and the parts of a reply; NULL: neither.
wick_status request_create(memory_gate *memory, tokenizer *tokenizer, grammar_shelf *shelf,
                           const wick_request *wanted, const media_list *media,
                           const reply_wish *wish, session *session, uint32_t vocab,
                           uint32_t context_tokens, request **out, wick_error *error);
void request_destroy(memory_gate *memory, grammar_shelf *shelf, request *request);
// The most text that the event of one token can carry.
size_t request_text_bytes_max(const tokenizer *tokenizer);

// Whether it is in prefill: it reads its prompt, or reads again what it had read before preemption.
static inline bool request_is_prefill(const request *request) {
  return request->fed < request->prompt_count || request->tokens_count - request->fed > 1;
}
// Whether it keeps its pages but is skipped by passes.
static inline bool request_rests(const request *request) {
  return request->is_paused || request->is_asking;
}
// The tokens in its pages at its end. The last sampled token is not read.
static inline uint32_t request_tokens_in_the_end(const request *request) {
  return request->prompt_count + (request->tokens_max == 0 ? 0 : request->tokens_max - 1);
}
// Whether it only drops tokens from its session. It then samples none.
static inline bool request_drops(const request *request) { return request->drop_last != 0; }
// Takes a sampled token. Its text goes through the detokenizer and the stop strings into
// request->shown. Returns WICK_FINISH_NONE if the request continues.
wick_finish request_take_token(request *request, const tokenizer *tokenizer, int32_t token,
                               size_t *shown_bytes);
// Before a token is sampled: *is_complete means that the text matches the request's grammar and
// none can follow, so that the request ends. WICK_E_UNSUPPORTED: the text is not complete, and the
// vocabulary has no token that the grammar allows.
wick_status request_check_grammar(request *request, bool *is_complete, wick_error *error);
// The number of these tokens, from the first on, that the request's grammar allows next.
uint32_t request_fitting_tokens(request *request, const tokenizer *tokenizer, const int32_t *tokens,
                                uint32_t count);
// Called at the end: writes the text that was held back for a stop string to request->shown.
size_t request_flush(request *request);

#endif

// schedule/pass.c — one pass through the model: builds a batch from the running requests, computes
// it layer by layer, and samples from its logits. The logits of a row do not depend on the rest of
// the batch (an invariant of the kernels), so a request produces the same output regardless of
// other requests.
#include <string.h>

#include "schedule/jump.h"
#include "schedule/scheduler_types.h"

// While requests decode, prefill may use at most a quarter of the batch, but at least 16 tokens. A
// longer prompt uses max(8, decodes / 8) tokens per pass.
enum { PREFILL_SHARE = 4, PREFILL_TOKENS_MIN = 16 };
enum { PREFILL_PIECES_MIN = 8, PREFILL_PIECES_DECODES = 8 };

static void add_input(scheduler *scheduler, request *request, int32_t token, uint32_t position,
                      bool wants_logits) {
  const uint32_t at = scheduler->batch_count++;
  uint32_t turned;
  const media_place *media = media_list_find(&request->media, position, &turned);
  const bool sees_all = media != NULL && media->span->is.sees_all;
  scheduler->batch[at] =
      (model_input){.token = media == NULL ? token : 0,
                    .position = position,
                    .sequence = request->sequence,
                    .wants_logits = wants_logits,
                    .adapters = request->adapters.count == 0 ? NULL : &request->adapters,
                    .turned = turned,
                    .last = sees_all ? media_end(media) - 1 : 0,
                    .media = media};
  scheduler->owners[at] = request;
  request->pass_tokens++;
}

// Returns how many of the next `count` tokens a pass can process: the rows of an image that attend
// to each other are processed together, except those in the prefix cache.
static uint32_t whole_spans(const request *request, uint32_t count) {
  const uint32_t end = request->fed + count;
  const media_place *place = media_list_find(&request->media, end, NULL);
  if (place == NULL || !place->span->is.sees_all || place->first >= end) return count;
  return place->first > request->fed ? place->first - request->fed : 0;
}

static void add_prompt(scheduler *scheduler, request *request, uint32_t tokens_max) {
  uint32_t count = request->tokens_count - request->fed;
  if (count > tokens_max) count = tokens_max;
  count = whole_spans(request, count);
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t position = request->fed + i;
    const bool is_last = position + 1 == request->tokens_count && request->tokens_max != 0;
    const bool is_text = request->tokens[position] >= 0;
    const bool is_wanted =
        is_last || (request->on_logits != NULL && position < request->prompt_count && is_text);
    add_input(scheduler, request, request->tokens[position], position, is_wanted);
  }
}

static void add_decode(scheduler *scheduler, request *request) {
  const uint32_t first = request->fed;
  add_input(scheduler, request, request->tokens[first], first, true);
  for (uint32_t i = 0; i < request->speculation.count; i++) {
    add_input(scheduler, request, request->speculation.proposed[i], first + 1 + i, true);
  }
}

// ---- Which requests are in a pass ----

// Returns the request that must run alone because a pass has failed; NULL: none.
static request *find_alone(const scheduler *scheduler) {
  for (request *at = scheduler->first; at != NULL; at = at->next) {
    if (at->phase == REQUEST_RUNNING && at->runs_alone && !request_rests(at)) return at;
  }
  return NULL;
}

static bool takes_part(const request *request, const struct request *alone) {
  if (request->phase != REQUEST_RUNNING || request_rests(request)) return false;
  // Whether the request has processed its prompt and samples nothing, so that it ends next.
  if (request->tokens_max == 0 && !request_is_prefill(request)) return false;
  return alone == NULL || request == alone;
}

static uint32_t count_decodes(const scheduler *scheduler, const request *alone) {
  uint32_t count = 0;
  for (const request *at = scheduler->first; at != NULL; at = at->next) {
    count += takes_part(at, alone) && !request_is_prefill(at);
  }
  return count;
}

// Returns the number of proposals to request from a source that needs `proposal_us` per proposal.
static uint32_t proposals_wanted(scheduler *scheduler, request *request, speculation_source source,
                                 uint32_t most, uint32_t decodes, float proposal_us) {
  request->speculation.source = source;
  if (request->always_speculates) return most;
  return speculation_wanted(&request->speculation, &scheduler->costs, source, most, decodes,
                            proposal_us);
}

static float model_proposal_us(const scheduler_parts *parts) {
  return parts->drafter != NULL ? drafter_token_us(parts->drafter)
                                : predictor_token_us(parts->predictor);
}

// Writes proposals to `proposed` and returns their number.
static uint32_t propose_by_model(const scheduler_parts *parts, request *request, uint32_t most) {
  int32_t *proposed = request->speculation.proposed;
  const uint32_t id = request->id, count = request->tokens_count;
  if (parts->drafter != NULL) {
    return drafter_propose(parts->drafter, id, request->tokens, count, most, proposed);
  }
  return predictor_propose(parts->predictor, id, request->tokens, count, most, proposed);
}

static uint32_t tokens_before_media(const int32_t *tokens, uint32_t count) {
  uint32_t before = 0;
  while (before < count && tokens[before] >= 0) before++;
  return before;
}

// Gets proposals from the text or, if it yields none, from a smaller model or a layer of the model.
static void find_proposals(scheduler *scheduler, request *request, uint32_t most,
                           uint32_t decodes) {
  speculation *speculation = &request->speculation;
  const scheduler_parts *parts = &scheduler->parts;
  if (speculation_is_awake(speculation, SPECULATION_LOOKUP)) {
    speculation_look_up(speculation, request->tokens, request->tokens_count, most);
    speculation->found = tokens_before_media(speculation->proposed, speculation->found);
    speculation->found = request_fitting_tokens(request, scheduler->parts.tokenizer,
                                                speculation->proposed, speculation->found);
    speculation->count =
        proposals_wanted(scheduler, request, SPECULATION_LOOKUP, speculation->found, decodes, 0.0f);
  }
  if (speculation->count != 0 || (parts->drafter == NULL && parts->predictor == NULL)) return;
  if (request->media.count != 0) return;  // those models have not processed the media
  if (!speculation_is_awake(speculation, SPECULATION_DRAFT)) return;
  const uint32_t wanted = proposals_wanted(scheduler, request, SPECULATION_DRAFT, most, decodes,
                                           model_proposal_us(parts));
  if (wanted == 0) {
    speculation->source = SPECULATION_LOOKUP;
    return;
  }
  speculation->count = propose_by_model(parts, request, wanted);
  speculation->count =
      request_fitting_tokens(request, parts->tokenizer, speculation->proposed, speculation->count);
  speculation->found = speculation->count;
}

// Adds proposals after the newest token, as many as the free pages allow.
static void propose(scheduler *scheduler, request *request, uint32_t decodes) {
  const scheduler_parts *parts = &scheduler->parts;
  speculation *speculation = &request->speculation;
  uint32_t most = request->tokens_max - request->tokens_out - 1;
  const uint32_t room = (parts->batch_tokens - decodes) / decodes;
  if (most > room) most = room;
  if (most > SPECULATION_TOKENS_MAX) most = SPECULATION_TOKENS_MAX;
  if (!request->speculates || decodes > SPECULATION_REQUESTS_MAX || most == 0) return;
  find_proposals(scheduler, request, most, decodes);
  if (speculation->count == 0) return;
  const wick_status status =
      store_prepare(parts->store, request->sequence, 1 + speculation->count, NULL);
  if (status != WICK_OK) speculation->count = 0;
}

// Reserves pages for decoding, for forced tokens, and for prefill in groups with a window, which
// free pages between passes. This may preempt other requests, so it is done before the batch is
// built.
static void reserve_rows(scheduler *scheduler, const request *alone) {
  const bool has_window = store_has_window(scheduler->parts.store);
  for (request *at = scheduler->first; at != NULL; at = at->next) {
    if (!takes_part(at, alone) || !request_is_prefill(at)) continue;
    if (has_window || at->jump_unread != 0) {
      admission_reserve(scheduler, at, at->tokens_count - at->fed);
    }
  }
  for (request *at = scheduler->first; at != NULL; at = at->next) {
    if (!takes_part(at, alone) || request_is_prefill(at)) continue;
    admission_reserve(scheduler, at, 1);
  }
  const uint32_t decodes = count_decodes(scheduler, alone);
  for (request *at = scheduler->first; at != NULL; at = at->next) {
    if (takes_part(at, alone) && !request_is_prefill(at)) propose(scheduler, at, decodes);
  }
}

// Returns the next request in prefill that is not in the pass yet: the first in the queue, or the
// request with the fewest tokens left.
static request *next_prefill(const scheduler *scheduler, const request *alone, bool is_shortest) {
  request *best = NULL;
  for (request *at = scheduler->first; at != NULL; at = at->next) {
    if (!takes_part(at, alone) || !request_is_prefill(at) || at->pass_tokens != 0) continue;
    const bool is_better =
        best == NULL ||
        (is_shortest && at->tokens_count - at->fed < best->tokens_count - best->fed) ||
        (!is_shortest && admission_precedes(scheduler, at, best));
    if (is_better) best = at;
  }
  return best;
}

// The part of a batch that prompts may use.
typedef struct prefill_share {
  uint32_t end;     // end of the prompts' part
  uint32_t tokens;  // total size
  uint32_t pieces;  // for a prompt with more tokens left than `tokens`
} prefill_share;

static bool is_long(const request *request, const prefill_share *share) {
  return request->tokens_count - request->fed > share->tokens;
}

// Returns the number of tokens that the other prompts can use, counted up to `most`.
static uint32_t unread_of_others(const scheduler *scheduler, const request *alone,
                                 const request *first, const prefill_share *share, uint32_t most) {
  uint32_t unread = 0, pieces = share->pieces;
  for (const request *at = scheduler->first; at != NULL && unread < most; at = at->next) {
    if (at == first || !takes_part(at, alone) || !request_is_prefill(at)) continue;
    const uint32_t part = is_long(at, share) ? pieces : at->tokens_count - at->fed;
    if (is_long(at, share)) pieces = 0;
    unread += part;
  }
  return unread < most ? unread : most;
}

static void add_part(scheduler *scheduler, request *request, uint32_t room, prefill_share *share) {
  if (is_long(request, share)) {
    if (room > share->pieces) room = share->pieces;
    share->pieces -= room;
  }
  add_prompt(scheduler, request, room);
}

// Adds prompts to the batch. The first prompt in the queue receives a part of the space, so that it
// makes progress regardless of other arrivals. The rest, up to half of the space, is for the
// prompts with the fewest tokens left. If the first prompt is long and has not waited too long,
// these may take all but one token.
static void add_prefills(scheduler *scheduler, const request *alone, prefill_share share) {
  request *next = next_prefill(scheduler, alone, false);
  if (next == NULL) return;
  const bool gives_way = is_long(next, &share) && !admission_has_waited_long(scheduler, next);
  const uint32_t most = gives_way ? share.tokens - 1 : share.tokens / 2;
  const uint32_t others = unread_of_others(scheduler, alone, next, &share, most);
  uint32_t room = share.tokens - others;
  // half of the pieces, if other prompts need some
  const uint32_t half = (share.pieces + 1) / 2;
  if (is_long(next, &share) && others != 0 && room > half) room = half;
  add_part(scheduler, next, room, &share);
  while (scheduler->batch_count < share.end) {
    const uint32_t before = scheduler->batch_count;
    next = next_prefill(scheduler, alone, true);
    if (next != NULL) add_part(scheduler, next, share.end - before, &share);
    if (scheduler->batch_count == before) return;
  }
}

// Returns the first prompt in the queue whose next rows belong to an image and must be processed
// together. This prompt is processed in a separate pass, but not in two consecutive passes while
// others wait. NULL: none.
static request *find_whole(scheduler *scheduler, const request *alone) {
  request *first = NULL;
  if (scheduler->parts.model->media_sees_all) first = next_prefill(scheduler, alone, false);
  const media_place *place =
      first == NULL ? NULL : media_list_find(&first->media, first->fed, NULL);
  const bool is_whole = place != NULL && place->span->is.sees_all && !scheduler->had_whole;
  scheduler->had_whole = is_whole && scheduler->running > 1;
  return is_whole ? first : NULL;
}

static prefill_share share_for_prompts(const scheduler *scheduler) {
  const uint32_t batch_tokens = scheduler->parts.batch_tokens, decodes = scheduler->batch_count;
  const uint32_t room = batch_tokens - decodes;
  prefill_share share = {.end = room, .tokens = room, .pieces = room};
  if (decodes == 0) return share;
  share.tokens = batch_tokens / PREFILL_SHARE;
  if (share.tokens < PREFILL_TOKENS_MIN) share.tokens = PREFILL_TOKENS_MIN;
  if (share.tokens > room) share.tokens = room;
  share.end = decodes + share.tokens;
  share.pieces = decodes / PREFILL_PIECES_DECODES;
  if (share.pieces < PREFILL_PIECES_MIN) share.pieces = PREFILL_PIECES_MIN;
  return share;
}

// Begins the rows of the pass in the store. If memory runs out for a request, that request ends and
// the function returns false, so the other requests start over.
static bool begin_rows(scheduler *scheduler) {
  seq_store *store = scheduler->parts.store;
  for (request *at = scheduler->first; at != NULL; at = at->next) {
    wick_error error;
    if (at->pass_tokens == 0) continue;
    const uint32_t certain = at->pass_tokens - at->speculation.count;
    if (store_begin_rows(store, at->sequence, at->pass_tokens, certain, &error) == WICK_OK) {
      continue;
    }
    pass_drop(scheduler);
    scheduler_finish(scheduler, at, WICK_FINISH_ERROR, &error);
    return false;
  }
  return true;
}

static void begin_forward(scheduler *scheduler) {
  forward_pass *forward = scheduler->parts.forward;
  forward_begin(forward, scheduler->batch, scheduler->batch_count);
  scheduler->keeps_rows = scheduler->parts.predictor != NULL && predict_begin(scheduler);
  if (scheduler->keeps_rows) forward_keep_rows(forward);
}

bool pass_begin(scheduler *scheduler) {
  const request *alone = find_alone(scheduler);
  scheduler->batch_count = 0;
  for (request *at = scheduler->first; at != NULL; at = at->next) {
    at->pass_tokens = 0;
    at->speculation.found = at->speculation.count = 0;
    at->speculation.accepted = at->speculation.seen = 0;
    at->pass_end = UINT32_MAX;
  }
  reserve_rows(scheduler, alone);
  request *whole = find_whole(scheduler, alone);
  if (whole != NULL) alone = whole;
  for (request *at = scheduler->first; at != NULL; at = at->next) {
    if (takes_part(at, alone) && !request_is_prefill(at)) add_decode(scheduler, at);
  }
  const uint32_t decode_rows = scheduler->batch_count;
  const prefill_share share = share_for_prompts(scheduler);
  if (whole != NULL) {
    add_prompt(scheduler, whole, scheduler->parts.batch_tokens);
  } else if (share.tokens != 0) {
    add_prefills(scheduler, alone, share);
  }
  if (scheduler->batch_count == 0) return false;
  const request *only = scheduler->owners[0];
  scheduler->is_measured =
      decode_rows == scheduler->batch_count && only->pass_tokens == scheduler->batch_count;
  scheduler->has_prompts = decode_rows != scheduler->batch_count;
  scheduler->pass_us = 0;
  scheduler->pass_logits = 0;
  scheduler->stats.passes++;
  scheduler->stats.rows += scheduler->batch_count;
  if (!begin_rows(scheduler)) return true;
  begin_forward(scheduler);
  scheduler->phase = PASS_LAYERS;
  return true;
}

// Truncates sequences to their accepted tokens, or to a position where they can continue.
static void end_pass(scheduler *scheduler) {
  seq_store *store = scheduler->parts.store;
  scheduler->phase = PASS_NONE;
  if (!store_must_settle(store)) return;
  for (request *at = scheduler->first; at != NULL; at = at->next) {
    if (at->phase == REQUEST_RUNNING) at->fed = store_settle(store, at->sequence);
  }
}

static void finish_pass(scheduler *scheduler) {
  end_pass(scheduler);
  if (scheduler->keeps_rows) predict_after(scheduler);
}

void pass_drop(scheduler *scheduler) {
  for (request *at = scheduler->first; at != NULL; at = at->next) at->pass_tokens = 0;
  end_pass(scheduler);
}

// ---- After the layers ----

static void put_prefill(scheduler *scheduler, const request *request) {
  if (!events_have_room(&scheduler->events, SCHEDULER_RECORDS_PER_UNIT))
    return;  // reported after the next unit
  const wick_event event = {.request = request->id,
                            .kind = WICK_EVENT_PREFILL,
                            .token = TOKEN_NONE,
                            .tokens_prompt = request->prompt_count,
                            .tokens_cached = request->fed};
  events_put(&scheduler->events, &event, NULL, NULL, 0, NULL, 0);
}

static void append(scheduler *scheduler, request *request, uint32_t tokens) {
  store_commit(scheduler->parts.store, request->sequence, tokens);
  request->fed += tokens;
  request->has_read_prompt = request->has_read_prompt || request->fed >= request->prompt_count;
}

// Counts the accepted proposals.
static void count_fed(scheduler *scheduler, request *request) {
  scheduler_stats *stats = &scheduler->stats;
  const bool is_prompt = request_is_prefill(request);
  const uint32_t tokens = request->pass_tokens - request->speculation.count;
  append(scheduler, request, tokens);
  stats->tokens_proposed += request->speculation.count;
  request->pass_tokens = 0;
  request->runs_alone = false;
  const uint32_t jumped = request->jump_unread < tokens ? request->jump_unread : tokens;
  request->jump_unread -= jumped;
  if (!is_prompt) return;
  // Adds the request's full pages to the prefix cache, because other requests may begin with them.
  store_remember(scheduler->parts.store, request->sequence, request->salt, request->tokens,
                 request->fed);
  store_reserve_states(scheduler->parts.store);
  // after a rejected proposal, a recurrent state is recomputed from its last checkpoint
  if (request->was_preempted || request->tokens_out != 0) {
    stats->tokens_recomputed += tokens - jumped;
  } else {
    stats->tokens_prompt += tokens;
    put_prefill(scheduler, request);
  }
}

static void end_layers(scheduler *scheduler) {
  const bool has_logits = forward_logits_count(scheduler->parts.forward) > 0;
  for (request *at = scheduler->first; at != NULL; at = at->next) {
    if (at->pass_tokens != 0) count_fed(scheduler, at);
  }
  scheduler->phase = PASS_LOGITS;
  if (!has_logits) finish_pass(scheduler);
}

// Handles a failed pass. After the failure of a pass with several requests, each request runs alone
// once, and then either ends with the error or continues.
static void fail_pass(scheduler *scheduler, const wick_error *error) {
  request *only = scheduler->owners[0];
  const bool is_shared = only->pass_tokens != scheduler->batch_count;
  // The cause may be a proposal that would not be accepted, so the next pass has no proposals.
  const bool is_guess = scheduler->batch_count > 1 && only->speculation.count != 0;
  for (uint32_t i = 0; i < scheduler->batch_count; i++) {
    scheduler->owners[i]->runs_alone = is_shared;
    if (scheduler->owners[i]->speculation.count != 0) scheduler->owners[i]->speculates = false;
  }
  pass_drop(scheduler);
  if (!is_shared && !is_guess) scheduler_finish(scheduler, only, WICK_FINISH_ERROR, error);
}

static void run_layer(scheduler *scheduler) {
  wick_error error;
  const wick_status status = forward_layer(scheduler->parts.forward, &error);
  if (status != WICK_OK) {
    fail_pass(scheduler, &error);
  } else if (forward_next_layer(scheduler->parts.forward) ==
             scheduler->parts.model->config.layers) {
    end_layers(scheduler);
  }
}

// ---- Logits ----

static void put_token(scheduler *scheduler, const request *request, const sampler_choice *choice,
                      size_t shown_bytes) {
  const wick_event event = {.request = request->id,
                            .kind = WICK_EVENT_TOKEN,
                            .token = choice->token,
                            .logprob = choice->logprob,
                            .tokens_prompt = request->prompt_count,
                            .tokens_out = request->tokens_out};
  events_put(&scheduler->events, &event, choice->top_tokens, choice->top_logprobs,
             choice->top_count, request->shown, shown_bytes);
}

// Adds a chosen token to the request. Returns false if this ends the request.
static bool take_choice(scheduler *scheduler, request *request, const sampler_choice *choice) {
  size_t shown_bytes;
  const uint32_t tokens_before = request->tokens_out;
  const wick_finish how =
      request_take_token(request, scheduler->parts.tokenizer, choice->token, &shown_bytes);
  if (request->tokens_out != tokens_before) {
    scheduler->stats.tokens_out++;
    wick_error error;
    if (parts_put(&scheduler->events, request, shown_bytes, WICK_FINISH_NONE, &error) != WICK_OK) {
      scheduler_finish(scheduler, request, WICK_FINISH_ERROR, &error);
      return false;
    }
    put_token(scheduler, request, choice, shown_bytes);
  }
  if (how != WICK_FINISH_NONE) scheduler_finish(scheduler, request, how, NULL);
  return how == WICK_FINISH_NONE;
}

// Takes the forced tokens, unless they wait for their logprobs: first the tokens of the grammar, if
// it is consulted, then the tokens that end the reasoning. Returns false if this ends the request.
static bool jump(scheduler *scheduler, request *request, bool asks_grammar) {
  uint32_t room = request->wants_logprobs ? 0 : JUMP_TOKENS_MAX;
  for (;;) {
    for (; room > 0 && request->jump_next < request->jump_count; room--) {
      const sampler_choice choice = {.token = request->jump[request->jump_next++]};
      sampler_accept(request->sampler, choice.token);
      if (!take_choice(scheduler, request, &choice)) return false;
    }
    if (request->jump_next < request->jump_count) return true;
    if (jump_end_thought(request)) continue;
    if (!asks_grammar || request->constraint == NULL) return true;
    asks_grammar = false;
    jump_find(request, scheduler->parts.memory, &scheduler->shelf);
  }
}

// Passes the row to the host before a token is drawn from it.
static void ask_host(scheduler *scheduler, request *request, const float *logits) {
  const wick_event event = {.request = request->id,
                            .kind = WICK_EVENT_LOGITS,
                            .token = WICK_TOKEN_NONE,
                            .tokens_prompt = request->prompt_count,
                            .tokens_out = request->tokens_out};
  memcpy(request->logits, logits, scheduler->parts.model->config.vocab * sizeof(float));
  request->is_asking = true;
  events_put(&scheduler->events, &event, NULL, NULL, 0, NULL, 0);
}

static wick_status choose_token(request *request, const float *logits, sampler_choice *choice,
                                wick_error *error) {
  if (request->tokens_out >= request->forced_count) {
    return sampler_choose(request->sampler, logits, choice, error);
  }
  return sampler_tell(request->sampler, logits, request->forced[request->tokens_out], choice,
                      error);
}

// Samples from a row of logits. Returns false if this ends the request.
static bool sample_row(scheduler *scheduler, request *request, const float *logits) {
  sampler_choice choice;
  wick_error error;
  bool is_complete = false;
  const bool is_certain = request->jump_next < request->jump_count;
  wick_status status;
  if (is_certain) {
    status = sampler_tell(request->sampler, logits, request->jump[request->jump_next++], &choice,
                          &error);
  } else {
    status = request_check_grammar(request, &is_complete, &error);
    if (status == WICK_OK && is_complete) {
      scheduler_finish(scheduler, request, WICK_FINISH_STOP, NULL);
      return false;
    }
    if (status == WICK_OK && request->logits != NULL && logits != request->logits) {
      ask_host(scheduler, request, logits);
      return true;
    }
    if (status == WICK_OK) status = choose_token(request, logits, &choice, &error);
  }
  ops_lap(scheduler->parts.ops, OP_SAMPLE, scheduler->parts.model->config.vocab * sizeof(float), 0);
  if (status != WICK_OK) {
    scheduler_finish(scheduler, request, WICK_FINISH_ERROR, &error);
    return false;
  }
  if (request->first_token_us == 0) request->first_token_us = scheduler->parts.now_us();
  if (!take_choice(scheduler, request, &choice)) return false;
  return jump(scheduler, request, !is_certain);
}

static void count_jumped(request *request) {
  const uint32_t unread = request->tokens_count - request->fed;
  request->jump_unread = unread > 1 ? unread : 0;
}

// Compares proposals after a row is sampled: the next rows are used as long as their tokens match
// the sampled tokens.
static void check_proposals(scheduler *scheduler, request *request, uint32_t position) {
  for (uint32_t at = position + 1; at < request->tokens_count; at++) {
    if (!speculation_accepts(&request->speculation, request->tokens[at])) {
      request->pass_end = at;
      break;
    }
    scheduler->stats.tokens_accepted++;
    append(scheduler, request, 1);
  }
  count_jumped(request);
}

// Starts the other completions of a prompt that has been processed, with its pages and this row of
// logits.
static void start_followers(scheduler *scheduler, request *original, const float *logits) {
  struct request *next;
  for (request *at = scheduler->first; at != NULL; at = next) {
    next = at->next;
    if (at->original != original) continue;
    at->original = NULL;
    // A completion that cannot start here processes the prompt itself later.
    if (at->is_cancelled || scheduler->running >= scheduler->parts.running_max) continue;
    if (!events_have_room(&scheduler->events, SCHEDULER_RECORDS_MAX)) continue;
    kv_seq_id child;
    if (store_fork(scheduler->parts.store, original->sequence, &child, NULL) != WICK_OK) continue;
    admission_run(scheduler, at, child, original->fed);
    if (sample_row(scheduler, at, logits)) count_jumped(at);
  }
}

// Handles one row of logits: passes it to on_logits, and samples from the last row of a prompt and
// from each row after it.
static void take_row(scheduler *scheduler, request *request, uint32_t position,
                     const float *logits) {
  if (request->on_logits != NULL && position < request->prompt_count) {
    const uint32_t vocab = scheduler->parts.model->config.vocab;
    request->on_logits(request->on_logits_context, position, logits, vocab);
  }
  if (position + 1 != request->tokens_count || request->tokens_max == 0) return;
  if (position >= request->pass_end) return;
  if (request->tokens_out == 0) start_followers(scheduler, request, logits);
  if (sample_row(scheduler, request, logits)) check_proposals(scheduler, request, position);
}

// Whether the row is valid: its request has not ended, and no proposal before it was wrong.
static bool is_row_wanted(const scheduler *scheduler, uint32_t row) {
  const uint32_t input = forward_logits_input(scheduler->parts.forward, row);
  const request *owner = scheduler->owners[input];
  return owner != NULL && scheduler->batch[input].position < owner->pass_end;
}

static void logits_round(scheduler *scheduler) {
  const scheduler_parts *parts = &scheduler->parts;
  const uint32_t count = forward_logits_count(parts->forward);
  const uint32_t first = scheduler->pass_logits;
  const uint32_t rows = forward_logits_compute(parts->forward, first);
  uint32_t next = first;
  for (uint32_t i = 0; i < rows; i++, next++) {
    if (i != 0 && !events_have_room(&scheduler->events, SCHEDULER_RECORDS_PER_ROW)) break;
    const uint32_t input = forward_logits_input(parts->forward, first + i);
    // The last row of the request, or an earlier row, may have ended it.
    request *owner = scheduler->owners[input];
    if (owner == NULL) continue;
    take_row(scheduler, owner, scheduler->batch[input].position, forward_logits(parts->forward, i));
  }
  while (next < count && !is_row_wanted(scheduler, next)) next++;
  scheduler->pass_logits = next;
  if (next == count) finish_pass(scheduler);
}

bool pass_step(scheduler *scheduler) {
  const loaded_model *model = scheduler->parts.model;
  if (scheduler->phase == PASS_LAYERS) {
    if (forward_next_layer(scheduler->parts.forward) >= model_layers_ready(model)) return false;
    run_layer(scheduler);
  } else {
    if (!model_is_ready(model)) return false;
    logits_round(scheduler);
  }
  return true;
}

bool pass_take_answer(scheduler *scheduler) {
  for (request *at = scheduler->first; at != NULL; at = at->next) {
    if (!at->is_answered || at->is_cancelled) continue;
    at->is_answered = at->is_asking = false;
    const bool is_running = at->phase == REQUEST_RUNNING;
    // a request that has lost its pages recomputes all of its tokens
    if (sample_row(scheduler, at, at->logits) && is_running) count_jumped(at);
    return true;
  }
  return false;
}

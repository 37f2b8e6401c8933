// schedule/request.c — creates a request from the host's parameters, so that it can run without
// allocating.
#include "schedule/request.h"

#include <string.h>

#include "base/checked.h"
#include "schedule/healing.h"
#include "schedule/jump.h"

enum { DETOKENIZER_TAIL_BYTES = 16 };

size_t request_text_bytes_max(const tokenizer *tokenizer) {
  return tokenizer_piece_bytes_max(tokenizer) + 2 * DETOKENIZER_TAIL_BYTES + WICK_STOP_BYTES_MAX;
}

static wick_status prompt_too_long(size_t tokens, uint32_t context_tokens, wick_error *error) {
  // clients recognize this error by "prompt is too long" or "exceeds the available context size"
  fail_with(error, WICK_E_FULL, WICK_NO_OFFSET,
            "the prompt is too long: it has %zu tokens, which exceeds the available context size "
            "of %u",
            tokens, context_tokens);
  return status_about(WICK_E_FULL, error, WICK_SUBJECT_CONTEXT, tokens, context_tokens);
}

// Reserves memory for the tokens of the session and for `more`.
static wick_status make_room(memory_gate *memory, size_t more, request *request,
                             wick_error *error) {
  const size_t count = request->prompt_count + more;
  int32_t *tokens = memory_resize(memory, request->tokens, (count + 1) * sizeof(int32_t));
  if (tokens == NULL) return memory_fail(memory, error, "the prompt");
  request->tokens = tokens;
  return WICK_OK;
}

static wick_status check_ids(const int32_t *ids, size_t count, const media_list *media,
                             uint32_t vocab, wick_error *error) {
  for (size_t i = 0; i < count; i++) {
    if (ids[i] >= 0 && (uint32_t)ids[i] < vocab) continue;
    if (media != NULL && media_list_find(media, (uint32_t)i, NULL) != NULL) continue;
    fail_with(error, WICK_E_ARG, WICK_NO_OFFSET,
              "token %d at index %zu is not in the vocabulary of %u", ids[i], i, vocab);
    return status_about(WICK_E_ARG, error, WICK_SUBJECT_PROMPT, i, vocab);
  }
  return WICK_OK;
}

static wick_status copy_ids(memory_gate *memory, const wick_request *wanted,
                            const media_list *media, uint32_t vocab, request *request,
                            wick_error *error) {
  wick_status status = check_ids(wanted->tokens, wanted->token_count, media, vocab, error);
  if (status == WICK_OK) status = make_room(memory, wanted->token_count, request, error);
  if (status != WICK_OK) return status;
  memcpy(request->tokens + request->prompt_count, wanted->tokens,
         wanted->token_count * sizeof(int32_t));
  if (media != NULL) {
    status = media_list_append(memory, &request->media, media, request->prompt_count, error);
  }
  request->prompt_count += (uint32_t)wanted->token_count;
  return status;
}

static wick_status tokenize_prompt(memory_gate *memory, tokenizer *tokenizer,
                                   const wick_request *wanted, uint32_t context_tokens,
                                   request *request, wick_error *error) {
  const size_t before = request->prompt_count, left = context_tokens - before;
  // A token is at least one byte, except for the few special tokens at either end and the space
  // that SPM adds.
  const size_t capacity = wanted->text_bytes < left ? wanted->text_bytes + 8 : left;
  wick_status status = make_room(memory, capacity, request, error);
  if (status != WICK_OK) return status;
  // Text that continues a session has no beginning-of-sequence token.
  const uint32_t flags = before == 0
                             ? wanted->tokenize_flags
                             : wanted->tokenize_flags & ~(uint32_t)WICK_TOKENIZE_ADD_SPECIAL;
  size_t count = 0;
  status = tokenizer_encode(tokenizer, wanted->text, wanted->text_bytes, flags,
                            request->tokens + before, capacity, &count, error);
  if (status == WICK_E_FULL) return prompt_too_long(before + count, context_tokens, error);
  request->prompt_count += (uint32_t)count;
  return status;
}

// Copies the session's tokens, which precede the prompt.
static wick_status copy_session(memory_gate *memory, const session *session, request *request,
                                wick_error *error) {
  const wick_status status = make_room(memory, session->count, request, error);
  if (status != WICK_OK || session->count == 0) return status;
  memcpy(request->tokens, session->tokens, session->count * sizeof(int32_t));
  request->prompt_count = session->count;
  return media_list_append(memory, &request->media, &session->media, 0, error);
}

static wick_status make_prompt(memory_gate *memory, tokenizer *tokenizer,
                               const wick_request *wanted, const media_list *media, uint32_t vocab,
                               uint32_t context_tokens, request *request, wick_error *error) {
  wick_status status = WICK_OK;
  if (request->session != NULL) status = copy_session(memory, request->session, request, error);
  if (status != WICK_OK) return status;
  if (wanted->drop_first != 0 || wanted->drop_last != 0) {
    status = session_check_range(request->session, wanted->drop_first, wanted->drop_last, error);
    // there is no position for the last token of a full context
    if (request->prompt_count > context_tokens) request->prompt_count = context_tokens;
    return status;
  }
  if (wanted->tokens != NULL && wanted->token_count > context_tokens - request->prompt_count) {
    return prompt_too_long(request->prompt_count + wanted->token_count, context_tokens, error);
  }
  status = wanted->tokens != NULL
               ? copy_ids(memory, wanted, media, vocab, request, error)
               : tokenize_prompt(memory, tokenizer, wanted, context_tokens, request, error);
  if (status != WICK_OK) return status;
  if (request->prompt_count > context_tokens) {
    return prompt_too_long(request->prompt_count, context_tokens, error);
  }
  if (request->prompt_count == 0) {
    fail_with(error, WICK_E_ARG, WICK_NO_OFFSET,
              "the prompt is empty, and the model adds no tokens");
    return status_about(WICK_E_ARG, error, WICK_SUBJECT_PROMPT, 0, 0);
  }
  return WICK_OK;
}

static wick_status copy_forced(memory_gate *memory, const wick_request *wanted, uint32_t vocab,
                               request *request, wick_error *error) {
  if (wanted->forced == NULL || wanted->forced_count == 0) return WICK_OK;
  const wick_status status = check_ids(wanted->forced, wanted->forced_count, NULL, vocab, error);
  if (status != WICK_OK) return status;
  const uint32_t most = request->tokens_max;
  request->forced_count = wanted->forced_count < most ? (uint32_t)wanted->forced_count : most;
  request->forced = memory_alloc_array(memory, request->forced_count, sizeof(int32_t));
  if (request->forced == NULL) {
    return memory_fail(memory, error, "forced tokens");
  }
  memcpy(request->forced, wanted->forced, request->forced_count * sizeof(int32_t));
  return WICK_OK;
}

static size_t read_piece(void *context, int32_t token, const uint8_t **bytes) {
  request *request = context;
  return tokenizer_piece(request->tokenizer, token, true, (uint8_t *)request->piece, bytes);
}

static uint32_t window_of(uint32_t last, uint32_t context_tokens) {
  if (last != WICK_LAST_CONTEXT) return last;
  return context_tokens < WICK_PENALTY_LAST_MAX ? context_tokens : WICK_PENALTY_LAST_MAX;
}

static wick_status make_sampler(memory_gate *memory, const wick_request *wanted, uint32_t vocab,
                                uint32_t context_tokens, request *request, wick_error *error) {
  wick_sampling sampling = wanted->sampling;
  sampling.penalty_last = window_of(sampling.penalty_last, context_tokens);
  sampling.dry_penalty_last = window_of(sampling.dry_penalty_last, context_tokens);
  const wick_status status = sampler_create(memory, &sampling, vocab, &request->sampler, error);
  if (status == WICK_OK) sampler_set_text(request->sampler, read_piece, request);
  request->wants_logprobs = sampling.logprob || sampling.logprobs != 0;
  return status;
}

static wick_status make_tools(memory_gate *memory, const tokenizer *tokenizer,
                              const wick_request *wanted, request *request, wick_error *error) {
  wick_status status = WICK_OK;
  if (wanted->stop_count != 0) {
    status = stop_matcher_create(memory, wanted->stops, wanted->stop_bytes, wanted->stop_count,
                                 &request->stops, error);
  }
  if (status != WICK_OK) return status;
  const size_t text_bytes = request_text_bytes_max(tokenizer);
  request->piece = memory_alloc(memory, text_bytes);
  request->shown = memory_alloc(memory, text_bytes);
  if (request->piece == NULL || request->shown == NULL) {
    return memory_fail(memory, error, "a request's text");
  }
  return WICK_OK;
}

static wick_status make_question(memory_gate *memory, const wick_request *wanted, uint32_t vocab,
                                 request *request, wick_error *error) {
  if (!wanted->asks_host) return WICK_OK;
  request->logits = memory_alloc_array(memory, vocab, sizeof(float));
  return request->logits == NULL ? memory_fail(memory, error, "logits") : WICK_OK;
}

static wick_status check_healing(const wick_request *wanted, wick_error *error) {
  const bool has_grammar = wanted->grammar != NULL && wanted->grammar->kind != WICK_GRAMMAR_NONE;
  const bool has_forced = wanted->forced != NULL;
  const bool has_text = wanted->tokens == NULL && !wanted->prefill_only;
  if (!wanted->healing || (has_text && !has_grammar && !has_forced)) return WICK_OK;
  fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "healing requires %s",
            has_grammar  ? "no grammar"
            : has_forced ? "no forced tokens"
                         : "a string prompt, and an answer");
  return status_about(WICK_E_ARG, error, WICK_SUBJECT_PROMPT, 0, 0);
}

// Removes the end of the prompt, and builds a grammar for text that begins with it.
static wick_status heal_prompt(memory_gate *memory, const tokenizer *tokenizer,
                               const wick_request *wanted, request *request, healing *healing,
                               wick_grammar *grammar, wick_error *error) {
  if (!wanted->healing) return WICK_OK;
  const uint32_t before = request->session == NULL ? 0 : request->session->count;
  uint8_t *scratch = memory_alloc(memory, tokenizer_piece_bytes_max(tokenizer));
  if (scratch == NULL) return memory_fail(memory, error, "the prompt");
  *healing =
      healing_find(tokenizer, request->tokens + before, request->prompt_count - before, scratch);
  memory_free(memory, scratch);
  if (healing->tokens == 0) return WICK_OK;
  request->prompt_count -= healing->tokens;
  request->healing_bytes = healing->text_bytes;
  request->heals_token = healing->tokens == 1;
  *grammar = (wick_grammar){.kind = WICK_GRAMMAR_CHOICE,
                            .text = "[\"\"]",
                            .text_bytes = 4,
                            .marker = healing->text,
                            .marker_bytes = healing->text_bytes};
  return WICK_OK;
}

// Forbids tokens that are shorter than the longest possible token: a model that was trained on
// whole words uses shorter tokens for other words.
static void drop_shorter(const request *request, uint32_t *bits, uint32_t vocab) {
  const uint8_t *piece;
  for (uint32_t id = 0; id < vocab; id++) {
    if ((bits[id / 32] >> id % 32 & 1u) == 0) continue;
    const size_t size =
        tokenizer_piece(request->tokenizer, (int32_t)id, false, (uint8_t *)request->piece, &piece);
    if (size < request->healing_bytes) bits[id / 32] &= ~(1u << id % 32);
  }
}

// Ends the turn if another call is possible but the most likely token does not begin one.
static void end_turn(const request *request, const float *logits, uint32_t *bits, uint32_t vocab) {
  uint32_t best = 0;
  bool can_end = false;
  for (uint32_t id = 0; id < vocab; id++) {
    if (logits[id] > logits[best]) best = id;
    can_end = can_end || (tokenizer_is_end(request->tokenizer, (int32_t)id) &&
                          (bits[id / 32] >> id % 32 & 1u) != 0 && logits[id] - logits[id] == 0);
  }
  if (!can_end || (bits[best / 32] >> best % 32 & 1u) != 0) return;
  for (uint32_t id = 0; id < vocab; id++) {
    if (!tokenizer_is_end(request->tokenizer, (int32_t)id)) bits[id / 32] &= ~(1u << id % 32);
  }
}

static void mask_tokens(void *context, const float *logits, uint32_t *bits, uint32_t vocab) {
  request *request = context;
  mask_write(request->constraint->masks, &request->matcher, bits, vocab);
  if (matcher_ends_turn(&request->matcher)) end_turn(request, logits, bits, vocab);
  if (request->heals_token && request->tokens_out == 0) drop_shorter(request, bits, vocab);
}

// Sets up a grammar and the prefix of its match.
static wick_status take_spelling(memory_gate *memory, const tokenizer *tokenizer,
                                 grammar_shelf *shelf, const wick_grammar *wanted, request *request,
                                 wick_error *error) {
  constraint *taken;
  wick_status status = shelf_take(shelf, memory, tokenizer, wanted, &taken, error);
  if (status != WICK_OK) return status;
  status = matcher_begin_after(taken->grammar, wanted, &request->matcher, error);
  if (status == WICK_OK) {
    request->constraint = taken;
  } else {
    shelf_give_back(shelf, memory, taken);
  }
  return status;
}

static wick_status take_grammar(memory_gate *memory, const tokenizer *tokenizer,
                                grammar_shelf *shelf, const wick_grammar *wanted, request *request,
                                wick_error *error) {
  if (wanted == NULL || wanted->kind == WICK_GRAMMAR_NONE) return WICK_OK;
  wick_status status = take_spelling(memory, tokenizer, shelf, wanted, request, error);
  const bool is_json = wanted->kind == WICK_GRAMMAR_JSON_SCHEMA || wanted->kind == GRAMMAR_REPLY;
  if (status == WICK_E_ARG && wanted->begun_bytes != 0 && is_json && !wanted->any_spelling) {
    // users' prefixes may contain white space where the shortest notation has none
    wick_grammar any = *wanted;
    any.any_spelling = true;
    status = take_spelling(memory, tokenizer, shelf, &any, request, error);
  }
  if (status != WICK_OK) {
    const bool has_subject = error == NULL || error->subject != WICK_SUBJECT_NONE;
    if (!has_subject && status != WICK_E_NOMEM) error->subject = WICK_SUBJECT_GRAMMAR;
    return status;
  }
  sampler_set_mask(request->sampler, mask_tokens, request);
  return WICK_OK;
}

// Limits the number of sampled tokens, and reserves memory for them after the prompt.
static wick_status limit_output(memory_gate *memory, const wick_request *wanted,
                                uint32_t context_tokens, request *request, wick_error *error) {
  // The last sampled token is never processed, so the text may have one more token than fits into
  // the context.
  const uint32_t room = context_tokens - request->prompt_count + 1;
  if (!wanted->prefill_only) {
    request->tokens_max =
        wanted->max_tokens == 0 || wanted->max_tokens > room ? room : wanted->max_tokens;
  }
  request->tokens_count = request->prompt_count;
  return make_room(memory, request->tokens_max, request, error);
}

wick_status request_create(memory_gate *memory, tokenizer *tokenizer, grammar_shelf *shelf,
                           const wick_request *wanted, const media_list *media,
                           const reply_wish *wish, session *session, uint32_t vocab,
                           uint32_t context_tokens, request **out, wick_error *error) {
  request *made = memory_alloc_zeroed(memory, sizeof *made);
  if (made == NULL) return memory_fail(memory, error, "a request");
  made->session = session;
  made->tokenizer = tokenizer;
  made->salt = session != NULL ? session->salt : salt_of(wanted->salt, wanted->salt_bytes);
  made->drop_first = wanted->drop_first;
  made->drop_last = wanted->drop_last;
  healing healing;
  wick_grammar ending;
  wick_status status = check_healing(wanted, error);
  if (status == WICK_OK) {
    status = make_prompt(memory, tokenizer, wanted, media, vocab, context_tokens, made, error);
  }
  if (status == WICK_OK)
    status = heal_prompt(memory, tokenizer, wanted, made, &healing, &ending, error);
  if (status == WICK_OK) status = limit_output(memory, wanted, context_tokens, made, error);
  if (status == WICK_OK) status = copy_forced(memory, wanted, vocab, made, error);
  if (status == WICK_OK) {
    status = make_sampler(memory, wanted, vocab, context_tokens, made, error);
  }
  if (status == WICK_OK) status = make_tools(memory, tokenizer, wanted, made, error);
  if (status == WICK_OK) status = make_question(memory, wanted, vocab, made, error);
  if (status == WICK_OK) {
    const wick_grammar *grammar = made->healing_bytes != 0 ? &ending : wanted->grammar;
    status = take_grammar(memory, tokenizer, shelf, grammar, made, error);
  }
  if (status == WICK_OK && wish != NULL && wish->has_parts) {
    status = parts_create(memory, wish, &made->parts, error);
  }
  if (status == WICK_OK && wanted->reasoning != NULL) {
    status =
        thought_create(memory, tokenizer, &wish->format, wanted->reasoning, &made->thought, error);
  }
  if (status != WICK_OK) {
    request_destroy(memory, shelf, made);
    return status;
  }
  made->priority = wanted->priority;
  made->speculates = !wanted->no_speculation && wanted->on_logits == NULL && !wanted->asks_host &&
                     made->tokens_max > 1;
  made->always_speculates = wanted->always_speculates;
  made->ignore_end = wanted->ignore_end;
  made->on_logits = wanted->on_logits;
  made->on_logits_context = wanted->on_logits_context;
  // Text that continues an empty session counts as a new text. The output of a grammar is returned
  // unchanged.
  const bool is_whole = wanted->tokens == NULL && wanted->text_bytes == 0 &&
                        (session == NULL || session->count == 0) && made->constraint == NULL;
  detokenizer_init(&made->detokenizer, is_whole, wanted->print_special);
  for (uint32_t i = 0; i < made->prompt_count; i++) {
    if (made->tokens[i] >= 0) sampler_accept(made->sampler, made->tokens[i]);
  }
  jump_end_thought(made);
  *out = made;
  return WICK_OK;
}

void request_destroy(memory_gate *memory, grammar_shelf *shelf, request *request) {
  if (request == NULL) return;
  adapter_set_let_go(&request->adapters);
  if (request->constraint != NULL) {
    matcher_end(&request->matcher);
    shelf_give_back(shelf, memory, request->constraint);
  }
  if (request->spent != NULL) shelf_give_back(shelf, memory, request->spent);
  thought_destroy(memory, request->thought);
  parts_destroy(memory, request->parts);
  media_list_clear(memory, &request->media);
  memory_free(memory, request->tokens);
  memory_free(memory, request->forced);
  memory_free(memory, request->logits);
  sampler_destroy(request->sampler);
  stop_matcher_destroy(request->stops);
  memory_free(memory, request->piece);
  memory_free(memory, request->shown);
  memory_free(memory, request);
}

// ---- The grammar ----

wick_status request_check_grammar(request *request, bool *is_complete, wick_error *error) {
  *is_complete = request->constraint != NULL && !matcher_continues(&request->matcher);
  if (request->constraint == NULL || *is_complete) return WICK_OK;
  if (!mask_is_empty(request->constraint->masks, &request->matcher)) return WICK_OK;
  const bool is_cut = mask_is_cut(request->constraint->masks, &request->matcher);
  *is_complete = !is_cut && matcher_accepts(&request->matcher);
  if (*is_complete) return WICK_OK;
  fail_with(error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET, "the grammar: %s",
            is_cut ? "its state exceeds the limit of active positions"
                   : "no token of the model can follow");
  return status_about(WICK_E_UNSUPPORTED, error, WICK_SUBJECT_GRAMMAR, 0, 0);
}

uint32_t request_fitting_tokens(request *request, const tokenizer *tokenizer, const int32_t *tokens,
                                uint32_t count) {
  if (request->constraint == NULL || count == 0) return count;
  grammar_matcher next;
  uint32_t fitting = 0;
  matcher_copy(&request->matcher, &next);
  while (fitting < count && !tokenizer_is_end(tokenizer, tokens[fitting]) &&
         matcher_take_token(&next, tokenizer, tokens[fitting], (uint8_t *)request->piece)) {
    fitting++;
  }
  matcher_end(&next);
  return fitting;
}

// Advances the grammar past a token. Returns false if the grammar cannot continue. request->piece
// is unused until the token's text is written.
static bool go_on_in_grammar(request *request, const tokenizer *tokenizer, int32_t token) {
  if (request->constraint == NULL) return true;
  return matcher_take_token(&request->matcher, tokenizer, token, (uint8_t *)request->piece) &&
         matcher_continues(&request->matcher);
}

// Removes the part that is already in the prompt, and returns the number of new bytes in
// request->piece. The grammar for healing ends after that part.
static size_t heal_text(request *request, size_t piece_bytes) {
  if (request->healing_bytes == 0) return piece_bytes;
  const size_t old = piece_bytes < request->healing_bytes ? piece_bytes : request->healing_bytes;
  memmove(request->piece, request->piece + old, piece_bytes - old);
  request->healing_bytes -= old;
  if (request->healing_bytes == 0) {
    matcher_end(&request->matcher);
    sampler_set_mask(request->sampler, NULL, NULL);
    request->spent = request->constraint;
    request->constraint = NULL;
  }
  return piece_bytes - old;
}

// Whether a control token's text is a stop string. The text is not returned, so it is compared as a
// whole.
static bool is_stop_token(request *request, const tokenizer *tokenizer, int32_t token) {
  const uint8_t *text;
  uint8_t *scratch = (uint8_t *)request->piece;
  if (request->stops == NULL) return false;
  if (tokenizer_piece(tokenizer, token, false, scratch, &text) != 0) return false;
  const size_t size_bytes = tokenizer_piece(tokenizer, token, true, scratch, &text);
  uint32_t index;
  if (size_bytes == 0 || !stop_matcher_has(request->stops, text, size_bytes, &index)) return false;
  request->stopped_by = index + 1;
  return true;
}

wick_finish request_take_token(request *request, const tokenizer *tokenizer, int32_t token,
                               size_t *shown_bytes) {
  *shown_bytes = 0;
  if (!request->ignore_end && tokenizer_is_end(tokenizer, token)) return WICK_FINISH_STOP;
  if (is_stop_token(request, tokenizer, token)) return WICK_FINISH_STOP;
  request->tokens[request->tokens_count++] = token;
  request->tokens_out++;
  const bool is_complete = !go_on_in_grammar(request, tokenizer, token);
  if (request->thought != NULL) {
    const uint8_t *text;
    const size_t text_bytes =
        tokenizer_piece(tokenizer, token, true, (uint8_t *)request->piece, &text);
    thought_take(request->thought, text, text_bytes);
  }
  const size_t piece_bytes =
      heal_text(request, detokenizer_feed(&request->detokenizer, tokenizer, token, request->piece));
  if (request->stops == NULL) {
    memcpy(request->shown, request->piece, piece_bytes);
    *shown_bytes = piece_bytes;
  } else {
    uint32_t index;
    if (stop_matcher_feed(request->stops, request->piece, piece_bytes, request->shown, shown_bytes,
                          &index)) {
      request->stopped_by = index + 1;
      return WICK_FINISH_STOP;
    }
  }
  if (is_complete) return WICK_FINISH_STOP;
  return request->tokens_out >= request->tokens_max ? WICK_FINISH_LENGTH : WICK_FINISH_NONE;
}

size_t request_flush(request *request) {
  if (request->stopped_by != 0) return 0;
  size_t piece_bytes = detokenizer_flush(&request->detokenizer, request->piece);
  if (request->healing_bytes != 0)
    piece_bytes = 0;  // the part of a character that is in the prompt
  if (request->stops == NULL) {
    memcpy(request->shown, request->piece, piece_bytes);
    return piece_bytes;
  }
  size_t shown_bytes = 0;
  uint32_t index;
  const bool is_stopped = stop_matcher_feed(request->stops, request->piece, piece_bytes,
                                            request->shown, &shown_bytes, &index);
  if (is_stopped) request->stopped_by = index + 1;
  if (is_stopped) return shown_bytes;
  return shown_bytes + stop_matcher_flush(request->stops, request->shown + shown_bytes);
}

// schedule/draft.c — the sequences of the smaller model, one per request, and its passes.
#include "schedule/draft.h"

#include <string.h>

#include "schedule/speculation.h"

// The number of requests that the drafter follows at the same time. Another request replaces the
// least recently used request.
enum { DRAFT_TEXTS_MAX = 4 };
_Static_assert(DRAFT_TEXTS_MAX >= SPECULATION_REQUESTS_MAX,
               "requests that decode together would replace each other in every pass");
static const float COST_WEIGHT = 0.2f;

// The part of a request's text that the smaller model has processed: `read` tokens that belong to
// the text, then proposals made after `count` tokens, except the last proposal.
typedef struct draft_text {
  uint32_t request;  // 0: the slot is free
  kv_seq_id sequence;
  uint32_t read, count;
  uint32_t proposed_count;
  int32_t proposed[SPECULATION_TOKENS_MAX];
  uint64_t last_use;
} draft_text;

struct drafter {
  drafter_parts parts;
  draft_text texts[DRAFT_TEXTS_MAX];
  model_input *batch;  // [batch_tokens]
  uint64_t uses, failures;
  float token_us;
};

wick_status drafter_create(const drafter_parts *parts, drafter **out, wick_error *error) {
  drafter *made = memory_alloc_zeroed(parts->memory, sizeof *made);
  if (made == NULL) return memory_fail(parts->memory, error, "the drafter");
  made->parts = *parts;
  made->batch = memory_alloc_array(parts->memory, parts->batch_tokens, sizeof *made->batch);
  if (made->batch == NULL) {
    drafter_destroy(made);
    return memory_fail(parts->memory, error, "the drafter's batch");
  }
  // Reserves memory, so that proposing allocates nothing. Missing pages may become available later.
  store_expect(parts->store, 1);
  store_room room = {{0}};
  store_add_room(parts->store, KV_SEQ_NONE, parts->context_tokens, &room);
  store_grow_for(parts->store, &room, NULL);
  *out = made;
  return WICK_OK;
}

static void forget_text(drafter *drafter, draft_text *text) {
  if (text->request != 0) store_free(drafter->parts.store, text->sequence);
  *text = (draft_text){0};
}

void drafter_destroy(drafter *drafter) {
  if (drafter == NULL) return;
  for (uint32_t i = 0; i < DRAFT_TEXTS_MAX; i++) forget_text(drafter, &drafter->texts[i]);
  memory_free(drafter->parts.memory, drafter->batch);
  memory_free(drafter->parts.memory, drafter);
}

uint64_t drafter_failures(const drafter *drafter) { return drafter->failures; }

float drafter_token_us(const drafter *drafter) { return drafter->token_us; }

void drafter_forget(drafter *drafter, uint32_t request) {
  for (uint32_t i = 0; i < DRAFT_TEXTS_MAX; i++) {
    if (drafter->texts[i].request == request) forget_text(drafter, &drafter->texts[i]);
  }
}

// Returns the slot of the request or, if it has none, a free slot or the least recently used one.
// NULL if memory runs out.
static draft_text *find_text(drafter *drafter, uint32_t request) {
  draft_text *oldest = &drafter->texts[0];
  for (uint32_t i = 0; i < DRAFT_TEXTS_MAX; i++) {
    draft_text *text = &drafter->texts[i];
    if (text->request == request) return text;
    if (text->last_use < oldest->last_use) oldest = text;
  }
  forget_text(drafter, oldest);
  kv_seq_id sequence;
  if (store_new(drafter->parts.store, &sequence, NULL) != WICK_OK) return NULL;
  store_reserve(drafter->parts.store, sequence, drafter->parts.context_tokens, 0);
  *oldest = (draft_text){.request = request, .sequence = sequence};
  return oldest;
}

// Keeps the proposals that were accepted since the last call.
static void confirm(drafter *drafter, draft_text *text, const int32_t *tokens, uint32_t count) {
  uint32_t right = 0;
  while (right + 1 < text->proposed_count && text->count + right < count &&
         tokens[text->count + right] == text->proposed[right]) {
    right++;
  }
  if (text->proposed_count != 0) text->read = text->count + right;
  text->proposed_count = 0;
  // The newest token is always recomputed, because its logits are needed.
  if (text->read >= count) text->read = count - 1;
  text->read = store_truncate(drafter->parts.store, text->sequence, text->read);
}

// Processes `count` tokens. with_logits: computes the logits of the last token, which are valid
// until the next pass. Returns false if pages ran out or values were not finite.
static bool read_tokens(drafter *drafter, draft_text *text, const int32_t *tokens, uint32_t count,
                        bool with_logits) {
  const drafter_parts *parts = &drafter->parts;
  seq_store *store = parts->store;
  const uint32_t first = store_tokens(store, text->sequence);
  if (store_prepare(store, text->sequence, count, NULL) != WICK_OK ||
      store_begin_rows(store, text->sequence, count, count, NULL) != WICK_OK) {
    return false;
  }
  for (uint32_t i = 0; i < count; i++) {
    drafter->batch[i] = (model_input){.token = tokens[i],
                                      .position = first + i,
                                      .sequence = text->sequence,
                                      .wants_logits = with_logits && i + 1 == count};
  }
  forward_begin(parts->forward, drafter->batch, count);
  while (forward_next_layer(parts->forward) < parts->model->config.layers) {
    if (forward_layer(parts->forward, NULL) != WICK_OK) {
      store_settle(store, text->sequence);
      return false;
    }
  }
  store_commit(store, text->sequence, count);
  if (with_logits) forward_logits_compute(parts->forward, 0);
  return true;
}

static int32_t likeliest(const drafter *drafter) {
  const float *logits = forward_logits(drafter->parts.forward, 0);
  const uint32_t vocab = drafter->parts.model->config.vocab;
  uint32_t best = 0;
  for (uint32_t i = 1; i < vocab; i++) {
    if (logits[i] > logits[best]) best = i;
  }
  return (int32_t)best;
}

// Counts a call that cannot propose anything (drafter_failures).
static uint32_t give_up(drafter *drafter) {
  drafter->failures++;
  return 0;
}

// Processes the new part of the text without its newest token, up to one batch. *is_done: all of it
// has been processed. Returns false on failure.
static bool catch_up(drafter *drafter, draft_text *text, const int32_t *tokens, uint32_t count,
                     bool *is_done) {
  const uint32_t left = count - 1 - text->read, most = drafter->parts.batch_tokens;
  const uint32_t now = left < most ? left : most;
  if (now != 0 && !read_tokens(drafter, text, tokens + text->read, now, false)) return false;
  text->read += now;
  *is_done = now == left;
  return true;
}

uint32_t drafter_propose(drafter *drafter, uint32_t request, const int32_t *tokens, uint32_t count,
                         uint32_t most, int32_t *out) {
  if (most == 0) return 0;
  if (count + most > drafter->parts.context_tokens) return give_up(drafter);
  draft_text *text = find_text(drafter, request);
  if (text == NULL) return give_up(drafter);
  text->last_use = ++drafter->uses;
  confirm(drafter, text, tokens, count);
  bool is_done = false;
  if (!catch_up(drafter, text, tokens, count, &is_done)) return give_up(drafter);
  if (!is_done) return 0;
  const uint64_t start_us = drafter->parts.now_us();
  text->count = count;
  int32_t token = tokens[count - 1];
  uint32_t made = 0;
  while (made < most && read_tokens(drafter, text, &token, 1, true)) {
    token = likeliest(drafter);
    out[made] = text->proposed[made] = token;
    made++;
  }
  text->proposed_count = made;
  text->read = made == 0 ? store_tokens(drafter->parts.store, text->sequence) : count;
  if (made == 0) return give_up(drafter);
  const float took = (float)(drafter->parts.now_us() - start_us) / (float)made;
  drafter->token_us += drafter->token_us == 0.0f ? took : COST_WEIGHT * (took - drafter->token_us);
  return made;
}

// A Markov chain in place of a model, with a clock that only passes advance. A program that
// includes this file defines the forward pass itself, so the engine's forward pass is not linked,
// and there is no chain_model.c.
//
// The state at a position is a hash of the previous state, of the state at some earlier position
// (with windows, also at a near position), and of the token. These states are READ from the
// sequence's pages and the new one is WRITTEN there, and the logits depend only on the state, so a
// page that is lost, shared wrongly or out of date changes the output of a request. Tokens after
// dropped tokens keep their states, and each state encodes the position that its keys are rotated
// by. The first token of a text determines how it continues: see chain_style.
#ifndef WICK_TESTS_CHAIN_MODEL_H
#define WICK_TESTS_CHAIN_MODEL_H

#include <string.h>

#include "base/hash.h"
#include "check.h"
#include "kv/pool.h"
#include "model/forward.h"
#include "random.h"
#include "reference/pages.h"
#include "schedule/scheduler_types.h"

enum {
  SIM_VOCAB = 64,
  SIM_POISON = 1,  // a prompt with this token makes each of its passes fail
  SIM_END = 2,
  SIM_LETTERS = 3,  // the first letter; the others follow
  SIM_DIM = 8,      // of the only head in the only layer of a group
  SIM_WINDOW = 21,  // positions that a token attends to in groups with a window, including its own
  SIM_BATCH_MAX = 128
};
// The time of a pass in us: a base time, and times per row and per 16 tokens of context that a row
// attends to.
enum {
  SIM_PASS_US = 1000,
  SIM_SMALL_PASS_US = 50,
  SIM_ROW_US = 50,
  SIM_CONTEXT_US = 1,
  SIM_LOGITS_US = 10
};

static uint64_t simulation_clock_us;
static uint64_t simulation_now(void) { return simulation_clock_us; }

// ---- the chain ----

typedef enum chain_style {
  CHAIN_NEW,       // nothing repeats, except by chance
  CHAIN_REPEATS,   // each letter has a fixed successor, except for one in 24
  CHAIN_DECEIVES,  // the same three letters repeat, each time followed by a different letter
  CHAIN_STYLES
} chain_style;

typedef struct chain_state {
  uint64_t hash;  // 48 bits
  uint32_t position;
  int32_t token;
  chain_style style;
} chain_state;

static uint32_t sim_below(uint64_t *state, uint32_t limit) {
  return (uint32_t)random_below(state, limit);
}

static chain_state chain_first(int32_t token) {
  const uint64_t hash = hash_mix_u64((uint64_t)token + 77) >> 16;
  return (chain_state){hash, 0, token, (chain_style)((token - SIM_LETTERS + 6) % CHAIN_STYLES)};
}
// Return the positions that the state after `before` also depends on: any earlier position, or one
// in the window if no group attends to more; and, if there are windows, a position in the window.
static bool chain_has_near, chain_is_short;
static uint32_t chain_looks_near(const chain_state *before) {
  const uint32_t all = before->position + 1, most = SIM_WINDOW - 1;
  return before->position - (uint32_t)((before->hash >> 20) % (all < most ? all : most));
}
static uint32_t chain_looks_at(const chain_state *before) {
  if (chain_is_short) return chain_looks_near(before);
  return (uint32_t)(before->hash % (before->position + 1));
}
static chain_state chain_next(const chain_state *before, const chain_state *seen,
                              const chain_state *near, int32_t token) {
  const uint64_t looked = seen->hash * 5 + (chain_has_near ? near->hash * 7 : 0);
  const uint64_t mixed = hash_mix_u64(before->hash * 3 + looked + (uint64_t)token);
  return (chain_state){mixed >> 16, before->position + 1, token, before->style};
}

// Computes the state of a token that follows states[0, read).
static void chain_read(chain_state *states, uint32_t read, int32_t token) {
  const chain_state *before = read == 0 ? NULL : &states[read - 1];
  if (before == NULL) {
    states[read] = chain_first(token);
    return;
  }
  const chain_state *seen = &states[chain_looks_at(before)];
  states[read] = chain_next(before, seen, &states[chain_looks_near(before)], token);
}

// Computes logits. Every letter is possible and one is favoured; at one position in 32, the text
// ends.
static void chain_logits(const chain_state *state, float *logits) {
  uint64_t key = state->hash;
  const bool strays = state->hash % 24 == 0;
  if (state->style == CHAIN_REPEATS && !strays) key = (uint64_t)state->token;
  if (state->style == CHAIN_DECEIVES && state->position % 4 != 0) key = state->position % 4;
  key = hash_mix_u64(key + 1);
  const uint32_t favoured = (uint32_t)(SIM_LETTERS + (key >> 40) % (SIM_VOCAB - SIM_LETTERS));
  for (uint32_t t = 0; t < SIM_VOCAB; t++) {
    key = key * 6364136223846793005u + 1442695040888963407u;
    logits[t] = (float)(key >> 40) * (6.0f / 16777216.0f);
  }
  logits[0] = logits[SIM_POISON] = -60.0f;
  logits[SIM_END] = (state->hash >> 8) % 32 == 0 ? 20.0f : -60.0f;
  logits[favoured] = state->style == CHAIN_NEW ? 8.0f : 10.0f;
}

// ---- the forward pass ----

struct forward_pass {
  seq_store *store;
  kv_pool *kv;                     // the store's pool with all positions
  uint32_t group_count;            // of the store
  void (*on_pass)(void *context);  // called before the pass; may be NULL
  void *context;
  bool is_small;  // the draft model, whose passes are cheap, but which is wrong at one position in
                  // four
  model_input inputs[SIM_BATCH_MAX];
  chain_state states[SIM_BATCH_MAX];
  uint32_t wanting[SIM_BATCH_MAX];  // inputs that need logits
  uint32_t count, next_layer, logits_count;
  uint64_t passes, rows;
  float logits[FORWARD_LOGITS_ROWS][SIM_VOCAB];
};

static const uint64_t SIM_VALUE_MASK = 0xa5a5a5a5a5a5u;

// Returns the position that keys at `position` are rotated by, which differs after dropped tokens.
static uint32_t sim_rotation(const kv_pool *kv, uint32_t seq, uint32_t position) {
  uint32_t count;
  const kv_entry *table = kv_seq_table(kv, seq, &count);
  const kv_entry *entry = kv_table_find(table, count, position);
  return entry == NULL ? position : position + (uint32_t)entry->delta;
}

static void sim_write_to(kv_pool *kv, uint32_t seq, const chain_state *state) {
  const uint32_t rotation = sim_rotation(kv, seq, state->position);
  float rows[2][SIM_DIM] = {{0}};
  for (int i = 0; i < 2; i++) {
    const uint64_t hash = i == 0 ? state->hash : state->hash ^ SIM_VALUE_MASK;
    rows[i][0] = (float)(hash & 0xffffff);
    rows[i][1] = (float)(hash >> 24);
    rows[i][2] = (float)rotation;
    rows[i][3] = (float)state->token;
    rows[i][4] = (float)state->style;
  }
  kv_row_write(kv, seq, 0, state->position, rows[0], rows[1]);
}

static void sim_write(const forward_pass *forward, uint32_t seq, const chain_state *state) {
  for (uint32_t i = 0; i < forward->group_count; i++) {
    sim_write_to(store_group(forward->store, i), seq, state);
  }
}

static chain_state sim_read_from(const kv_pool *kv, uint32_t seq, uint32_t position) {
  float k[SIM_DIM] = {0}, v[SIM_DIM] = {0};
  CHECK_EQ_INT(kv_row_read(kv, seq, 0, position, k, v, NULL), WICK_OK);
  const uint64_t hash = (uint64_t)k[0] | (uint64_t)k[1] << 24;
  const uint64_t value = (uint64_t)v[0] | (uint64_t)v[1] << 24;
  if (value != (hash ^ SIM_VALUE_MASK)) CHECK_EQ_UINT(value, hash ^ SIM_VALUE_MASK);
  const uint32_t rotation = sim_rotation(kv, seq, position);
  if ((uint32_t)k[2] != rotation) CHECK_EQ_UINT((uint32_t)k[2], rotation);
  return (chain_state){hash, position, (int32_t)k[3], (chain_style)(int)k[4]};
}

// Reads the state of an earlier token; checks that the state is the same in every group where `in`
// attends to it.
static chain_state sim_read(const forward_pass *forward, const model_input *in, uint32_t position) {
  chain_state read = {0};
  uint32_t seen = 0;
  for (uint32_t i = 0; i < forward->group_count; i++) {
    const kv_pool *kv = store_group(forward->store, i);
    const uint32_t window = kv_pool_shape(kv)->window;
    if (window != 0 && position + window <= in->position) continue;
    const chain_state state = sim_read_from(kv, in->sequence, position);
    if (seen++ != 0 && state.hash != read.hash) CHECK_EQ_UINT(state.hash, read.hash);
    read = state;
  }
  if (seen == 0) CHECK(seen != 0);
  return read;
}

// ---- a recurrent state in addition to the pages: the newest state of the chain ----

// Returns the state before input i, which is not the first of its text: the state after the
// previous input, or the sequence's state.
static chain_state sim_state_before(const forward_pass *forward, uint32_t i) {
  const model_input *in = &forward->inputs[i];
  const chain_state paged = sim_read(forward, in, in->position - 1);
  if (!store_is_recurrent(forward->store)) return paged;
  chain_state kept;
  if (i > 0 && in[-1].sequence == in->sequence) {
    kept = forward->states[i - 1];
  } else {
    memcpy(&kept, store_states_of(forward->store, in->sequence, 0).from, sizeof kept);
  }
  if (kept.position != in->position - 1) CHECK_EQ_UINT(kept.position, in->position - 1);
  if (kept.hash != paged.hash) CHECK_EQ_UINT(kept.hash, paged.hash);
  return kept;
}

// Stores the state after input i where the store needs it.
static void sim_keep_state(const forward_pass *forward, uint32_t i) {
  const model_input *in = &forward->inputs[i];
  if (!store_is_recurrent(forward->store)) return;
  uint32_t first = i;
  while (first > 0 && forward->inputs[first - 1].sequence == in->sequence) first--;
  const store_states states = store_states_of(forward->store, in->sequence, 0);
  if (states.mid != NULL && i - first + 1 == states.mid_rows) {
    memcpy(states.mid, &forward->states[i], sizeof(chain_state));
  }
  if (i + 1 == forward->count || in[1].sequence != in->sequence) {
    memcpy(states.to, &forward->states[i], sizeof(chain_state));
  }
}

void forward_begin(forward_pass *forward, const model_input *inputs, uint32_t count) {
  memcpy(forward->inputs, inputs, count * sizeof *inputs);
  forward->count = count;
  forward->next_layer = forward->logits_count = 0;
  forward->passes++;
  forward->rows += count;
  for (uint32_t i = 0; i < count; i++) {
    if (inputs[i].wants_logits) forward->wanting[forward->logits_count++] = i;
  }
  if (forward->on_pass != NULL) forward->on_pass(forward->context);
}

uint32_t forward_next_layer(const forward_pass *forward) { return forward->next_layer; }

wick_status forward_layer(forward_pass *forward, wick_error *error) {
  simulation_clock_us += forward->is_small ? SIM_SMALL_PASS_US : SIM_PASS_US;
  bool is_poisoned = false;
  for (uint32_t i = 0; i < forward->count; i++) {
    const model_input *in = &forward->inputs[i];
    const bool follows = i > 0 && in[-1].sequence == in->sequence;
    const uint32_t wanted =
        follows ? in[-1].position + 1 : kv_seq_tokens(forward->kv, in->sequence);
    if (in->position != wanted) CHECK_EQ_UINT(in->position, wanted);
    chain_state *state = &forward->states[i];
    if (in->position == 0) {
      *state = chain_first(in->token);
    } else {
      const chain_state before = sim_state_before(forward, i);
      const chain_state seen = sim_read(forward, in, chain_looks_at(&before));
      const chain_state near = sim_read(forward, in, chain_looks_near(&before));
      *state = chain_next(&before, &seen, &near, in->token);
    }
    sim_write(forward, in->sequence, state);
    sim_keep_state(forward, i);
    is_poisoned = is_poisoned || in->token == SIM_POISON;
    simulation_clock_us += SIM_ROW_US + in->position / KERNEL_PAGE_TOKENS * SIM_CONTEXT_US;
  }
  if (is_poisoned) return fail_with(error, WICK_E_NONFINITE, WICK_NO_OFFSET, "poisoned");
  forward->next_layer++;
  return WICK_OK;
}

uint32_t forward_logits_count(const forward_pass *forward) { return forward->logits_count; }

uint32_t forward_logits_compute(forward_pass *forward, uint32_t first) {
  uint32_t rows = forward->logits_count - first;
  if (rows > FORWARD_LOGITS_ROWS) rows = FORWARD_LOGITS_ROWS;
  for (uint32_t i = 0; i < rows; i++) {
    const chain_state *state = &forward->states[forward->wanting[first + i]];
    chain_logits(state, forward->logits[i]);
    if (forward->is_small && state->hash % 4 == 0) forward->logits[i][SIM_LETTERS] = 30.0f;
    simulation_clock_us += SIM_LOGITS_US;
  }
  return rows;
}

const float *forward_logits(const forward_pass *forward, uint32_t row) {
  return forward->logits[row];
}
uint32_t forward_logits_input(const forward_pass *forward, uint32_t index) {
  return forward->wanting[index];
}

// Does nothing, because the model has no multi-token prediction layer.
void forward_keep_rows(forward_pass *forward) { (void)forward; }
bool predict_begin(const scheduler *scheduler) { return scheduler == NULL; }
void predict_after(scheduler *scheduler) { (void)scheduler; }
uint32_t predictor_propose(predictor *predictor, uint32_t request, const int32_t *tokens,
                           uint32_t count, uint32_t most, int32_t *out) {
  (void)predictor, (void)request, (void)tokens, (void)count, (void)most, (void)out;
  return 0;
}
void predictor_forget(predictor *predictor, uint32_t request) { (void)predictor, (void)request; }
uint64_t predictor_failures(const predictor *predictor) { return (void)predictor, 0; }
float predictor_token_us(const predictor *predictor) { return (void)predictor, 0; }

#endif

// text/ugm.c — SentencePiece's unigram model (T5, XLM-RoBERTa): the text is normalised, then split
// into the tokens with the highest sum of scores. Sources: Kudo 2018, "Subword Regularization";
// sentencepiece's unigram_model; sums are computed in the same order as in llama.cpp.
#include <string.h>

#include "base/text.h"
#include "text/encode.h"

static const uint8_t SPACE_MARK[3] = {0xe2, 0x96, 0x81};   // U+2581
static const uint8_t REPLACEMENT[3] = {0xef, 0xbf, 0xbd};  // U+FFFD
static const float UNKNOWN_PENALTY = 10;

// ---- scores ----

// Whether a score is finite, so that it can be added.
static bool is_usable(float score) { return score - score == 0; }

static float score_of(const tokenizer *tokenizer, int32_t id) {
  float score = 0;
  if (vocabulary_kind(tokenizer, id) == TOKEN_USER_DEFINED || tokenizer->scores == NULL) return 0;
  memcpy(&score, tokenizer->scores + (size_t)id * sizeof score, sizeof score);
  return score;
}

void ugm_find_unknown_score(tokenizer *tokenizer) {
  float least = 0;
  for (uint32_t id = 0; id < tokenizer->token_count; id++) {
    if (vocabulary_kind(tokenizer, (int32_t)id) != TOKEN_NORMAL) continue;
    const float score = score_of(tokenizer, (int32_t)id);
    if (is_usable(score) && score < least) least = score;
  }
  tokenizer->unknown_score = least - UNKNOWN_PENALTY;
}

// ---- normalisation ----

// The normalised text, built in state->copy.
typedef struct normal_text {
  encode_state *state;
  size_t used;
  bool in_word;
  bool has_prefix;
} normal_text;

// Reserves space for the normalised form of one character.
static bool reserve_more(normal_text *out) {
  enum { MOST = 3 * (CHARSMAP_REPLACEMENT_BYTES_MAX + 1) };
  encode_state *state = out->state;
  if (state->copy_bytes - out->used >= MOST) return true;
  const size_t wanted = state->copy_bytes + state->copy_bytes / 2 + 2 * MOST;
  uint8_t *grown = memory_resize(state->tokenizer->memory, state->copy, wanted);
  if (grown == NULL) return false;
  state->copy = grown;
  state->copy_bytes = wanted;
  return true;
}

static void put_bytes(normal_text *out, const uint8_t *bytes, size_t size_bytes) {
  memcpy(out->state->copy + out->used, bytes, size_bytes);
  out->used += size_bytes;
}

static void put_normal(normal_text *out, const uint8_t *bytes, size_t size_bytes) {
  const tokenizer *tokenizer = out->state->tokenizer;
  for (size_t i = 0; i < size_bytes; i++) {
    if (bytes[i] == ' ') {
      out->in_word = false;
      if (!tokenizer->merges_spaces) put_bytes(out, SPACE_MARK, sizeof SPACE_MARK);
      continue;
    }
    if (!out->in_word) {
      out->in_word = true;
      if (tokenizer->merges_spaces || (tokenizer->adds_space && !out->has_prefix)) {
        put_bytes(out, SPACE_MARK, sizeof SPACE_MARK);
        out->has_prefix = true;
      }
    }
    put_bytes(out, bytes + i, 1);
  }
}

static bool normalize(normal_text *out, const uint8_t *text, size_t size_bytes) {
  const charsmap *map = &out->state->tokenizer->charsmap;
  for (size_t at = 0; at < size_bytes;) {
    const uint8_t *form = text + at;
    size_t form_bytes = 0;
    size_t taken = charsmap_match(map, form, size_bytes - at, &form, &form_bytes);
    if (taken == 0) {
      uint32_t code;
      const int length = utf8_decode(text + at, size_bytes - at, &code);
      form = length > 0 ? text + at : REPLACEMENT;
      form_bytes = length > 0 ? (size_t)length : sizeof REPLACEMENT;
      taken = length > 0 ? (size_t)length : 1;
    }
    if (!reserve_more(out)) return false;
    put_normal(out, form, form_bytes);
    at += taken;
  }
  return true;
}

// ---- the best split ----

// The token that ends at a position of the text or, after turn_around(), begins there.
typedef struct ugm_step {
  int32_t id;  // TOKEN_NONE: an unknown character
  uint32_t length;
} ugm_step;

// The results for the last UGM_RING positions, which are enough because no token is longer.
typedef struct ugm_lattice {
  const tokenizer *tokenizer;
  const uint8_t *text;
  size_t size_bytes;
  ugm_step *steps;  // [size_bytes + 1]
  double *sums;     // [UGM_RING] of the best split up to a position
} ugm_lattice;

static const double NO_SUM = -0x1p1023;
enum { UGM_RING = 2 * PREFIX_BYTES_MAX };

static void offer(ugm_lattice *lattice, size_t from, size_t length, int32_t id, float score) {
  const size_t to = from + length;
  const double sum = lattice->sums[from % UGM_RING] + (double)score;
  if (!(sum > lattice->sums[to % UGM_RING])) return;
  lattice->sums[to % UGM_RING] = sum;
  lattice->steps[to] = (ugm_step){id, (uint32_t)length};
}

static bool is_matched(token_kind kind) {
  return kind == TOKEN_NORMAL || kind == TOKEN_USER_DEFINED || kind == TOKEN_UNUSED;
}

// Considers all tokens that begin at a position, and the unknown token if none covers the whole
// character.
static void offer_tokens(ugm_lattice *lattice, size_t at, size_t character_bytes) {
  const tokenizer *tokenizer = lattice->tokenizer;
  bool has_character = false;
  prefix_walk walk;
  prefix_walk_init(&walk, tokenizer, lattice->text + at, lattice->size_bytes - at);
  for (int32_t id = prefix_walk_next(&walk); id != TOKEN_NONE; id = prefix_walk_next(&walk)) {
    if (!is_matched(vocabulary_kind(tokenizer, id))) continue;
    const float score = score_of(tokenizer, id);
    if (!is_usable(score)) continue;
    has_character = has_character || walk.length == character_bytes;
    offer(lattice, at, walk.length, id, score);
  }
  if (!has_character) {
    offer(lattice, at, character_bytes, TOKEN_NONE, tokenizer->unknown_score);
  }
}

static void find_best(ugm_lattice *lattice) {
  for (size_t i = 0; i < UGM_RING; i++) lattice->sums[i] = NO_SUM;
  lattice->sums[0] = 0;
  for (size_t at = 0; at < lattice->size_bytes;) {
    const size_t left = lattice->size_bytes - at;
    const size_t wanted = spm_lead_bytes(lattice->text[at]);
    const size_t length = wanted < left ? wanted : left;
    offer_tokens(lattice, at, length);
    for (size_t i = 0; i < length; i++) lattice->sums[(at + i) % UGM_RING] = NO_SUM;
    at += length;
  }
}

// Converts tokens that end at positions to tokens that begin there.
static void turn_around(ugm_lattice *lattice) {
  ugm_step step = lattice->steps[lattice->size_bytes];
  for (size_t to = lattice->size_bytes; to > 0;) {
    const size_t from = to - step.length;
    const ugm_step before = lattice->steps[from];
    lattice->steps[from] = step;
    step = before;
    to = from;
  }
}

static void put_steps(encode_state *state, const ugm_lattice *lattice) {
  bool was_unknown = false;
  for (size_t at = 0; at < lattice->size_bytes; at += lattice->steps[at].length) {
    const int32_t id = lattice->steps[at].id;
    if (id != TOKEN_NONE) {
      sink_put(&state->sink, id);
    } else if (!was_unknown && state->tokenizer->unknown != TOKEN_NONE) {
      sink_put(&state->sink, state->tokenizer->unknown);
    }
    was_unknown = id == TOKEN_NONE;
  }
}

wick_status ugm_encode(encode_state *state, const uint8_t *text, size_t size_bytes,
                       wick_error *error) {
  memory_gate *memory = state->tokenizer->memory;
  normal_text normal = {.state = state};
  if (!normalize(&normal, text, size_bytes)) {
    return memory_fail(memory, error, "tokenizing");
  }
  if (normal.used == 0) return WICK_OK;
  const size_t sum_bytes = UGM_RING * sizeof(double);
  const uint64_t work_bytes = sum_bytes + (normal.used + 1ull) * sizeof(ugm_step);
  uint8_t *work = memory_alloc_wide(memory, normal.used < UINT32_MAX ? work_bytes : UINT64_MAX);
  if (work == NULL) return memory_fail(memory, error, "tokenizing");
  ugm_lattice lattice = {.tokenizer = state->tokenizer,
                         .text = state->copy,
                         .size_bytes = normal.used,
                         .sums = (double *)(void *)work,
                         .steps = (ugm_step *)(void *)(work + sum_bytes)};
  find_best(&lattice);
  turn_around(&lattice);
  put_steps(state, &lattice);
  memory_free(memory, work);
  return WICK_OK;
}

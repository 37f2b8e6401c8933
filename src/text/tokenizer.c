// text/tokenizer.c — reads a vocabulary, plans its memory, and encodes: special tokens first, then
// what is between them by the family's rules.
#include "text/tokenizer.h"

#include <string.h>

#include "base/checked.h"
#include "text/encode.h"
#include "text/special.h"

enum { MEMORY_HEADER_BYTES = CACHE_LINE_BYTES };

// Where the tables stand in the one block, in bytes from its beginning.
typedef struct vocabulary_layout {
  uint64_t offsets;
  uint64_t text_slots;
  uint64_t rules;
  uint64_t pair_slots;
  uint64_t specials;
  uint64_t special_tokens;
  uint64_t nodes;
  uint64_t node_bytes;
  uint64_t flags;
  uint64_t total;
  uint64_t special_count;  // at most
  uint32_t text_slot_count;
  uint32_t pair_slot_count;
} vocabulary_layout;

// The lists of a file, NULL where there is none.
typedef struct vocabulary_lists {
  const gguf_value *tokens;
  const gguf_value *kinds;
  const gguf_value *scores;
  const gguf_value *merges;
} vocabulary_lists;

// ---- memory ----

// A power of two, at least 1.5 slots for each of `count`.
static uint32_t slots_for(uint64_t count) {
  uint32_t slots = 8;
  while (slots < count + count / 2) slots *= 2;
  return slots;
}

static token_kind kind_in_list(const gguf_value *kinds, uint64_t index) {
  if (kinds == NULL) return TOKEN_NORMAL;
  const int64_t kind = gguf_array_i64(kinds, index);
  return kind >= TOKEN_NORMAL && kind <= TOKEN_BYTE ? (token_kind)kind : TOKEN_UNUSED;
}

// At most how many tokens are special, and their bytes.
static void count_specials(const vocabulary_lists *lists, uint64_t *count, uint64_t *bytes) {
  *count = NAMED_TOKENS_MAX;
  *bytes = vocabulary_named_bytes();
  const uint8_t *cursor = lists->tokens->data;
  for (uint64_t id = 0; lists->kinds != NULL && id < lists->tokens->count; id++) {
    const gguf_string text = gguf_next_string(&cursor);
    if (!special_is(kind_in_list(lists->kinds, id), true)) continue;
    ++*count;
    *bytes += text.size_bytes < SPECIAL_TOKEN_BYTES_MAX ? text.size_bytes : SPECIAL_TOKEN_BYTES_MAX;
  }
}

// Needs lists within the limits, so that nothing overflows.
static vocabulary_layout plan_layout(const vocabulary_lists *lists) {
  const uint64_t tokens = lists->tokens->count;
  const uint64_t merges = lists->merges != NULL ? lists->merges->count : 0;
  // A table without rules has slots, too: all that is looked up ends at an empty one.
  vocabulary_layout layout = {.text_slot_count = slots_for(tokens),
                              .pair_slot_count = slots_for(merges)};
  layout.offsets = align_size(sizeof(tokenizer), sizeof(uint64_t));
  layout.text_slots = layout.offsets + tokens * sizeof(uint32_t);
  layout.rules = layout.text_slots + (uint64_t)layout.text_slot_count * sizeof(uint32_t);
  layout.pair_slots = layout.rules + merges * sizeof(merge_rule);
  layout.specials = layout.pair_slots + (uint64_t)layout.pair_slot_count * sizeof(uint32_t);
  uint64_t special_bytes;
  count_specials(lists, &layout.special_count, &special_bytes);
  const uint64_t nodes = special_bytes + 1;
  layout.special_tokens = layout.specials + 3 * layout.special_count * sizeof(uint32_t);
  layout.nodes = layout.special_tokens + 2 * layout.special_count * sizeof(special_token);
  layout.node_bytes = layout.nodes + (nodes + 1) * sizeof(special_node);
  layout.flags = layout.node_bytes + nodes;
  layout.total = layout.flags + tokens;
  return layout;
}

static bool lists_are_within_limits(const vocabulary_lists *lists) {
  return lists->tokens->count <= TOKENS_MAX &&
         (lists->merges == NULL || lists->merges->count <= MERGES_MAX);
}

// An array of `type` whatever else is wrong with the file, or NULL.
static const gguf_value *peek_array(const gguf_directory *directory, const char *key,
                                    gguf_value_type type) {
  const gguf_value *value = gguf_find(directory, key);
  return value != NULL && value->type == GGUF_ARRAY && value->item_type == type ? value : NULL;
}

uint64_t tokenizer_plan_bytes(const gguf_directory *directory) {
  const vocabulary_lists lists = {
      .tokens = peek_array(directory, "tokenizer.ggml.tokens", GGUF_STRING),
      .kinds = peek_array(directory, "tokenizer.ggml.token_type", GGUF_I32),
      .merges = peek_array(directory, "tokenizer.ggml.merges", GGUF_STRING),
  };
  if (lists.tokens == NULL || !lists_are_within_limits(&lists)) return 0;
  if (lists.kinds != NULL && lists.kinds->count < lists.tokens->count) return 0;
  return plan_layout(&lists).total + MEMORY_HEADER_BYTES + CACHE_LINE_BYTES;
}

static void init_table(index_table *table, uint8_t *slots, uint32_t slot_count, uint64_t count) {
  *table = (index_table){.slots = (uint32_t *)(void *)slots, .index_bits = 1};
  table->mask = slot_count - 1;
  while ((1u << table->index_bits) <= count) table->index_bits++;
  memset(slots, 0xff, (size_t)slot_count * sizeof(uint32_t));
}

static special_table place_specials(uint8_t *block, const vocabulary_layout *layout) {
  uint32_t *ids = (uint32_t *)(void *)(block + layout->specials);
  special_token *tokens = (special_token *)(void *)(block + layout->special_tokens);
  return (special_table){.ids = ids,
                         .order = ids + layout->special_count,
                         .texts = ids + 2 * layout->special_count,
                         .tokens = {tokens, tokens + layout->special_count},
                         .nodes = (special_node *)(void *)(block + layout->nodes),
                         .bytes = block + layout->node_bytes};
}

static tokenizer *alloc_tokenizer(memory_gate *memory, const vocabulary_lists *lists,
                                  wick_error *error) {
  const vocabulary_layout layout = plan_layout(lists);
  size_t total;
  uint8_t *block = checked_to_size(layout.total, &total) ? memory_alloc(memory, total) : NULL;
  if (block == NULL) {
    (void)memory_fail(memory, error, "the tokenizer", layout.total);
    return NULL;
  }
  tokenizer *made = (tokenizer *)(void *)block;
  *made = (tokenizer){.memory = memory,
                      .strings = lists->tokens->data,
                      .scores = lists->scores != NULL ? lists->scores->data : NULL,
                      .token_count = (uint32_t)lists->tokens->count,
                      .offsets = (uint32_t *)(void *)(block + layout.offsets),
                      .flags = block + layout.flags,
                      .specials = place_specials(block, &layout),
                      .bos = TOKEN_NONE,
                      .eos = TOKEN_NONE,
                      .unknown = TOKEN_NONE,
                      .separator = TOKEN_NONE};
  init_table(&made->by_text, block + layout.text_slots, layout.text_slot_count,
             lists->tokens->count);
  made->rules = (merge_rule *)(void *)(block + layout.rules);
  made->rule_count = lists->merges != NULL ? (uint32_t)lists->merges->count : 0;
  init_table(&made->by_pair, block + layout.pair_slots, layout.pair_slot_count, made->rule_count);
  return made;
}

// ---- reading ----

static wick_status missing_is(wick_status status, wick_status otherwise, const char *key,
                              wick_error *error) {
  if (status != WICK_E_NODATA) return status;
  return fail_with(error, otherwise, WICK_NO_OFFSET, "%s is missing", key);
}

// How much of a name goes into a message.
static int shown_bytes(gguf_string text) {
  return text.size_bytes < 64 ? (int)text.size_bytes : 64;
}

// Whether tokenizer.ggml.model is this one.
static bool is_model(const gguf_directory *directory, const char *name) {
  gguf_string model;
  wick_error ignored;
  return gguf_get_string(directory, "tokenizer.ggml.model", &model, &ignored) == WICK_OK &&
         gguf_string_equals(model, name);
}

static wick_status read_family(const gguf_directory *directory, tokenizer_family *family,
                               const pretokenizer **pre, wick_error *error) {
  const bool has_tokens = gguf_find(directory, "tokenizer.ggml.tokens") != NULL;
  gguf_string model, name = {"default", 7};
  wick_status status = gguf_get_string(directory, "tokenizer.ggml.model", &model, error);
  if (status != WICK_OK) {
    return missing_is(status, has_tokens ? WICK_E_FORMAT : WICK_E_NODATA, "tokenizer.ggml.model",
                      error);
  }
  if (gguf_string_equals(model, "none") || gguf_string_equals(model, "no_vocab")) {
    return fail_with(error, WICK_E_NODATA, WICK_NO_OFFSET, "the file has no tokenizer");
  }
  *family = FAMILY_SPM;
  *pre = NULL;
  if (gguf_string_equals(model, "llama")) return WICK_OK;
  if (gguf_string_equals(model, "bert")) {
    *family = FAMILY_WPM;
    return WICK_OK;
  }
  const bool is_gemma4 = gguf_string_equals(model, "gemma4");
  if (!is_gemma4 && !gguf_string_equals(model, "gpt2") &&
      !gguf_string_equals(model, "whitespace")) {
    return fail_with(error, WICK_E_UNSUPPORTED,
                     gguf_find(directory, "tokenizer.ggml.model")->offset_bytes,
                     "tokenizer model '%.*s' is not supported", shown_bytes(model), model.bytes);
  }
  if (is_gemma4) {
    name = (gguf_string){"gemma4", 6};
  } else {
    status = gguf_get_string(directory, "tokenizer.ggml.pre", &name, error);
    if (status != WICK_OK && status != WICK_E_NODATA) return status;
  }
  *pre = pretokenizer_find(name);
  if (*pre == NULL) {
    return fail_with(error, WICK_E_UNSUPPORTED,
                     gguf_find(directory, "tokenizer.ggml.pre")->offset_bytes,
                     "pre-tokenizer '%.*s' is not supported", shown_bytes(name), name.bytes);
  }
  *family = (*pre)->is_raw ? FAMILY_CHARACTER_BPE : FAMILY_BPE;
  return WICK_OK;
}

static wick_status check_length(const gguf_value *list, uint64_t count, const char *key,
                                wick_error *error) {
  if (list == NULL || list->count >= count) return WICK_OK;
  return fail_with(error, WICK_E_FORMAT, list->offset_bytes, "%s has %llu items for %llu tokens",
                   key, (unsigned long long)list->count, (unsigned long long)count);
}

static wick_status read_lists(const gguf_directory *directory, tokenizer_family family,
                              vocabulary_lists *lists, wick_error *error) {
  *lists = (vocabulary_lists){0};
  const bool has_merges = family == FAMILY_BPE || family == FAMILY_CHARACTER_BPE;
  const struct {
    const char *key;
    gguf_value_type type;
    bool is_needed;
    bool is_read;
    const gguf_value **list;
  } keys[] = {
      {"tokenizer.ggml.tokens", GGUF_STRING, true, true, &lists->tokens},
      {"tokenizer.ggml.token_type", GGUF_I32, false, true, &lists->kinds},
      {"tokenizer.ggml.scores", GGUF_F32, false, family == FAMILY_SPM, &lists->scores},
      {"tokenizer.ggml.merges", GGUF_STRING, true, has_merges, &lists->merges},
  };
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
    if (!keys[i].is_read) continue;
    wick_status status = gguf_get_array(directory, keys[i].key, keys[i].type, keys[i].list, error);
    if (status == WICK_E_NODATA && !keys[i].is_needed) continue;
    if (status != WICK_OK) return missing_is(status, WICK_E_FORMAT, keys[i].key, error);
  }
  const uint64_t count = lists->tokens->count;
  if (count == 0) {
    return fail_with(error, WICK_E_FORMAT, lists->tokens->offset_bytes,
                     "tokenizer.ggml.tokens is empty");
  }
  if (!lists_are_within_limits(lists)) {
    return fail_with(error, WICK_E_UNSUPPORTED, lists->tokens->offset_bytes,
                     "a vocabulary of %llu tokens is too large", (unsigned long long)count);
  }
  const wick_status status = check_length(lists->kinds, count, "tokenizer.ggml.token_type", error);
  if (status != WICK_OK) return status;
  return check_length(lists->scores, count, "tokenizer.ggml.scores", error);
}

static wick_status read_tokens(tokenizer *tokenizer, const vocabulary_lists *lists,
                               wick_error *error) {
  const uint8_t *cursor = lists->tokens->data;
  for (uint32_t id = 0; id < tokenizer->token_count; id++) {
    tokenizer->offsets[id] = (uint32_t)(cursor - lists->tokens->data);
    tokenizer->flags[id] = (uint8_t)kind_in_list(lists->kinds, id);
    const gguf_string text = gguf_next_string(&cursor);
    if (text.size_bytes > TOKEN_BYTES_MAX) {
      return fail_with(error, WICK_E_UNSUPPORTED, lists->tokens->offset_bytes,
                       "token %u has %llu bytes, at most %d are supported", id,
                       (unsigned long long)text.size_bytes, TOKEN_BYTES_MAX);
    }
    if (text.size_bytes > tokenizer->token_bytes_max) {
      tokenizer->token_bytes_max = (uint32_t)text.size_bytes;
    }
    if (!vocabulary_insert(tokenizer, (int32_t)id)) {
      return fail_with(error, WICK_E_FORMAT, lists->tokens->offset_bytes,
                       "tokenizer.ggml.tokens: token %u collides with too many others", id);
    }
  }
  return WICK_OK;
}

static wick_status fill_tokenizer(tokenizer *tokenizer, const gguf_directory *directory,
                                  const vocabulary_lists *lists, wick_error *error) {
  wick_status status = read_tokens(tokenizer, lists, error);
  if (status == WICK_OK && lists->merges != NULL) {
    status = vocabulary_read_merges(tokenizer, lists->merges, error);
  }
  if (status == WICK_OK) status = vocabulary_read_roles(tokenizer, directory, error);
  // Files of gemma4 that say otherwise are known to be wrong.
  if (tokenizer->family == FAMILY_CHARACTER_BPE && tokenizer->pretokenizer->keeps_newlines) {
    tokenizer->adds_bos = true;
  }
  if (status == WICK_OK) status = special_index(tokenizer, lists->tokens->offset_bytes, error);
  if (status != WICK_OK) return status;
  if (tokenizer->family == FAMILY_BPE) {
    bpe_find_bytes(tokenizer);
  } else {
    spm_find_bytes(tokenizer);
  }
  return WICK_OK;
}

static int32_t token_if_there(const tokenizer *tokenizer, int32_t id) {
  return (uint32_t)id < tokenizer->token_count ? id : TOKEN_NONE;
}

// What holds when the file does not say it. Source: llama.cpp's defaults.
static void set_defaults(tokenizer *tokenizer) {
  switch (tokenizer->family) {
    case FAMILY_SPM:
      tokenizer->adds_bos = true;
      tokenizer->adds_space = true;
      tokenizer->unknown = 0;
      tokenizer->bos = token_if_there(tokenizer, 1);
      tokenizer->eos = token_if_there(tokenizer, 2);
      break;
    case FAMILY_BPE:
    case FAMILY_CHARACTER_BPE:
      tokenizer->adds_bos = tokenizer->pretokenizer->adds_bos;
      break;
    case FAMILY_WPM:
      tokenizer->adds_bos = true;
      tokenizer->lowers_case = true;
      tokenizer->unknown = token_if_there(tokenizer, 100);
      tokenizer->bos = token_if_there(tokenizer, 101);
      tokenizer->separator = token_if_there(tokenizer, 102);
      break;
  }
}

wick_status tokenizer_create(memory_gate *memory, const gguf_directory *directory, tokenizer **out,
                             wick_error *error) {
  tokenizer_family family;
  const pretokenizer *pre;
  vocabulary_lists lists;
  *out = NULL;
  wick_status status = read_family(directory, &family, &pre, error);
  if (status == WICK_OK) status = read_lists(directory, family, &lists, error);
  if (status != WICK_OK) return status;
  tokenizer *made = alloc_tokenizer(memory, &lists, error);
  if (made == NULL) return WICK_E_NOMEM;
  made->family = family;
  made->pretokenizer = pre;
  made->drops_spaces = is_model(directory, "whitespace");
  set_defaults(made);
  status = fill_tokenizer(made, directory, &lists, error);
  if (status != WICK_OK) {
    tokenizer_destroy(made);
    return status;
  }
  *out = made;
  return WICK_OK;
}

void tokenizer_destroy(tokenizer *tokenizer) {
  if (tokenizer != NULL) memory_free(tokenizer->memory, tokenizer);
}

// ---- questions ----

uint32_t tokenizer_vocab(const tokenizer *tokenizer) { return tokenizer->token_count; }

token_kind tokenizer_kind(const tokenizer *tokenizer, int32_t token) {
  if (token < 0 || (uint32_t)token >= tokenizer->token_count) return TOKEN_UNUSED;
  return vocabulary_kind(tokenizer, token);
}

int32_t tokenizer_bos(const tokenizer *tokenizer) { return tokenizer->bos; }
int32_t tokenizer_eos(const tokenizer *tokenizer) { return tokenizer->eos; }

bool tokenizer_adds_bos(const tokenizer *tokenizer) {
  return tokenizer->adds_bos && tokenizer->bos != TOKEN_NONE;
}

bool tokenizer_adds_eos(const tokenizer *tokenizer) {
  return tokenizer->adds_eos && tokenizer->eos != TOKEN_NONE;
}

bool tokenizer_is_end(const tokenizer *tokenizer, int32_t token) {
  for (uint32_t i = 0; i < tokenizer->end_count; i++) {
    if (tokenizer->ends[i] == token) return true;
  }
  return false;
}

int32_t tokenizer_find(const tokenizer *tokenizer, const char *text, size_t size_bytes) {
  return vocabulary_find(tokenizer, text, size_bytes);
}

// ---- encoding ----

wick_status encode_reserve(encode_state *state, size_t size_bytes, wick_error *error) {
  if (size_bytes <= state->copy_bytes && state->copy != NULL) return WICK_OK;
  memory_gate *memory = state->tokenizer->memory;
  memory_free(memory, state->copy);
  state->copy = memory_alloc(memory, size_bytes);
  state->copy_bytes = state->copy != NULL ? size_bytes : 0;
  if (state->copy != NULL) return WICK_OK;
  return memory_fail(memory, error, "tokenizing", size_bytes);
}

// A piece of text without special tokens; `leads`: the first one, or after a special token.
static wick_status encode_plain(encode_state *state, const uint8_t *text, size_t size_bytes,
                                bool leads, wick_error *error) {
  if (size_bytes == 0) return WICK_OK;
  switch (state->tokenizer->family) {
    case FAMILY_SPM:
      return spm_encode(state, text, size_bytes, leads, error);
    case FAMILY_BPE:
      return bpe_encode(state, text, size_bytes, error);
    case FAMILY_CHARACTER_BPE:
      return bpe_encode_characters(state, text, size_bytes, error);
    case FAMILY_WPM:
      return wpm_encode(state, text, size_bytes, error);
  }
  return WICK_E_CORRUPT;
}

static wick_status encode_fragments(encode_state *state, special_search *search,
                                    const uint8_t *text, uint32_t size_bytes, wick_error *error) {
  uint32_t at = 0;
  bool leads = true;
  special_match match;
  while (special_next(search, &match)) {
    const wick_status status = encode_plain(state, text + at, match.begin - at, leads, error);
    if (status != WICK_OK) return status;
    sink_put(&state->sink, match.token);
    at = match.end;
    leads = true;
  }
  return encode_plain(state, text + at, size_bytes - at, leads, error);
}

wick_status tokenizer_encode(tokenizer *tokenizer, const char *text, size_t size_bytes,
                             uint32_t flags, int32_t *tokens, size_t capacity, size_t *count,
                             wick_error *error) {
  *count = 0;
  if (size_bytes > TEXT_BYTES_MAX) {
    return fail_with(error, WICK_E_OVERFLOW, WICK_NO_OFFSET, "a text of %zu bytes is too long",
                     size_bytes);
  }
  encode_state state = {.tokenizer = tokenizer,
                        .sink = {.tokens = tokens, .capacity = capacity},
                        .merger = {.memory = tokenizer->memory}};
  const bool adds_special = (flags & WICK_TOKENIZE_ADD_SPECIAL) != 0;
  const bool controls = (flags & WICK_TOKENIZE_PARSE_SPECIAL) != 0;
  if (adds_special && tokenizer_adds_bos(tokenizer)) sink_put(&state.sink, tokenizer->bos);
  special_search search = {0};
  const uint8_t *bytes = (const uint8_t *)(text != NULL ? text : "");
  wick_status status =
      special_find(&search, tokenizer, bytes, (uint32_t)size_bytes, controls, error);
  if (status == WICK_OK) {
    status = encode_fragments(&state, &search, bytes, (uint32_t)size_bytes, error);
  }
  special_free(&search, tokenizer->memory);
  merger_free(&state.merger);
  memory_free(tokenizer->memory, state.copy);
  if (status != WICK_OK) return status;
  if (adds_special && tokenizer_adds_eos(tokenizer)) sink_put(&state.sink, tokenizer->eos);
  if (adds_special && tokenizer->family == FAMILY_WPM && tokenizer->separator != TOKEN_NONE) {
    sink_put(&state.sink, tokenizer->separator);
  }
  *count = state.sink.count;
  if (*count <= capacity) return WICK_OK;
  return fail_with(error, WICK_E_FULL, WICK_NO_OFFSET, "%zu tokens for room of %zu", *count,
                   capacity);
}

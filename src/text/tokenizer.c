// text/tokenizer.c — reads a vocabulary and plans its memory.
#include "text/tokenizer.h"

#include <string.h>

#include "base/checked.h"
#include "text/encode.h"

enum { MEMORY_HEADER_BYTES = CACHE_LINE_BYTES };

// The offsets of the tables in the memory block, in bytes.
typedef struct vocabulary_layout {
  uint64_t offsets;
  uint64_t text_slots;
  uint64_t rules;
  uint64_t pair_slots;
  uint64_t prefixes;
  uint64_t texts;
  uint64_t specials;
  uint64_t special_tokens;
  uint64_t nodes;
  uint64_t node_bytes;
  uint64_t flags;
  uint64_t total;
  uint64_t special_count;  // upper bound
  uint32_t text_slot_count;
  uint32_t pair_slot_count;
} vocabulary_layout;

// The lists in a file; NULL if missing.
typedef struct vocabulary_lists {
  bool has_prefixes;  // whether the family needs prefixes
  bool has_escapes;
  const gguf_value *tokens;
  const gguf_value *kinds;
  const gguf_value *scores;
  const gguf_value *merges;
} vocabulary_lists;

// ---- memory ----

// Returns a power of two, at least 1.5 slots per item of `count`.
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

// Computes upper bounds for the number of special tokens and their bytes.
static void count_specials(const vocabulary_lists *lists, uint64_t *count, uint64_t *bytes) {
  size_t named_bytes;
  *count = vocabulary_count_named(&named_bytes);
  *bytes = named_bytes;
  const uint8_t *cursor = lists->tokens->data;
  for (uint64_t id = 0; lists->kinds != NULL && id < lists->tokens->count; id++) {
    const gguf_string text = gguf_next_string(&cursor);
    if (!special_is(kind_in_list(lists->kinds, id), true)) continue;
    ++*count;
    *bytes += text.size_bytes < SPECIAL_TOKEN_BYTES_MAX ? text.size_bytes : SPECIAL_TOKEN_BYTES_MAX;
  }
}

// Returns the size of the texts of all tokens, if they are stored without escapes.
static uint64_t text_bytes(const vocabulary_lists *lists) {
  const uint8_t *cursor = lists->tokens->data;
  for (uint64_t id = 0; lists->has_escapes && id < lists->tokens->count; id++) {
    (void)gguf_next_string(&cursor);
  }
  return (uint64_t)(cursor - lists->tokens->data);
}

// Plans the layout. The lists must be within the limits, so that nothing overflows.
static vocabulary_layout plan_layout(const vocabulary_lists *lists) {
  const uint64_t tokens = lists->tokens->count;
  const uint64_t merges = lists->merges != NULL ? lists->merges->count : 0;
  // A table without rules also has slots, because every lookup ends at an empty slot.
  vocabulary_layout layout = {.text_slot_count = slots_for(tokens),
                              .pair_slot_count = slots_for(merges)};
  layout.offsets = align_size(sizeof(tokenizer), sizeof(uint64_t));
  layout.text_slots = layout.offsets + tokens * sizeof(uint32_t);
  layout.rules = layout.text_slots + (uint64_t)layout.text_slot_count * sizeof(uint32_t);
  layout.pair_slots = layout.rules + merges * sizeof(merge_rule);
  layout.prefixes = layout.pair_slots + (uint64_t)layout.pair_slot_count * sizeof(uint32_t);
  layout.texts = layout.prefixes + (lists->has_prefixes ? 2ull * layout.text_slot_count : 0);
  layout.specials = layout.texts + (text_bytes(lists) + 7) / 8 * 8;
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

// Returns an array of `type`, or NULL, regardless of other errors in the file.
static const gguf_value *peek_array(const gguf_directory *directory, const char *key,
                                    gguf_value_type type) {
  const gguf_value *value = gguf_find(directory, key);
  return value != NULL && value->type == GGUF_ARRAY && value->item_type == type ? value : NULL;
}

// Returns the type of tokenizer.ggml.token_type: i32, or u32 in files from some writers. Both are
// stored in the same way.
static gguf_value_type kinds_type(const gguf_directory *directory) {
  const bool is_u32 = peek_array(directory, "tokenizer.ggml.token_type", GGUF_U32) != NULL;
  return is_u32 ? GGUF_U32 : GGUF_I32;
}

// Whether tokenizer.ggml.model has this value.
static bool is_model(const gguf_directory *directory, const char *name) {
  gguf_string model;
  wick_error ignored;
  return gguf_get_string(directory, "tokenizer.ggml.model", &model, &ignored) == WICK_OK &&
         gguf_string_equals(model, name);
}

uint64_t tokenizer_plan_bytes(const gguf_directory *directory) {
  const bool is_rwkv = is_model(directory, "rwkv");
  const vocabulary_lists lists = {
      .has_prefixes = is_rwkv || is_model(directory, "bert") || is_model(directory, "t5"),
      .has_escapes = is_rwkv,
      .tokens = peek_array(directory, "tokenizer.ggml.tokens", GGUF_STRING),
      .kinds = peek_array(directory, "tokenizer.ggml.token_type", kinds_type(directory)),
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

// Copies the list, without escapes, in the directory's format.
static const uint8_t *unescape_texts(const gguf_value *tokens, uint8_t *texts) {
  const uint8_t *cursor = tokens->data;
  uint8_t *out = texts;
  for (uint64_t id = 0; id < tokens->count; id++) {
    const gguf_string text = gguf_next_string(&cursor);
    const size_t size_bytes = rwkv_unescape(text, out + sizeof(uint64_t));
    const uint64_t stored = size_bytes;
    memcpy(out, &stored, sizeof stored);
    out += sizeof stored + size_bytes;
  }
  return texts;
}

static tokenizer *alloc_tokenizer(memory_gate *memory, const vocabulary_lists *lists,
                                  wick_error *error) {
  const vocabulary_layout layout = plan_layout(lists);
  uint8_t *block = memory_alloc_wide(memory, layout.total);
  if (block == NULL) {
    (void)memory_fail(memory, error, "the tokenizer");
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
  if (lists->has_prefixes) {
    made->prefixes = (prefix_filter){block + layout.prefixes, 32};
    memset(made->prefixes.bits, 0, 2 * (size_t)layout.text_slot_count);
    while (1u << (32 - made->prefixes.shift) < 8 * layout.text_slot_count) made->prefixes.shift--;
  }
  if (lists->has_escapes) made->strings = unescape_texts(lists->tokens, block + layout.texts);
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

// Returns the length of a name in a message, limited to a maximum.
static int shown_bytes(gguf_string text) {
  return text.size_bytes < 64 ? (int)text.size_bytes : 64;
}

static wick_status read_family(const gguf_directory *directory, const char *wanted_pre,
                               tokenizer_family *family, const pretokenizer **pre,
                               wick_error *error) {
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
  *pre = NULL;
  static const struct {
    const char *model;
    tokenizer_family family;
  } FAMILIES[] = {
      {"llama", FAMILY_SPM}, {"bert", FAMILY_WPM}, {"t5", FAMILY_UGM}, {"rwkv", FAMILY_RWKV}};
  for (size_t i = 0; i < sizeof FAMILIES / sizeof FAMILIES[0]; i++) {
    *family = FAMILIES[i].family;
    if (gguf_string_equals(model, FAMILIES[i].model)) return WICK_OK;
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
  } else if (wanted_pre != NULL) {
    name = (gguf_string){wanted_pre, strlen(wanted_pre)};
  } else {
    status = gguf_get_string(directory, "tokenizer.ggml.pre", &name, error);
    if (status != WICK_OK && status != WICK_E_NODATA) return status;
  }
  *pre = pretokenizer_find(name);
  if (*pre == NULL) {
    const gguf_value *value = gguf_find(directory, "tokenizer.ggml.pre");
    return fail_with(error, WICK_E_UNSUPPORTED,
                     value != NULL ? value->offset_bytes : WICK_NO_OFFSET,
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
  *lists = (vocabulary_lists){.has_prefixes = family_has_prefixes(family),
                              .has_escapes = family == FAMILY_RWKV};
  const bool has_scores = family == FAMILY_SPM || family == FAMILY_UGM;
  const bool has_merges = family == FAMILY_BPE || family == FAMILY_CHARACTER_BPE;
  const struct {
    const char *key;
    gguf_value_type type;
    bool is_needed;
    bool is_read;
    const gguf_value **list;
  } keys[] = {
      {"tokenizer.ggml.tokens", GGUF_STRING, true, true, &lists->tokens},
      {"tokenizer.ggml.token_type", kinds_type(directory), false, true, &lists->kinds},
      {"tokenizer.ggml.scores", GGUF_F32, false, has_scores, &lists->scores},
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
  const uint8_t *cursor = tokenizer->strings;
  const bool is_short = tokenizer->family == FAMILY_UGM || tokenizer->family == FAMILY_RWKV;
  const int bytes_max = is_short ? PREFIX_BYTES_MAX : TOKEN_BYTES_MAX;
  for (uint32_t id = 0; id < tokenizer->token_count; id++) {
    tokenizer->offsets[id] = (uint32_t)(cursor - tokenizer->strings);
    tokenizer->flags[id] = (uint8_t)kind_in_list(lists->kinds, id);
    const gguf_string text = gguf_next_string(&cursor);
    if (text.size_bytes > (uint64_t)bytes_max) {
      return fail_with(error, WICK_E_UNSUPPORTED, lists->tokens->offset_bytes,
                       "token %u has %llu bytes; at most %d are supported", id,
                       (unsigned long long)text.size_bytes, bytes_max);
    }
    if (text.size_bytes > tokenizer->token_bytes_max) {
      tokenizer->token_bytes_max = (uint32_t)text.size_bytes;
    }
    spm_find_bridges(tokenizer, text);
    if (!vocabulary_insert(tokenizer, (int32_t)id)) {
      return fail_with(error, WICK_E_FORMAT, lists->tokens->offset_bytes,
                       "tokenizer.ggml.tokens: token %u collides with too many others", id);
    }
  }
  return WICK_OK;
}

// Sets the tokens added around the text, regardless of the file's metadata, as in llama.cpp: files
// of gemma4 are known to be wrong, BERT encloses the text in [CLS] and [SEP], and RWKV adds no
// tokens.
static void settle_frame(tokenizer *tokenizer) {
  const bool is_gemma4 =
      tokenizer->family == FAMILY_CHARACTER_BPE && tokenizer->pretokenizer->keeps_newlines;
  const bool is_bert = tokenizer->family == FAMILY_WPM;
  if (is_gemma4 || is_bert) tokenizer->adds_bos = true;
  if (tokenizer->family == FAMILY_RWKV) tokenizer->adds_bos = false;
  if (is_bert || tokenizer->family == FAMILY_RWKV) tokenizer->adds_eos = false;
}

static wick_status fill_tokenizer(tokenizer *tokenizer, const gguf_directory *directory,
                                  const vocabulary_lists *lists, wick_error *error) {
  wick_status status = read_tokens(tokenizer, lists, error);
  if (status == WICK_OK && lists->merges != NULL) {
    status = vocabulary_read_merges(tokenizer, lists->merges, error);
  }
  if (status == WICK_OK) status = vocabulary_read_roles(tokenizer, directory, error);
  settle_frame(tokenizer);
  if (status == WICK_OK) status = special_index(tokenizer, lists->tokens->offset_bytes, error);
  if (status != WICK_OK) return status;
  if (tokenizer->family == FAMILY_BPE) {
    bpe_find_bytes(tokenizer);
  } else {
    spm_find_bytes(tokenizer);
  }
  if (tokenizer->family != FAMILY_UGM) return WICK_OK;
  ugm_find_unknown_score(tokenizer);
  return charsmap_open(&tokenizer->charsmap,
                       gguf_find(directory, "tokenizer.ggml.precompiled_charsmap"), error);
}

static int32_t token_if_there(const tokenizer *tokenizer, int32_t id) {
  return (uint32_t)id < tokenizer->token_count ? id : TOKEN_NONE;
}

// Sets defaults for values that the file does not specify. Source: llama.cpp's defaults.
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
    case FAMILY_UGM:
      tokenizer->adds_eos = true;
      tokenizer->unknown = token_if_there(tokenizer, 2);
      tokenizer->eos = token_if_there(tokenizer, 1);
      break;
    case FAMILY_RWKV:
      break;
  }
}

bool tokenizer_knows_pre(const char *pre_tokenizer) {
  return pretokenizer_find((gguf_string){pre_tokenizer, strlen(pre_tokenizer)}) != NULL;
}

wick_status tokenizer_create(memory_gate *memory, const gguf_directory *directory,
                             const char *pre_tokenizer, tokenizer **out, wick_error *error) {
  tokenizer_family family;
  const pretokenizer *pre;
  vocabulary_lists lists;
  *out = NULL;
  wick_status status = read_family(directory, pre_tokenizer, &family, &pre, error);
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

// ---- lookups ----

uint32_t tokenizer_vocab(const tokenizer *tokenizer) { return tokenizer->token_count; }

token_kind tokenizer_kind(const tokenizer *tokenizer, int32_t token) {
  if (token < 0 || (uint32_t)token >= tokenizer->token_count) return TOKEN_UNUSED;
  return vocabulary_kind(tokenizer, token);
}

int32_t tokenizer_bos(const tokenizer *tokenizer) { return tokenizer->bos; }
int32_t tokenizer_eos(const tokenizer *tokenizer) { return tokenizer->eos; }

int32_t tokenizer_infill(const tokenizer *tokenizer, infill_part part) {
  return tokenizer->infill[part];
}
int32_t tokenizer_separator(const tokenizer *tokenizer) { return tokenizer->separator; }

bool tokenizer_is_word_pieces(const tokenizer *tokenizer) {
  return tokenizer->family == FAMILY_WPM;
}

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

gguf_string tokenizer_text(const tokenizer *tokenizer, int32_t token) {
  if (token < 0 || (uint32_t)token >= tokenizer->token_count) return (gguf_string){0};
  return vocabulary_text(tokenizer, token);
}

int32_t tokenizer_find(const tokenizer *tokenizer, const char *text, size_t size_bytes) {
  return vocabulary_find(tokenizer, text, size_bytes);
}

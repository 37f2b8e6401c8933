// text/roles.c — roles of tokens: beginning and end of text, end of generation, and token kinds
// that are derived from the token's text because files often state them wrongly. Source:
// llama.cpp's loading of vocabularies.
#include "text/vocabulary.h"

typedef enum token_role {
  ROLE_END,         // ends generation
  ROLE_FIM_PREFIX,  // fill-in-the-middle tokens, in the order of infill_part
  ROLE_FIM_SUFFIX,
  ROLE_FIM_MIDDLE,
  ROLE_FIM_REPOSITORY,
  ROLE_FIM_SEPARATOR,
  ROLE_FIM_PAD,
  ROLE_SHOWN  // always printed (the frame of gpt-oss's messages)
} token_role;

enum { NAMES_MAX = 22 };

// Names of the tokens of a role; the earlier name takes precedence.
typedef struct named_role {
  token_role role;
  const char *names[NAMES_MAX];
} named_role;

static const named_role NAMED_ROLES[] = {
    {ROLE_END,
     {"<|eot_id|>",
      "<|im_end|>",
      "<|end|>",
      "<|return|>",
      "<|call|>",
      "<|flush|>",
      "<|calls|>",
      "<end_of_turn>",
      "<|endoftext|>",
      "</s>",
      "<|eom_id|>",
      "<EOT>",
      "_<EOT>",
      "[EOT]",
      "[EOS]",
      "<|end_of_text|>",
      "<end_of_utterance>",
      "<eos>",
      "<turn|>",
      "<|tool_response>",
      "<｜end▁of▁sentence｜>",
      "[e~["}},
    {ROLE_FIM_PREFIX,
     {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>",
      "<|code_prefix|>", "<|prefix|>"}},
    {ROLE_FIM_SUFFIX,
     {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>",
      "<|code_suffix|>", "<|suffix|>"}},
    {ROLE_FIM_MIDDLE,
     {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>",
      "<|code_middle|>", "<|middle|>"}},
    {ROLE_FIM_PAD, {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}},
    {ROLE_FIM_REPOSITORY, {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}},
    {ROLE_FIM_SEPARATOR, {"<|file_sep|>"}},
    {ROLE_SHOWN, {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"}},
};
enum { NAMED_ROLE_COUNT = sizeof NAMED_ROLES / sizeof NAMED_ROLES[0] };

size_t vocabulary_count_named(size_t *bytes) {
  size_t count = 0;
  *bytes = 0;
  for (size_t i = 0; i < NAMED_ROLE_COUNT; i++) {
    for (size_t n = 0; n < NAMES_MAX && NAMED_ROLES[i].names[n] != NULL; n++, count++) {
      *bytes += __builtin_strlen(NAMED_ROLES[i].names[n]);
    }
  }
  return count;
}

// Keys that specify the token of a role; the newer spelling first.
typedef struct role_key {
  const char *key;
  token_role role;
} role_key;

static const role_key ROLE_KEYS[] = {
    {"tokenizer.ggml.fim_pre_token_id", ROLE_FIM_PREFIX},
    {"tokenizer.ggml.prefix_token_id", ROLE_FIM_PREFIX},
    {"tokenizer.ggml.fim_suf_token_id", ROLE_FIM_SUFFIX},
    {"tokenizer.ggml.suffix_token_id", ROLE_FIM_SUFFIX},
    {"tokenizer.ggml.fim_mid_token_id", ROLE_FIM_MIDDLE},
    {"tokenizer.ggml.middle_token_id", ROLE_FIM_MIDDLE},
    {"tokenizer.ggml.fim_pad_token_id", ROLE_FIM_PAD},
    {"tokenizer.ggml.fim_rep_token_id", ROLE_FIM_REPOSITORY},
    {"tokenizer.ggml.fim_sep_token_id", ROLE_FIM_SEPARATOR},
    {"tokenizer.ggml.eos_token_id", ROLE_END},
    {"tokenizer.ggml.eot_token_id", ROLE_END},
    {"tokenizer.ggml.eom_token_id", ROLE_END},
};
enum { ROLE_KEY_COUNT = sizeof ROLE_KEYS / sizeof ROLE_KEYS[0] };

static int32_t find_text(const tokenizer *tokenizer, const char *text) {
  return vocabulary_find(tokenizer, text, __builtin_strlen(text));
}

static void set_kind(tokenizer *tokenizer, int32_t id, token_kind kind) {
  uint8_t *flags = &tokenizer->flags[id];
  *flags = (uint8_t)((*flags & ~TOKEN_KIND_MASK) | (uint8_t)kind);
}

static void set_infill(tokenizer *tokenizer, token_role role, int32_t id) {
  if (role < ROLE_FIM_PREFIX || role > ROLE_FIM_SEPARATOR) return;
  tokenizer->infill[role - ROLE_FIM_PREFIX] = id;
}

static void add_end(tokenizer *tokenizer, int32_t id) {
  if (id == TOKEN_NONE || tokenizer_is_end(tokenizer, id)) return;
  if (tokenizer->end_count < ENDS_MAX) tokenizer->ends[tokenizer->end_count++] = id;
}

static void remove_end(tokenizer *tokenizer, int32_t id) {
  for (uint32_t i = 0; i < tokenizer->end_count; i++) {
    if (tokenizer->ends[i] == id) {
      tokenizer->ends[i] = tokenizer->ends[--tokenizer->end_count];
      return;
    }
  }
}

static bool ends_with_role(token_role role) {
  return role == ROLE_END || role == ROLE_FIM_PAD || role == ROLE_FIM_REPOSITORY ||
         role == ROLE_FIM_SEPARATOR;
}

// Returns the token that a key specifies; TOKEN_NONE if there is no such key or the id is out of
// range.
static wick_status read_token_key(const tokenizer *tokenizer, const gguf_directory *directory,
                                  const char *key, int32_t *out, wick_error *error) {
  uint32_t id = 0;
  *out = TOKEN_NONE;
  const wick_status status = gguf_get_u32(directory, key, &id, error);
  if (status == WICK_E_NODATA) return WICK_OK;
  if (status == WICK_OK && id < tokenizer->token_count) *out = (int32_t)id;
  return status;
}

// For each role except ROLE_END, the first matching token of the vocabulary is used; a key takes
// precedence over a name.
static wick_status read_named(tokenizer *tokenizer, const gguf_directory *directory,
                              wick_error *error) {
  bool is_taken[ROLE_SHOWN + 1] = {false};
  for (size_t i = 0; i < INFILL_PARTS; i++) tokenizer->infill[i] = TOKEN_NONE;
  for (size_t i = 0; i < ROLE_KEY_COUNT; i++) {
    int32_t id;
    const wick_status status = read_token_key(tokenizer, directory, ROLE_KEYS[i].key, &id, error);
    if (status != WICK_OK) return status;
    if (id == TOKEN_NONE) continue;
    if (!is_taken[ROLE_KEYS[i].role]) set_infill(tokenizer, ROLE_KEYS[i].role, id);
    is_taken[ROLE_KEYS[i].role] = true;
    if (ends_with_role(ROLE_KEYS[i].role)) add_end(tokenizer, id);
  }
  for (size_t i = 0; i < NAMED_ROLE_COUNT; i++) {
    const token_role role = NAMED_ROLES[i].role;
    const bool is_single = role != ROLE_END && role != ROLE_SHOWN;
    for (size_t n = 0; n < NAMES_MAX && NAMED_ROLES[i].names[n] != NULL; n++) {
      if (is_single && is_taken[role]) break;
      const int32_t id = find_text(tokenizer, NAMED_ROLES[i].names[n]);
      if (id == TOKEN_NONE) continue;
      is_taken[role] = true;
      set_infill(tokenizer, role, id);
      set_kind(tokenizer, id, role == ROLE_SHOWN ? TOKEN_USER_DEFINED : TOKEN_CONTROL);
      if (ends_with_role(role)) add_end(tokenizer, id);
    }
  }
  return WICK_OK;
}

static bool has_end(const tokenizer *tokenizer, const char *text) {
  const int32_t id = find_text(tokenizer, text);
  return id != TOKEN_NONE && tokenizer_is_end(tokenizer, id);
}

// Handles vocabularies in which <|end|> or </s> does not end a turn.
static void apply_exceptions(tokenizer *tokenizer) {
  const bool has_call = has_end(tokenizer, "<|call|>") || has_end(tokenizer, "<|calls|>");
  const bool has_other = has_end(tokenizer, "<|return|>") || has_end(tokenizer, "<|flush|>");
  if (has_call && has_other && has_end(tokenizer, "<|end|>")) {
    const int32_t end = find_text(tokenizer, "<|end|>");
    remove_end(tokenizer, end);
    set_kind(tokenizer, end, TOKEN_USER_DEFINED);
  }
  if (has_end(tokenizer, "<|tool_response>") && has_end(tokenizer, "</s>")) {
    const int32_t end = find_text(tokenizer, "</s>");
    remove_end(tokenizer, end);
    set_kind(tokenizer, end, TOKEN_NORMAL);
  }
}

static bool contains(gguf_string text, const char *part, bool ignore_case) {
  const size_t size_bytes = __builtin_strlen(part);
  for (size_t at = 0; at + size_bytes <= text.size_bytes; at++) {
    size_t same = 0;
    while (same < size_bytes) {
      char c = text.bytes[at + same];
      if (ignore_case && c >= 'A' && c <= 'Z') c = (char)(c + ('a' - 'A'));
      if (c != part[same]) break;
      same++;
    }
    if (same == size_bytes) return true;
  }
  return false;
}

static void set_strips(tokenizer *tokenizer, const char *text, int flag, bool is_set) {
  const int32_t id = find_text(tokenizer, text);
  if (id == TOKEN_NONE) return;
  uint8_t *flags = &tokenizer->flags[id];
  *flags = (uint8_t)(is_set ? *flags | flag : *flags & ~flag);
}

// Files do not specify which tokens remove adjacent white space, so this is inferred from the
// tokenizer's name.
static void apply_strips(tokenizer *tokenizer, gguf_string name, gguf_string pre,
                         gguf_string architecture) {
  if (contains(pre, "jina-v2-", false) || contains(architecture, "nomic-bert-moe", false) ||
      contains(architecture, "jina-bert-v3", false)) {
    set_strips(tokenizer, "<mask>", TOKEN_STRIPS_LEFT, true);
  } else if (contains(name, "phi-3", true) || contains(name, "phi3", true)) {
    for (uint32_t id = 0; id < tokenizer->token_count; id++) {
      const token_kind kind = vocabulary_kind(tokenizer, (int32_t)id);
      if (kind == TOKEN_CONTROL || kind == TOKEN_USER_DEFINED || kind == TOKEN_UNKNOWN) {
        tokenizer->flags[id] |= TOKEN_STRIPS_RIGHT;
      }
    }
    set_strips(tokenizer, "<unk>", TOKEN_STRIPS_RIGHT, false);
    set_strips(tokenizer, "<s>", TOKEN_STRIPS_RIGHT, false);
    set_strips(tokenizer, "<|endoftext|>", TOKEN_STRIPS_RIGHT, false);
  } else if (contains(name, "modern-bert", true)) {
    set_strips(tokenizer, "[MASK]", TOKEN_STRIPS_LEFT, true);
  }
}

static wick_status optional(wick_status status) {
  return status == WICK_E_NODATA ? WICK_OK : status;
}

wick_status vocabulary_read_roles(tokenizer *tokenizer, const gguf_directory *directory,
                                  wick_error *error) {
  const struct {
    const char *key;
    int32_t *id;
  } ids[] = {
      {"tokenizer.ggml.bos_token_id", &tokenizer->bos},
      {"tokenizer.ggml.eos_token_id", &tokenizer->eos},
      {"tokenizer.ggml.unknown_token_id", &tokenizer->unknown},
      {"tokenizer.ggml.seperator_token_id", &tokenizer->separator},  // the format's spelling
  };
  wick_status status;
  for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
    int32_t id;
    status = read_token_key(tokenizer, directory, ids[i].key, &id, error);
    if (status != WICK_OK) return status;
    if (id != TOKEN_NONE) *ids[i].id = id;
  }
  const struct {
    const char *key;
    bool *flag;
  } flags[] = {
      {"tokenizer.ggml.add_bos_token", &tokenizer->adds_bos},
      {"tokenizer.ggml.add_eos_token", &tokenizer->adds_eos},
      {"tokenizer.ggml.add_space_prefix", &tokenizer->adds_space},
      {"tokenizer.ggml.remove_extra_whitespaces", &tokenizer->merges_spaces},
      {"tokenizer.ggml.normalizer.lowercase", &tokenizer->lowers_case},
  };
  for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
    status = optional(gguf_get_bool(directory, flags[i].key, flags[i].flag, error));
    if (status != WICK_OK) return status;
  }
  tokenizer->strips_accents = tokenizer->lowers_case;
  status = optional(gguf_get_bool(directory, "tokenizer.ggml.normalizer.strip_accents",
                                  &tokenizer->strips_accents, error));
  if (status != WICK_OK) return status;
  status = read_named(tokenizer, directory, error);
  if (status != WICK_OK) return status;
  add_end(tokenizer, tokenizer->eos);
  apply_exceptions(tokenizer);
  gguf_string name = {"", 0}, pre = {"", 0}, architecture = {"", 0};
  status = optional(gguf_get_string(directory, "general.name", &name, error));
  if (status == WICK_OK) {
    status = optional(gguf_get_string(directory, "tokenizer.ggml.pre", &pre, error));
  }
  if (status == WICK_OK) {
    status = optional(gguf_get_string(directory, "general.architecture", &architecture, error));
  }
  if (status == WICK_OK) apply_strips(tokenizer, name, pre, architecture);
  return status;
}

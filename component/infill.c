// component/infill.c — see infill.h.
#include "infill.h"

#include <string.h>

#include "base/options.h"

// The prompt that is being built. After a refusal, nothing is added.
typedef struct infill {
  wick_engine *engine;
  body *read;
  token_list tokens;
  refusal *refused;
} infill;

static void add_id(infill *to, int32_t id) {
  prompts_add_id(to->read, id, &to->tokens, to->refused);
}

static void add_text(infill *to, wick_text text) {
  prompts_add_text(to->engine, to->read, text, 0, &to->tokens, to->refused);
}

static void add_words(infill *to, const char *words) {
  add_text(to, (wick_text){words, strlen(words)});
}

// Adds the concatenation of up to four texts, which are tokenized together.
static void add_joined(infill *to, const wick_text texts[4]) {
  buffer joined = {0};
  for (int i = 0; i < 4; i++) buffer_put(&joined, texts[i].bytes, texts[i].size_bytes);
  if (joined.has_failed) refuse_memory(to->refused, "the prompt");
  if (!joined.has_failed)
    add_text(to, (wick_text){joined.bytes == NULL ? "" : joined.bytes, joined.size_bytes});
  buffer_free(&joined);
}

static wick_text text_of(const body *read, uint32_t object, const char *name, const char *other) {
  const uint32_t node = body_find(read, object, name);
  return node == 0 ? (wick_text){other, strlen(other)} : body_text(read, node);
}

// The model's tokens for the parts of the prompt; WICK_TOKEN_NONE: it has none.
typedef struct marks {
  int32_t bos, prefix, suffix, middle, repository, separator;
} marks;

static bool read_marks(wick_engine *engine, marks *out, refusal *refused) {
  facts model;
  const bool is_read = facts_read(engine, &model, refused);
  if (is_read) {
    const body *read = &model.read;
    const uint32_t infill = facts_of_tokenizer(&model, "infill");
    const bool adds_bos = body_is_true(read, facts_of_tokenizer(&model, "adds_bos"));
    const uint32_t bos = facts_of_tokenizer(&model, "bos");
    *out = (marks){.bos = facts_token(&model, adds_bos ? bos : 0),
                   .prefix = facts_token(&model, body_find(read, infill, "prefix")),
                   .suffix = facts_token(&model, body_find(read, infill, "suffix")),
                   .middle = facts_token(&model, body_find(read, infill, "middle")),
                   .repository = facts_token(&model, body_find(read, infill, "repository")),
                   .separator = facts_token(&model, body_find(read, infill, "separator"))};
  }
  facts_end(&model);
  return is_read;
}

// Adds the files that precede the prefix as context.
static void add_extra(infill *to, uint32_t list, const marks *of) {
  const body *read = to->read;
  const bool is_marked = of->separator >= 0, has_files = body_node(read, list)->count > 0;
  if (is_marked && has_files && of->repository >= 0) {
    add_id(to, of->repository);
    add_words(to, "project\n");
  }
  BODY_EACH(read, file, list) {
    const wick_text line = {"\n", 1}, content = text_of(read, file, "text", "");
    if (is_marked) add_id(to, of->separator);
    add_joined(to, is_marked ? (const wick_text[4]){text_of(read, file, "filename", "file"), line,
                                                    content, line}
                             : (const wick_text[4]){content, line, line, {"", 0}});
  }
  if (is_marked && has_files) {
    add_id(to, of->separator);
    add_words(to, "file\n");
  }
}

static void add_prompt(infill *to, const marks *of) {
  const body *read = to->read;
  if (of->bos >= 0) add_id(to, of->bos);
  add_extra(to, body_field(read, "input_extra"), of);
  add_id(to, of->prefix);
  add_joined(to, (const wick_text[4]){text_of(read, BODY_ROOT, "input_prefix", ""),
                                      text_of(read, BODY_ROOT, "prompt", ""),
                                      {"", 0},
                                      {"", 0}});
  add_id(to, of->suffix);
  add_text(to, text_of(read, BODY_ROOT, "input_suffix", ""));
  add_id(to, of->middle);
}

static bool check_extra(const body *read, refusal *refused) {
  const uint32_t list = body_field(read, "input_extra");
  bool is_right = list == 0 || body_node(read, list)->kind == JSON_ARRAY;
  BODY_EACH(read, file, list) {
    const uint32_t name = body_find(read, file, "filename"), text = body_find(read, file, "text");
    is_right = is_right && body_is_text(read, text) && (name == 0 || body_is_text(read, name));
  }
  return is_right || refuse_value(refused, "input_extra", WORDS_INPUT_EXTRA);
}

bool infill_take(wick_engine *engine, body *read, prompt *out, refusal *refused) {
  marks of;
  if (!check_extra(read, refused) || !read_marks(engine, &of, refused)) return false;
  if (of.prefix < 0 || of.suffix < 0 || of.middle < 0) {
    return refuse(refused, REFUSE_NO_INFILL(NULL));
  }
  infill made = {.engine = engine, .read = read, .tokens = {.name = "prompt"}, .refused = refused};
  add_prompt(&made, &of);
  *out = (prompt){.tokens = made.tokens.ids, .token_count = made.tokens.count};
  return refused->status == 0;
}

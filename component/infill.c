// component/infill.c — see infill.h.
#include "infill.h"

#include <string.h>

#include "base/options.h"

// A list of tokens that is filled in two passes: the first has a capacity of 0 and only counts
// them.
typedef struct token_list {
  wick_engine *engine;
  int32_t *ids;  // [capacity]
  size_t count, capacity;
  refusal *refused;
} token_list;

static void add_id(token_list *to, int32_t id) {
  if (to->count < to->capacity) to->ids[to->count] = id;
  to->count++;
}

static void add_text(token_list *to, wick_text text) {
  wick_error error;
  size_t count = 0;
  const size_t room = to->capacity > to->count ? to->capacity - to->count : 0;
  const wick_status status =
      wick_tokenize(to->engine, text.bytes, text.size_bytes, 0,
                    room > 0 ? to->ids + to->count : NULL, room, &count, &error);
  to->count += count;
  if (status == WICK_OK || status == WICK_E_FULL) return;
  refuse_error(to->refused, &error, "prompt", NULL);
}

static void add_words(token_list *to, const char *words) {
  add_text(to, (wick_text){words, strlen(words)});
}

// Adds the concatenation of up to four texts, which are tokenized together.
static void add_joined(token_list *to, const wick_text texts[4]) {
  buffer joined = {0};
  for (int i = 0; i < 4; i++) buffer_put(&joined, texts[i].bytes, texts[i].size_bytes);
  if (joined.has_failed) refuse(to->refused, 503, "nomem", NULL, "Out of memory for the prompt");
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
static void add_extra(token_list *to, const body *read, uint32_t list, const marks *of) {
  const bool is_marked = of->separator >= 0, has_files = body_node(read, list)->count > 0;
  if (is_marked && has_files && of->repository >= 0) {
    add_id(to, of->repository);
    add_words(to, "project\n");
  }
  for (uint32_t file = body_node(read, list)->first; file != 0;
       file = body_node(read, file)->next) {
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

static void add_prompt(token_list *to, const body *read, const marks *of) {
  if (of->bos >= 0) add_id(to, of->bos);
  add_extra(to, read, body_find(read, BODY_ROOT, "input_extra"), of);
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
  const uint32_t list = body_find(read, BODY_ROOT, "input_extra");
  bool is_right = list == 0 || body_node(read, list)->kind == JSON_ARRAY;
  for (uint32_t file = body_node(read, list)->first; file != 0;
       file = body_node(read, file)->next) {
    const uint32_t name = body_find(read, file, "filename"), text = body_find(read, file, "text");
    is_right = is_right && body_node(read, text)->kind == JSON_STRING &&
               (name == 0 || body_node(read, name)->kind == JSON_STRING);
  }
  return is_right || refuse_value(refused, "input_extra", WORDS_INPUT_EXTRA);
}

bool infill_take(wick_engine *engine, body *read, prompt *out, refusal *refused) {
  marks of;
  if (!check_extra(read, refused) || !read_marks(engine, &of, refused)) return false;
  if (of.prefix < 0 || of.suffix < 0 || of.middle < 0) {
    return refuse(refused, REFUSE_NO_INFILL(NULL));
  }
  token_list tokens = {.engine = engine, .refused = refused};
  add_prompt(&tokens, read, &of);
  const size_t count = tokens.count;
  int32_t *ids = refused->status == 0 ? body_alloc(read, count, sizeof *ids, refused) : NULL;
  if (ids == NULL) return false;
  tokens = (token_list){.engine = engine, .ids = ids, .capacity = count, .refused = refused};
  add_prompt(&tokens, read, &of);
  *out = (prompt){.tokens = ids, .token_count = count};
  return refused->status == 0;
}

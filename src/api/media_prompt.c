// api/media_prompt.c — prompts with images and recordings: tokens of text, of the delimiters around
// images, and of rows; and the rows that replace tokens of a request.
#include <string.h>

#include "api/media_items.h"
#include "base/hash.h"
#include "base/text.h"

// ---- tokens of an item ----

// Returns the head of a chunk's rows. It contains everything that the rows depend on: the content,
// the encoder, and the chunk number.
static media_head head_of(const wick_engine *engine, const media_item *item, uint32_t chunk) {
  const media_items *items = items_of(engine);
  const media_model *encoder = items->encoders[item->kind];
  const media_chunk *part = &item->plan.chunks[chunk];
  const bool is_grid = items->text.has_axes && !part->counts_rows;
  const media_rows rows = {
      .count = part->rows,
      .width = media_row_width(encoder),
      .grid_x = is_grid ? part->across : 0,
      .grid_y = is_grid ? part->down : 0,
      .is_image = !part->is_audio,
      .key = {item->key, hash_mix_u64(media_fingerprint(encoder) + hash_mix_u64(chunk + 1))}};
  return media_head_of(engine->model, &rows);
}

static void write_tokens(media_item *item, const media_prompt *prompt) {
  for (uint32_t i = 0; i < prompt->count; i++) {
    const prompt_chunk *chunk = &prompt->chunks[i];
    if (!chunk->is_rows) {
      memcpy(item->tokens + item->token_count, prompt->tokens + chunk->first_token,
             chunk->token_count * sizeof *item->tokens);
      item->token_count += (uint32_t)chunk->token_count;
      continue;
    }
    const media_head *head = &item->heads[chunk->chunk];
    for (uint32_t row = 0; row < head->count; row++) {
      item->tokens[item->token_count++] = media_token(head, row);
    }
  }
}

// Allocates memory for the tokens of a plan whose text has `texts` tokens. Returns false on
// failure.
static bool make_room(memory_gate *memory, media_item *item, size_t texts) {
  const size_t chunks = (size_t)item->plan.count + 1;
  item->heads = memory_alloc_array(memory, chunks, sizeof *item->heads);
  item->spans = memory_alloc_zeroed(memory, chunks * sizeof *item->spans);
  item->tokens = memory_alloc_array(memory, texts + item->plan.rows + 1, sizeof *item->tokens);
  return item->heads != NULL && item->spans != NULL && item->tokens != NULL;
}

wick_status media_item_make_tokens(const wick_engine *engine, media_item *item, wick_error *error) {
  memory_gate *memory = (memory_gate *)(uintptr_t)&engine->memory;
  const media_plan *plan = &item->plan;
  media_prompt prompt = {.memory = memory, .tokenizer = engine->tokenizer};
  wick_status status = media_prompt_add_plan(&prompt, plan, error);
  if (status == WICK_OK && !make_room(memory, item, prompt.token_count)) {
    status = memory_fail(memory, error, "the tokens of an image");
  }
  if (status == WICK_OK && item->heads != NULL && item->tokens != NULL) {
    for (uint32_t i = 0; i < plan->count; i++) {
      if (!plan->chunks[i].is_text) item->heads[i] = head_of(engine, item, i);
    }
    write_tokens(item, &prompt);
  }
  media_prompt_free(&prompt);
  return status;
}

void media_item_set_key(const wick_engine *engine, media_item *item, uint64_t key) {
  int32_t *at = item->tokens;
  item->key = key;
  for (uint32_t i = 0; i < item->plan.count; i++) {
    if (item->plan.chunks[i].is_text) continue;
    item->heads[i] = head_of(engine, item, i);
    for (uint32_t row = 0; row < item->heads[i].count; row++) {
      while (*at >= 0) at++;  // skip text tokens
      *at++ = media_token(&item->heads[i], row);
    }
  }
}

// ---- prompts ----

// A growable array of tokens.
typedef struct token_list {
  memory_gate *memory;
  int32_t *tokens;
  size_t count, capacity;
} token_list;

static bool reserve(token_list *list, size_t more) {
  if (list->count + more <= list->capacity && list->tokens != NULL) return true;
  const size_t capacity = 2 * (list->count + more) + 1;
  int32_t *tokens = memory_resize_array(list->memory, list->tokens, capacity, sizeof *list->tokens);
  if (tokens == NULL) return false;
  list->tokens = tokens;
  list->capacity = capacity;
  return true;
}

static wick_status put_tokens(token_list *list, const int32_t *tokens, size_t count,
                              wick_error *error) {
  if (!reserve(list, count)) return memory_fail(list->memory, error, "a prompt with images");
  if (count != 0) memcpy(list->tokens + list->count, tokens, count * sizeof *tokens);
  list->count += count;
  return WICK_OK;
}

static wick_status put_special(token_list *list, bool is_wanted, int32_t token, wick_error *error) {
  return is_wanted && token != TOKEN_NONE ? put_tokens(list, &token, 1, error) : WICK_OK;
}

// Text with its spans, and a part of it.
typedef struct marked_text {
  const char *bytes;
  size_t size_bytes;
  const wick_span *spans;  // NULL: all of the text may contain control tokens
  size_t span_count;
  wick_span *cut;  // [span_count]
} marked_text;

// Returns the spans of the text from `from` to `to`.
static size_t cut_spans(const marked_text *text, size_t from, size_t to) {
  size_t count = 0;
  for (size_t i = 0; text->spans != NULL && i < text->span_count; i++) {
    const wick_span span = text->spans[i];
    if (span.end <= from) continue;
    const size_t end = span.end < to ? span.end : to;
    text->cut[count++] = (wick_span){(uint32_t)(end - from), span.is_content};
    if (span.end >= to) break;
  }
  return count;
}

static wick_status put_text(token_list *list, const tokenizer *tokenizer, const marked_text *text,
                            size_t from, size_t to, wick_error *error) {
  size_t count = to - from + 8;
  const size_t spans = cut_spans(text, from, to);
  wick_status status = WICK_OK;
  if (from == to) return WICK_OK;
  for (int round = 0; round < 2; round++) {
    const size_t room = count;
    if (!reserve(list, room)) return memory_fail(list->memory, error, "a prompt with images");
    status = tokenizer_encode_spans(
        tokenizer, text->bytes + from, to - from, text->spans == NULL ? NULL : text->cut, spans,
        WICK_TOKENIZE_PARSE_SPECIAL, list->tokens + list->count, room, &count, error);
    if (status != WICK_E_FULL) break;
  }
  if (status == WICK_OK) list->count += count;
  return status;
}

static size_t find_marker(const marked_text *text, const wick_media_prompt *prompt, size_t from) {
  const size_t size = prompt->marker_bytes;
  for (size_t at = from; size != 0 && size <= text->size_bytes && at <= text->size_bytes - size;
       at++) {
    if (memcmp(text->bytes + at, prompt->marker, size) == 0) return at;
  }
  return text->size_bytes;
}

static wick_status fail_count(uint32_t found, uint32_t wanted, wick_error *error) {
  fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "prompt: %u markers for %u images and recordings",
            found, wanted);
  return status_about(WICK_E_ARG, error, WICK_SUBJECT_PROMPT, found, wanted);
}

static wick_status put_all(wick_engine *engine, const wick_media_prompt *prompt,
                           const marked_text *text, token_list *list, wick_error *error) {
  size_t at = 0;
  uint32_t found = 0;
  wick_status status = WICK_OK;
  while (status == WICK_OK) {
    const size_t end = find_marker(text, prompt, at);
    status = put_text(list, engine->tokenizer, text, at, end, error);
    if (status != WICK_OK || end == text->size_bytes) break;
    at = end + prompt->marker_bytes;
    if (found++ >= prompt->media_count) continue;
    const media_item *item = media_item_find(engine, prompt->media[found - 1]);
    status = item == NULL
                 ? fail_with(error, WICK_E_ARG, WICK_NO_OFFSET,
                             "no image or recording has the number %u", prompt->media[found - 1])
                 : put_tokens(list, item->tokens, item->token_count, error);
  }
  if (status != WICK_OK) return status;
  return found == prompt->media_count ? WICK_OK : fail_count(found, prompt->media_count, error);
}

static wick_status put_prefix(wick_engine *engine, const wick_media_prompt *prompt,
                              token_list *list, wick_error *error) {
  const size_t room = 4 * (prompt->chat->prefix_bytes + engine->chat.ending.size_bytes) + 16;
  size_t count;
  if (!reserve(list, room)) return memory_fail(list->memory, error, "a prompt with images");
  const wick_status status =
      engine_tokenize_prefix(engine, prompt->chat, list->tokens + list->count, room, &count, error);
  if (status == WICK_OK) list->count += count;
  return status;
}

// Gets the text of the prompt; a conversation is rendered.
static wick_status find_text(wick_engine *engine, const wick_media_prompt *prompt,
                             marked_text *text, wick_error *error) {
  wick_chat_text rendered;
  *text = (marked_text){.bytes = prompt->text, .size_bytes = prompt->text_bytes};
  wick_status status = wick_tokenizer_status(engine, error);
  if (status != WICK_OK || prompt->chat == NULL) return status;
  status = wick_chat_render(engine, prompt->chat, &rendered, error);
  if (status != WICK_OK) return status;
  text->bytes = rendered.text.bytes;
  text->size_bytes = rendered.text.size_bytes;
  if (prompt->chat->parse_special) return WICK_OK;
  text->spans = rendered.spans;
  text->span_count = rendered.span_count;
  text->cut = memory_alloc_array(&engine->memory, rendered.span_count + 1, sizeof *text->cut);
  return text->cut == NULL ? memory_fail(&engine->memory, error, "a conversation") : WICK_OK;
}

wick_status wick_media_tokenize(wick_engine *engine, const wick_media_prompt *prompt,
                                const int32_t **tokens, size_t *count, wick_error *error) {
  marked_text text;
  token_list list = {.memory = &engine->memory};
  const tokenizer *tokenizer = engine->tokenizer;
  *tokens = NULL;
  *count = 0;
  if (engine->media == NULL) {
    return fail_with(error, WICK_E_NODATA, WICK_NO_OFFSET,
                     "the model is loaded without an mmproj file");
  }
  wick_status status = find_text(engine, prompt, &text, error);
  if (status == WICK_OK) {
    const bool has_bos = prompt->chat != NULL && engine_begins_with_bos(engine);
    status = put_special(&list, tokenizer_adds_bos(tokenizer) && !has_bos, tokenizer_bos(tokenizer),
                         error);
  }
  if (status == WICK_OK) status = put_all(engine, prompt, &text, &list, error);
  if (status == WICK_OK) {
    status = put_special(&list, tokenizer_adds_eos(tokenizer), tokenizer_eos(tokenizer), error);
  }
  if (status == WICK_OK && prompt->chat != NULL) status = put_prefix(engine, prompt, &list, error);
  memory_free(&engine->memory, text.cut);
  memory_free(&engine->memory, items_of(engine)->prompt);
  items_of(engine)->prompt = list.tokens;
  if (status != WICK_OK) return status;
  *tokens = list.tokens;
  *count = list.count;
  return WICK_OK;
}

// ---- the rows of a request ----

// Whether the tokens begin with the tokens of the rows.
static bool begins_with_rows(const int32_t *tokens, size_t count, const media_head *head) {
  if (count < head->count) return false;
  for (uint32_t row = 0; row < head->count; row++) {
    if (tokens[row] != media_token(head, row)) return false;
  }
  return true;
}

static media_span *find_span(const media_items *items, const int32_t *tokens, size_t count) {
  for (uint32_t i = 0; i < items->count; i++) {
    const media_item *item = items->list[i];
    if (!media_item_is_ready(item)) continue;
    for (uint32_t chunk = 0; chunk < item->plan.count; chunk++) {
      media_span *span = item->spans[chunk];
      if (span != NULL && begins_with_rows(tokens, count, &span->is)) return span;
    }
  }
  return NULL;
}

// Tokens of unknown rows are rejected later, because they are not in the vocabulary.
wick_status media_items_find_rows(wick_engine *engine, const wick_request *request, media_list *out,
                                  wick_error *error) {
  const media_items *items = items_of(engine);
  wick_status status = WICK_OK;
  for (size_t i = 0; i < request->token_count && status == WICK_OK;) {
    media_span *span = request->tokens[i] >= 0
                           ? NULL
                           : find_span(items, request->tokens + i, request->token_count - i);
    if (span != NULL) {
      status = media_list_add(&engine->memory, out, span, (uint32_t)i, error);
    }
    i += span == NULL ? 1 : span->is.count;
  }
  return status;
}

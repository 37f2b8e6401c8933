// schedule/jump.c — the text that must follow, and its tokens.
#include "schedule/jump.h"

#include <string.h>

enum {
  JUMP_BYTES_MIN = 2,
  JUMP_BYTES_MAX = 128,
  NEWEST_BYTES_MAX = 32,  // of the previous token; a longer token is omitted
  IDS_MAX = NEWEST_BYTES_MAX + JUMP_BYTES_MAX + 8,
};

typedef struct jump_text {
  // The bytes of the newest token, then the bytes that follow it.
  uint8_t bytes[NEWEST_BYTES_MAX + JUMP_BYTES_MAX];
  size_t newest_bytes, size_bytes;
  int32_t ids[IDS_MAX];
  size_t count;
} jump_text;

// Whether the grammar matches control tokens by their text.
static bool has_controls(const request *request) {
  return request->constraint->grammar->program.has_controls;
}

static bool encode(const request *request, jump_text *text, size_t from) {
  uint32_t flags = TOKENIZE_CONTINUES;
  if (has_controls(request)) flags |= (uint32_t)WICK_TOKENIZE_PARSE_SPECIAL;
  return tokenizer_encode(request->tokenizer, (const char *)text->bytes + from,
                          text->size_bytes - from, flags, text->ids, IDS_MAX, &text->count,
                          NULL) == WICK_OK;
}

// Tokenizes the text after the newest token: together with the newest token if the result begins
// with it, otherwise only the following text.
static bool find_ids(const request *request, jump_text *text) {
  const int32_t newest = request->tokens[request->tokens_count - 1];
  const size_t newest_bytes = text->newest_bytes;
  if (newest_bytes != 0 && encode(request, text, 0) && text->count > 1 && text->ids[0] == newest) {
    text->count--;
    memmove(text->ids, text->ids + 1, text->count * sizeof *text->ids);
    return true;
  }
  return encode(request, text, newest_bytes);
}

// Adds the tokens to request->jump as long as they match the text that must follow.
static void keep_ids(request *request, const jump_text *text) {
  mask_cache *masks = request->constraint->masks;
  uint8_t *scratch = (uint8_t *)request->piece;
  const uint8_t *piece, *next = text->bytes + text->newest_bytes;
  size_t left = text->size_bytes - text->newest_bytes;
  grammar_matcher matcher;
  matcher_copy(&request->matcher, &matcher);
  for (size_t i = 0; i < text->count && request->jump_count < JUMP_TOKENS_MAX; i++) {
    const int32_t id = text->ids[i];
    const size_t piece_bytes =
        tokenizer_piece(request->tokenizer, id, has_controls(request), scratch, &piece);
    if (tokenizer_is_end(request->tokenizer, id)) break;
    if (sampler_forbids(request->sampler, id)) break;
    if (piece_bytes == 0 || piece_bytes > left || memcmp(piece, next, piece_bytes) != 0) break;
    if (piece_bytes == left &&
        mask_has_longer(masks, &matcher, request->tokenizer, piece_bytes, scratch)) {
      break;
    }
    if (!matcher_take_token(&matcher, request->tokenizer, id, scratch)) break;
    next += piece_bytes;
    left -= piece_bytes;
    request->jump[request->jump_count++] = id;
  }
  matcher_end(&matcher);
}

void jump_find(request *request, memory_gate *memory, const grammar_shelf *shelf) {
  jump_text text = {0};
  const uint8_t *newest;
  uint8_t forced[JUMP_BYTES_MAX];
  request->jump_count = request->jump_next = 0;
  const size_t forced_bytes = matcher_only_bytes(&request->matcher, forced, sizeof forced);
  if (forced_bytes < JUMP_BYTES_MIN) return;
  text.newest_bytes =
      tokenizer_piece(request->tokenizer, request->tokens[request->tokens_count - 1],
                      has_controls(request), (uint8_t *)request->piece, &newest);
  if (text.newest_bytes > NEWEST_BYTES_MAX) text.newest_bytes = 0;
  memcpy(text.bytes, newest, text.newest_bytes);
  memcpy(text.bytes + text.newest_bytes, forced, forced_bytes);
  text.size_bytes = text.newest_bytes + forced_bytes;
  memory_use_reserve(memory, shelf->reserve, SHELF_RESERVE_BYTES);
  const bool has_ids = find_ids(request, &text);
  memory_end_reserve(memory);
  if (has_ids) keep_ids(request, &text);
}

// ---- the end of reasoning ----

static bool put_close(request *request, const thought_close *close) {
  bool is_allowed = true;
  if (request->constraint != NULL) {
    grammar_matcher matcher;
    matcher_copy(&request->matcher, &matcher);
    for (size_t i = 0; i < close->count && is_allowed; i++) {
      is_allowed = matcher_take_token(&matcher, request->tokenizer, close->ids[i],
                                      (uint8_t *)request->piece);
    }
    matcher_end(&matcher);
  }
  if (!is_allowed) return false;
  memcpy(request->jump, close->ids, close->count * sizeof *close->ids);
  request->jump_next = 0;
  request->jump_count = (uint32_t)close->count;
  return true;
}

bool jump_end_thought(request *request) {
  thought *thought = request->thought;
  if (thought == NULL || !thought_is_due(thought)) return false;
  const bool was_closed = thought->was_closed;
  thought->was_closed = true;
  if (was_closed && put_close(request, &thought->closes[1])) return true;
  return put_close(request, &thought->closes[0]);
}

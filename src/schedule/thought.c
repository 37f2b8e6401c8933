// schedule/thought.c — counts the tokens of reasoning in the sampled text.
#include "schedule/thought.h"

#include <string.h>

// A character has at most four bytes, each of which may be a token.
enum { LATE_TOKENS_MAX = 3 };

static void ignore(void *context, const reply_event *event) {
  (void)context;
  (void)event;
}

static wick_status encode(tokenizer *tokens, const char *mark, thought_close *close,
                          wick_error *error) {
  const uint32_t flags = TOKENIZE_CONTINUES | (uint32_t)WICK_TOKENIZE_PARSE_SPECIAL;
  const wick_status status = tokenizer_encode(tokens, mark, strlen(mark), flags, close->ids,
                                              THOUGHT_IDS_MAX, &close->count, error);
  if (status != WICK_E_FULL) return status;
  return fail_with(error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
                   "a limit on reasoning: %s has %zu tokens; the limit is %d", mark, close->count,
                   (int)THOUGHT_IDS_MAX);
}

wick_status thought_create(memory_gate *memory, tokenizer *tokens, const reply_format *format,
                           const wick_reasoning *wanted, thought **out, wick_error *error) {
  thought *made = memory_alloc_zeroed(memory, sizeof *made);
  if (made == NULL) return memory_fail(memory, error, "a limit on reasoning");
  made->left = wanted->tokens_max;
  wick_status status = WICK_OK;
  for (int i = 0; i < 2 && status == WICK_OK; i++) {
    status = encode(tokens, reply_format_close(format, i == 1), &made->closes[i], error);
  }
  if (status == WICK_OK) {
    const wick_text ending = {wanted->ending, wanted->ending_bytes};
    status = reply_parser_create(memory, format, (wick_text){0}, ending, &made->parser, error);
  }
  if (status == WICK_OK) {
    *out = made;
  } else {
    thought_destroy(memory, made);
  }
  return status;
}

void thought_destroy(memory_gate *memory, thought *thought) {
  if (thought == NULL) return;
  reply_parser_destroy(thought->parser);
  memory_free(memory, thought);
}

void thought_take(thought *thought, const uint8_t *bytes, size_t size_bytes) {
  const bool was_open = reply_parser_is_reasoning(thought->parser);
  reply_parser_feed(thought->parser, (const char *)bytes, size_bytes, ignore, NULL, NULL);
  if (!was_open || !reply_parser_is_reasoning(thought->parser)) return;
  if (thought->left > 0) {
    thought->left--;
  } else {
    thought->late++;
  }
}

bool thought_is_due(const thought *thought) {
  if (thought->left > 0 || !reply_parser_is_reasoning(thought->parser)) return false;
  return reply_parser_is_whole(thought->parser) || thought->late >= LATE_TOKENS_MAX;
}

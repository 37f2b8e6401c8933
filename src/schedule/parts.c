// schedule/parts.c — see parts.h.
#include "schedule/parts.h"

#include <string.h>

#include "schedule/request.h"
#include "schedule/scheduler.h"

struct reply_parts {
  reply_parser *parser;  // NULL: everything is content
  uint64_t shown_bytes;  // bytes of the reply so far
};

wick_status parts_create(memory_gate *memory, const reply_wish *wish, reply_parts **out,
                         wick_error *error) {
  reply_parts *parts = memory_alloc_zeroed(memory, sizeof *parts);
  if (parts == NULL) return memory_fail(memory, error, "a reply");
  *out = parts;
  if (wish->is_plain) return WICK_OK;
  const wick_status status =
      reply_parser_create(memory, &wish->format, wish->tools, wish->ending, &parts->parser, error);
  if (status == WICK_OK) reply_parser_limit(parts->parser, wish->has_begun, wish->content);
  return status;
}

void parts_destroy(memory_gate *memory, reply_parts *parts) {
  if (parts == NULL) return;
  reply_parser_destroy(parts->parser);
  memory_free(memory, parts);
}

// ---- events ----

typedef struct part_sink {
  event_buffer *events;
  uint32_t request;
  wick_status status;
} part_sink;

// Parts leave enough space for the records that a row of logits still needs.
static void put(part_sink *to, const wick_event *part, const char *text, size_t text_bytes) {
  if (to->status == WICK_OK) to->status = events_make_room(to->events, SCHEDULER_RECORDS_PER_ROW);
  if (to->status != WICK_OK) return;
  wick_event event = *part;
  event.request = to->request;
  event.token = WICK_TOKEN_NONE;
  events_put(to->events, &event, NULL, NULL, 0, text, text_bytes);
}

static void put_content(part_sink *to, const char *text, size_t text_bytes) {
  const wick_event event = {.kind = WICK_EVENT_CONTENT};
  if (text_bytes > 0) put(to, &event, text, text_bytes);
}

static void take_part(void *context, const reply_event *part) {
  _Static_assert(REPLY_CALL_ENDS - REPLY_CONTENT == WICK_EVENT_CALL_END - WICK_EVENT_CONTENT,
                 "both have the same order");
  char name[2 * REPLY_NAME_BYTES_MAX];
  wick_event event = {.kind = (uint32_t)part->kind + WICK_EVENT_CONTENT,
                      .call = (uint16_t)part->call};
  if (part->kind != REPLY_CALL_BEGINS) {
    put(context, &event, part->text, part->text_bytes);
    return;
  }
  event.name_bytes = (uint16_t)part->text_bytes;
  memcpy(name, part->text, part->text_bytes);
  memcpy(name + part->text_bytes, part->id, part->id_bytes);
  put(context, &event, name, part->text_bytes + part->id_bytes);
}

// Returns the text from the beginning of the malformed call as content. The text is restored from
// the tokens, because it is not stored.
static void put_broken(part_sink *to, request *request, const wick_error *broken) {
  const wick_event event = {.kind = WICK_EVENT_CALL_BROKEN,
                            .call = (uint16_t)broken->numbers[1],
                            .status = (uint16_t)broken->status};
  put(to, &event, broken->message, strlen(broken->message));
  detokenizer state;
  detokenizer_init(&state, false, request->detokenizer.special);
  uint64_t before = 0;
  const uint64_t from = broken->numbers[0], end = request->parts->shown_bytes;
  for (uint32_t i = request->prompt_count; i <= request->tokens_count && before < end; i++) {
    const size_t size =
        i == request->tokens_count
            ? detokenizer_flush(&state, request->piece)
            : detokenizer_feed(&state, request->tokenizer, request->tokens[i], request->piece);
    const size_t skipped = from <= before         ? 0
                           : from - before < size ? (size_t)(from - before)
                                                  : size;
    const size_t kept = end - before < size ? (size_t)(end - before) : size;
    if (skipped < kept) put_content(to, request->piece + skipped, kept - skipped);
    before += size;
  }
}

wick_status parts_put(event_buffer *events, request *request, size_t shown_bytes,
                      wick_finish finish, wick_error *error) {
  reply_parts *parts = request->parts;
  if (parts == NULL) return WICK_OK;
  part_sink to = {.events = events, .request = request->id};
  wick_error broken;
  wick_status status = WICK_OK;
  parts->shown_bytes += shown_bytes;
  if (parts->parser == NULL) {
    put_content(&to, request->shown, shown_bytes);
  } else {
    status = reply_parser_feed(parts->parser, request->shown, shown_bytes, take_part, &to, &broken);
    if (status == WICK_OK && finish != WICK_FINISH_NONE) {
      status = reply_parser_end(parts->parser, take_part, &to, &broken);
    }
  }
  const bool is_cut = status == WICK_E_TRUNCATED && finish != WICK_FINISH_STOP;
  if (status != WICK_OK && status != WICK_E_NOMEM && !is_cut) {
    put_broken(&to, request, &broken);
    reply_parser_destroy(parts->parser);
    parts->parser = NULL;
  }
  if (status != WICK_E_NOMEM && to.status == WICK_OK) return WICK_OK;
  return memory_fail(events->memory, error, "a reply");
}

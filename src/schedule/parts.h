// schedule/parts.h — the reply to a conversation, whose parts become events while it is generated.
#ifndef WICK_SCHEDULE_PARTS_H
#define WICK_SCHEDULE_PARTS_H

#include "base/memory.h"
#include "base/status.h"
#include "reply/reply.h"
#include "schedule/events.h"

// The properties of a reply before it is generated.
typedef struct reply_wish {
  reply_format format;  // format of the model's template
  bool has_parts;       // parts become events
  bool is_plain;        // everything is content
  wick_text tools;      // for reply_parser_create
  bool has_begun;       // for reply_parser_limit, like `content`
  wick_grammar_kind content;
  wick_text ending;  // the beginning of the reply
} reply_wish;

typedef struct reply_parts reply_parts;
typedef struct request request;

// Creates the parser of a reply. WICK_E_ARG if the tools are invalid, WICK_E_FULL, WICK_E_NOMEM.
wick_status parts_create(memory_gate *memory, const reply_wish *wish, reply_parts **out,
                         wick_error *error);
void parts_destroy(memory_gate *memory, reply_parts *parts);  // NULL does nothing
// Writes events for the next bytes of request->shown; `finish`: WICK_FINISH_NONE, or the reason if
// the reply ends with them. A malformed call becomes content, because a model may write anything. A
// call that was cut off by the token limit remains a call. WICK_E_NOMEM: out of memory for
// held-back text; nothing else is allocated.
wick_status parts_put(event_buffer *events, request *request, size_t shown_bytes,
                      wick_finish finish, wick_error *error);

#endif

// reply/parser.h — the parser's internals: one queue of bytes, and the state of the item being
// parsed.
//
// All text goes through the queue `held`:
//
//     base at count | not yet returned | to be read |
//
// Text that may be a tag, or the beginning of a call, stays between base and at. If it turns out to
// be neither, it is returned as content. If several formats begin with the same tag, the next
// format is tried from `base + body`.
#ifndef WICK_REPLY_PARSER_H
#define WICK_REPLY_PARSER_H

#include "reply/forms.h"
#include "reply/marks.h"
#include "reply/reply.h"
#include "reply/scan.h"
#include "reply/tools.h"

enum { OUT_BYTES = 256, FORMS_TRIED_MAX = 8, HEADER_BYTES_MAX = 256, LITERAL_DEPTH_MAX = 64 };
enum { ELEMENTS_DEPTH_MAX = 32 };

typedef struct reply_text {
  char bytes[REPLY_NAME_BYTES_MAX + 1];
  uint32_t size_bytes;
} reply_text;

// Adds a byte; returns false if the text would be too long.
static inline bool text_add(reply_text *text, uint8_t byte) {
  if (text->size_bytes == REPLY_NAME_BYTES_MAX) return false;
  text->bytes[text->size_bytes++] = (char)byte;
  return true;
}

bool text_is_equal(const reply_text *text, const char *wanted);

typedef enum reply_place { PLACE_TEXT, PLACE_HEADER, PLACE_CALL } reply_place;
typedef enum reply_phase { PHASE_HEAD, PHASE_ARGUMENTS, PHASE_TAIL, PHASE_CLOSE } reply_phase;

// Calls as JSON (calls_json.c).
typedef struct calls_state {
  uint8_t state, member;
  bool is_list, is_inner, has_items;
  bool has_arguments, is_text;  // the arguments have arrived; they are a string
  size_t from, to;              // their position, from base
  json_scan scan;
  json_unescape string;
} calls_state;

// Parameters between tags (params.c).
typedef struct params_state {
  uint8_t state, position, depth;
  bool may_be_key, may_be_end, has_items;
  reply_text attributes;
  reply_marks value_end;
} params_state;

// Python calls and Gemma's objects (literal.c).
typedef struct literal_state {
  uint8_t state, quote, digits, matched;
  bool is_list, needs_comma, is_key;
  uint32_t code;
  reply_text word;
  uint8_t depth;
  uint8_t kinds[LITERAL_DEPTH_MAX];
} literal_state;

struct reply_parser {
  memory_gate *memory;
  reply_format format;
  reply_tools *tools;  // NULL: calls are content
  reply_sink sink;
  void *sink_context;
  wick_status status;
  wick_error error;
  uint64_t taken_bytes, steps;

  uint8_t *held;
  size_t base, at, count, capacity;

  // text
  reply_place place;
  bool is_reasoning, trims;   // white space at the beginning is skipped
  bool is_fresh;              // no text since the beginning, the last reasoning or the last call
  bool is_prose;              // everything except a call at the beginning is text
  bool is_limited, is_exact;  // see reply_parser_limit; white space of the content is kept
  bool has_bare;              // there are calls without a tag
  bool awaits_close;  // a call arrived in reasoning: it is ignored if the reasoning is closed
  bool is_ending;     // the text has ended
  size_t certain;     // bytes before this position do not belong to a tag
  reply_marks content, reasoning, header;
  reply_text header_text;

  // the call
  const reply_form *tried[FORMS_TRIED_MAX];
  uint8_t tried_count, tried_next;
  const reply_form *form;
  reply_phase phase;
  const char *pattern;
  size_t body;     // offset from base where formats start to parse
  bool begun;      // the call is shown
  bool is_silent;  // the call is not reported to the caller
  bool is_dry;  // parsed only to check whether it is a call: FORM_WHOLE before the end of the text
  uint64_t call_at;  // the byte where its text begins
  bool is_listed;    // a call precedes it in the same arguments
  uint32_t calls;
  reply_text name, id, key;
  union {
    json_scan json;
    calls_state calls_json;
    params_state params;
    literal_state literal;
  } reads;

  reply_event_kind out_kind;
  size_t out_count;
  char out[OUT_BYTES];
};

// ---- parser.c: text and events ----

void parser_put(reply_parser *p, reply_event_kind kind, const uint8_t *bytes, size_t size_bytes);
void parser_put_text(reply_parser *p, const char *text);  // adds text to the arguments
// Adds a byte of a JSON string to the arguments, and a whole string with its quotes.
void parser_put_escaped(reply_parser *p, uint8_t byte);
void parser_put_string(reply_parser *p, const void *bytes, size_t size_bytes);
void parser_show(reply_parser *p);  // emits the collected text
void parser_fail(reply_parser *p, wick_status status, const char *what);
// Returns the position after the last occurrence of a string; 0 if there is none.
size_t parser_find_last(const char *text, size_t size_bytes, const char *wanted);
uint64_t parser_base_bytes(const reply_parser *p);  // the position of `base` in the reply
// Returns to parsing text, after a tag.
void parser_enter_text(reply_parser *p, bool is_reasoning);
// Returns held text as content or reasoning, up to a position in the queue.
void parser_give(reply_parser *p, size_t end);

// ---- call.c ----

// Tries the formats whose tag is `open`; they parse the text after the tag.
void call_enter(reply_parser *p, const char *open);
// Begins a call whose name was in a header: its arguments follow as JSON.
void call_enter_named(reply_parser *p);
void call_step(reply_parser *p, uint8_t byte);
// Checks whether the whole remaining text, which begins with this byte, is a call.
void call_enter_whole(reply_parser *p, uint8_t byte);
// Called at the end of the text. Returns whether it was a call and must be parsed again.
bool call_confirm_whole(reply_parser *p);
// Whether the held text is the beginning or the end of a call.
bool call_is_certain(const reply_parser *p);
// Whether the name of the tool has been read, but no arguments yet.
bool call_is_known(const reply_parser *p);
// Reports the call; returns false if it is not one. Text before `at` is released.
bool call_begin(reply_parser *p);
void call_end(reply_parser *p);
static inline void call_put(reply_parser *p, uint8_t byte) {
  parser_put(p, REPLY_CALL_ARGUMENTS, &byte, 1);
}

reply_step calls_step(reply_parser *p, uint8_t byte);
reply_step params_step(reply_parser *p, uint8_t byte);
reply_step literal_step(reply_parser *p, uint8_t byte);

// ---- channels.c ----

void channels_enter(reply_parser *p, const char *given, size_t size_bytes);
void channels_step(reply_parser *p, uint8_t byte);

static inline bool is_name_byte(uint8_t byte) {
  const uint8_t lower = byte | 32;
  return (byte >= '0' && byte <= '9') || (lower >= 'a' && lower <= 'z') || byte >= 0x80 ||
         byte == '_' || byte == '-' || byte == '.' || byte == ':' || byte == '/';
}

#endif

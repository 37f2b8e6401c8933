// reply/reply.h — reads the reply of a chat model piece by piece while it is written: its content,
// its reasoning, and its tool calls with names and arguments.
//
// The formats are detected from the source of the model's chat template, by the control strings in
// it (forms.c lists them). Without any of them, all forms that cannot be mistaken for prose are
// accepted.
//
// A text that only looks like a call is content: nothing is shown as a call before its name is
// known and its arguments have begun. After that, a fault is an error, and the arguments stay as
// they arrived: nothing is completed or invented.
#ifndef WICK_REPLY_H
#define WICK_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/status.h"

enum {
  REPLY_HELD_BYTES_MAX = 1 << 20,  // text that is held back until it is known what it is
  REPLY_NAME_BYTES_MAX = 255,      // of a tool, of a parameter, and of an id
  REPLY_DEPTH_MAX = 200            // of arguments
};

typedef enum reply_event_kind {
  REPLY_CONTENT,
  REPLY_REASONING,
  REPLY_CALL_BEGINS,     // `text` is the tool's name, `id` is empty where the model gives none
  REPLY_CALL_ARGUMENTS,  // a piece of the arguments, a JSON object in the end
  REPLY_CALL_ENDS
} reply_event_kind;

// Texts are valid during the call of the sink. If the fed text is valid UTF-8, no piece ends
// within a character. White space next to a marker is left out of content and reasoning.
typedef struct reply_event {
  reply_event_kind kind;
  uint32_t call;  // 0, 1, ...
  const char *text;
  size_t text_bytes;
  const char *id;
  size_t id_bytes;
} reply_event;

typedef void (*reply_sink)(void *context, const reply_event *event);

// The forms of calls and of reasoning that a template's model writes.
typedef struct reply_format {
  uint64_t forms;     // bit i: form i of forms.c
  uint64_t own;       // of these, the forms that its model writes; without a trait the first one
  uint32_t thought;   // which pair of marks encloses reasoning
  uint32_t wrappers;  // bit i: mark i that is left out
} reply_format;

reply_format reply_format_find(const char *template_text, size_t size_bytes);
// Whether the template has marks of reasoning.
bool reply_format_has_reasoning(const reply_format *format);
// Whether reasoning is between marks that are control tokens of most models.
bool reply_format_has_control_marks(const reply_format *format);
// The text that ends reasoning. If messages have headers, the next one begins after it, or the
// header of the answer if `is_final` is set.
const char *reply_format_close(const reply_format *format, bool is_final);

// Begins the text of a grammar of GRAMMAR_REPLY: an object to which the caller adds the requirement
// (grammar.h).
void reply_grammar_begin(json_writer *json, const reply_format *format);

// The tools of a request in OpenAI's format: an array of {type, function: {name, parameters}}.
// WICK_E_ARG when it is not such JSON, WICK_E_FULL over a limit, WICK_E_NOMEM.
typedef struct reply_tools reply_tools;
wick_status reply_tools_create(memory_gate *memory, const char *json, size_t size_bytes,
                               reply_tools **out, wick_error *error);
void reply_tools_destroy(reply_tools *tools);  // NULL is fine

// `tools` may be NULL, in which case calls are content. They must outlive the parser.
// `generation_prompt` is what the template wrote after the last message: it may already have opened
// the reasoning. WICK_E_NOMEM.
typedef struct reply_parser reply_parser;
wick_status reply_parser_create(memory_gate *memory, const reply_format *format,
                                const reply_tools *tools, const char *generation_prompt,
                                size_t prompt_bytes, reply_parser **out, wick_error *error);
void reply_parser_destroy(reply_parser *parser);  // NULL is fine
// Called before the first feed. `has_begun`: the prompt has the beginning of the content. If a
// grammar limits the content, no marks follow its first character, calls have the form that the
// template's model writes, and white space before content other than JSON is part of it.
void reply_parser_limit(reply_parser *parser, bool has_begun, wick_grammar_kind content);
// Time is linear in the text. WICK_E_FORMAT names the call and the byte where its text is no longer
// a call; numbers[0] is the byte where that text begins, and numbers[1] the number of complete
// calls before it. WICK_E_FULL over a limit; WICK_E_NOMEM. After an error each call returns the
// same error.
wick_status reply_parser_feed(reply_parser *parser, const char *text, size_t size_bytes,
                              reply_sink sink, void *context, wick_error *error);
// Ends the text. WICK_E_TRUNCATED: it ended within the arguments of a call.
wick_status reply_parser_end(reply_parser *parser, reply_sink sink, void *context,
                             wick_error *error);
// Whether the following text is reasoning, unless a mark ends it.
bool reply_parser_is_reasoning(const reply_parser *parser);
// Whether the text so far ends with a whole character.
bool reply_parser_is_whole(const reply_parser *parser);
// The number of bytes read, including those read again.
uint64_t reply_parser_steps(const reply_parser *parser);

#endif

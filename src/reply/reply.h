// reply/reply.h — parses the reply of a chat model piece by piece as it is generated: its content,
// its reasoning, and its tool calls with names and arguments.
//
// The formats are detected from the source of the model's chat template, by the control strings in
// it (forms.c lists them). If it contains none of them, all formats that cannot be mistaken for
// prose are accepted.
//
// Text that only looks like a call is content: a call is not reported before its name is known and
// its arguments have begun. After that, malformed text is an error, and the arguments remain as
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
  REPLY_HELD_BYTES_MAX = 1 << 20,  // limit for text that is held back until it is classified
  REPLY_NAME_BYTES_MAX = 255,      // for a tool, a parameter, and an id
  REPLY_DEPTH_MAX = 200            // nesting depth of arguments
};

typedef enum reply_event_kind {
  REPLY_CONTENT,
  REPLY_REASONING,
  REPLY_CALL_BEGINS,     // `text` is the tool's name; `id` is empty if the model writes none
  REPLY_CALL_ARGUMENTS,  // a piece of the arguments, which together form a JSON object
  REPLY_CALL_ENDS
} reply_event_kind;

// Strings are valid during the call of the sink. If the fed text is valid UTF-8, no piece ends
// within a character. White space next to a tag is removed from content and reasoning.
typedef struct reply_event {
  reply_event_kind kind;
  uint32_t call;  // 0, 1, ...
  const char *text;
  size_t text_bytes;
  const char *id;
  size_t id_bytes;
} reply_event;

typedef void (*reply_sink)(void *context, const reply_event *event);

// The formats of calls and of reasoning that a template's model writes.
typedef struct reply_format {
  uint64_t forms;     // bit i: format i of forms.c
  uint64_t own;       // of these, the formats that the model writes; without a trait, the first one
  uint32_t thought;   // which pair of tags encloses reasoning
  uint32_t wrappers;  // bit i: tag i, which is removed
} reply_format;

reply_format reply_format_find(const char *template_text, size_t size_bytes);
// Whether the template has reasoning tags.
bool reply_format_has_reasoning(const reply_format *format);
// Whether reasoning is between tags that are control tokens in most models.
bool reply_format_has_control_marks(const reply_format *format);
// Returns the text that ends reasoning. If messages have headers, it includes the beginning of the
// next header, or the whole header of the answer if `is_final` is set.
const char *reply_format_close(const reply_format *format, bool is_final);

// Begins the text of a GRAMMAR_REPLY grammar: an object to which the caller adds the requirements
// (grammar.h).
void reply_grammar_begin(json_writer *json, const reply_format *format);

// The parser of one reply. `tools`: those of the request in OpenAI's format, an array of {type,
// function: {name, parameters}}; if it is NULL, calls are content. `generation_prompt` is the text
// that the template wrote after the last message: it may already have opened the reasoning. Neither
// is used after the call. WICK_E_ARG for other JSON, WICK_E_FULL over a limit, WICK_E_NOMEM.
typedef struct reply_parser reply_parser;
wick_status reply_parser_create(memory_gate *memory, const reply_format *format, wick_text tools,
                                wick_text generation_prompt, reply_parser **out, wick_error *error);
void reply_parser_destroy(reply_parser *parser);  // NULL does nothing
// Describes the content that the request requires; must be called before the first feed.
// `has_begun`: the prompt contains the beginning of the content. If a grammar limits the content,
// no tags are recognised after its first character, calls have the format that the template's model
// writes, and white space before content other than JSON is part of it.
void reply_parser_limit(reply_parser *parser, bool has_begun, wick_grammar_kind content);
// Feeds the next piece; all calls together take time linear in the text. The WICK_E_FORMAT error
// names the call and the byte at which its text is no longer a call; numbers[0] is the byte at
// which that text begins, and numbers[1] the number of complete calls before it. WICK_E_FULL over a
// limit; WICK_E_NOMEM. After an error, each call returns the same error.
wick_status reply_parser_feed(reply_parser *parser, const char *text, size_t size_bytes,
                              reply_sink sink, void *context, wick_error *error);
// Ends the text. WICK_E_TRUNCATED if it ended within the arguments of a call.
wick_status reply_parser_end(reply_parser *parser, reply_sink sink, void *context,
                             wick_error *error);
// Whether the following text is reasoning, unless a tag ends it.
bool reply_parser_is_reasoning(const reply_parser *parser);
// Whether the text so far ends with a whole character.
bool reply_parser_is_whole(const reply_parser *parser);
// Returns the number of bytes parsed, including those parsed again.
uint64_t reply_parser_steps(const reply_parser *parser);

#endif

// template/template.h — chat templates: a program in Jinja's language is compiled once and rendered
// for conversations. The language is the part of Jinja 3.1 that model templates use, configured as
// in transformers (trim_blocks, lstrip_blocks, break and continue, generation, tojson,
// raise_exception, strftime_now). It follows Python: the length of a string is in characters, and
// numbers are integers or doubles.
//
// Each byte of the rendered text is marked as written by the template or as coming from the
// conversation. Parts of a string, and the results of filters, keep these marks.
//
// A template is an untrusted program. Each rendering has limits on steps, on memory and on the size
// of strings, so it ends soon, regardless of the template. Nothing is kept between renderings.
#ifndef WICK_TEMPLATE_H
#define WICK_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

typedef struct chat_template chat_template;

enum {
  TEMPLATE_SOURCE_BYTES_MAX = 512 << 10,
  TEMPLATE_PROGRAM_BYTES_MAX = 4 << 20,
  // limit per rendering, plus some steps for each byte of the conversation
  TEMPLATE_STEPS_MAX = 400000,
  TEMPLATE_STEPS_PER_BYTE = 64,
  TEMPLATE_BYTES_MAX = 8 << 20,
  TEMPLATE_BYTES_PER_BYTE = 48
};

typedef struct template_text {
  const char *bytes;  // valid UTF-8
  size_t size_bytes;
  const wick_span *spans;  // [span_count]; the last ends with the text
  size_t span_count;
  void *memory;  // freed by template_text_free
} template_text;

// Compiles a template; the source is not needed afterwards. Bytes that are not UTF-8 become U+FFFD.
// WICK_E_FORMAT with the line, WICK_E_FULL if it is too long or nested too deeply, WICK_E_NOMEM.
wick_status template_create(memory_gate *memory, const char *source, size_t size_bytes,
                            chat_template **out, wick_error *error);
void template_destroy(chat_template *template);  // NULL does nothing

// The variables that a template may read, as JSON objects: `variables` come from the conversation
// (messages, tools, ...), so strings in them are content, except for common roles of messages.
// `own` variables (bos_token, ...) count as written by the template; `variables` take precedence.
typedef struct template_input {
  const char *variables;
  size_t variables_bytes;
  const char *own;
  size_t own_bytes;
  int64_t now_s;  // local time in seconds since 1970, for strftime_now
  bool has_now;
  bool keeps_arguments;  // pass messages and the arguments of their calls unchanged
} template_input;

// Renders a template. Empty members of messages are removed, and parts that the template rejects
// are changed to a different form: several system messages, call ids, the effort (messages.h).
// OpenAI's tool calls have their arguments as JSON text. A template receives them as objects, or as
// strings if it fails with objects or prints them as Python does. keeps_arguments prevents these
// changes. WICK_E_ARG: the template raised an exception, with its message. WICK_E_FORMAT: an error
// in the template, or `variables` are not JSON. WICK_E_UNSUPPORTED: an unknown filter or test.
// WICK_E_FULL: over a limit. WICK_E_OVERFLOW, WICK_E_NODATA (the time is not known), WICK_E_NOMEM.
wick_status template_render(const chat_template *template, const template_input *input,
                            template_text *text, wick_error *error);
// Checks whether the variables contain `tools`, a list that is not empty; false for invalid JSON.
// WICK_E_NOMEM.
wick_status template_has_tools(memory_gate *memory, const char *json, size_t size_bytes, bool *out,
                               wick_error *error);
void template_text_free(memory_gate *memory, template_text *text);

#endif

// template/template.h — chat templates: a program in Jinja's language is compiled once and rendered
// for conversations. The language is the part of Jinja 3.1 that templates of models use, set up as
// transformers sets it up (trim_blocks, lstrip_blocks, break and continue, generation, tojson,
// raise_exception, strftime_now). It follows Python: texts are counted by characters, numbers are
// whole or double.
//
// Each byte of the rendered text is marked: the template wrote it, or it comes from the
// conversation. A part of a text, and the result of a filter on it, keep their marks.
//
// A template is an untrusted program. Each rendering has limits on steps, on memory and on the size
// of texts, so that it ends soon, regardless of the template. Nothing is kept between renderings.
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
  // limit of a rendering, plus some steps for each byte of the conversation
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
  void *memory;  // to be freed with template_text_free
} template_text;

// Compiles; the source is not needed afterwards. Bytes that are not UTF-8 become U+FFFD.
// WICK_E_FORMAT with the line, WICK_E_FULL if it is too long or nested too deeply, WICK_E_NOMEM.
wick_status template_create(memory_gate *memory, const char *source, size_t size_bytes,
                            chat_template **out, wick_error *error);
void template_destroy(chat_template *template);  // NULL is fine

// The variables that a template may read, as one JSON object: `variables` are the conversation's
// (messages, tools, ...), so texts in them are content, except for the role of a message if it is a
// usual one. `own` count as written by the template (bos_token, ...); `variables` take precedence.
typedef struct template_input {
  const char *variables;
  size_t variables_bytes;
  const char *own;
  size_t own_bytes;
  int64_t now_s;  // local time in seconds since 1970, for strftime_now
  bool has_now;
  bool keeps_arguments;  // messages and the arguments of their calls are passed unchanged
} template_input;

// Renders. Empty members of messages are removed, and parts that the template refuses are written
// in another form: several system messages, ids of calls, the effort (messages.h). OpenAI's tool
// calls have their arguments as JSON text. A template gets them as objects, or as texts if it fails
// with objects or prints them as Python does. keeps_arguments prevents that. WICK_E_ARG: the
// template raised an exception, with its message. WICK_E_FORMAT: an error in it, or `variables` are
// not JSON. WICK_E_UNSUPPORTED: a filter or test that is not known. WICK_E_FULL: over a limit.
// WICK_E_OVERFLOW, WICK_E_NODATA (the time is not known), WICK_E_NOMEM.
wick_status template_render(const chat_template *template, const template_input *input,
                            template_text *text, wick_error *error);
// Whether the variables have `tools`, a list that is not empty. JSON that is not valid has none.
// WICK_E_NOMEM.
wick_status template_has_tools(memory_gate *memory, const char *json, size_t size_bytes, bool *out,
                               wick_error *error);
void template_text_free(memory_gate *memory, template_text *text);

#endif

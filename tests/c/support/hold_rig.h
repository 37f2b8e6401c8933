// Helpers for tests of reply grammars with tool calls.
#ifndef WICK_TESTS_HOLD_RIG_H
#define WICK_TESTS_HOLD_RIG_H

#include "base/json.h"
#include "grammar/grammar.h"
#include "reply_rig.h"

typedef struct hold_text_buffer {
  char bytes[1 << 15];
  size_t size_bytes;
} hold_text_buffer;

static inline void hold_rig_put(void *context, const char *bytes, size_t size_bytes) {
  hold_text_buffer *to = context;
  if (to->size_bytes + size_bytes > sizeof to->bytes) return;
  memcpy(to->bytes + to->size_bytes, bytes, size_bytes);
  to->size_bytes += size_bytes;
}

static inline void hold_rig_put_text(hold_text_buffer *to, const char *text) {
  hold_rig_put(to, text, strlen(text));
}

static inline void hold_rig_put_quoted(hold_text_buffer *to, const char *text) {
  hold_rig_put_text(to, "\"");
  for (; *text != '\0'; text++) {
    if (*text == '\n') {
      hold_rig_put_text(to, "\\n");
    } else {
      if (*text == '"' || *text == '\\') hold_rig_put_text(to, "\\");
      hold_rig_put(to, text, 1);
    }
  }
  hold_rig_put_text(to, "\"");
}

// Returns a reply grammar with the given members, followed by the prompt's ending.
static inline wick_grammar hold_rig_grammar(const reply_rig *rig, const char *wanted,
                                            size_t wanted_bytes) {
  static hold_text_buffer text;
  json_writer json;
  text.size_bytes = 0;
  json_begin(&json, hold_rig_put, &text);
  reply_grammar_begin(&json, &rig->format);
  hold_rig_put_text(&text, ",");
  hold_rig_put(&text, wanted, wanted_bytes);
  hold_rig_put_text(&text, ",\"ending\":");
  hold_rig_put_quoted(&text, rig->prompt);
  hold_rig_put_text(&text, "}");
  return (wick_grammar){.kind = GRAMMAR_REPLY, .text = text.bytes, .text_bytes = text.size_bytes};
}

// Creates a reply grammar; returns NULL if it is rejected.
static inline grammar *open_grammar(reply_rig *rig, const char *tools, size_t tools_bytes,
                                    const char *choice, bool is_parallel) {
  static hold_text_buffer wanted;
  wanted.size_bytes = 0;
  hold_rig_put_text(&wanted, "\"tools\":");
  hold_rig_put(&wanted, tools, tools_bytes);
  hold_rig_put_text(&wanted, ",\"tool_choice\":");
  hold_rig_put_text(&wanted, choice);
  hold_rig_put_text(&wanted, is_parallel ? "" : ",\"parallel_tool_calls\":false");
  const wick_grammar how = hold_rig_grammar(rig, wanted.bytes, wanted.size_bytes);
  grammar *made = NULL;
  rig->status = grammar_create(&rig->memory, NULL, &how, &made, &rig->error);
  return made;
}

static inline bool holds(grammar *grammar, const void *text, size_t size_bytes) {
  grammar_matcher matcher;
  matcher_begin(grammar, &matcher);
  const bool fits = matcher_take_bytes(&matcher, text, size_bytes) && matcher_accepts(&matcher);
  matcher_end(&matcher);
  return fits;
}

typedef struct reply_case {
  const char *text;
  bool is_required, is_single, fits;
} reply_case;

static inline void check_replies(const char *template_text, const char *ending, const char *tools,
                                 const reply_case *cases, size_t count) {
  static reply_rig rig;
  for (size_t i = 0; i < count; i++) {
    const char *choice = cases[i].is_required ? "\"required\"" : "\"auto\"";
    rig_open(&rig, template_text, strlen(template_text), tools, strlen(tools), ending);
    grammar *made = open_grammar(&rig, tools, strlen(tools), choice, !cases[i].is_single);
    if (CHECK(made != NULL)) {
      const bool fits = holds(made, cases[i].text, strlen(cases[i].text));
      if (!CHECK(fits == cases[i].fits)) printf("# %s\n", cases[i].text);
      grammar_destroy(made);
    } else {
      printf("# %s\n", rig.error.message);
    }
    rig_close(&rig);
  }
}

#define CHECK_REPLIES(template_text, ending, tools, cases) \
  check_replies(template_text, ending, tools, cases, sizeof(cases) / sizeof(cases)[0])

// A tool whose `city` argument has at most four letters.
static const char WEATHER[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"weather\",\"parameters\":{\"type\":"
    "\"object\","
    "\"properties\":{\"city\":{\"type\":\"string\",\"maxLength\":4},\"n\":{\"type\":\"integer\"}},"
    "\"required\":[\"city\"]}}}]";

#endif

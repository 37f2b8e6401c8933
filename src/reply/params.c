// reply/params.c — marked parameters, for example <parameter=KEY>VALUE</parameter>. The tool's
// schema says which JSON a value is.
#include <string.h>

#include "reply/parser.h"

enum { AT_NEXT, IN_KEY, IN_KEY_END, IN_ATTRIBUTES, AT_VALUE, IN_VALUE };

// ---- values ----

typedef struct value_text {
  const uint8_t *bytes;
  size_t size_bytes;
} value_text;

static bool begins_with(value_text text, const char *wanted) {
  const size_t count = strlen(wanted);
  return text.size_bytes >= count && memcmp(text.bytes, wanted, count) == 0;
}

static value_text trimmed(value_text text) {
  while (text.size_bytes > 0 && is_space(text.bytes[0])) text.bytes++, text.size_bytes--;
  while (text.size_bytes > 0 && is_space(text.bytes[text.size_bytes - 1])) text.size_bytes--;
  return text;
}

// Without the line breaks that the form puts around it, and out of a CDATA section.
static value_text unwrapped(value_text text, bool has_lines) {
  static const char OPEN[] = "<![CDATA[", CLOSE[] = "]]>";
  const size_t open_bytes = sizeof OPEN - 1, close_bytes = sizeof CLOSE - 1;
  if (has_lines && begins_with(text, "\n")) text.bytes++, text.size_bytes--;
  if (has_lines && text.size_bytes > 0 && text.bytes[text.size_bytes - 1] == '\n') {
    text.size_bytes--;
  }
  if (text.size_bytes >= open_bytes + close_bytes && begins_with(text, OPEN) &&
      memcmp(text.bytes + text.size_bytes - close_bytes, CLOSE, close_bytes) == 0) {
    text.bytes += open_bytes;
    text.size_bytes -= open_bytes + close_bytes;
  }
  return text;
}

static uint32_t type_of_json(value_text text) {
  uint8_t first = 0;
  if (!scan_holds(text.bytes, text.size_bytes, &first)) return 0;
  switch (first) {
    case '"':
      return SAID_STRING;
    case '{':
      return SAID_OBJECT;
    case '[':
      return SAID_ARRAY;
    case 't':
    case 'f':
      return SAID_BOOLEAN;
    case 'n':
      return SAID_NULL;
    default:
      return SAID_NUMBER;
  }
}

// Python's words for what JSON has, where the schema wants it; NULL: it is none.
static const char *word_of(value_text text, uint32_t types) {
  static const struct {
    const char *word, *json;
    uint32_t type;
  } WORDS[] = {{"True", "true", SAID_BOOLEAN},
               {"False", "false", SAID_BOOLEAN},
               {"None", "null", SAID_NULL}};
  for (size_t i = 0; i < 3; i++) {
    if ((types & WORDS[i].type) == 0 || text.size_bytes != strlen(WORDS[i].word)) continue;
    if (begins_with(text, WORDS[i].word)) return WORDS[i].json;
  }
  return NULL;
}

static void put_string(reply_parser *p, value_text text) {
  parser_put_text(p, "\"");
  for (size_t i = 0; i < text.size_bytes; i++) parser_put_escaped(p, text.bytes[i]);
  parser_put_text(p, "\"");
}

// The attribute string="true" or string="false" says more than the schema.
static bool says(const reply_text *attributes, const char *wanted) {
  const size_t count = strlen(wanted);
  for (size_t at = 0; at + count <= attributes->size_bytes; at++) {
    if (memcmp(attributes->bytes + at, wanted, count) == 0) return true;
  }
  return false;
}

static void put_value(reply_parser *p, value_text text) {
  const reply_text *attributes = &p->reads.params.attributes;
  uint32_t types = tools_types(p->tools, p->name.bytes, p->name.size_bytes,
                               (const uint8_t *)p->key.bytes, p->key.size_bytes);
  if (says(attributes, "string=\"true\"")) types = SAID_STRING;
  if (says(attributes, "string=\"false\"")) types = 0;
  const value_text value = trimmed(text);
  const uint32_t type = type_of_json(value);
  const char *word = word_of(value, types);
  const bool is_wanted = (types & SAID_STRING) == 0 || (types & type) != 0;
  if (type != 0 && is_wanted && (type != SAID_STRING || (types & SAID_STRING) == 0)) {
    parser_put(p, REPLY_CALL_ARGUMENTS, value.bytes, value.size_bytes);
  } else if (word != NULL && (types & SAID_STRING) == 0) {
    parser_put_text(p, word);
  } else {
    put_string(p, text);
  }
}

// ---- structure ----

static reply_step begin_value(reply_parser *p) {
  params_state *params = &p->reads.params;
  params->position = 0;
  params->state = *p->form->params->value == '\0' ? IN_VALUE : AT_VALUE;
  return STEP_MORE;
}

static reply_step end_key(reply_parser *p) {
  params_state *params = &p->reads.params;
  if (!p->begun && !call_begin(p)) return STEP_FAIL;
  parser_put_text(p, params->has_items ? ", \"" : "{\"");
  for (uint32_t i = 0; i < p->key.size_bytes; i++) {
    parser_put_escaped(p, (uint8_t)p->key.bytes[i]);
  }
  parser_put_text(p, "\": ");
  params->has_items = true;
  params->attributes.size_bytes = 0;
  if (p->form->params->key_end[0] != '"') return begin_value(p);
  params->state = IN_ATTRIBUTES;
  return STEP_MORE;
}

static reply_step end_params(reply_parser *p) {
  params_state *params = &p->reads.params;
  if (!p->begun && !call_begin(p)) return STEP_FAIL;
  parser_put_text(p, params->has_items ? "}" : "{}");
  call_end(p);
  return STEP_DONE;
}

// Another parameter, or the end: both marks are followed until they differ.
static reply_step next_step(reply_parser *p, uint8_t byte) {
  params_state *params = &p->reads.params;
  if (params->position == 0) {
    if (is_space(byte)) return STEP_MORE;
    params->may_be_key = params->may_be_end = true;
  }
  const uint8_t position = params->position++;
  params->may_be_key = params->may_be_key && (uint8_t)p->form->params->key[position] == byte;
  params->may_be_end = params->may_be_end && (uint8_t)p->form->params->end[position] == byte;
  if (params->may_be_end && p->form->params->end[position + 1] == '\0') return end_params(p);
  if (!params->may_be_key) return params->may_be_end ? STEP_MORE : STEP_FAIL;
  if (p->form->params->key[position + 1] == '\0') {
    p->key.size_bytes = 0;
    params->state = IN_KEY;
  }
  return STEP_MORE;
}

static reply_step key_step(reply_parser *p, uint8_t byte) {
  params_state *params = &p->reads.params;
  const char *end = p->form->params->key_end;
  if (params->state == IN_KEY && byte != (uint8_t)end[0]) {
    return byte >= 0x20 && text_add(&p->key, byte) ? STEP_MORE : STEP_FAIL;
  }
  if (params->state == IN_KEY) params->position = 0;
  params->state = IN_KEY_END;
  if (p->key.size_bytes == 0 || (uint8_t)end[params->position++] != byte) return STEP_FAIL;
  return end[params->position] == '\0' ? end_key(p) : STEP_MORE;
}

static reply_step open_value_step(reply_parser *p, uint8_t byte) {
  params_state *params = &p->reads.params;
  if (params->position == 0 && is_space(byte)) return STEP_MORE;
  if ((uint8_t)p->form->params->value[params->position++] != byte) return STEP_FAIL;
  if (p->form->params->value[params->position] == '\0') params->state = IN_VALUE;
  return STEP_MORE;
}

static reply_step value_step(reply_parser *p, uint8_t byte) {
  params_state *params = &p->reads.params;
  if (params->value_end.count == 0) marks_add(&params->value_end, p->form->params->value_end, 0);
  const reply_mark *mark = marks_step(&params->value_end, byte);
  if (mark == NULL) return STEP_MORE;
  const value_text text = {p->held + p->base, p->at - p->base - mark->size_bytes};
  put_value(p, unwrapped(text, (p->form->flags & FORM_LINES) != 0));
  p->base = p->at;
  params->state = AT_NEXT;
  params->position = 0;
  return STEP_MORE;
}

reply_step params_step(reply_parser *p, uint8_t byte) {
  params_state *params = &p->reads.params;
  if (params->state == IN_VALUE) return value_step(p, byte);
  reply_step step = STEP_MORE;
  switch (params->state) {
    case AT_NEXT:
      step = next_step(p, byte);
      break;
    case IN_ATTRIBUTES:
      if (byte == '>') {
        step = begin_value(p);
      } else if (!text_add(&params->attributes, byte)) {
        step = STEP_FAIL;
      }
      break;
    case AT_VALUE:
      step = open_value_step(p, byte);
      break;
    default:
      step = key_step(p, byte);
      break;
  }
  if (p->begun) p->base = p->at;
  return step;
}

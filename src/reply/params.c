// reply/params.c — parameters between tags, for example <parameter=KEY>VALUE</parameter>. The
// tool's schema determines the JSON type of a value.
#include <string.h>

#include "reply/parser.h"

enum { AT_NEXT, IN_KEY, IN_KEY_END, IN_ATTRIBUTES, AT_VALUE, IN_VALUE, IN_TAG };

// ---- values ----

typedef struct value_text {
  const uint8_t *bytes;
  size_t size_bytes;
} value_text;

static bool begins_with(value_text text, const char *wanted) {
  const size_t count = strlen(wanted);
  return text.size_bytes >= count && memcmp(text.bytes, wanted, count) == 0;
}

static bool ends_with(value_text text, const char *wanted) {
  const size_t count = strlen(wanted);
  return text.size_bytes >= count &&
         memcmp(text.bytes + text.size_bytes - count, wanted, count) == 0;
}

static value_text trimmed(value_text text) {
  while (text.size_bytes > 0 && json_is_space(text.bytes[0])) text.bytes++, text.size_bytes--;
  while (text.size_bytes > 0 && json_is_space(text.bytes[text.size_bytes - 1])) text.size_bytes--;
  return text;
}

// Returns the value without the line breaks that the format adds, and without CDATA delimiters.
static value_text unwrapped(value_text text, bool has_lines) {
  static const char OPEN[] = "<![CDATA[", CLOSE[] = "]]>";
  const size_t open_bytes = sizeof OPEN - 1, close_bytes = sizeof CLOSE - 1;
  const value_text inner = trimmed(text);
  if (has_lines && begins_with(text, "\n")) text.bytes++, text.size_bytes--;
  if (has_lines && text.size_bytes > 0 && text.bytes[text.size_bytes - 1] == '\n') {
    text.size_bytes--;
  }
  if (inner.size_bytes < open_bytes + close_bytes || !begins_with(inner, OPEN) ||
      !ends_with(inner, CLOSE)) {
    return text;
  }
  return (value_text){inner.bytes + open_bytes, inner.size_bytes - open_bytes - close_bytes};
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

// Returns the JSON constant for a Python keyword, if the schema expects one; otherwise NULL.
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

// Whether the attributes contain one that overrides the schema: string="true", string="false",
// type="TYPE".
static bool says(const reply_text *attributes, const char *wanted) {
  return parser_find_last(attributes->bytes, attributes->size_bytes, wanted) != 0;
}

static void put_typed(reply_parser *p, value_text text, uint32_t types) {
  const value_text value = trimmed(text);
  const uint32_t type = type_of_json(value);
  const char *word = word_of(value, types);
  const bool is_wanted = (types & SAID_STRING) == 0 || (types & type) != 0;
  if (type != 0 && is_wanted && (type != SAID_STRING || (types & SAID_STRING) == 0)) {
    parser_put(p, REPLY_CALL_ARGUMENTS, value.bytes, value.size_bytes);
  } else if (word != NULL && (types & SAID_STRING) == 0) {
    parser_put_text(p, word);
  } else {
    parser_put_string(p, text.bytes, text.size_bytes);
  }
}

// ---- elements ----

static bool is_text(value_text text, const char *wanted) {
  return text.size_bytes == strlen(wanted) && begins_with(text, wanted);
}

// Removes the tag at the beginning of a string and returns its name.
static value_text take_tag(value_text *text, const char *mark) {
  const size_t mark_bytes = strlen(mark);
  value_text name = {text->bytes + mark_bytes, 0};
  size_t size = mark_bytes;
  while (size < text->size_bytes && text->bytes[size] != '>') size++;
  name.size_bytes = size < mark_bytes ? 0 : size - mark_bytes;
  if (size < text->size_bytes) size++;
  text->bytes += size;
  text->size_bytes -= size;
  return name;
}

// Consumes the content of an element, after its opening tag, and its closing tag.
static value_text take_inside(value_text *text, const char *mark) {
  value_text inside = {text->bytes, 0};
  for (uint32_t depth = 0; text->size_bytes > 0;) {
    if (!begins_with(*text, mark)) {
      text->bytes++, text->size_bytes--;
      continue;
    }
    inside.size_bytes = (size_t)(text->bytes - inside.bytes);
    const value_text name = take_tag(text, mark);
    const bool is_end = begins_with(name, "/");
    if (is_end && depth == 0) return inside;
    depth += is_end ? UINT32_MAX : 1;
  }
  return inside;
}

// Writes a value that consists of elements: list elements are called "item", others are members.
// Values without elements have the type given by their schema.
static void put_elements(reply_parser *p, value_text text, uint32_t schema) {
  const char *mark = p->form->params->key;
  const uint32_t types = tools_types_at(p->tools, p->name.bytes, p->name.size_bytes, schema);
  value_text rest = trimmed(text);
  if (!begins_with(rest, mark)) {
    const bool is_empty = rest.size_bytes == 0 && (types & SAID_STRING) == 0;
    if (is_empty && (types & SAID_ARRAY) != 0) {
      parser_put_text(p, "[]");
    } else if (is_empty && (types & SAID_OBJECT) != 0) {
      parser_put_text(p, "{}");
    } else {
      put_typed(p, text, types);
    }
    return;
  }
  value_text first = rest;
  const bool is_list = (types & SAID_ARRAY) != 0 ||
                       ((types & SAID_OBJECT) == 0 && is_text(take_tag(&first, mark), "item"));
  parser_put_text(p, is_list ? "[" : "{");
  for (bool is_first = true; begins_with(rest, mark); is_first = false) {
    const value_text name = take_tag(&rest, mark);
    const value_text inside = take_inside(&rest, mark);
    if (!is_first) parser_put_text(p, ", ");
    if (!is_list) {
      parser_put_string(p, name.bytes, name.size_bytes);
      parser_put_text(p, ": ");
    }
    put_elements(p, inside,
                 tools_member(p->tools, p->name.bytes, p->name.size_bytes, schema,
                              is_list ? NULL : name.bytes, name.size_bytes));
    rest = trimmed(rest);
  }
  parser_put_text(p, is_list ? "]" : "}");
}

static void put_value(reply_parser *p, value_text text) {
  const reply_text *attributes = &p->reads.params.attributes;
  const char *name = p->name.bytes;
  const size_t name_bytes = p->name.size_bytes;
  const uint32_t schema =
      tools_member(p->tools, name, name_bytes, 0, (const uint8_t *)p->key.bytes, p->key.size_bytes);
  if (p->form->params->has_elements) {
    put_elements(p, text, schema);
    return;
  }
  uint32_t types = tools_types_at(p->tools, name, name_bytes, schema);
  if (says(attributes, "string=\"false\"") || says(attributes, " type=\"")) types = 0;
  if (says(attributes, "string=\"true\"") || says(attributes, " type=\"string\"")) {
    types = SAID_STRING;
  }
  put_typed(p, text, types);
}

// ---- structure ----

static reply_step begin_value(reply_parser *p) {
  params_state *params = &p->reads.params;
  params->position = 0;
  params->state = *p->form->params->value == '\0' ? IN_VALUE : AT_VALUE;
  return STEP_MORE;
}

// Replaces the escapes of & and " in a key.
static void unescape_key(reply_text *key) {
  static const char *const NAMES[] = {"&amp;", "&quot;"};
  uint32_t count = 0;
  for (uint32_t at = 0; at < key->size_bytes; count++) {
    const value_text rest = {(const uint8_t *)key->bytes + at, key->size_bytes - at};
    const int name = begins_with(rest, NAMES[0]) ? 0 : begins_with(rest, NAMES[1]) ? 1 : 2;
    key->bytes[count] = name < 2 ? "&\""[name] : key->bytes[at];
    at += name < 2 ? (uint32_t)strlen(NAMES[name]) : 1;
  }
  key->size_bytes = count;
}

static reply_step end_key(reply_parser *p) {
  params_state *params = &p->reads.params;
  if (p->form->params->escapes_keys) unescape_key(&p->key);
  if (!p->begun && !call_begin(p)) return STEP_FAIL;
  parser_put_text(p, params->has_items ? ", " : "{");
  parser_put_string(p, p->key.bytes, p->key.size_bytes);
  parser_put_text(p, ": ");
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

static reply_step begin_key(reply_parser *p, uint8_t byte) {
  p->key.size_bytes = 0;
  p->reads.params.state = IN_KEY;
  return key_step(p, byte);
}

// Reads another parameter, or the end: both tags are tracked until they differ.
static reply_step next_step(reply_parser *p, uint8_t byte) {
  params_state *params = &p->reads.params;
  if (params->position == 0) {
    if (json_is_space(byte)) return STEP_MORE;
    params->may_be_key = params->may_be_end = true;
  }
  const uint8_t position = params->position++;
  const char *key = p->form->params->key, *end = p->form->params->end;
  params->may_be_end = params->may_be_end && (uint8_t)end[position] == byte;
  if (params->may_be_end && end[position + 1] == '\0') return end_params(p);
  if (params->may_be_key && key[position] == '\0') {  // the end tag begins with the tag of a key
    params->may_be_key = false;
    return params->may_be_end ? STEP_MORE : begin_key(p, byte);
  }
  params->may_be_key = params->may_be_key && (uint8_t)key[position] == byte;
  if (!params->may_be_key) return params->may_be_end ? STEP_MORE : STEP_FAIL;
  if (key[position + 1] == '\0' && !params->may_be_end) {
    p->key.size_bytes = 0;
    params->state = IN_KEY;
  }
  return STEP_MORE;
}

static reply_step attributes_step(reply_parser *p, uint8_t byte) {
  reply_text *attributes = &p->reads.params.attributes;
  if (!text_add(attributes, byte)) return STEP_FAIL;
  const value_text text = {(const uint8_t *)attributes->bytes, attributes->size_bytes};
  const char *end = params_attributes_end(p->form->params);
  if (!ends_with(text, end)) return STEP_MORE;
  attributes->size_bytes -= (uint32_t)strlen(end);
  return begin_value(p);
}

static reply_step open_value_step(reply_parser *p, uint8_t byte) {
  params_state *params = &p->reads.params;
  if (params->position == 0 && json_is_space(byte)) return STEP_MORE;
  if ((uint8_t)p->form->params->value[params->position++] != byte) return STEP_FAIL;
  if (p->form->params->value[params->position] == '\0') params->state = IN_VALUE;
  return STEP_MORE;
}

// Whether a string has its own delimiters, so that it may contain the tag that ends values.
static bool is_wrapped(const reply_params *params, value_text text) {
  return params->wrap != NULL && begins_with(text, params->wrap) &&
         !ends_with(trimmed(text), params->unwrap);
}

static reply_step end_value(reply_parser *p, size_t mark_bytes) {
  params_state *params = &p->reads.params;
  const value_text text = {p->held + p->base, p->at - p->base - mark_bytes};
  if (is_wrapped(p->form->params, text)) return STEP_MORE;
  put_value(p, unwrapped(text, (p->form->flags & FORM_LINES) != 0));
  p->base = p->at;
  params->state = AT_NEXT;
  params->position = 0;
  return STEP_MORE;
}

static reply_step value_step(reply_parser *p, uint8_t byte) {
  params_state *params = &p->reads.params;
  const reply_params *marks = p->form->params;
  if (params->value_end.count == 0) {
    marks_add(&params->value_end, marks->has_elements ? marks->key : marks->value_end, 0);
  }
  const reply_mark *mark = marks_step(&params->value_end, byte);
  if (mark == NULL) return STEP_MORE;
  if (!marks->has_elements) return end_value(p, mark->size_bytes);
  params->state = IN_TAG;
  params->attributes.size_bytes = 0;
  return STEP_MORE;
}

// Reads a tag within a value, or the tag that ends it.
static reply_step tag_step(reply_parser *p, uint8_t byte) {
  params_state *params = &p->reads.params;
  const reply_text *tag = &params->attributes;
  if (byte != '>') return text_add(&params->attributes, byte) ? STEP_MORE : STEP_FAIL;
  const bool is_end = tag->size_bytes > 0 && tag->bytes[0] == '/';
  params->state = IN_VALUE;
  if (!is_end || params->depth > 0) {
    params->depth += is_end ? -1 : 1;
    return params->depth <= ELEMENTS_DEPTH_MAX ? STEP_MORE : STEP_FAIL;
  }
  if (tag->size_bytes != p->key.size_bytes + 1 ||
      memcmp(tag->bytes + 1, p->key.bytes, p->key.size_bytes) != 0) {
    return STEP_FAIL;
  }
  return end_value(p, strlen(p->form->params->key) + tag->size_bytes + 1);
}

reply_step params_step(reply_parser *p, uint8_t byte) {
  params_state *params = &p->reads.params;
  if (params->state == IN_VALUE) return value_step(p, byte);
  if (params->state == IN_TAG) return tag_step(p, byte);
  reply_step step = STEP_MORE;
  switch (params->state) {
    case AT_NEXT:
      step = next_step(p, byte);
      break;
    case IN_ATTRIBUTES:
      step = attributes_step(p, byte);
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

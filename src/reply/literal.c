// reply/literal.c — arguments in JSON-like formats, which are converted to JSON as they arrive:
// Python calls, [name(key='text', other=[1, True])], and Gemma's objects,
// {key:<escape>text<escape>,other:1}.
#include <string.h>

#include "base/text.h"
#include "reply/parser.h"

enum {
  AT_START,
  AT_CALL,  // a call in a list
  IN_NAME,
  AT_FIRST,  // the first item of a container, or its end
  AT_ITEM,   // another item, or the end
  IN_KEY,
  AFTER_KEY,
  AT_VALUE,
  IN_STRING,
  IN_ESCAPE,
  IN_DIGITS,
  IN_MARK,  // a delimiter that opens a string
  IN_MARKED,
  IN_WORD,
  AFTER_VALUE,
  AFTER_CALL
};

enum { KIND_CALL, KIND_DICT, KIND_LIST, KIND_TUPLE };

static reply_step go(literal_state *literal, uint8_t state) {
  literal->state = state;
  return STEP_MORE;
}

static uint8_t kind_of(const literal_state *literal) { return literal->kinds[literal->depth - 1]; }

static uint8_t closing_of(uint8_t kind) {
  static const char CLOSING[] = ")}])";
  return (uint8_t)CLOSING[kind];
}

static bool is_word_byte(uint8_t byte) { return is_name_byte(byte) && byte != ':' && byte != '/'; }

// ---- writing ----

// Reports the outermost container when its first key or its end arrives.
static bool begin(reply_parser *p) {
  if (p->begun) return true;
  if (!call_begin(p)) return false;
  parser_put_text(p, "{");
  return true;
}

static void put_comma(reply_parser *p) {
  if (p->reads.literal.needs_comma) parser_put_text(p, ", ");
  p->reads.literal.needs_comma = false;
}

static reply_step open_container(reply_parser *p, uint8_t kind) {
  literal_state *literal = &p->reads.literal;
  if (literal->depth == LITERAL_DEPTH_MAX) return STEP_FAIL;
  if (literal->depth > 0) parser_put_text(p, kind == KIND_DICT ? "{" : "[");
  literal->kinds[literal->depth++] = kind;
  literal->needs_comma = false;
  return go(literal, AT_FIRST);
}

static reply_step close_container(reply_parser *p) {
  literal_state *literal = &p->reads.literal;
  if (!begin(p)) return STEP_FAIL;
  const uint8_t kind = kind_of(literal);
  parser_put_text(p, kind == KIND_LIST || kind == KIND_TUPLE ? "]" : "}");
  if (--literal->depth > 0) return go(literal, AFTER_VALUE);
  call_end(p);
  return literal->is_list ? go(literal, AFTER_CALL) : STEP_DONE;
}

static bool put_word(reply_parser *p) {
  static const char *const WORDS[][2] = {{"True", "true"}, {"False", "false"}, {"None", "null"}};
  const reply_text *word = &p->reads.literal.word;
  for (size_t i = 0; i < 3; i++) {
    if (!text_is_equal(word, WORDS[i][0])) continue;
    parser_put_text(p, WORDS[i][1]);
    return true;
  }
  uint8_t first;
  if (!scan_holds((const uint8_t *)word->bytes, word->size_bytes, &first)) return false;
  parser_put(p, REPLY_CALL_ARGUMENTS, (const uint8_t *)word->bytes, word->size_bytes);
  return true;
}

static void put_key(reply_parser *p) {
  const reply_text *word = &p->reads.literal.word;
  put_comma(p);
  parser_put_string(p, word->bytes, word->size_bytes);
}

// ---- strings ----

static reply_step open_string(reply_parser *p, uint8_t byte, bool is_key) {
  literal_state *literal = &p->reads.literal;
  if (!begin(p)) return STEP_FAIL;
  put_comma(p);
  parser_put_text(p, "\"");
  literal->quote = byte;
  literal->is_key = is_key;
  return go(literal, IN_STRING);
}

static reply_step end_string(reply_parser *p) {
  literal_state *literal = &p->reads.literal;
  parser_put_text(p, "\"");
  literal->word.size_bytes = 0;
  return go(literal, literal->is_key ? AFTER_KEY : AFTER_VALUE);
}

static reply_step string_step(reply_parser *p, uint8_t byte) {
  literal_state *literal = &p->reads.literal;
  if (byte == literal->quote) return end_string(p);
  if (byte == '\\') return go(literal, IN_ESCAPE);
  parser_put_escaped(p, byte);
  return STEP_MORE;
}

// Escapes follow Python: an unknown escape keeps its backslash.
static reply_step escape_step(reply_parser *p, uint8_t byte) {
  static const char NAMES[] = "\\'\"abfnrtv\n", CODES[] = "\\'\"\a\b\f\n\r\t\v";
  literal_state *literal = &p->reads.literal;
  literal->digits = byte == 'x' ? 2 : byte == 'u' ? 4 : byte == 'U' ? 8 : 0;
  literal->code = 0;
  literal->state = literal->digits > 0 ? IN_DIGITS : IN_STRING;
  if (literal->digits > 0) return STEP_MORE;
  for (size_t i = 0; NAMES[i] != '\0'; i++) {
    if ((uint8_t)NAMES[i] != byte) continue;
    if (CODES[i] != '\0') parser_put_escaped(p, (uint8_t)CODES[i]);
    return STEP_MORE;
  }
  parser_put_escaped(p, '\\');
  parser_put_escaped(p, byte);
  return STEP_MORE;
}

static void put_unit(reply_parser *p, uint32_t unit) {
  static const char HEX[] = "0123456789abcdef";
  const char text[] = {
      '\\',           'u', HEX[unit >> 12 & 15], HEX[unit >> 8 & 15], HEX[unit >> 4 & 15],
      HEX[unit & 15], '\0'};
  parser_put_text(p, text);
}

static reply_step digits_step(reply_parser *p, uint8_t byte) {
  literal_state *literal = &p->reads.literal;
  const uint32_t digit = text_hex_value(byte);
  if (digit == 16) return STEP_FAIL;
  literal->code = literal->code * 16 + digit;
  if (--literal->digits > 0) return STEP_MORE;
  literal->state = IN_STRING;
  if (literal->code > 0x10ffff) return STEP_FAIL;
  if (literal->code >= 0x10000) {
    put_unit(p, 0xd800 + ((literal->code - 0x10000) >> 10));
    put_unit(p, 0xdc00 + ((literal->code - 0x10000) & 0x3ff));
  } else {
    put_unit(p, literal->code);
  }
  return STEP_MORE;
}

// Reads a string between delimiters (KMP: held-back bytes of a delimiter are emitted if the string
// continues).
static reply_step marked_step(reply_parser *p, uint8_t byte) {
  literal_state *literal = &p->reads.literal;
  const char *mark = p->form->params->key;
  while (literal->matched > 0 && (uint8_t)mark[literal->matched] != byte) {
    // Finds the next shorter match by searching, because the delimiters are short.
    uint8_t shorter = literal->matched - 1;
    while (shorter > 0 && memcmp(mark, mark + literal->matched - shorter, shorter) != 0) shorter--;
    for (uint8_t i = 0; i < literal->matched - shorter; i++) {
      parser_put_escaped(p, (uint8_t)mark[i]);
    }
    literal->matched = shorter;
  }
  if ((uint8_t)mark[literal->matched] != byte) {
    parser_put_escaped(p, byte);
    return STEP_MORE;
  }
  return mark[++literal->matched] == '\0' ? end_string(p) : STEP_MORE;
}

static reply_step mark_step(reply_parser *p, uint8_t byte) {
  literal_state *literal = &p->reads.literal;
  if ((uint8_t)p->form->params->key[literal->matched++] != byte) return STEP_FAIL;
  if (p->form->params->key[literal->matched] != '\0') return STEP_MORE;
  literal->matched = 0;
  if (!begin(p)) return STEP_FAIL;
  put_comma(p);
  parser_put_text(p, "\"");
  return go(literal, IN_MARKED);
}

// ---- items ----

static bool opens_text(reply_parser *p, uint8_t byte, bool is_key, reply_step *step) {
  literal_state *literal = &p->reads.literal;
  const bool is_quoted = p->form->arguments == ARGUMENTS_QUOTED;
  if (is_quoted && byte == (uint8_t)p->form->params->key[0]) {
    literal->matched = 0;
    literal->is_key = is_key;
    literal->state = IN_MARK;
    *step = mark_step(p, byte);
    return true;
  }
  if (byte != '"' && (byte != '\'' || is_quoted)) return false;
  *step = open_string(p, byte, is_key);
  return true;
}

static reply_step value_step(reply_parser *p, uint8_t byte) {
  literal_state *literal = &p->reads.literal;
  reply_step step = STEP_MORE;
  if (json_is_space(byte)) return STEP_MORE;
  if (opens_text(p, byte, false, &step)) return step;
  put_comma(p);
  if (byte == '[') return open_container(p, KIND_LIST);
  if (byte == '(') return open_container(p, KIND_TUPLE);
  if (byte == '{') return open_container(p, KIND_DICT);
  literal->word.size_bytes = 0;
  literal->state = IN_WORD;
  return is_word_byte(byte) && text_add(&literal->word, byte) ? STEP_MORE : STEP_FAIL;
}

static reply_step item_step(reply_parser *p, uint8_t byte) {
  literal_state *literal = &p->reads.literal;
  const uint8_t kind = kind_of(literal);
  reply_step step = STEP_MORE;
  if (json_is_space(byte)) return STEP_MORE;
  if (byte == closing_of(kind)) return close_container(p);
  if (kind == KIND_LIST || kind == KIND_TUPLE) return value_step(p, byte);
  if (kind == KIND_DICT && opens_text(p, byte, true, &step)) return step;
  if (kind == KIND_DICT && p->form->arguments != ARGUMENTS_QUOTED) return STEP_FAIL;
  literal->word.size_bytes = 0;
  literal->state = IN_KEY;
  return is_word_byte(byte) && text_add(&literal->word, byte) ? STEP_MORE : STEP_FAIL;
}

static reply_step after_key_step(reply_parser *p, uint8_t byte) {
  literal_state *literal = &p->reads.literal;
  if (json_is_space(byte)) return STEP_MORE;
  if (byte != (kind_of(literal) == KIND_CALL ? '=' : ':') || !begin(p)) return STEP_FAIL;
  if (literal->word.size_bytes > 0) put_key(p);
  parser_put_text(p, ": ");
  return go(literal, AT_VALUE);
}

static reply_step after_value_step(reply_parser *p, uint8_t byte) {
  literal_state *literal = &p->reads.literal;
  if (json_is_space(byte)) return STEP_MORE;
  if (byte == closing_of(kind_of(literal))) return close_container(p);
  literal->needs_comma = true;
  return byte == ',' ? go(literal, AT_ITEM) : STEP_FAIL;
}

static reply_step word_step(reply_parser *p, uint8_t byte) {
  literal_state *literal = &p->reads.literal;
  if (is_word_byte(byte) || byte == '+') {
    return text_add(&literal->word, byte) ? STEP_MORE : STEP_FAIL;
  }
  if (!put_word(p)) return STEP_FAIL;
  literal->state = AFTER_VALUE;
  return after_value_step(p, byte);
}

static reply_step key_step(reply_parser *p, uint8_t byte) {
  literal_state *literal = &p->reads.literal;
  if (is_word_byte(byte)) return text_add(&literal->word, byte) ? STEP_MORE : STEP_FAIL;
  literal->state = AFTER_KEY;
  return after_key_step(p, byte);
}

// ---- calls ----

static reply_step start_step(reply_parser *p, uint8_t byte) {
  literal_state *literal = &p->reads.literal;
  if (json_is_space(byte)) return STEP_MORE;
  if (p->form->arguments == ARGUMENTS_QUOTED) {
    return byte == '{' ? open_container(p, KIND_DICT) : STEP_FAIL;
  }
  if (byte == '[' && literal->state == AT_START) {
    literal->is_list = true;
    return go(literal, AT_CALL);
  }
  if (byte == ']' && p->is_listed) return STEP_DONE;
  p->name.size_bytes = 0;
  literal->state = IN_NAME;
  return is_word_byte(byte) && text_add(&p->name, byte) ? STEP_MORE : STEP_FAIL;
}

static reply_step state_step(reply_parser *p, uint8_t byte) {
  literal_state *literal = &p->reads.literal;
  switch (literal->state) {
    case AT_START:
    case AT_CALL:
      return start_step(p, byte);
    case IN_NAME:
      if (is_word_byte(byte)) return text_add(&p->name, byte) ? STEP_MORE : STEP_FAIL;
      return byte == '(' ? open_container(p, KIND_CALL) : STEP_FAIL;
    case AT_FIRST:
    case AT_ITEM:
      return item_step(p, byte);
    case IN_KEY:
      return key_step(p, byte);
    case AFTER_KEY:
      return after_key_step(p, byte);
    case AT_VALUE:
      return value_step(p, byte);
    case IN_STRING:
      return string_step(p, byte);
    case IN_ESCAPE:
      return escape_step(p, byte);
    case IN_DIGITS:
      return digits_step(p, byte);
    case IN_MARK:
      return mark_step(p, byte);
    case IN_MARKED:
      return marked_step(p, byte);
    case IN_WORD:
      return word_step(p, byte);
    case AFTER_VALUE:
      return after_value_step(p, byte);
    default:
      if (json_is_space(byte)) return STEP_MORE;
      if (byte == ']') return STEP_DONE;
      return byte == ',' ? go(literal, AT_CALL) : STEP_FAIL;
  }
}

reply_step literal_step(reply_parser *p, uint8_t byte) {
  const reply_step step = state_step(p, byte);
  if (p->begun) p->base = p->at;
  return step;
}

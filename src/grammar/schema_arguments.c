// grammar/schema_arguments.c — members of an object that is not written as JSON: call arguments in
// the format of a model family.
#include <string.h>

#include "grammar/regex.h"
#include "grammar/said.h"
#include "grammar/schema_parts.h"

enum { NAME_BYTES_MAX = 255 };

// ---- names ----

// Whether every parser accepts a string as a name without quotes.
static bool is_word(document_text name) {
  bool is_one = name.size_bytes > 0 && name.size_bytes <= NAME_BYTES_MAX;
  for (uint32_t i = 0; i < name.size_bytes && is_one; i++) {
    const uint8_t byte = name.bytes[i], lower = byte | 32;
    is_one = (byte >= '0' && byte <= '9') || (lower >= 'a' && lower <= 'z') || byte >= 0x80 ||
             byte == '_' || byte == '-' || byte == '.';
  }
  return is_one;
}

static bool can_stand_between_marks(document_text name, bool is_escaped) {
  bool can = name.size_bytes > 0 && name.size_bytes <= NAME_BYTES_MAX;
  for (uint32_t i = 0; i < name.size_bytes && can; i++) {
    const uint8_t byte = name.bytes[i];
    can = byte >= ' ' && byte != '<' && byte != '>' && (byte != '"' || is_escaped);
  }
  return can;
}

uint32_t argument_inner_name(schema_compiler *c, uint32_t from, document_text name) {
  if (is_word(name)) return program_text(&c->builder, from, name.bytes, name.size_bytes);
  from = schema_quote(c, from);
  const dfa *text = dfa_of_text(c->work, name.bytes, name.size_bytes);
  const uint32_t after = program_place(&c->builder);
  spell_set(&c->builder, argument_texts(c, text), SPELL_RAW, from, after);
  return schema_quote(c, after);
}

static bool has_byte(const char *text, char byte) {
  while (*text != '\0' && *text != byte) text++;
  return *text != '\0';
}

// ---- strings without quotes ----

static bool is_special(char letter) { return has_byte("\\|/()[]{}.*+?^$", letter); }

enum { PATTERN_BYTES_MAX = 160 };

// Returns the strings that match a pattern or contain a delimiter; if a delimiter contains the
// name, only the part before the name counts.
static const dfa *texts_having(schema_compiler *c, const char *before, const char *mark) {
  char pattern[PATTERN_BYTES_MAX] = "";
  size_t count = 0;
  for (; before[count] != '\0'; count++) pattern[count] = before[count];
  for (; *mark != '\0' && *mark != SCHEMA_NAME[0] && count + 2 < sizeof pattern; mark++) {
    if (is_special(*mark)) pattern[count++] = '\\';
    pattern[count++] = *mark;
  }
  return regex_compile(c->work, (const uint8_t *)pattern, count, false);
}

// Returns the strings that contain a delimiter of the format, or that a parser would mistake for a
// wrapped string.
static const dfa *texts_with_marks(schema_compiler *c) {
  const bool is_marked = c->form->style == ARGUMENT_MARKED;
  return texts_having(c, is_marked ? "" : "^\\s*<!\\[CDATA\\[|",
                      is_marked ? c->form->quote : c->form->end);
}

// Returns the strings that end a wrapped string too early.
static const dfa *texts_that_unwrap(schema_compiler *c) {
  char before[PATTERN_BYTES_MAX / 2] = "";
  size_t count = 0;
  for (const char *at = c->form->unwrap; *at != '\0' && count + 8 < sizeof before; at++) {
    if (is_special(*at)) before[count++] = '\\';
    before[count++] = *at;
  }
  memcpy(before + count, "\\s*", sizeof "\\s*");
  return texts_having(c, before, c->form->end);
}

const dfa *argument_texts(schema_compiler *c, const dfa *texts) {
  if (c->marked_texts == NULL) c->marked_texts = texts_with_marks(c);
  if (texts == NULL) texts = dfa_any_text(c->work);
  return dfa_combine(c->work, texts, c->marked_texts, DFA_WITHOUT);
}

// Returns all strings among the values of a set.
static const dfa *texts_of_set(schema_compiler *c, uint32_t set) {
  case_list cases;
  const dfa *texts = dfa_none(c->work);
  if (set == UINT32_MAX || !schema_expand(c, set, &cases)) return NULL;
  for (uint32_t i = 0; i < cases.count && work_is_ok(c->work); i++) {
    const schema_case *value = &cases.items[i];
    if ((value->types & TYPE_STRING) == 0) continue;
    const dfa *some = dfa_of_lengths(c->work, value->length_least, value->length_most);
    if (value->texts != NULL) some = dfa_combine(c->work, some, value->texts, DFA_AND);
    texts = dfa_combine(c->work, texts, some, DFA_OR);
  }
  return texts;
}

// Returns the strings that cannot be mistaken for JSON or for Python's words.
static const dfa *texts_unlike_json(schema_compiler *c) {
  static const char PATTERN[] = "^[^\\s\\-0-9tfnTFN\\{\\[\"][^]*$|^$";
  return regex_compile(c->work, (const uint8_t *)PATTERN, sizeof PATTERN - 1, true);
}

// ---- values between delimiters ----

// The current argument: its name, and the JSON type of its value or NULL.
typedef struct written {
  document_text name;
  const char *type;
} written;

static uint32_t put_pattern(schema_compiler *c, uint32_t from, const char *pattern,
                            const written *one) {
  for (; *pattern != '\0'; pattern++) {
    if (*pattern == SCHEMA_GAP[0]) {
      from = schema_call(c, from, c->gap);
    } else if (*pattern == SCHEMA_NAME[0]) {
      from = program_text(&c->builder, from, one->name.bytes, one->name.size_bytes);
    } else if (*pattern == SCHEMA_TYPE[0]) {
      from = program_text(&c->builder, from, one->type, strlen(one->type));
    } else {
      from = program_text(&c->builder, from, pattern, 1);
    }
  }
  return from;
}

static uint32_t put_line(schema_compiler *c, uint32_t from) {
  return c->form->has_lines ? program_text(&c->builder, from, "\n", 1) : from;
}

// Returns the set with one more term.
static uint32_t set_with(schema_compiler *c, uint32_t set, schema_term term) {
  schema_term terms[64];
  const uint32_t count = c->sets.sets[set].count;
  if (count >= sizeof terms / sizeof terms[0]) return UINT32_MAX;
  for (uint32_t i = 0; i < count; i++) {
    terms[i] = c->sets.values.items[c->sets.sets[set].first + i];
  }
  terms[count] = term;
  return schema_set(c, terms, count + 1);
}

// Returns the set of values that are not strings; 0 if a parser would recognise none of them.
static uint32_t other_values(schema_compiler *c, uint32_t set, uint32_t said) {
  static const uint32_t BITS[][2] = {{TYPE_NULL, SAID_NULL},     {TYPE_TRUE, SAID_BOOLEAN},
                                     {TYPE_FALSE, SAID_BOOLEAN}, {TYPE_NUMBER, SAID_NUMBER},
                                     {TYPE_ARRAY, SAID_ARRAY},   {TYPE_OBJECT, SAID_OBJECT}};
  const uint32_t others = set_with(c, set, term_of(TERM_NOT, c->of_type[OF_TEXTS]));
  if (others == UINT32_MAX) return 0;
  uint32_t types = schema_types(c, others, 0);
  for (size_t i = 0; i < sizeof BITS / sizeof BITS[0]; i++) {
    if ((said & BITS[i][1]) != 0) types &= ~BITS[i][0];
  }
  return types != 0 ? 0 : others;
}

static void put_json(schema_compiler *c, uint32_t from, uint32_t set, const written *one,
                     uint32_t to) {
  uint32_t at = put_line(c, put_pattern(c, from, c->form->before_json, one));
  at = put_line(c, schema_call(c, at, schema_rule(c, set)));
  program_skip(&c->builder, put_pattern(c, at, c->form->end, one), to);
}

// Adds JSON for each type, because the format contains the type's name.
static void put_typed_json(schema_compiler *c, uint32_t from, uint32_t set, written one,
                           uint32_t to) {
  if (!has_byte(c->form->before_json, SCHEMA_TYPE[0])) {
    put_json(c, from, set, &one, to);
    return;
  }
  for (size_t i = 0; i < SCHEMA_TYPE_COUNT && work_is_ok(c->work); i++) {
    if (i == OF_TEXTS) continue;
    const uint32_t some = set_with(c, set, term_of(TERM_SCHEMA, c->of_type[i]));
    one.type = SCHEMA_TYPES[i];
    if (some != UINT32_MAX && schema_types(c, some, 0) != 0) put_json(c, from, some, &one, to);
  }
}

static void put_text(schema_compiler *c, uint32_t from, const dfa *texts, const written *one,
                     uint32_t to) {
  const uint32_t after = program_place(&c->builder);
  const uint32_t start = put_line(c, put_pattern(c, from, c->form->before_text, one));
  spell_set(&c->builder, argument_texts(c, texts), SPELL_RAW, start, after);
  if (c->form->wrap != NULL) {
    const uint32_t inside = program_text(&c->builder, start, c->form->wrap, strlen(c->form->wrap));
    const uint32_t closed = program_place(&c->builder);
    spell_set(&c->builder, dfa_combine(c->work, texts, texts_that_unwrap(c), DFA_WITHOUT),
              SPELL_RAW, inside, closed);
    program_skip(&c->builder,
                 program_text(&c->builder, closed, c->form->unwrap, strlen(c->form->unwrap)),
                 after);
  }
  program_skip(&c->builder, put_pattern(c, put_line(c, after), c->form->end, one), to);
}

// Adds Python's words for JSON's literals, which many templates print.
static void put_words(schema_compiler *c, uint32_t from, uint32_t set, const written *one,
                      uint32_t to) {
  static const struct {
    const char *word;
    uint32_t type;
  } WORDS[] = {{"True", TYPE_TRUE}, {"False", TYPE_FALSE}, {"None", TYPE_NULL}};
  case_list cases;
  uint32_t types = 0;
  if (set == UINT32_MAX || !schema_expand(c, set, &cases)) return;
  for (uint32_t i = 0; i < cases.count; i++) types |= cases.items[i].types;
  for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
    if ((types & WORDS[i].type) == 0) continue;
    uint32_t at = put_line(c, put_pattern(c, from, c->form->before_json, one));
    at = put_line(c, program_text(&c->builder, at, WORDS[i].word, strlen(WORDS[i].word)));
    program_skip(&c->builder, put_pattern(c, at, c->form->end, one), to);
  }
}

// Adds a parameter. Parsers distinguish strings from JSON by an attribute, or by the types in the
// schema. If the schema allows strings and other types, the JSON of other types is not allowed as a
// string.
static void put_param(schema_compiler *c, uint32_t from, document_text name, uint32_t set,
                      uint32_t to) {
  const bool has_attribute = c->form->has_attribute;
  const uint32_t said = said_types(&c->document, 1, name), types = schema_types(c, set, 0);
  const uint32_t all = SAID_STRING | SAID_NUMBER | SAID_BOOLEAN | SAID_NULL | SAID_ARRAY;
  const written one = {.name = name, .type = ""};
  if (!has_attribute && (said & SAID_STRING) == 0) {
    put_json(c, from, set, &one, to);
    if (said != 0) put_words(c, from, set, &one, to);
    return;
  }
  const dfa *texts = texts_of_set(c, set);
  const bool is_null_fine = said == (SAID_STRING | SAID_NULL) && (types & TYPE_NULL) != 0;
  if (!has_attribute && said != SAID_STRING && !is_null_fine) {
    texts = dfa_combine(c->work, texts, texts_unlike_json(c), DFA_AND);
  }
  put_text(c, from, texts, &one, to);
  if (said == SAID_STRING && !has_attribute) return;
  const uint32_t others = other_values(c, set, has_attribute ? all | SAID_OBJECT : said);
  if (others != 0) put_typed_json(c, from, others, one, to);
}

// ---- members ----

uint32_t argument_member_rule(schema_compiler *c, document_text name, uint32_t set) {
  program_builder *builder = &c->builder;
  const uint32_t rule = program_rule(builder), end = program_place(builder);
  const bool is_param = c->form->style == ARGUMENT_PARAMS;
  const bool is_tag = is_param && has_byte(c->form->end, SCHEMA_NAME[0]);
  if (set == UINT32_MAX) return rule;
  if (is_param && !is_tag ? !can_stand_between_marks(name, c->form->escapes_names)
                          : !is_word(name)) {
    work_fail(c->work, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
              "the model's call format cannot represent the name %.*s",
              (int)(name.size_bytes < 80 ? name.size_bytes : 80), (const char *)name.bytes);
    return rule;
  }
  uint32_t at = program_start(builder, rule);
  if (is_param) at = put_pattern(c, at, c->form->before_name, &(written){.name = name, .type = ""});
  for (uint32_t i = 0; i < name.size_bytes; i++) {
    const char byte = (char)name.bytes[i];
    const char *escaped = !c->form->escapes_names ? NULL
                          : byte == '&'           ? "&amp;"
                          : byte == '"'           ? "&quot;"
                                                  : NULL;
    at = escaped == NULL ? program_text(builder, at, &byte, 1)
                         : program_text(builder, at, escaped, strlen(escaped));
  }
  if (is_param) {
    put_param(c, at, name, set, end);
  } else {
    at = program_text(builder, at, c->form->style == ARGUMENT_PYTHON ? "=" : ":", 1);
    program_skip(builder, schema_call(c, at, schema_rule(c, set)), end);
  }
  program_end(builder, end);
  return rule;
}

// template/filters.c — filters for strings, numbers and single values. Source: the documentation of
// Jinja 3.1, "List of Builtin Filters"; tojson and from_json as in transformers and others.
#include "template/names.h"

#include <string.h>

#include "base/decimal.h"
#include "text/unicode.h"

jinja_value jinja_filter(jinja_run *run, const jinja_string *name, jinja_value input,
                         const jinja_arguments *arguments) {
  if (!jinja_step(run, 1)) return JINJA_NOTHING;
  const jinja_named *filter = jinja_find_named(JINJA_TEXT_FILTERS, name);
  if (filter == NULL) filter = jinja_find_named(JINJA_LIST_FILTERS, name);
  if (filter != NULL) return jinja_invoke(run, filter, input, arguments);
  return jinja_fail(run, WICK_E_UNSUPPORTED, "there is no filter named %.*s", (int)name->size_bytes,
                    name->bytes);
}

// ---- single values ----

static jinja_value filter_default(jinja_run *run, const jinja_invocation *call) {
  const jinja_value *otherwise = jinja_argument(call, 0, "default_value");
  const bool also_false = jinja_bool_argument(call, 1, "boolean", false);
  const bool is_missing =
      call->input.kind == JINJA_UNDEFINED || (also_false && !jinja_truth(call->input));
  if (!is_missing) return call->input;
  return otherwise == NULL ? jinja_text_value(run, "") : *otherwise;
}

static jinja_value filter_attr(jinja_run *run, const jinja_invocation *call) {
  const jinja_string *name = jinja_string_argument(run, call, 0, "name");
  if (name == NULL) return JINJA_NOTHING;
  // only attributes, not items
  if (call->input.kind == JINJA_DICT) {
    jinja_value method;
    return jinja_find_method(run, call->input, name, &method) ? method : JINJA_NOTHING;
  }
  return jinja_get_attribute(run, call->input, name);
}

static jinja_value filter_length(jinja_run *run, const jinja_invocation *call) {
  const jinja_value input = call->input;
  switch (input.kind) {
    case JINJA_UNDEFINED:
      return jinja_int(0);
    case JINJA_STRING:
      jinja_step_bytes(run, input.string->size_bytes);
      return jinja_int(jinja_string_length(input.string));
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_RANGE:
      return jinja_int(input.list->count);
    case JINJA_DICT:
      return jinja_int(input.dict->count);
    case JINJA_LOOP:
      return jinja_int(input.loop->items->count);
    default:
      return jinja_fail(run, WICK_E_FORMAT, "length of a value without a length");
  }
}

static jinja_value filter_string(jinja_run *run, const jinja_invocation *call) {
  return jinja_of_string(jinja_text_of(run, call->input));
}

static jinja_value filter_safe(jinja_run *run, const jinja_invocation *call) {
  return jinja_markup(run, jinja_of_string(jinja_text_of(run, call->input)));
}

static jinja_value filter_escape(jinja_run *run, const jinja_invocation *call) {
  return jinja_escape(run, call->input);
}

// ---- numbers ----

// Parses the number in a string, ignoring surrounding white space.
static bool number_of_text(jinja_run *run, const jinja_string *text, double *real) {
  const jinja_value bare = jinja_strip(run, text, NULL, true, true);
  return run->status == WICK_OK && jinja_step_bytes(run, bare.string->size_bytes) &&
         decimal_read_f64(bare.string->bytes, bare.string->size_bytes, real) &&
         jinja_step_float(run, *real);
}

static bool is_whole_text(jinja_run *run, const jinja_string *text) {
  const jinja_value bare = jinja_strip(run, text, NULL, true, true);
  for (uint32_t i = 0; run->status == WICK_OK && i < bare.string->size_bytes; i++) {
    if (jinja_is_one_of(bare.string->bytes[i], ".eE")) return false;
  }
  return true;
}

static jinja_value whole_of(jinja_run *run, double real) {
  if (!(real > -9.2e18 && real < 9.2e18)) {
    return jinja_fail(run, WICK_E_OVERFLOW, "a number is too large");
  }
  return jinja_int((int64_t)real);
}

static jinja_value filter_int(jinja_run *run, const jinja_invocation *call) {
  const jinja_value input = call->input;
  const jinja_value *otherwise = jinja_argument(call, 0, "default");
  const jinja_value *base = jinja_argument(call, 1, "base");
  double real;
  const bool is_decimal = base == NULL || (base->kind == JINJA_INT && base->integer == 10);
  if (input.kind == JINJA_STRING && !is_decimal) {
    return jinja_fail(run, WICK_E_UNSUPPORTED, "int with a base other than 10");
  }
  if (input.kind == JINJA_INT || input.kind == JINJA_BOOL) return jinja_int(jinja_int_of(input));
  if (input.kind == JINJA_BIG) return input;
  if (input.kind == JINJA_FLOAT) return whole_of(run, input.real);
  if (input.kind == JINJA_UNDEFINED) return jinja_fail_undefined(run, input);
  if (input.kind == JINJA_STRING && number_of_text(run, input.string, &real)) {
    if (real < 9e15 && real > -9e15) return jinja_int((int64_t)real);
    if (!is_whole_text(run, input.string)) return whole_of(run, real);
    int64_t value = 0;  // uses all digits
    for (uint32_t i = 0; i < input.string->size_bytes; i++) {
      const char c = input.string->bytes[i];
      if (c < '0' || c > '9') continue;
      if (value > (INT64_MAX - (c - '0')) / 10) return whole_of(run, real);
      value = value * 10 + (c - '0');
    }
    return jinja_int(real < 0 ? -value : value);
  }
  return otherwise == NULL ? jinja_int(0) : *otherwise;
}

static jinja_value filter_float(jinja_run *run, const jinja_invocation *call) {
  const jinja_value input = call->input;
  const jinja_value *otherwise = jinja_argument(call, 0, "default");
  double real;
  if (jinja_is_number(input)) return jinja_float(jinja_real_of(input));
  if (input.kind == JINJA_UNDEFINED) return jinja_fail_undefined(run, input);
  if (input.kind == JINJA_STRING && number_of_text(run, input.string, &real)) {
    return jinja_float(real);
  }
  return otherwise == NULL ? jinja_float(0) : *otherwise;
}

static jinja_value filter_abs(jinja_run *run, const jinja_invocation *call) {
  const jinja_value input = call->input;
  if (!jinja_is_number(input))
    return jinja_fail(run, WICK_E_FORMAT, "abs of a value that is not a number");
  if (input.kind == JINJA_FLOAT) return jinja_float(__builtin_fabs(input.real));
  if (input.kind == JINJA_BIG) {
    return input.string->bytes[0] == '-' ? jinja_negate(run, input) : input;
  }
  if (jinja_int_of(input) >= 0) return jinja_int(jinja_int_of(input));
  return jinja_binary(run, '-', jinja_int(0), input);
}

static jinja_value filter_round(jinja_run *run, const jinja_invocation *call) {
  const int64_t places = jinja_int_argument(run, call, 0, "precision", 0);
  const jinja_value *method = jinja_argument(call, 1, "method");
  if (!jinja_is_number(call->input) || places < 0 || places > DECIMAL_PLACES_MAX) {
    return jinja_fail(run, WICK_E_FORMAT,
                      "round of a value that is not a number, or to too many places");
  }
  double real = jinja_real_of(call->input);
  if (method != NULL && method->kind == JINJA_STRING &&
      !jinja_string_is(method->string, "common")) {
    double scale = 1;
    for (int64_t i = 0; i < places; i++) scale *= 10;
    const double scaled = real * scale;
    if (!(scaled > -9e15 && scaled < 9e15)) return jinja_float(real);
    double whole = (double)(int64_t)scaled;
    const bool is_up = jinja_string_is(method->string, "ceil");
    if (is_up && whole < scaled) whole += 1;
    if (!is_up && whole > scaled) whole -= 1;
    return jinja_float(whole / scale);
  }
  char text[DECIMAL_FIXED_BYTES];
  jinja_step_float(run, real);
  const size_t size = decimal_write_fixed(text, real, (int)places);
  decimal_read_f64(text, size, &real);
  return jinja_is_int(call->input) ? jinja_int((int64_t)real) : jinja_float(real);
}

// ---- strings ----

static jinja_value filter_trim(jinja_run *run, const jinja_invocation *call) {
  const jinja_value *given = jinja_argument(call, 0, "chars");
  const bool has_set = given != NULL && given->kind == JINJA_STRING;
  return jinja_strip(run, jinja_text_of(run, call->input), has_set ? given->string : NULL, true,
                     true);
}

static jinja_value filter_case(jinja_run *run, const jinja_invocation *call) {
  return jinja_change_case(run, jinja_text_of(run, call->input), (jinja_case)call->how);
}

// Implements Jinja's title: words begin after white space, - ( { [ and <.
static jinja_value filter_title(jinja_run *run, const jinja_invocation *call) {
  const jinja_string *text = jinja_text_of(run, call->input);
  jinja_buffer buffer = {0};
  uint32_t begin = 0, size_bytes = 1;
  for (uint32_t at = 0; at <= text->size_bytes && run->status == WICK_OK; at += size_bytes) {
    const bool is_end = at == text->size_bytes;
    const bool is_break = !is_end && (jinja_is_space_at(text, at, &size_bytes) ||
                                      jinja_is_one_of(text->bytes[at], "-({[<"));
    if (!is_end && !is_break) continue;
    const jinja_value word = jinja_part(run, text, begin, at);
    if (run->status != WICK_OK) break;
    const jinja_value capital = jinja_change_case(run, word.string, CASE_CAPITAL);
    if (run->status != WICK_OK) break;
    jinja_write_string(run, &buffer, capital.string);
    if (!is_end) jinja_write_part(run, &buffer, text, at, at + size_bytes);
    begin = at + size_bytes;
  }
  return jinja_buffer_value(run, &buffer);
}

// Converts any value to a string.
static const jinja_string *text_argument(jinja_run *run, const jinja_invocation *call,
                                         uint32_t index, const char *name) {
  const jinja_value *value = jinja_argument(call, index, name);
  return value == NULL ? jinja_string_argument(run, call, index, name) : jinja_text_of(run, *value);
}

static jinja_value filter_replace(jinja_run *run, const jinja_invocation *call) {
  const jinja_string *from = text_argument(run, call, 0, "old");
  const jinja_string *to = text_argument(run, call, 1, "new");
  if (from == NULL || to == NULL) return JINJA_NOTHING;
  const int64_t count = jinja_int_argument(run, call, 2, "count", -1);
  return jinja_replace(run, jinja_text_of(run, call->input), from, to, count);
}

static jinja_value filter_format(jinja_run *run, const jinja_invocation *call) {
  jinja_list *values = jinja_new_list(run, call->arguments->plain_count);
  for (uint32_t i = 0; i < call->arguments->plain_count; i++) {
    jinja_add_item(run, values, call->arguments->plain[i]);
  }
  jinja_dict *named = jinja_new_dict(run);
  for (uint32_t i = 0; i < call->arguments->named_count; i++) {
    jinja_put(run, named, jinja_of_string(call->arguments->names[i]), call->arguments->named[i]);
  }
  if (values == NULL || named == NULL) return JINJA_NOTHING;
  const jinja_value given = call->arguments->named_count > 0
                                ? (jinja_value){.kind = JINJA_DICT, .dict = named}
                                : (jinja_value){.kind = JINJA_TUPLE, .list = values};
  return jinja_format_percent(run, jinja_text_of(run, call->input), given);
}

// Returns the indentation of lines: a number of spaces or a string.
static const jinja_string *indent_of(jinja_run *run, const jinja_value *given, int64_t otherwise) {
  if (given != NULL && given->kind == JINJA_STRING) return given->string;
  if (given != NULL && given->kind == JINJA_INT) otherwise = given->integer;
  jinja_buffer buffer = {0};
  for (int64_t i = 0; i < otherwise && run->status == WICK_OK; i++) {
    jinja_write(run, &buffer, " ", 1, JINJA_MARK_TEMPLATE);
  }
  const jinja_value value = jinja_buffer_value(run, &buffer);
  return value.kind == JINJA_STRING ? value.string : NULL;
}

static jinja_value filter_indent(jinja_run *run, const jinja_invocation *call) {
  const jinja_string *indent = indent_of(run, jinja_argument(call, 0, "width"), 4);
  const bool has_first = jinja_bool_argument(call, 1, "first", false);
  const bool has_blank = jinja_bool_argument(call, 2, "blank", false);
  const jinja_string *text = jinja_text_of(run, call->input);
  jinja_buffer buffer = {0};
  if (indent == NULL) return JINJA_NOTHING;
  for (uint32_t at = 0; at <= text->size_bytes && run->status == WICK_OK;) {
    const char *newline = jinja_find_byte(text->bytes + at, '\n', text->size_bytes - at);
    const uint32_t end = newline == NULL ? text->size_bytes : (uint32_t)(newline - text->bytes);
    const bool is_indented = at == 0 ? has_first : has_blank || end > at;
    if (is_indented) jinja_write_string(run, &buffer, indent);
    jinja_write_part(run, &buffer, text, at, end);
    if (newline != NULL) jinja_write(run, &buffer, "\n", 1, jinja_string_mark(text, end));
    at = end + 1;
  }
  return jinja_buffer_value(run, &buffer);
}

// Counts words, which are sequences of letters, digits and _, like Python's \w+.
static jinja_value filter_wordcount(jinja_run *run, const jinja_invocation *call) {
  const jinja_string *text = jinja_text_of(run, call->input);
  int64_t count = 0;
  bool is_inside = false;
  jinja_step_bytes(run, text->size_bytes);
  for (uint32_t at = 0; at < text->size_bytes;) {
    const unicode_char c = unicode_at((const uint8_t *)text->bytes, at, text->size_bytes);
    const bool is_word = c.kind == UNICODE_LETTER || c.kind == UNICODE_NUMBER || c.code == '_';
    count += is_word && !is_inside;
    is_inside = is_word;
    at += c.size_bytes;
  }
  return jinja_int(count);
}

static jinja_value filter_truncate(jinja_run *run, const jinja_invocation *call) {
  enum { LEEWAY = 5 };
  static const jinja_string dots = {.bytes = "...", .size_bytes = 3};
  static const jinja_string space = {.bytes = " ", .size_bytes = 1};
  const jinja_string *text = jinja_text_of(run, call->input);
  const int64_t length = jinja_int_argument(run, call, 0, "length", 255);
  const bool cuts_words = jinja_bool_argument(call, 1, "killwords", false);
  const jinja_value *given = jinja_argument(call, 2, "end");
  const jinja_string *end = given != NULL && given->kind == JINJA_STRING ? given->string : &dots;
  const int64_t leeway = jinja_int_argument(run, call, 3, "leeway", LEEWAY);
  jinja_step_bytes(run, (uint64_t)text->size_bytes + end->size_bytes);
  const int64_t kept = length - jinja_string_length(end);
  if (run->status != WICK_OK) return JINJA_NOTHING;
  if (kept < 0) return jinja_fail(run, WICK_E_FORMAT, "truncate to less than its end");
  if (jinja_string_length(text) <= length + leeway) return jinja_of_string(text);
  const jinja_value parts[3] = {jinja_none(), jinja_int(kept), jinja_none()};
  const jinja_value cut = jinja_get_slice(run, jinja_of_string(text), parts);
  if (cut.kind != JINJA_STRING) return JINJA_NOTHING;
  uint32_t to = cut.string->size_bytes;
  const uint32_t last = cuts_words ? UINT32_MAX : jinja_find_last(run, cut.string, &space, to);
  if (last != UINT32_MAX) to = last;
  jinja_buffer buffer = {0};
  jinja_write_part(run, &buffer, cut.string, 0, to);
  jinja_write_string(run, &buffer, end);
  return jinja_buffer_value(run, &buffer);
}

// ---- JSON ----

static const jinja_string *text_or_null(const jinja_value *value) {
  return value != NULL && value->kind == JINJA_STRING ? value->string : NULL;
}

static jinja_value filter_tojson(jinja_run *run, const jinja_invocation *call) {
  const jinja_value *indent = jinja_argument(call, 1, "indent");
  const jinja_value *separators = jinja_argument(call, 2, "separators");
  jinja_json_style style = {
      .is_ascii = jinja_bool_argument(call, 0, "ensure_ascii", false),
      .sorts_keys = jinja_bool_argument(call, 3, "sort_keys", false),
  };
  if (indent != NULL && indent->kind != JINJA_NONE) style.indent = indent_of(run, indent, 0);
  if (separators != NULL && jinja_is_sequence(*separators) && separators->list->count == 2) {
    style.item_separator = text_or_null(&separators->list->items[0]);
    style.key_separator = text_or_null(&separators->list->items[1]);
  }
  jinja_buffer buffer = {0};
  jinja_write_json(run, &buffer, call->input, &style);
  return jinja_buffer_value(run, &buffer);
}

static jinja_value filter_from_json(jinja_run *run, const jinja_invocation *call) {
  const jinja_value input = call->input;
  if (input.kind != JINJA_STRING) {
    return jinja_fail(run, WICK_E_FORMAT, "from_json of a value that is not a string");
  }
  // a string with mixed marks counts as content
  const uint8_t mark = input.string->marks != NULL ? JINJA_MARK_CONTENT : input.string->mark;
  return jinja_read_json(run, input.string->bytes, input.string->size_bytes, mark);
}

const jinja_named JINJA_TEXT_FILTERS[] = {
    {"abs", filter_abs, 0, 0},
    {"attr", filter_attr, 0, 0},
    {"capitalize", filter_case, CASE_CAPITAL, 0},
    {"count", filter_length, 0, 0},
    {"d", filter_default, 0, 0},
    {"default", filter_default, 0, 0},
    {"e", filter_escape, 0, 0},
    {"escape", filter_escape, 0, 0},
    {"float", filter_float, 0, 0},
    {"format", filter_format, 0, 0},
    {"from_json", filter_from_json, 0, 0},
    {"indent", filter_indent, 0, 0},
    {"int", filter_int, 0, 0},
    {"length", filter_length, 0, 0},
    {"lower", filter_case, CASE_LOWER, 0},
    {"replace", filter_replace, 0, 0},
    {"round", filter_round, 0, 0},
    {"safe", filter_safe, 0, 0},
    {"string", filter_string, 0, 0},
    {"title", filter_title, 0, 0},
    {"tojson", filter_tojson, 0, 0},
    {"trim", filter_trim, 0, 0},
    {"truncate", filter_truncate, 0, 0},
    {"upper", filter_case, CASE_UPPER, 0},
    {"wordcount", filter_wordcount, 0, 0},
    {NULL, NULL, 0, 0},
};

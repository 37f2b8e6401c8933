// template/json_text.c — values as JSON, in the format of Python's json.dumps, which transformers
// provides to templates as `tojson`.
#include <string.h>

#include "base/decimal.h"
#include "base/text.h"
#include "template/run.h"

enum { JSON_DEPTH_MAX = 100 };

static size_t escape_json(char out[16], uint32_t code, uint32_t is_ascii) {
  const size_t named = jinja_escape_named(out, code, "\"\"\\\\\nn\rr\tt\bb\ff");
  if (named > 0 || (code >= 0x20 && (!is_ascii || code < 0x7f))) return named;
  if (code < 0x10000) return jinja_escape_hex(out, code, 'u', 4);
  jinja_escape_hex(out, 0xd800 + ((code - 0x10000) >> 10), 'u', 4);
  return 6 + jinja_escape_hex(out + 6, 0xdc00 + ((code - 0x10000) & 0x3ff), 'u', 4);
}

static void write_json_string(jinja_run *run, jinja_buffer *buffer, const jinja_string *string,
                              const jinja_json_style *style) {
  if (string->is_arguments) run->quotes_arguments = true;
  jinja_write_quoted(run, buffer, string, '"', escape_json, style->is_ascii);
}

static void write_line(jinja_run *run, jinja_buffer *buffer, const jinja_json_style *style,
                       uint32_t depth) {
  if (style->indent == NULL) return;
  jinja_write(run, buffer, "\n", 1, JINJA_MARK_CONTENT);
  for (uint32_t i = 0; i < depth; i++) jinja_write_string(run, buffer, style->indent);
}

// Writes what precedes an item: a separator, unless it is the first, and the line break.
static void begin_item(jinja_run *run, jinja_buffer *buffer, const jinja_json_style *style,
                       uint32_t depth, bool is_first) {
  if (!is_first && style->item_separator != NULL) {
    jinja_write_string(run, buffer, style->item_separator);
  } else if (!is_first) {
    jinja_write_text(run, buffer, style->indent == NULL ? ", " : ",", JINJA_MARK_CONTENT);
  }
  write_line(run, buffer, style, depth);
}

static void write_at(jinja_run *run, jinja_buffer *buffer, jinja_value value,
                     const jinja_json_style *style, uint32_t depth);

static void write_json_list(jinja_run *run, jinja_buffer *buffer, const jinja_list *list,
                            const jinja_json_style *style, uint32_t depth) {
  jinja_write(run, buffer, "[", 1, JINJA_MARK_CONTENT);
  for (uint32_t i = 0; i < list->count && run->status == WICK_OK; i++) {
    begin_item(run, buffer, style, depth + 1, i == 0);
    write_at(run, buffer, list->items[i], style, depth + 1);
  }
  if (list->count > 0) write_line(run, buffer, style, depth);
  jinja_write(run, buffer, "]", 1, JINJA_MARK_CONTENT);
}

static int compare_keys(jinja_run *run, const void *dict, uint32_t a, uint32_t b) {
  const jinja_entry *entries = ((const jinja_dict *)dict)->entries;
  return jinja_order(run, entries[a].key, entries[b].key);
}

// Writes a key. A key that is not a string is written as a string.
static void write_key(jinja_run *run, jinja_buffer *buffer, jinja_value key,
                      const jinja_json_style *style) {
  if (key.kind == JINJA_STRING) {
    write_json_string(run, buffer, key.string, style);
    return;
  }
  jinja_write(run, buffer, "\"", 1, JINJA_MARK_CONTENT);
  write_at(run, buffer, key, style, 0);
  jinja_write(run, buffer, "\"", 1, JINJA_MARK_CONTENT);
}

static void write_json_dict(jinja_run *run, jinja_buffer *buffer, const jinja_dict *dict,
                            const jinja_json_style *style, uint32_t depth) {
  const uint32_t *order =
      style->sorts_keys ? jinja_sort(run, dict->count, compare_keys, dict) : NULL;
  jinja_write(run, buffer, "{", 1, JINJA_MARK_CONTENT);
  for (uint32_t i = 0; i < dict->count && run->status == WICK_OK; i++) {
    const jinja_entry *entry = &dict->entries[order == NULL ? i : order[i]];
    begin_item(run, buffer, style, depth + 1, i == 0);
    write_key(run, buffer, entry->key, style);
    if (style->key_separator != NULL) {
      jinja_write_string(run, buffer, style->key_separator);
    } else {
      jinja_write(run, buffer, ": ", 2, JINJA_MARK_CONTENT);
    }
    write_at(run, buffer, entry->value, style, depth + 1);
  }
  if (dict->count > 0) write_line(run, buffer, style, depth);
  jinja_write(run, buffer, "}", 1, JINJA_MARK_CONTENT);
}

static void write_json_float(jinja_run *run, jinja_buffer *buffer, double value) {
  if (!jinja_step_float(run, value)) return;
  char text[DECIMAL_BYTES];
  if (value != value) {
    jinja_write_text(run, buffer, "NaN", JINJA_MARK_CONTENT);
  } else if (value - value != 0) {
    jinja_write_text(run, buffer, value > 0 ? "Infinity" : "-Infinity", JINJA_MARK_CONTENT);
  } else {
    jinja_write(run, buffer, text, decimal_write_f64(text, value), JINJA_MARK_CONTENT);
  }
}

static void write_at(jinja_run *run, jinja_buffer *buffer, jinja_value value,
                     const jinja_json_style *style, uint32_t depth) {
  char text[DECIMAL_BYTES];
  if (!jinja_step(run, 1)) return;
  if (depth > JSON_DEPTH_MAX) {
    jinja_fail(run, WICK_E_FULL, "nested too deeply");
    return;
  }
  switch (value.kind) {
    case JINJA_NONE:
      jinja_write_text(run, buffer, "null", JINJA_MARK_CONTENT);
      break;
    case JINJA_BOOL:
      jinja_write_text(run, buffer, value.truth ? "true" : "false", JINJA_MARK_CONTENT);
      break;
    case JINJA_INT:
      text_format(text, sizeof text, "%lld", (long long)value.integer);
      jinja_write_text(run, buffer, text, JINJA_MARK_CONTENT);
      break;
    case JINJA_BIG:
      jinja_write_string(run, buffer, value.string);
      break;
    case JINJA_FLOAT:
      write_json_float(run, buffer, value.real);
      break;
    case JINJA_STRING:
      write_json_string(run, buffer, value.string, style);
      break;
    case JINJA_LIST:
    case JINJA_TUPLE:
      write_json_list(run, buffer, value.list, style, depth);
      break;
    case JINJA_DICT:
      write_json_dict(run, buffer, value.dict, style, depth);
      break;
    default:
      jinja_fail(run, WICK_E_FORMAT, "tojson of a value that JSON cannot represent");
  }
}

void jinja_write_json(jinja_run *run, jinja_buffer *buffer, jinja_value value,
                      const jinja_json_style *style) {
  write_at(run, buffer, value, style, 0);
}

// grammar/document.c — parses JSON.
#include "grammar/document.h"

#include <string.h>

#include "base/hash.h"
#include "base/text.h"

enum { DEPTH_MAX = 500 };

typedef struct reader {
  grammar_work *work;
  json_document *document;
  const uint8_t *source;
  size_t size_bytes, at;
} reader;

static bool fail(reader *r, const char *what) {
  return work_fail(r->work, WICK_E_ARG, r->at, "JSON, byte %zu: %s", r->at, what);
}

static uint8_t peek(const reader *r) { return r->at < r->size_bytes ? r->source[r->at] : 0; }

static void skip_space(reader *r) {
  while (peek(r) == ' ' || peek(r) == '\t' || peek(r) == '\n' || peek(r) == '\r') r->at++;
}

static bool take(reader *r, const char *text) {
  const size_t count = strlen(text);
  if (r->size_bytes - r->at < count || memcmp(r->source + r->at, text, count) != 0) return false;
  r->at += count;
  return true;
}

// ---- strings ----

static bool take_hex4(reader *r, uint32_t *code) {
  *code = 0;
  for (int i = 0; i < 4; i++) {
    const uint32_t digit = text_hex_value(peek(r));
    if (digit == 16) return fail(r, "a bad \\u escape");
    *code = *code * 16 + digit;
    r->at++;
  }
  return true;
}

static bool take_escape(reader *r, uint32_t *code) {
  static const char NAMES[] = "\"\\/bfnrt", CODES[] = "\"\\/\b\f\n\r\t";
  for (int i = 0; i < 8; i++) {
    if (peek(r) != (uint8_t)NAMES[i]) continue;
    r->at++;
    *code = (uint8_t)CODES[i];
    return true;
  }
  if (!take(r, "u")) return fail(r, "an unknown escape");
  if (!take_hex4(r, code)) return false;
  uint32_t low = 0;
  if (*code >= 0xd800 && *code < 0xdc00) {
    if (!take(r, "\\u") || !take_hex4(r, &low)) return fail(r, "half of a surrogate pair");
    *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    if (low < 0xdc00 || low > 0xdfff) return fail(r, "half of a surrogate pair");
  }
  return (*code < 0xd800 || *code > 0xdfff) || fail(r, "half of a surrogate pair");
}

static bool read_string(reader *r, document_text *out) {
  size_t end = ++r->at;
  while (end < r->size_bytes && r->source[end] != '"') end += r->source[end] == '\\' ? 2 : 1;
  if (end >= r->size_bytes) return fail(r, "unterminated string");
  uint8_t *bytes = work_alloc(r->work, end - r->at + 4, 1);
  if (bytes == NULL) return false;
  out->bytes = bytes;
  out->size_bytes = 0;
  while (r->at < end) {
    uint32_t code = 0;
    if (take(r, "\\")) {
      if (!take_escape(r, &code)) return false;
    } else {
      const int count = utf8_decode(r->source + r->at, end - r->at, &code);
      if (count <= 0 || code < 0x20)
        return fail(r, "a control character or invalid UTF-8 in a string");
      r->at += (size_t)count;
    }
    out->size_bytes += (uint32_t)utf8_encode(code, bytes + out->size_bytes);
  }
  r->at = end + 1;
  return true;
}

// ---- numbers ----

static bool take_digits(reader *r) {
  const size_t before = r->at;
  while (peek(r) >= '0' && peek(r) <= '9') r->at++;
  return r->at != before;
}

static bool read_number(reader *r, document_text *out) {
  const size_t began = r->at;
  take(r, "-");
  bool is_ok = take(r, "0") || take_digits(r);
  if (is_ok && take(r, ".")) is_ok = take_digits(r);
  if (is_ok && (take(r, "e") || take(r, "E"))) {
    if (!take(r, "+")) take(r, "-");
    is_ok = take_digits(r);
  }
  *out = (document_text){r->source + began, (uint32_t)(r->at - began)};
  return is_ok || fail(r, "a bad number");
}

// ---- values ----

static uint32_t read_value(reader *r, uint32_t parent, uint32_t depth);

static bool add_child(reader *r, uint32_t parent, uint32_t *last, uint32_t child,
                      document_text key) {
  if (child == 0) return false;
  json_node *nodes = r->document->nodes.items;
  if (*last == 0) nodes[parent].first = child;
  if (*last != 0) nodes[*last].next = child;
  nodes[child].key = key;
  nodes[child].index = nodes[parent].count++;
  *last = child;
  return true;
}

static bool read_members(reader *r, uint32_t parent, uint32_t depth, bool is_object) {
  const char *close = is_object ? "}" : "]";
  uint32_t last = 0;
  skip_space(r);
  if (take(r, close)) return true;
  do {
    document_text key = {0};
    skip_space(r);
    if (is_object) {
      if (peek(r) != '"') return fail(r, "a member's name is expected");
      if (!read_string(r, &key)) return false;
      skip_space(r);
      if (!take(r, ":")) return fail(r, "':' is expected");
    }
    if (!add_child(r, parent, &last, read_value(r, parent, depth + 1), key)) return false;
    skip_space(r);
  } while (take(r, ","));
  return take(r, close) || fail(r, is_object ? "',' or '}' is expected" : "',' or ']' is expected");
}

static uint32_t read_value(reader *r, uint32_t parent, uint32_t depth) {
  skip_space(r);
  if (depth > DEPTH_MAX) {
    work_fail(r->work, WICK_E_FULL, r->at, "JSON is nested deeper than %d", DEPTH_MAX);
    return 0;
  }
  json_node node = {.parent = parent, .at = r->at};
  if (!work_step(r->work, 1) || !WORK_PUSH(r->work, &r->document->nodes, node)) return 0;
  const uint32_t number = r->document->nodes.count - 1;
  bool is_ok = true;
  if (take(r, "null")) {
    node.kind = JSON_NULL;
  } else if (take(r, "true")) {
    node.kind = JSON_TRUE;
  } else if (take(r, "false")) {
    node.kind = JSON_FALSE;
  } else if (peek(r) == '"') {
    node.kind = JSON_STRING;
    is_ok = read_string(r, &node.text);
  } else if (take(r, "{") || take(r, "[")) {
    node.kind = r->source[r->at - 1] == '{' ? JSON_OBJECT : JSON_ARRAY;
    r->document->nodes.items[number] = node;
    is_ok = read_members(r, number, depth, node.kind == JSON_OBJECT);
    r->document->nodes.items[number].end = r->at;
    return is_ok ? number : 0;
  } else {
    node.kind = JSON_NUMBER;
    is_ok = read_number(r, &node.text);
  }
  node.end = r->at;
  r->document->nodes.items[number] = node;
  return is_ok ? number : 0;
}

// ---- members by name ----

// Returns the slot of a member, or the empty slot where it would be stored.
static uint32_t *find_slot(const json_document *document, uint32_t node, document_text name,
                           uint32_t *steps) {
  const json_node *nodes = document->nodes.items;
  for (uint64_t at = hash_bytes(name.bytes, name.size_bytes, node);; at++) {
    uint32_t *slot = &document->slots[at & document->slot_mask];
    *steps += 1;
    if (*slot == 0) return slot;
    if (nodes[*slot].parent == node && text_is_same(nodes[*slot].key, name)) return slot;
  }
}

static bool index_members(grammar_work *work, json_document *document) {
  const json_node *nodes = document->nodes.items;
  uint32_t count = 2, steps = 0;
  while (count < 2 * document->nodes.count) count *= 2;
  document->slot_mask = count - 1;
  document->slots = work_alloc(work, count, sizeof *document->slots);
  for (uint32_t node = 2; node < document->nodes.count && work_step(work, steps); node++) {
    const uint32_t parent = nodes[node].parent;
    steps = 0;
    if (nodes[parent].kind == JSON_OBJECT) {
      *find_slot(document, parent, nodes[node].key, &steps) = node;
    }
  }
  return work_is_ok(work);
}

bool document_read(grammar_work *work, const uint8_t *source, size_t size_bytes,
                   json_document *out) {
  memset(out, 0, sizeof *out);
  reader r = {.work = work, .document = out, .source = source, .size_bytes = size_bytes};
  const json_node none = {0};
  if (!WORK_PUSH(work, &out->nodes, none) || read_value(&r, 0, 0) == 0) return false;
  skip_space(&r);
  if (r.at != size_bytes) return fail(&r, "text after the value");
  return index_members(work, out);
}

// ---- lookups ----

bool text_is(document_text text, const char *wanted) {
  return text.size_bytes == strlen(wanted) && memcmp(text.bytes, wanted, text.size_bytes) == 0;
}

bool text_is_same(document_text a, document_text b) {
  return a.size_bytes == b.size_bytes &&
         (a.size_bytes == 0 || memcmp(a.bytes, b.bytes, a.size_bytes) == 0);
}

uint32_t document_member(const json_document *document, uint32_t node, document_text name) {
  uint32_t steps = 0;
  if (document->nodes.items[node].kind != JSON_OBJECT) return 0;
  return *find_slot(document, node, name, &steps);
}

uint32_t document_find(const json_document *document, uint32_t node, const char *name) {
  const document_text text = {(const uint8_t *)name, (uint32_t)strlen(name)};
  return document_member(document, node, text);
}

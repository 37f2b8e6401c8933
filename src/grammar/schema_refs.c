// grammar/schema_refs.c — "$ref": URIs resolved against "$id" (RFC 3986, 5.2), JSON pointers (RFC
// 6901) and anchors, all within the document.
#include <string.h>

#include "base/text.h"
#include "grammar/schema_parts.h"

enum { URI_BYTES_MAX = 2048, LOOK_STEPS = 4 };

typedef struct uri {
  char text[URI_BYTES_MAX];
  uint32_t size_bytes;
  bool is_cut;  // the URI is truncated, so it equals no other URI
} uri;

// ---- the path of a node ----

typedef struct path_text {
  char text[160];
  size_t size_bytes;
} path_text;

static void put_path(path_text *path, const void *bytes, size_t count) {
  if (path->size_bytes + count >= sizeof path->text) return;
  memcpy(path->text + path->size_bytes, bytes, count);
  path->size_bytes += count;
  path->text[path->size_bytes] = 0;
}

static void put_node(const schema_compiler *c, uint32_t node, uint32_t depth, path_text *path) {
  const json_node *at = document_node(&c->document, node);
  if (at->parent == 0 || depth > 40) return;
  put_node(c, at->parent, depth + 1, path);
  put_path(path, "/", 1);
  if (document_node(&c->document, at->parent)->kind == JSON_OBJECT) {
    put_path(path, at->key.bytes, at->key.size_bytes);
    return;
  }
  char digits[10];
  size_t count = 0;
  uint32_t index = at->index;
  do digits[sizeof digits - ++count] = (char)('0' + index % 10);
  while ((index /= 10) != 0);
  put_path(path, digits + sizeof digits - count, count);
}

static bool fail_at(schema_compiler *c, wick_status status, uint32_t node, const char *what) {
  path_text path = {.text = "#", .size_bytes = 1};
  if (node == 0 || node >= c->document.nodes.count) node = 1;
  put_node(c, node, 0, &path);
  return work_fail(c->work, status, document_node(&c->document, node)->at, "schema, %s: %s",
                   path.text, what);
}

bool schema_refuse(schema_compiler *c, uint32_t node, const char *what) {
  return fail_at(c, WICK_E_UNSUPPORTED, node, what);
}

bool schema_fail(schema_compiler *c, uint32_t node, const char *what) {
  return fail_at(c, WICK_E_ARG, node, what);
}

// ---- URIs ----

static void clear(uri *address) {
  address->size_bytes = 0;
  address->is_cut = false;
}

static void put(uri *to, const void *bytes, uint32_t count) {
  if (count > URI_BYTES_MAX - to->size_bytes) {
    count = URI_BYTES_MAX - to->size_bytes;
    to->is_cut = true;
  }
  memcpy(to->text + to->size_bytes, bytes, count);
  to->size_bytes += count;
}

static uint32_t scheme_bytes(const char *text, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const char c = text[i], lower = (char)(c | 32);
    if (c == ':') return i == 0 ? 0 : i + 1;
    const bool is_letter = lower >= 'a' && lower <= 'z';
    if (!is_letter && (i == 0 || !((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'))) {
      return 0;
    }
  }
  return 0;
}

static uint32_t authority_end(const uri *base, uint32_t scheme) {
  uint32_t at = scheme;
  if (base->size_bytes < at + 2 || memcmp(base->text + at, "//", 2) != 0) return at;
  for (at += 2; at < base->size_bytes && base->text[at] != '/'; at++) continue;
  return at;
}

// Resolves the reference (without its fragment) relative to `base`, and stores the result there.
static void resolve_uri(uri *base, const char *text, uint32_t count) {
  const uint32_t scheme = scheme_bytes(base->text, base->size_bytes);
  const uint32_t path = authority_end(base, scheme);
  if (text == NULL) return;  // a reference without a URI: the base itself
  if (scheme_bytes(text, count) != 0) {
    clear(base);
  } else if (count >= 2 && memcmp(text, "//", 2) == 0) {
    base->size_bytes = scheme;
  } else if (count >= 1 && text[0] == '/') {
    base->size_bytes = path;
  } else {
    while (base->size_bytes > path && base->text[base->size_bytes - 1] != '/') base->size_bytes--;
    if (base->size_bytes == path && path > scheme) put(base, "/", 1);
    while (count >= 2 && text[0] == '.') {
      const bool is_up = count >= 3 && memcmp(text, "../", 3) == 0;
      if (!is_up && text[1] != '/') break;
      text += is_up ? 3 : 2;
      count -= is_up ? 3 : 2;
      if (!is_up || base->size_bytes <= path + 1) continue;
      base->size_bytes--;
      while (base->size_bytes > path && base->text[base->size_bytes - 1] != '/') base->size_bytes--;
    }
  }
  put(base, text, count);
}

static uint32_t without_fragment(document_text text) {
  uint32_t count = 0;
  while (count < text.size_bytes && text.bytes[count] != '#') count++;
  return count;
}

// Returns the string of "$id" ("id" in draft 4) of a schema, or none. A value in "enum" or in an
// unknown keyword is not a schema, and up to draft 7 "$ref" overrides the keywords next to it.
static document_text id_of(const schema_compiler *c, uint32_t node) {
  const document_text none = {0};
  const bool is_overridden = c->dialect <= 7 && document_find(&c->document, node, "$ref") != 0;
  if (is_overridden || !schema_is_schema(c, node)) return none;
  const uint32_t id = document_find(&c->document, node, c->dialect == 4 ? "id" : "$id");
  if (document_node(&c->document, id)->kind != JSON_STRING) return none;
  return document_node(&c->document, id)->text;
}

static bool begins_resource(const schema_compiler *c, uint32_t node) {
  return without_fragment(id_of(c, node)) != 0;
}

static uint32_t resource_of(const schema_compiler *c, uint32_t node) {
  while (node != 1 && !begins_resource(c, node)) node = document_node(&c->document, node)->parent;
  return node;
}

static void base_of(const schema_compiler *c, uint32_t node, uint32_t depth, uri *base) {
  if (node == 0 || depth > 600) return;
  base_of(c, document_node(&c->document, node)->parent, depth + 1, base);
  const document_text id = id_of(c, node);
  const uint32_t count = without_fragment(id);
  if (count != 0) resolve_uri(base, (const char *)id.bytes, count);
}

static uint32_t find_resource(schema_compiler *c, const uri *wanted, uri *scratch) {
  for (uint32_t node = 1; node < c->document.nodes.count; node++) {
    if (!work_step(c->work, LOOK_STEPS)) return 0;
    if (!begins_resource(c, node)) continue;
    clear(scratch);
    base_of(c, node, 0, scratch);
    if (!scratch->is_cut && !wanted->is_cut && scratch->size_bytes == wanted->size_bytes &&
        memcmp(scratch->text, wanted->text, wanted->size_bytes) == 0) {
      return node;
    }
  }
  return 0;
}

// ---- fragments ----

static document_text decode_percent(schema_compiler *c, const uint8_t *text, uint32_t count) {
  uint8_t *bytes = work_alloc(c->work, count, 1);
  document_text out = {bytes, 0};
  for (uint32_t i = 0; bytes != NULL && i < count; i++) {
    uint8_t byte = text[i];
    const bool may_be_escape = byte == '%' && i + 2 < count;
    const uint32_t high = may_be_escape ? text_hex_value(text[i + 1]) : 16;
    const uint32_t low = may_be_escape ? text_hex_value(text[i + 2]) : 16;
    if (high < 16 && low < 16) {
      byte = (uint8_t)(high * 16 + low);
      i += 2;
    }
    bytes[out.size_bytes++] = byte;
  }
  return out;
}

// Decodes a part of a pointer (RFC 6901, section 4): "~0" is "~" and "~1" is "/".
static document_text decode_part(schema_compiler *c, const uint8_t *text, uint32_t count) {
  const document_text in = decode_percent(c, text, count);
  uint8_t *bytes = work_alloc(c->work, in.size_bytes, 1);
  document_text out = {bytes, 0};
  for (uint32_t i = 0; bytes != NULL && i < in.size_bytes; i++) {
    uint8_t byte = in.bytes[i];
    const uint8_t next = byte == '~' && i + 1 < in.size_bytes ? in.bytes[i + 1] : 0;
    if (next == '0' || next == '1') {
      byte = next == '0' ? '~' : '/';
      i++;
    }
    bytes[out.size_bytes++] = byte;
  }
  return out;
}

static uint32_t child_at(const schema_compiler *c, uint32_t node, document_text part) {
  const json_node *at = document_node(&c->document, node);
  if (at->kind == JSON_OBJECT) return document_member(&c->document, node, part);
  if (at->kind != JSON_ARRAY || part.size_bytes == 0 || part.size_bytes > 9) return 0;
  uint32_t index = 0, child = at->first;
  for (uint32_t i = 0; i < part.size_bytes; i++) {
    if (part.bytes[i] < '0' || part.bytes[i] > '9') return 0;
    index = index * 10 + (part.bytes[i] - '0');
  }
  for (; child != 0 && index > 0; index--) child = document_node(&c->document, child)->next;
  return child;
}

static uint32_t follow_pointer(schema_compiler *c, uint32_t node, document_text pointer) {
  for (uint32_t at = 1; node != 0 && at <= pointer.size_bytes;) {
    uint32_t end = at;
    while (end < pointer.size_bytes && pointer.bytes[end] != '/') end++;
    node = child_at(c, node, decode_part(c, pointer.bytes + at, end - at));
    at = end + 1;
  }
  return node;
}

static bool has_anchor(const schema_compiler *c, uint32_t node, document_text anchor) {
  static const char *const NAMES[] = {"$anchor", "$dynamicAnchor"};
  for (int i = 0; i < 2; i++) {
    const uint32_t found = document_find(&c->document, node, NAMES[i]);
    if (document_node(&c->document, found)->kind == JSON_STRING &&
        text_is_same(document_node(&c->document, found)->text, anchor)) {
      return true;
    }
  }
  const document_text id = id_of(c, node);
  if (id.size_bytes < 2 || id.bytes[0] != '#') return false;
  const document_text rest = {id.bytes + 1, id.size_bytes - 1};
  return text_is_same(rest, anchor);
}

static uint32_t find_anchor(schema_compiler *c, uint32_t resource, document_text anchor) {
  for (uint32_t node = 1; node < c->document.nodes.count; node++) {
    if (!work_step(c->work, LOOK_STEPS)) return 0;
    if (!schema_is_schema(c, node)) continue;
    if (has_anchor(c, node, anchor) && resource_of(c, node) == resource) return node;
  }
  return 0;
}

static uint32_t resolve(schema_compiler *c, uint32_t reference) {
  const json_node *node = document_node(&c->document, reference);
  if (node->kind != JSON_STRING) return schema_fail(c, reference, "a string is expected"), 0;
  const document_text text = node->text;
  const uint32_t count = without_fragment(text);
  uint32_t resource = resource_of(c, node->parent);
  if (count != 0) {
    uri wanted, scratch;
    clear(&wanted);
    base_of(c, node->parent, 0, &wanted);
    resolve_uri(&wanted, (const char *)text.bytes, count);
    resource = find_resource(c, &wanted, &scratch);
    if (resource == 0) schema_refuse(c, reference, "$ref target is outside the document");
  }
  if (!work_is_ok(c->work)) return 0;
  uint32_t found = resource;
  if (count + 1 < text.size_bytes) {
    const document_text fragment = {text.bytes + count + 1, text.size_bytes - count - 1};
    found = fragment.bytes[0] == '/'
                ? follow_pointer(c, resource, fragment)
                : find_anchor(c, resource, decode_percent(c, fragment.bytes, fragment.size_bytes));
  }
  if (found == 0) schema_fail(c, reference, "$ref target does not exist");
  return found != 0 && schema_check(c, found) ? found : 0;
}

uint32_t schema_resolve(schema_compiler *c, uint32_t reference) {
  if (c->targets[reference] == 0) c->targets[reference] = resolve(c, reference);
  return c->targets[reference];
}

// ---- the dialect ----

static bool holds_text(document_text text, const char *part) {
  const uint32_t count = (uint32_t)strlen(part);
  for (uint32_t i = 0; i + count <= text.size_bytes; i++) {
    if (memcmp(text.bytes + i, part, count) == 0) return true;
  }
  return false;
}

static bool has_newer_keyword(const schema_compiler *c) {
  for (uint32_t node = 1; node < c->document.nodes.count; node++) {
    if (schema_is_newer(c, document_node(&c->document, node)->key)) return true;
  }
  return false;
}

void schema_find_dialect(schema_compiler *c) {
  static const struct {
    const char *name;
    uint32_t dialect;
  } NAMES[] = {{"draft-03", 4}, {"draft-04", 4},   {"draft-05", 4},  {"draft-06", 6},
               {"draft-07", 7}, {"2019-09", 2019}, {"2020-12", 2020}};
  c->dialect = 2020;
  const uint32_t named = document_find(&c->document, 1, "$schema");
  const bool is_named = document_node(&c->document, named)->kind == JSON_STRING;
  for (size_t i = 0; is_named && i < sizeof NAMES / sizeof NAMES[0]; i++) {
    if (holds_text(document_node(&c->document, named)->text, NAMES[i].name)) {
      c->dialect = NAMES[i].dialect;
    }
  }
  // a schema that does not state its draft but uses the older keyword for definitions belongs to an
  // older draft
  if (!is_named && document_find(&c->document, 1, "definitions") != 0 && !has_newer_keyword(c)) {
    c->dialect = 7;
  }
}

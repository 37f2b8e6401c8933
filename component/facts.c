// component/facts.c — see facts.h.
#include "facts.h"

#include <string.h>

bool facts_parse(facts *of, refusal *refused) {
  buffer_put(&of->json, "", 1);
  if (of->json.has_failed) return refuse_memory(refused, NULL);
  of->is_read = body_parse(&of->read, of->json.bytes, of->json.size_bytes - 1, refused);
  return of->is_read;
}

bool facts_read(wick_engine *engine, facts *out, refusal *refused) {
  memset(out, 0, sizeof *out);
  wick_info_json(engine, buffer_put, &out->json);
  return facts_parse(out, refused);
}

void facts_end(facts *held) {
  if (held->read.bytes != NULL) body_end(&held->read);
  buffer_free(&held->json);
}

uint32_t facts_of_tokenizer(const facts *of, const char *name) {
  return body_find(&of->read, body_field(&of->read, "tokenizer"), name);
}

int32_t facts_token(const facts *of, uint32_t node) {
  const uint32_t id = body_find(&of->read, node, "id");
  return id == 0 ? WICK_TOKEN_NONE : (int32_t)body_number(&of->read, id);
}

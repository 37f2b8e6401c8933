// schedule/session_record.c — writes sessions and reads them back. session.h has the format.
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/math.h"
#include "schedule/session.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are written as they lie");

enum { RECORD_VERSION = 2, RECORD_VERSION_ADAPTERS = 3 };
static const char MAGIC[SESSION_MAGIC_BYTES] = {'W', 'I', 'C', 'K', 'S', 'E', 'S', 'S'};

typedef struct record_head {
  char magic[SESSION_MAGIC_BYTES];
  uint32_t version, tail;  // tail: number of tokens that the pages lack
  cache_salt salt;
} record_head;
_Static_assert(sizeof(record_head) == 32, "no padding");

bool session_is_record(const void *magic) { return memcmp(magic, MAGIC, SESSION_MAGIC_BYTES) == 0; }

// Bytes that a record has of adapters.
static uint64_t marks_bytes(const adapter_marks *marks) {
  return marks->count == 0 ? 0 : sizeof(uint64_t) + marks->count * sizeof *marks->of;
}

static uint64_t sum_of(const record_head *head, const adapter_marks *marks, const int32_t *tail) {
  const uint64_t count = marks->count;
  uint64_t sum = hash_bytes(head, sizeof *head, 0);
  if (count != 0) {
    sum = hash_bytes(marks->of, marks->count * sizeof *marks->of,
                     hash_bytes(&count, sizeof count, sum));
  }
  return hash_bytes(tail, head->tail * sizeof(int32_t), sum);
}

static bool write_marks(const wick_state_sink *sink, const adapter_marks *marks) {
  const uint64_t count = marks->count;
  return count == 0 || (sink->write(sink->context, &count, sizeof count) &&
                        sink->write(sink->context, marks->of, marks->count * sizeof *marks->of));
}

wick_status session_bytes(const session_table *table, uint32_t id, const kv_types *packed,
                          uint64_t *size_bytes, wick_error *error) {
  session *session;
  wick_status status = session_find_idle(table, id, &session, error);
  if (session == NULL) return status;
  uint64_t kv_bytes = 0;
  status = store_record_bytes(table->store, session->sequence, packed, &kv_bytes, error);
  const uint32_t tail = session->count - store_tokens(table->store, session->sequence);
  *size_bytes = sizeof(record_head) + marks_bytes(&session->adapters) +
                (uint64_t)tail * sizeof(int32_t) + sizeof(uint64_t) + kv_bytes;
  return status;
}

wick_status session_save(const session_table *table, uint32_t id, uint64_t salt,
                         const kv_types *packed, const wick_state_sink *sink, wick_error *error) {
  session *session;
  const wick_status status = session_find_idle(table, id, &session, error);
  if (session == NULL) return status;
  const uint32_t stored = store_tokens(table->store, session->sequence);
  const adapter_marks *marks = &session->adapters;
  record_head head = {.version = marks->count == 0 ? RECORD_VERSION : RECORD_VERSION_ADAPTERS,
                      .tail = session->count - stored,
                      .salt = session->salt};
  memcpy(head.magic, MAGIC, sizeof MAGIC);
  const int32_t *tail = session->tokens + stored;
  const uint64_t sum = sum_of(&head, marks, tail);
  if (!sink->write(sink->context, &head, sizeof head) || !write_marks(sink, marks) ||
      (head.tail != 0 && !sink->write(sink->context, tail, head.tail * sizeof(int32_t))) ||
      !sink->write(sink->context, &sum, sizeof sum)) {
    return fail_with(error, WICK_E_IO, WICK_NO_OFFSET, "session %u could not be written", id);
  }
  return store_save(table->store, salt, session->sequence, session->tokens, packed, sink, error);
}

// ---- Reading ----

static wick_status ends_early(wick_error *error) {
  return fail_with(error, WICK_E_TRUNCATED, WICK_NO_OFFSET, "the saved session ends early");
}

static wick_status read_head(wick_state_source *source, uint32_t context_tokens, record_head *head,
                             wick_error *error) {
  if (source->size_bytes < sizeof *head) return ends_early(error);
  if (!source->read(source->context, head, sizeof *head)) {
    return fail_with(error, WICK_E_IO, WICK_NO_OFFSET, "the saved session could not be read");
  }
  source->size_bytes -= sizeof *head;
  if (!session_is_record(head->magic) ||
      (head->version != RECORD_VERSION && head->version != RECORD_VERSION_ADAPTERS)) {
    return fail_with(error, WICK_E_FORMAT, 0, "this is not a saved session of version %d or %d",
                     (int)RECORD_VERSION, (int)RECORD_VERSION_ADAPTERS);
  }
  // one more than the context: the newest token of a full session was never read
  if (head->tail > (uint64_t)context_tokens + 1) {
    fail_with(error, WICK_E_FULL, 12, "a session of at least %u tokens, the context holds %u",
              head->tail, context_tokens);
    return status_about(WICK_E_FULL, error, WICK_SUBJECT_CONTEXT, head->tail, context_tokens);
  }
  return WICK_OK;
}

static wick_status read_marks(wick_state_source *source, const record_head *head,
                              adapter_marks *marks, wick_error *error) {
  uint64_t count = 0;
  *marks = (adapter_marks){.count = 0};
  if (head->version == RECORD_VERSION) return WICK_OK;
  if (source->size_bytes < sizeof count) return ends_early(error);
  bool is_read = source->read(source->context, &count, sizeof count);
  if (is_read && (count == 0 || count > WICK_ADAPTERS_MAX)) {
    return fail_with(error, WICK_E_CORRUPT, sizeof *head, "a saved session of %llu adapters",
                     (unsigned long long)count);
  }
  const uint64_t list_bytes = count * sizeof *marks->of;
  if (source->size_bytes < sizeof count + list_bytes) return ends_early(error);
  is_read = is_read && source->read(source->context, marks->of, (size_t)list_bytes);
  if (!is_read) {
    return fail_with(error, WICK_E_IO, WICK_NO_OFFSET, "the saved session could not be read");
  }
  marks->count = (uint32_t)count;
  for (uint32_t i = 0; i < marks->count; i++) {
    const float scale = marks->of[i].scale;
    if (scale != 0 && math_is_finite_f32(scale)) continue;
    return fail_with(error, WICK_E_CORRUPT, sizeof *head, "a saved session's adapter has no scale");
  }
  source->size_bytes -= sizeof count + list_bytes;
  return WICK_OK;
}

// Reads the tokens that the pages lack, into `tail` [head->tail].
static wick_status read_tail(wick_state_source *source, const record_head *head,
                             const adapter_marks *marks, int32_t *tail, wick_error *error) {
  const uint64_t tail_bytes = (uint64_t)head->tail * sizeof(int32_t);
  uint64_t sum;
  if (source->size_bytes < tail_bytes + sizeof sum) return ends_early(error);
  if ((tail_bytes != 0 && !source->read(source->context, tail, (size_t)tail_bytes)) ||
      !source->read(source->context, &sum, sizeof sum)) {
    return fail_with(error, WICK_E_IO, WICK_NO_OFFSET, "the saved session could not be read");
  }
  source->size_bytes -= tail_bytes + sizeof sum;
  if (sum == sum_of(head, marks, tail)) return WICK_OK;
  return fail_with(error, WICK_E_CORRUPT, 0, "the saved session is damaged");
}

static wick_status check_tokens(const int32_t *tokens, uint32_t count, uint32_t vocab,
                                wick_error *error) {
  for (uint32_t i = 0; i < count; i++) {
    if (tokens[i] >= 0 && (uint32_t)tokens[i] < vocab) continue;
    return fail_with(error, WICK_E_CORRUPT, WICK_NO_OFFSET,
                     "token %d of the saved session is not in the vocabulary of %u", tokens[i],
                     vocab);
  }
  return WICK_OK;
}

// For pages that reading the tokens again would not give.
static cache_salt salt_of_its_own(session_table *table, cache_salt tenant) {
  const uint64_t words[] = {tenant.low, tenant.high, ++table->packed_count};
  return salt_of((const char *)words, sizeof words);
}

// Reads the record of the sequence. Its tokens go to made->tokens, the tail after them.
static wick_status read_sequence(session_table *table, uint64_t salt, uint32_t context_tokens,
                                 wick_state_source *source, uint32_t tail, session *made,
                                 wick_error *error) {
  state_reader reader;
  wick_status status = store_load_begin(table->store, salt, source, &reader, error);
  if (status != WICK_OK) return status;
  // a full session has one token more: the newest, which was never read
  const uint64_t most = (uint64_t)context_tokens + (tail != 0 ? 1 : 0);
  if ((uint64_t)reader.tokens + tail > most) {
    fail_with(error, WICK_E_FULL, WICK_NO_OFFSET, "a session of %llu tokens, the context holds %u",
              (unsigned long long)reader.tokens + tail, context_tokens);
    return status_about(WICK_E_FULL, error, WICK_SUBJECT_CONTEXT, (uint64_t)reader.tokens + tail,
                        context_tokens);
  }
  const uint32_t count = reader.tokens + tail;
  int32_t *tokens = memory_resize(table->memory, made->tokens, (count + 1) * sizeof(int32_t));
  if (tokens == NULL) return memory_fail(table->memory, error, "a session's tokens");
  made->tokens = tokens;
  memmove(tokens + reader.tokens, tokens, tail * sizeof(int32_t));
  made->count = count;
  if (reader.is_packed) made->salt = salt_of_its_own(table, made->salt);
  sessions_make_room(table, reader.tokens);
  return store_load(table->store, &reader, tokens, &made->sequence, error);
}

wick_status session_load(session_table *table, uint64_t salt, uint32_t vocab,
                         uint32_t context_tokens, const wick_state_source *from, uint32_t *id,
                         wick_error *error) {
  wick_state_source source = *from;
  record_head head;
  adapter_marks marks;
  adapter_set set;
  wick_status status = read_head(&source, context_tokens, &head, error);
  session *made = NULL;
  if (status == WICK_OK) status = read_marks(&source, &head, &marks, error);
  if (status == WICK_OK) status = session_make(table, head.tail, &made, error);
  if (status == WICK_OK) status = read_tail(&source, &head, &marks, made->tokens, error);
  if (status == WICK_OK) status = adapter_set_of_marks(table->adapters, &marks, &set, error);
  if (status == WICK_OK) {
    made->salt = head.salt;
    status = read_sequence(table, salt, context_tokens, &source, head.tail, made, error);
  }
  if (status == WICK_OK) status = check_tokens(made->tokens, made->count, vocab, error);
  if (status != WICK_OK) {
    session_discard(table, made);
    return status;
  }
  made->adapters = adapter_marks_of(&set);
  *id = session_list(table, made);
  return WICK_OK;
}

// schedule/session_record.c — writes sessions and reads them back. session.h has the format.
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/math.h"
#include "schedule/session.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "records have the same byte order as memory");

enum { RECORD_VERSION = 2, RECORD_VERSION_ADAPTERS = 3, RECORD_VERSION_MEDIA = 4 };
static const char MAGIC[SESSION_MAGIC_BYTES] = {'W', 'I', 'C', 'K', 'S', 'E', 'S', 'S'};

typedef struct record_head {
  char magic[SESSION_MAGIC_BYTES];
  uint32_t version, tail;  // tail: number of tokens that the pages lack
  cache_salt salt;
} record_head;
_Static_assert(sizeof(record_head) == 32, "no padding");

bool session_is_record(const void *magic) { return memcmp(magic, MAGIC, SESSION_MAGIC_BYTES) == 0; }

// Returns the size of the adapter section of a record.
static uint64_t marks_bytes(const adapter_marks *marks, uint32_t version) {
  return version == RECORD_VERSION ? 0 : sizeof(uint64_t) + marks->count * sizeof *marks->of;
}

// Returns the size of a span's head and rows, which are adjacent in memory.
static size_t span_bytes(const media_span *span) {
  return sizeof span->is + (size_t)media_rows_bytes(&span->is);
}

static uint64_t media_bytes(const media_list *media) {
  uint64_t bytes = media->count == 0 ? 0 : sizeof(uint64_t);
  for (uint32_t i = 0; i < media->count; i++) bytes += span_bytes(media->places[i].span);
  return bytes;
}

static uint32_t version_of(const session *session) {
  if (session->media.count != 0) return RECORD_VERSION_MEDIA;
  return session->adapters.count == 0 ? RECORD_VERSION : RECORD_VERSION_ADAPTERS;
}

static uint64_t sum_of(const record_head *head, const adapter_marks *marks, const media_list *media,
                       const int32_t *tail) {
  const uint64_t count = marks->count;
  uint64_t sum = hash_bytes(head, sizeof *head, 0);
  if (head->version != RECORD_VERSION) {
    sum = hash_bytes(marks->of, marks->count * sizeof *marks->of,
                     hash_bytes(&count, sizeof count, sum));
  }
  for (uint32_t i = 0; i < media->count; i++) {
    sum = hash_bytes(&media->places[i].span->is, span_bytes(media->places[i].span), sum);
  }
  return hash_bytes(tail, head->tail * sizeof(int32_t), sum);
}

static bool write_media(const wick_state_sink *sink, const media_list *media) {
  const uint64_t count = media->count;
  bool is_written = count == 0 || sink->write(sink->context, &count, sizeof count);
  for (uint32_t i = 0; i < count && is_written; i++) {
    const media_span *span = media->places[i].span;
    is_written = sink->write(sink->context, &span->is, span_bytes(span));
  }
  return is_written;
}

static bool write_marks(const wick_state_sink *sink, const adapter_marks *marks, uint32_t version) {
  const uint64_t count = marks->count;
  return version == RECORD_VERSION ||
         (sink->write(sink->context, &count, sizeof count) &&
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
  *size_bytes = sizeof(record_head) + marks_bytes(&session->adapters, version_of(session)) +
                media_bytes(&session->media) + (uint64_t)tail * sizeof(int32_t) + sizeof(uint64_t) +
                kv_bytes;
  return status;
}

wick_status session_save(const session_table *table, uint32_t id, uint64_t salt,
                         const kv_types *packed, const wick_state_sink *sink, wick_error *error) {
  session *session;
  const wick_status status = session_find_idle(table, id, &session, error);
  if (session == NULL) return status;
  const uint32_t stored = store_tokens(table->store, session->sequence);
  const adapter_marks *marks = &session->adapters;
  record_head head = {
      .version = version_of(session), .tail = session->count - stored, .salt = session->salt};
  memcpy(head.magic, MAGIC, sizeof MAGIC);
  const int32_t *tail = session->tokens + stored;
  const uint64_t sum = sum_of(&head, marks, &session->media, tail);
  if (!sink->write(sink->context, &head, sizeof head) || !write_marks(sink, marks, head.version) ||
      !write_media(sink, &session->media) ||
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

static wick_status is_damaged(wick_error *error) {
  return fail_with(error, WICK_E_CORRUPT, 0, "the saved session is damaged");
}

static wick_status read_bytes(wick_state_source *source, void *bytes, uint64_t size_bytes,
                              wick_error *error) {
  if (source->size_bytes < size_bytes) return ends_early(error);
  if (size_bytes != 0 && !source->read(source->context, bytes, (size_t)size_bytes)) {
    return fail_with(error, WICK_E_IO, WICK_NO_OFFSET, "the saved session could not be read");
  }
  source->size_bytes -= size_bytes;
  return WICK_OK;
}

static wick_status read_head(wick_state_source *source, uint32_t context_tokens, record_head *head,
                             wick_error *error) {
  const wick_status status = read_bytes(source, head, sizeof *head, error);
  if (status != WICK_OK) return status;
  if (!session_is_record(head->magic) || head->version < RECORD_VERSION ||
      head->version > RECORD_VERSION_MEDIA) {
    return fail_with(error, WICK_E_FORMAT, 0, "this is not a saved session of version %d to %d",
                     (int)RECORD_VERSION, (int)RECORD_VERSION_MEDIA);
  }
  // one more than the context, because the newest token of a full session has not been processed
  if (head->tail > (uint64_t)context_tokens + 1) {
    fail_with(error, WICK_E_FULL, 12, "session of at least %u tokens: the context holds %u",
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
  wick_status status = read_bytes(source, &count, sizeof count, error);
  if (status != WICK_OK) return status;
  const bool may_be_none = head->version == RECORD_VERSION_MEDIA;
  if ((count == 0 && !may_be_none) || count > WICK_ADAPTERS_MAX) {
    return fail_with(error, WICK_E_CORRUPT, sizeof *head, "the saved session has %llu adapters",
                     (unsigned long long)count);
  }
  status = read_bytes(source, marks->of, count * sizeof *marks->of, error);
  if (status != WICK_OK) return status;
  marks->count = (uint32_t)count;
  for (uint32_t i = 0; i < marks->count; i++) {
    const float scale = marks->of[i].scale;
    if (scale != 0 && math_is_finite_f32(scale)) continue;
    return fail_with(error, WICK_E_CORRUPT, sizeof *head, "an adapter's scale is invalid");
  }
  return WICK_OK;
}

// Reads a span. Its position is determined once the tokens are known.
static wick_status read_span(session_table *table, wick_state_source *source, media_list *media,
                             wick_error *error) {
  media_head head;
  media_span *span;
  wick_status status = read_bytes(source, &head, sizeof head, error);
  if (status == WICK_OK) {
    status = media_head_check(table->model, table->batch_tokens, &head, error);
  }
  if (status != WICK_OK) return status;
  const uint64_t bytes = media_rows_bytes(&head);
  if (source->size_bytes < bytes) return ends_early(error);
  status = media_span_make(table->memory, &head, &span, error);
  if (status != WICK_OK) return status;
  status = read_bytes(source, span->rows, bytes, error);
  if (status == WICK_OK) status = media_list_add(table->memory, media, span, 0, error);
  media_span_release(table->memory, span);
  return status;
}

static wick_status read_media(session_table *table, wick_state_source *source,
                              const record_head *head, media_list *media, wick_error *error) {
  uint64_t count;
  if (head->version != RECORD_VERSION_MEDIA) return WICK_OK;
  wick_status status = read_bytes(source, &count, sizeof count, error);
  if (status == WICK_OK && (count == 0 || table->model == NULL)) status = is_damaged(error);
  for (uint64_t i = 0; i < count && status == WICK_OK; i++) {
    status = read_span(table, source, media, error);
  }
  return status;
}

// Reads the tokens that the pages lack, into `tail` [head->tail].
static wick_status read_tail(wick_state_source *source, const record_head *head,
                             const adapter_marks *marks, const media_list *media, int32_t *tail,
                             wick_error *error) {
  uint64_t sum;
  wick_status status = read_bytes(source, tail, (uint64_t)head->tail * sizeof *tail, error);
  if (status == WICK_OK) status = read_bytes(source, &sum, sizeof sum, error);
  if (status != WICK_OK) return status;
  return sum == sum_of(head, marks, media, tail) ? WICK_OK : is_damaged(error);
}

// Checks that the tokens are in the vocabulary, or belong to the images and recordings, in their
// order.
static wick_status check_tokens(session *session, uint32_t vocab, wick_error *error) {
  const int32_t *tokens = session->tokens;
  const media_list *media = &session->media;
  uint32_t i = 0, next = 0;
  while (i < session->count) {
    if (tokens[i] >= 0 && (uint32_t)tokens[i] < vocab) {
      i++;
      continue;
    }
    const uint32_t first = i;
    if (next < media->count) {
      media_place *place = &media->places[next++];
      place->first = first;
      while (i < session->count && i < media_end(place) &&
             tokens[i] == media_token(&place->span->is, i - first)) {
        i++;
      }
      if (i == media_end(place)) continue;
    }
    return fail_with(error, WICK_E_CORRUPT, WICK_NO_OFFSET,
                     "token %d of the saved session is not in the vocabulary of %u", tokens[first],
                     vocab);
  }
  return next == media->count ? WICK_OK : is_damaged(error);
}

// Returns a salt for pages that cannot be recomputed from the tokens.
static cache_salt salt_of_its_own(session_table *table, cache_salt tenant) {
  const uint64_t words[] = {tenant.low, tenant.high, ++table->packed_count};
  return salt_of((const char *)words, sizeof words);
}

// Reads the record of the sequence. Its tokens are stored in made->tokens, followed by the tail.
static wick_status read_sequence(session_table *table, uint64_t salt, uint32_t context_tokens,
                                 wick_state_source *source, uint32_t tail, session *made,
                                 wick_error *error) {
  state_reader reader;
  wick_status status = store_load_begin(table->store, salt, source, &reader, error);
  if (status != WICK_OK) return status;
  // a full session has one more token, the newest, which has not been processed
  const uint64_t most = (uint64_t)context_tokens + (tail != 0 ? 1 : 0);
  if ((uint64_t)reader.tokens + tail > most) {
    fail_with(error, WICK_E_FULL, WICK_NO_OFFSET, "session of %llu tokens: the context holds %u",
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
  if (status == WICK_OK) status = read_media(table, &source, &head, &made->media, error);
  if (status == WICK_OK) {
    status = read_tail(&source, &head, &marks, &made->media, made->tokens, error);
  }
  if (status == WICK_OK) status = adapter_set_of_marks(table->adapters, &marks, &set, error);
  if (status == WICK_OK) {
    made->salt = head.salt;
    status = read_sequence(table, salt, context_tokens, &source, head.tail, made, error);
  }
  if (status == WICK_OK) status = check_tokens(made, vocab, error);
  if (status != WICK_OK) {
    session_discard(table, made);
    return status;
  }
  made->adapters = adapter_marks_of(&set);
  *id = session_list(table, made);
  return WICK_OK;
}

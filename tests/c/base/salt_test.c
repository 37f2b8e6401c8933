// Salts: two tenants of an engine share no prefix cache entries, and what a tenant observes about
// its own request does not depend on the other tenant's prompts.
#include "base/salt.h"
#include "fixture_model.h"
#include "wick.h"

enum { PROMPT = 40, ANSWER = 4 };

static const fixture_shape SHAPE = {GGML_TYPE_F32, 64, 32, 4, 2, 1, 256, false, 0};

// ---- The hash ----

// Examples from FIPS 180-4 and lengths around a block boundary: the first 128 bits (sha256sum).
TEST(a_salt_is_the_start_of_sha_256) {
  static const struct {
    uint32_t size_bytes;
    cache_salt salt;
  } OF_LETTERS[] = {
      {1, {0xca978112ca1bbdcau, 0xfac231b39a23dc4du}},
      {55, {0x9f4390f8d30c2dd9u, 0x2ec9f095b65e2b9au}},
      {56, {0xb35439a4ac6f0948u, 0xb6d6f9e3c6af0f5fu}},
      {64, {0xffe054fe7ae0cb6du, 0xc65c3af9b61d5209u}},
      {119, {0x31eba51c313a5c08u, 0x226adf18d4a359cfu}},
      {1000, {0x41edece42d63e8d9u, 0xbf515a9ba6932e1cu}},
  };
  char letters[1000];
  memset(letters, 'a', sizeof letters);
  for (size_t i = 0; i < sizeof OF_LETTERS / sizeof *OF_LETTERS; i++) {
    const cache_salt found = salt_of(letters, OF_LETTERS[i].size_bytes);
    CHECK_EQ_UINT(found.low, OF_LETTERS[i].salt.low);
    CHECK_EQ_UINT(found.high, OF_LETTERS[i].salt.high);
  }
  CHECK_EQ_UINT(salt_of("abc", 3).low, 0xba7816bf8f01cfeau);
  CHECK(salt_is_same(salt_of(NULL, 0), (cache_salt){0}));
  CHECK(!salt_is_same((cache_salt){1, 2}, (cache_salt){1, 3}));
  CHECK(!salt_is_same((cache_salt){1, 2}, (cache_salt){2, 2}));
}

// ---- An engine with two tenants ----

typedef struct tenants {
  fixture_file file;
  wick_engine *engine;
  int32_t prompt[PROMPT];
} tenants;

static wick_engine *load(const fixture_file *file) {
  wick_config config;
  wick_config_default(&config);
  config.batch_tokens = KERNEL_PAGE_TOKENS;  // a prompt takes several passes
  wick_engine *engine = NULL;
  CHECK_EQ_INT(wick_engine_create(&config, &engine, NULL), WICK_OK);
  CHECK_EQ_INT(fixture_load(engine, file, 0, NULL), WICK_OK);
  return engine;
}

static void open_tenants(tenants *t) {
  memset(t, 0, sizeof *t);
  t->file = fixture_make(&SHAPE);
  t->engine = load(&t->file);
  for (int32_t i = 0; i < PROMPT; i++) t->prompt[i] = i * 7 % 256;
}

static void close_tenants(tenants *t) {
  wick_engine_destroy(t->engine);
  free(t->file.bytes);
}

// The events that a tenant observes for one request, without times.
typedef struct observed {
  uint32_t id, cached, units;
  int32_t tokens[ANSWER];
  uint32_t token_count;
  bool has_ended;
} observed;

static uint32_t submit(wick_engine *engine, const int32_t *prompt, uint32_t session,
                       const char *salt) {
  wick_request request = fixture_request(prompt, PROMPT, ANSWER);
  request.no_speculation = true;
  request.session = session;
  request.salt = salt;
  request.salt_bytes = salt == NULL ? 0 : strlen(salt);
  uint32_t id = 0;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, NULL), WICK_OK);
  return id;
}

static void take(void *context, const wick_event *event, const uint8_t *after) {
  observed *of = context;
  (void)after;
  if (event->request != of->id) return;
  if (event->kind == WICK_EVENT_TOKEN && of->token_count < ANSWER) {
    of->tokens[of->token_count++] = event->token;
  }
  if (event->kind == WICK_EVENT_DONE) {
    of->has_ended = true;
    of->cached = event->tokens_cached;
  }
}

// Runs the request to its end and counts units of work.
static void follow(wick_engine *engine, observed *of) {
  while (!of->has_ended && of->units < 1000) {
    wick_step(engine, 0);
    of->units++;
    size_t bytes;
    const uint8_t *at = wick_events_take(engine, &bytes);
    for (size_t used = 0; used < bytes;) {
      wick_event event;
      memcpy(&event, at + used, sizeof event);
      take(of, &event, at + used + sizeof event);
      used += event.size_bytes;
    }
  }
  CHECK(of->has_ended);
}

static uint32_t cached_of(wick_engine *engine, const int32_t *prompt, uint32_t session,
                          const char *salt) {
  observed of = {.id = submit(engine, prompt, session, salt)};
  follow(engine, &of);
  return of.cached;
}

enum { WHOLE_PAGES = (PROMPT - 1) / KERNEL_PAGE_TOKENS * KERNEL_PAGE_TOKENS };

TEST(tenants_do_not_share_cached_prefixes) {
  tenants t;
  open_tenants(&t);
  static const char *const NAMES[] = {NULL, "a", "b", "a ", "A"};
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
    CHECK_EQ_UINT(cached_of(t.engine, t.prompt, 0, NAMES[i]), 0);
    CHECK_EQ_UINT(cached_of(t.engine, t.prompt, 0, NAMES[i]), WHOLE_PAGES);
  }
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
    CHECK_EQ_UINT(cached_of(t.engine, t.prompt, 0, NAMES[i]), WHOLE_PAGES);
  }
  close_tenants(&t);
}

// Runs a request while another one prefills `others`. Within one tenant it waits for those pages if
// the prompts are equal.
static observed seen_while_running(const fixture_file *file, const int32_t *prompt,
                                   const int32_t *others, const char *salt) {
  wick_engine *engine = load(file);
  submit(engine, others, 0, "a");
  wick_step(engine, 0);
  observed of = {.id = submit(engine, prompt, 0, salt)};
  follow(engine, &of);
  wick_engine_destroy(engine);
  of.id = 0;
  return of;
}

TEST(a_tenant_cannot_observe_another_tenants_prompt) {
  tenants t;
  open_tenants(&t);
  int32_t others[PROMPT];
  for (int32_t i = 0; i < PROMPT; i++) others[i] = 255 - i;
  const observed same_prompt = seen_while_running(&t.file, t.prompt, t.prompt, "b");
  const observed other_prompt = seen_while_running(&t.file, t.prompt, others, "b");
  CHECK_EQ_UINT(same_prompt.cached, 0);
  CHECK_EQ_MEM(&same_prompt, &other_prompt, sizeof same_prompt);
  // within one tenant it does depend on it: this is what the cache is for
  const observed of_same = seen_while_running(&t.file, t.prompt, t.prompt, "a");
  CHECK_EQ_UINT(of_same.cached, WHOLE_PAGES);
  CHECK(of_same.units != other_prompt.units);
  close_tenants(&t);
}

// ---- Sessions ----

static uint32_t session_of(wick_engine *engine, const char *salt) {
  uint32_t session = 0;
  CHECK_EQ_INT(wick_session_create_salted(engine, salt, strlen(salt), &session, NULL), WICK_OK);
  return session;
}

static uint32_t fork_of(wick_engine *engine, uint32_t session) {
  uint32_t child = 0;
  CHECK_EQ_INT(wick_session_fork(engine, session, &child, NULL), WICK_OK);
  return child;
}

TEST(sessions_and_forks_belong_to_their_tenant) {
  tenants t;
  open_tenants(&t);
  const uint32_t parent = session_of(t.engine, "a");
  const uint32_t child = fork_of(t.engine, parent);
  CHECK_EQ_UINT(cached_of(t.engine, t.prompt, child, NULL), 0);
  CHECK_EQ_UINT(cached_of(t.engine, t.prompt, 0, "a"), WHOLE_PAGES);
  CHECK_EQ_UINT(cached_of(t.engine, t.prompt, 0, "b"), 0);
  CHECK_EQ_UINT(cached_of(t.engine, t.prompt, 0, NULL), 0);
  CHECK_EQ_UINT(cached_of(t.engine, t.prompt, parent, NULL), WHOLE_PAGES);
  CHECK_EQ_UINT(cached_of(t.engine, t.prompt, session_of(t.engine, "c"), NULL), 0);
  close_tenants(&t);
}

TEST(a_request_on_a_session_cannot_set_a_salt) {
  tenants t;
  open_tenants(&t);
  wick_request request = fixture_request(t.prompt, PROMPT, ANSWER);
  request.session = session_of(t.engine, "a");
  request.salt = "a";
  request.salt_bytes = 1;
  uint32_t id;
  wick_error error = {0};
  CHECK_EQ_INT(wick_request_submit(t.engine, &request, &id, &error), WICK_E_ARG);
  CHECK(strstr(error.message, "salt") != NULL);
  close_tenants(&t);
}

// ---- Saved state ----

typedef struct kept {
  uint8_t bytes[1 << 20];
  size_t size_bytes, at;
} kept;

static kept record;

static bool keep(void *context, const void *bytes, size_t size_bytes) {
  kept *to = context;
  if (size_bytes > sizeof to->bytes - to->size_bytes) return false;
  memcpy(to->bytes + to->size_bytes, bytes, size_bytes);
  to->size_bytes += size_bytes;
  return true;
}

static bool read_record(void *context, void *bytes, size_t size_bytes) {
  kept *from = context;
  memcpy(bytes, from->bytes + from->at, size_bytes);
  from->at += size_bytes;
  return true;
}

// Copies the saved state from one engine to a new one.
static wick_engine *carry(const tenants *t, uint32_t session, uint32_t *loaded_session) {
  record.size_bytes = record.at = 0;
  const wick_state_sink sink = {&record, keep};
  uint64_t reported;
  CHECK_EQ_INT(wick_state_bytes(t->engine, session, &reported, NULL), WICK_OK);
  CHECK_EQ_INT(wick_state_save(t->engine, session, &sink, NULL), WICK_OK);
  CHECK_EQ_UINT(reported, record.size_bytes);
  wick_engine *other = load(&t->file);
  const wick_state_source source = {&record, read_record, record.size_bytes};
  wick_state_loaded loaded;
  CHECK_EQ_INT(wick_state_load(other, &source, &loaded, NULL), WICK_OK);
  if (loaded_session != NULL) *loaded_session = loaded.session;
  return other;
}

TEST(a_saved_cache_keeps_tenants_separate) {
  tenants t;
  open_tenants(&t);
  cached_of(t.engine, t.prompt, 0, "a");
  wick_engine *other = carry(&t, 0, NULL);
  CHECK_EQ_UINT(cached_of(other, t.prompt, 0, "b"), 0);
  CHECK_EQ_UINT(cached_of(other, t.prompt, 0, NULL), 0);
  CHECK_EQ_UINT(cached_of(other, t.prompt, 0, "a"), WHOLE_PAGES);
  wick_engine_destroy(other);
  close_tenants(&t);
}

TEST(a_saved_session_keeps_its_tenant) {
  tenants t;
  open_tenants(&t);
  const uint32_t session = session_of(t.engine, "a");
  uint32_t again;
  wick_engine *other = carry(&t, session, &again);
  CHECK_EQ_UINT(cached_of(other, t.prompt, 0, "a"), 0);
  CHECK_EQ_UINT(cached_of(other, t.prompt, again, NULL), WHOLE_PAGES);
  wick_engine_destroy(other);
  close_tenants(&t);
}

// Tests dialogs of the C library under misuse and with failing allocations. Usage: dialog_hostile
// MODEL.gguf. Prints "ok" if all checks pass.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wick.h"

#define CHECK(condition)                                                \
  do {                                                                  \
    if (!(condition)) {                                                 \
      printf("line %d: %s; %s\n", __LINE__, #condition, error.message); \
      exit(1);                                                          \
    }                                                                   \
  } while (0)

static wick_error error;
static wick_request settings;

// ---- failing allocations ----

void *__libc_malloc(size_t size_bytes);
void *__libc_calloc(size_t count, size_t size_bytes);
void *__libc_realloc(void *block, size_t size_bytes);
void *__libc_memalign(size_t alignment, size_t size_bytes);

static unsigned long allocations, refused_one;  // refused_one: 0 if none is refused

static bool is_refused(void) { return ++allocations == refused_one; }
void *malloc(size_t size_bytes) { return is_refused() ? NULL : __libc_malloc(size_bytes); }
void *calloc(size_t count, size_t size_bytes) {
  return is_refused() ? NULL : __libc_calloc(count, size_bytes);
}
void *realloc(void *block, size_t size_bytes) {
  return is_refused() ? NULL : __libc_realloc(block, size_bytes);
}
void *aligned_alloc(size_t alignment, size_t size_bytes) {
  return is_refused() ? NULL : __libc_memalign(alignment, size_bytes);
}

// ---- replies ----

typedef struct collected {
  char text[4096];
  size_t bytes;
  wick_dialog *other;  // asked during the reply; NULL: none
} collected;

static bool collect(void *context, wick_event_kind kind, const char *text, size_t text_bytes) {
  collected *all = context;
  if (kind != WICK_EVENT_CONTENT || all->bytes + text_bytes >= sizeof all->text) return false;
  memcpy(all->text + all->bytes, text, text_bytes);
  all->bytes += text_bytes;
  if (all->other == NULL) return true;
  wick_error own;
  return wick_dialog_ask(all->other, "now", NULL, NULL, NULL, &own) == WICK_E_BUSY;
}

static wick_status ask(wick_dialog *dialog, const char *question, collected *reply) {
  reply->bytes = 0;
  return wick_dialog_ask(dialog, question, &settings, collect, reply, &error);
}

static bool equal(const collected *a, const collected *b) {
  return a->bytes == b->bytes && memcmp(a->text, b->text, a->bytes) == 0;
}

// Asks these questions in a new dialog; returns the reply to the last one.
static collected reply_to(wick_engine *engine, const char *first, const char *second) {
  collected reply = {.bytes = 0};
  wick_dialog *dialog;
  CHECK(wick_dialog_create(engine, "Be brief.", &dialog, &error) == WICK_OK);
  CHECK(ask(dialog, first, &reply) == WICK_OK);
  if (second != NULL) CHECK(ask(dialog, second, &reply) == WICK_OK);
  wick_dialog_destroy(dialog);
  return reply;
}

static wick_engine *open_engine(const char *path) {
  const wick_config config = {.threads = 1, .context_tokens = 256};
  wick_engine *engine;
  CHECK(wick_engine_create(&config, &engine, &error) == WICK_OK);
  CHECK(wick_load_file(engine, path, &error) == WICK_OK);
  return engine;
}

// ---- misuse ----

static void leave_events(wick_engine *engine) {
  wick_request other = settings;
  uint32_t id;
  other.text = "once upon a time";
  other.text_bytes = strlen(other.text);
  CHECK(wick_request_submit(engine, &other, &id, &error) == WICK_OK);
  while (wick_step(engine, 10000) != WICK_STEP_IDLE) continue;
}

static void check_misuse(wick_engine *engine) {
  const collected wanted = reply_to(engine, "a fox", "a hen");
  collected reply = {.bytes = 0}, nested = {.bytes = 0};
  wick_dialog *dialog, *other;
  CHECK(wick_dialog_create(engine, "Be brief.", &dialog, &error) == WICK_OK);
  CHECK(wick_dialog_create(engine, NULL, &other, &error) == WICK_OK);

  // earlier events that were never taken do not become part of the reply
  leave_events(engine);
  CHECK(ask(dialog, "a fox", &reply) == WICK_OK);
  const collected first = reply_to(engine, "a fox", NULL);
  CHECK(equal(&reply, &first));

  // a request that waits for its host would wait forever
  settings.asks_host = true;
  CHECK(ask(dialog, "lost", &reply) == WICK_E_ARG);
  settings.asks_host = false;

  // these errors do not change the dialog: a question that exceeds the context, invalid UTF-8, and
  // a question during a reply
  static char longest[1 << 20];
  memset(longest, 'a', sizeof longest - 1);
  CHECK(ask(dialog, longest, &reply) == WICK_E_FULL);
  CHECK(ask(dialog, "\xff\xc3(", &reply) != WICK_OK || reply.bytes > 0);
  nested.other = dialog;
  CHECK(ask(other, "a hen", &nested) == WICK_OK && nested.bytes > 0);
  wick_dialog_destroy(other);
  wick_dialog_destroy(dialog);

  CHECK(wick_dialog_create(engine, "Be brief.", &dialog, &error) == WICK_OK);
  CHECK(ask(dialog, "a fox", &reply) == WICK_OK);
  CHECK(ask(dialog, longest, &reply) == WICK_E_FULL);
  CHECK(ask(dialog, "a hen", &reply) == WICK_OK);
  CHECK(equal(&reply, &wanted));

  // until the context is full
  wick_status status = WICK_OK;
  for (int i = 0; i < 100 && status == WICK_OK; i++) status = ask(dialog, "and then", &reply);
  CHECK(status == WICK_E_FULL);
  wick_dialog_destroy(dialog);
  collected again = reply_to(engine, "a fox", "a hen");
  CHECK(equal(&again, &wanted));
}

// ---- allocation failures ----

// In each round a different allocation of the dialog fails.
static void check_refusals(const char *path) {
  wick_engine *engine = open_engine(path);
  const collected wanted = reply_to(engine, "a fox", "a hen");
  bool was_refused = true;
  unsigned long round = 1;
  for (; was_refused; round++) {
    collected reply = {.bytes = 0};
    wick_dialog *dialog = NULL;
    allocations = 0;
    refused_one = round;
    wick_status status = wick_dialog_create(engine, "Be brief.", &dialog, &error);
    CHECK(status == WICK_OK || (status == WICK_E_NOMEM && dialog == NULL));
    if (status == WICK_OK) status = ask(dialog, "a fox", &reply);
    CHECK(status == WICK_OK || status == WICK_E_NOMEM);
    was_refused = allocations >= refused_one;
    refused_one = 0;
    if (dialog == NULL) continue;
    if (status != WICK_OK) CHECK(ask(dialog, "a fox", &reply) == WICK_OK);
    CHECK(ask(dialog, "a hen", &reply) == WICK_OK);
    CHECK(equal(&reply, &wanted));
    wick_dialog_destroy(dialog);
  }
  printf("%lu allocations\n", round - 2);
  wick_stats stats;
  wick_stats_get(engine, &stats);
  CHECK(stats.running + stats.waiting + stats.paused == 0);
  wick_engine_destroy(engine);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  setvbuf(stdout, NULL, _IONBF, 0);
  wick_request_default(&settings);
  settings.max_tokens = 12;
  wick_engine *engine = open_engine(argv[1]);
  check_misuse(engine);
  wick_engine_destroy(engine);
  check_refusals(argv[1]);
  puts("ok");
  return 0;
}

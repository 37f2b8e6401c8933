// web/thread_web.c — threads whose workers are owned by JavaScript: a table with a slot for each
// helper.
//
//   EMPTY --platform_thread_start--> GIVEN --the helper--> TAKEN --entry returns--> LEFT
//     ^------------- platform_thread_join (GIVEN: withdrawn; LEFT: after the wait) ---'
//   EMPTY --web_helpers_dismiss--> GONE, permanently
#include "thread_web.h"

#include <limits.h>
#include <stdatomic.h>

#include "platform/platform.h"
#include "thread/pool.h"

#if WICK_THREADS

typedef enum place_state {
  PLACE_EMPTY,
  PLACE_GIVEN,
  PLACE_TAKEN,
  PLACE_LEFT,
  PLACE_GONE
} place_state;

typedef struct helper_place {
  _Atomic uint32_t state;  // a place_state
  void (*entry)(void *);
  void *argument;
} helper_place;

static helper_place places[WICK_THREADS_MAX - 1];
static uint32_t place_count;

static const uint64_t SLEEP_US_MAX = 3600000000u;

void web_threads_expect(uint32_t helpers) {
  place_count = helpers < WICK_THREADS_MAX - 1 ? helpers : WICK_THREADS_MAX - 1;
}

// Never inlined: if the instruction is in a loop, the baseline compiler of V8 11.3 (Node 20) loses
// the address in a local variable of the caller, and the second iteration waits at address 0.
__attribute__((noinline)) void platform_wait32(const uint32_t *address, uint32_t expected,
                                               uint64_t timeout_us) {
  const int64_t timeout_ns =
      timeout_us > INT64_MAX / 1000 ? INT64_MAX : (int64_t)(timeout_us * 1000);
  __builtin_wasm_memory_atomic_wait32((int *)(uintptr_t)address, (int)expected, timeout_ns);
}

void platform_wake32(const uint32_t *address, uint32_t count) {
  __builtin_wasm_memory_atomic_notify((int *)(uintptr_t)address, count);
}

static void wait_while(_Atomic uint32_t *state, uint32_t value) {
  while (atomic_load(state) == value) platform_wait32((const uint32_t *)state, value, SLEEP_US_MAX);
}

static void enter(helper_place *place, uint32_t state) {
  atomic_store(&place->state, state);
  platform_wake32((const uint32_t *)&place->state, UINT_MAX);
}

// The main function of a helper, which runs on the stack that JavaScript has set.
__attribute__((export_name("helper_main"))) void web_helper_main(uint32_t index) {
  helper_place *place = &places[index];
  for (;;) {
    wait_while(&place->state, PLACE_EMPTY);
    if (atomic_load(&place->state) == PLACE_GONE) return;
    uint32_t given = PLACE_GIVEN;
    if (!atomic_compare_exchange_strong(&place->state, &given, PLACE_TAKEN)) continue;
    place->entry(place->argument);
    enter(place, PLACE_LEFT);
    wait_while(&place->state, PLACE_LEFT);
  }
}

// Ends the helpers once all engines are destroyed. Some versions of JavaScriptCore, and Deno,
// cannot terminate a waiting worker.
__attribute__((export_name("helpers_dismiss"))) void web_helpers_dismiss(void) {
  for (uint32_t i = 0; i < place_count; i++) enter(&places[i], PLACE_GONE);
}

bool platform_thread_start(void (*entry)(void *), void *argument, uintptr_t *handle) {
  for (uint32_t i = 0; i < place_count; i++) {
    helper_place *place = &places[i];
    if (atomic_load(&place->state) != PLACE_EMPTY) continue;
    place->entry = entry;
    place->argument = argument;
    enter(place, PLACE_GIVEN);
    *handle = i;
    return true;
  }
  return false;
}

void platform_thread_join(uintptr_t handle) {
  helper_place *place = &places[handle];
  uint32_t given = PLACE_GIVEN;
  if (atomic_compare_exchange_strong(&place->state, &given, PLACE_EMPTY)) return;
  wait_while(&place->state, PLACE_TAKEN);
  enter(place, PLACE_EMPTY);
}

#else

void web_threads_expect(uint32_t helpers) { (void)helpers; }

#endif

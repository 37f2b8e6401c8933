// The store's consistency check, which the tests of the scheduler's invariants use, detects each
// way in which pages, states and their counts can disagree. A store without a free slot works
// without the state in the middle of a pass.
#include "consistency.h"
#include "store/store.h"

#include <string.h>

#include "check.h"
#include "platform/platform.h"
#include "store/store_types.h"

enum { PAGES = 32, STATE_BYTES = 64, TOKENS = 40, MORE = 30 };

typedef struct rig {
  memory_gate memory;
  wick_error error;
  seq_store *store;
  kv_seq_id seq;
} rig;

static bool open_rig(rig *made) {
  static const kv_shape shape = {.layers = 1, .kv_heads = 1, .head_dim = 8};
  const store_config config = {.groups = {shape},
                               .group_count = 1,
                               .batch_tokens = TOKENS,
                               .pages_max = PAGES,
                               .pages_keep = PAGES,
                               .prefix_entries_max = 8,
                               .state_bytes = STATE_BYTES,
                               .checkpoints_max = 4};
  *made = (rig){.seq = KV_SEQ_NONE};
  memory_init(&made->memory, 0, platform_alloc, platform_free);
  return store_create(&made->memory, kernels_bind(), &config, &made->store, &made->error) ==
         WICK_OK;
}

// Evaluates TOKENS tokens in one pass of a new sequence.
static bool read_tokens(rig *rig) {
  store_expect(rig->store, 1);
  if (store_new(rig->store, &rig->seq, &rig->error) != WICK_OK ||
      store_prepare(rig->store, rig->seq, TOKENS, &rig->error) != WICK_OK ||
      store_begin_rows(rig->store, rig->seq, TOKENS, TOKENS, &rig->error) != WICK_OK) {
    return false;
  }
  store_commit(rig->store, rig->seq, TOKENS);
  return store_settle(rig->store, rig->seq) == TOKENS;
}

static void expect_error(rig *rig, const char *what) {
  wick_error error = {0};
  CHECK_EQ_INT(store_check(rig->store, &error), WICK_E_CORRUPT);
  if (!CHECK(strstr(error.message, what) != NULL)) CHECK_EQ_STR(error.message, what);
}

static void check_whole(rig *rig) {
  wick_error error = {0};
  CHECK_EQ_INT(store_check(rig->store, &error), WICK_OK);
  CHECK_EQ_STR(error.message, "");
}

TEST(each_inconsistency_is_reported) {
  rig rig;
  REQUIRE(open_rig(&rig));
  REQUIRE(read_tokens(&rig));
  check_whole(&rig);
  seq_store *store = rig.store;
  store_seq *seq = store_find(store, rig.seq);
  REQUIRE(seq != NULL && seq->now != SLOT_NONE);

  store->slots[seq->now].ref_count++;
  expect_error(&rig, "references of a state");
  store->slots[seq->now].ref_count--;
  check_whole(&rig);

  store->slots_free++;
  expect_error(&rig, "free states");
  store->slots_free--;

  seq->position--;
  expect_error(&rig, "the state's position");
  seq->position++;

  const kv_seq_id id = seq->id;
  seq->id = 77;
  expect_error(&rig, "no pages (77)");
  seq->id = id;
  check_whole(&rig);

  store_free(store, rig.seq);
  store_destroy(store);
  CHECK_EQ_UINT(rig.memory.blocks_now, 0);
}

TEST(a_pass_without_a_spare_slot_keeps_no_state_in_the_middle) {
  rig rig;
  REQUIRE(open_rig(&rig));
  REQUIRE(read_tokens(&rig));
  seq_store *store = rig.store;
  // the rows cross the end of a page, so there is a state in the middle of the pass
  REQUIRE(store_prepare(store, rig.seq, MORE, &rig.error) == WICK_OK);
  REQUIRE(store_begin_rows(store, rig.seq, MORE, MORE, &rig.error) == WICK_OK);
  store_states states = store_states_of(store, rig.seq, 0);
  CHECK(states.mid != NULL && states.mid_rows > 0);
  store_settle(store, rig.seq);
  // all slots are taken except those that a pass needs
  rig.memory.fail_from_call = rig.memory.calls + 1;
  enum { TAKEN_MAX = 64 };
  slot_id taken[TAKEN_MAX];
  uint32_t count = 0;
  while (store->slots_free > 1 && count < TAKEN_MAX) taken[count++] = slot_take(store);
  REQUIRE(store_begin_rows(store, rig.seq, MORE, MORE, &rig.error) == WICK_OK);
  states = store_states_of(store, rig.seq, 0);
  CHECK(states.mid == NULL);
  CHECK_EQ_UINT(states.mid_rows, 0);
  store_commit(store, rig.seq, MORE);
  CHECK_EQ_UINT(store_settle(store, rig.seq), TOKENS + MORE);
  for (uint32_t i = 0; i < count; i++) slot_release(store, &taken[i]);
  check_whole(&rig);
  store_free(store, rig.seq);
  store_destroy(store);
  CHECK_EQ_UINT(rig.memory.blocks_now, 0);
}

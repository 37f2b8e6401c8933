// model/adapter_set.c — the adapters that a request selects, and the salt that distinguishes such
// selections.
#include <string.h>

#include "base/math.h"
#include "model/adapter.h"

model_adapter *adapter_find(const adapter_list *list, uint32_t id) {
  model_adapter *at = list == NULL ? NULL : list->first;
  while (at != NULL && at->id != id) at = at->next;
  return at;
}

static wick_status refuse(wick_status status, wick_error *error, uint64_t first, uint64_t second) {
  return status_about(status, error, WICK_SUBJECT_ADAPTERS, first, second);
}

// Checks that the adapter can be used.
static wick_status check_use(const model_adapter *adapter, const wick_adapter_use *wanted,
                             wick_error *error) {
  const uint32_t id = wanted->adapter;
  if (adapter == NULL)
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "adapter %u does not exist", id);
  if (!adapter->is_complete) {
    return fail_with(error, WICK_E_NODATA, WICK_NO_OFFSET, "adapter %u is still loading", id);
  }
  if (math_is_finite_f32(wanted->scale)) return WICK_OK;
  return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET,
                   "the scale of adapter %u is not a finite number", id);
}

static bool comes_before(const model_adapter *a, const model_adapter *b) {
  return a->fingerprint != b->fingerprint ? a->fingerprint < b->fingerprint : a->id < b->id;
}

// Inserts an adapter in sorted order.
static void insert(adapter_set *set, model_adapter *adapter, float scale) {
  uint32_t at = set->count++;
  for (; at > 0 && comes_before(adapter, set->uses[at - 1].adapter); at--) {
    set->uses[at] = set->uses[at - 1];
  }
  set->uses[at] = (struct adapter_use){adapter, scale};
}

wick_status adapter_set_make(const adapter_list *list, const wick_adapter_use *wanted,
                             uint32_t count, adapter_set *set, wick_error *error) {
  *set = (adapter_set){.count = 0};
  if (count > WICK_ADAPTERS_MAX) {
    fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "%u adapters, the limit is %d", count,
              (int)WICK_ADAPTERS_MAX);
    return refuse(WICK_E_ARG, error, count, WICK_ADAPTERS_MAX);
  }
  for (uint32_t i = 0; i < count; i++) {
    model_adapter *adapter = adapter_find(list, wanted[i].adapter);
    const wick_status status = check_use(adapter, &wanted[i], error);
    if (adapter == NULL || status != WICK_OK) {
      return refuse(status, error, wanted[i].adapter, 0);
    }
    for (uint32_t j = 0; j < i; j++) {
      if (wanted[j].adapter != wanted[i].adapter) continue;
      fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "adapter %u is listed twice", wanted[i].adapter);
      return refuse(WICK_E_ARG, error, wanted[i].adapter, 0);
    }
    if (wanted[i].scale != 0) insert(set, adapter, wanted[i].scale);
  }
  return WICK_OK;
}

void adapter_set_hold(const adapter_set *set) {
  for (uint32_t i = 0; i < set->count; i++) set->uses[i].adapter->users++;
}

void adapter_set_let_go(const adapter_set *set) {
  for (uint32_t i = 0; i < set->count; i++) set->uses[i].adapter->users--;
}

bool adapter_set_is_same(const adapter_set *a, const adapter_set *b) {
  if (a == b) return true;
  if (a == NULL || b == NULL || a->count != b->count) return false;
  for (uint32_t i = 0; i < a->count; i++) {
    if (a->uses[i].adapter != b->uses[i].adapter || a->uses[i].scale != b->uses[i].scale) {
      return false;
    }
  }
  return true;
}

// ---- Marks ----

adapter_marks adapter_marks_of(const adapter_set *set) {
  adapter_marks marks = {.count = set->count};
  for (uint32_t i = 0; i < set->count; i++) {
    marks.of[i] = (adapter_mark){set->uses[i].adapter->fingerprint, set->uses[i].scale, 0};
  }
  return marks;
}

bool adapter_marks_are_same(const adapter_marks *a, const adapter_marks *b) {
  return a->count == b->count && memcmp(a->of, b->of, a->count * sizeof *a->of) == 0;
}

wick_status adapter_set_of_marks(const adapter_list *list, const adapter_marks *marks,
                                 adapter_set *set, wick_error *error) {
  *set = (adapter_set){.count = 0};
  for (uint32_t i = 0; i < marks->count; i++) {
    const adapter_mark *mark = &marks->of[i];
    model_adapter *at = list == NULL ? NULL : list->first;
    while (at != NULL && (!at->is_complete || at->fingerprint != mark->fingerprint)) at = at->next;
    if (at == NULL) {
      fail_with(error, WICK_E_MISMATCH, WICK_NO_OFFSET,
                "the tokens were computed with an adapter (fingerprint %llx) that is not loaded",
                (unsigned long long)mark->fingerprint);
      return refuse(WICK_E_MISMATCH, error, mark->fingerprint, 0);
    }
    insert(set, at, mark->scale);
  }
  return WICK_OK;
}

cache_salt adapter_salt(cache_salt tenant, const adapter_marks *marks) {
  if (marks->count == 0) return tenant;
  struct {
    cache_salt tenant;
    adapter_mark of[WICK_ADAPTERS_MAX];
  } all = {.tenant = tenant};
  const size_t size_bytes = marks->count * sizeof *marks->of;
  memcpy(all.of, marks->of, size_bytes);
  const cache_salt salt = salt_of(&all, sizeof tenant + size_bytes);
  // a tenant name with the same bytes has this salt, so the result is its complement
  return (cache_salt){~salt.high, ~salt.low};
}

// component/abi.c — allocates memory for data from the host.
#include "abi.h"

#include <stdlib.h>

void *cabi_realloc(void *old, size_t old_bytes, size_t align, size_t new_bytes)
    ABI_EXPORT("cabi_realloc");

// Allocates memory for values from the host. No record here needs a stricter alignment than malloc
// provides.
void *cabi_realloc(void *old, size_t old_bytes, size_t align, size_t new_bytes) {
  (void)old_bytes;
  if (new_bytes == 0) return (void *)align;  // NOLINT(performance-no-int-to-ptr)
  void *grown = realloc(old, new_bytes);
  if (grown == NULL) abort();
  return grown;
}

void abi_free_lists(abi_list lists) {
  const abi_list *items = lists.items;
  for (uint32_t i = 0; i < lists.count; i++) {
    if (items[i].count > 0) free(items[i].items);
  }
  if (lists.count > 0) free(lists.items);
}

// Only the rows of a page's first slots are copied, for every type.
#include <string.h>

#include "check.h"
#include "kernels/kernels.h"
#include "kv/page.h"
#include "random.h"
#include "reference/pages.h"

enum { LAYERS = 2, HEADS = 2, DIM = 64, ROW = HEADS * DIM, BYTES_MAX = 1 << 16 };

typedef struct test_page {
  kv_layout layout;
  kv_page_data data;
  _Alignas(64) uint8_t bytes[BYTES_MAX];
} test_page;

static void open_page(test_page *page, kernel_kv_type type) {
  const kv_shape shape = {LAYERS, HEADS, DIM, type, type, 0};
  CHECK_EQ_INT(kv_layout_init(&page->layout, kernels_bind(), &shape, NULL), WICK_OK);
  REQUIRE(CHECK(page->layout.page_bytes <= BYTES_MAX));
  kv_page_data_init(&page->data, &page->layout, page->bytes);
}

static void fill(test_page *page, uint64_t random) {
  for (uint32_t layer = 0; layer < LAYERS; layer++) {
    for (uint32_t slot = 0; slot < KERNEL_PAGE_TOKENS; slot++) {
      float k[ROW], v[ROW];
      for (uint32_t i = 0; i < ROW; i++) k[i] = (float)random_below(&random, 2000) * 1e-3f - 1;
      for (uint32_t i = 0; i < ROW; i++) v[i] = (float)random_below(&random, 2000) * 1e-3f - 1;
      CHECK_EQ_INT(kv_data_keys_write(&page->data, layer, slot, k, ROW, NULL), WICK_OK);
      CHECK_EQ_INT(kv_data_values_write(&page->data, layer, slot, v, ROW, NULL), WICK_OK);
    }
  }
}

static void check_slot(const test_page *found, const test_page *wanted, uint32_t slot) {
  for (uint32_t layer = 0; layer < LAYERS; layer++) {
    float a[ROW], b[ROW];
    CHECK_EQ_INT(kv_data_keys_read(&found->data, layer, slot, a, ROW, NULL), WICK_OK);
    CHECK_EQ_INT(kv_data_keys_read(&wanted->data, layer, slot, b, ROW, NULL), WICK_OK);
    CHECK_EQ_MEM(a, b, sizeof a);
    CHECK_EQ_INT(kv_data_values_read(&found->data, layer, slot, a, ROW, NULL), WICK_OK);
    CHECK_EQ_INT(kv_data_values_read(&wanted->data, layer, slot, b, ROW, NULL), WICK_OK);
    CHECK_EQ_MEM(a, b, sizeof a);
  }
}

TEST(only_the_rows_of_the_first_slots_are_copied) {
  static test_page from, to, before;
  for (kernel_kv_type type = KERNEL_KV_F32; type <= KERNEL_KV_Q4; type++) {
    open_page(&from, type);
    fill(&from, 1);
    for (uint32_t slots = 0; slots <= KERNEL_PAGE_TOKENS; slots++) {
      open_page(&to, type);
      open_page(&before, type);
      fill(&to, 2);
      fill(&before, 2);
      kv_data_copy(&to.data, &from.data, slots);
      for (uint32_t slot = 0; slot < KERNEL_PAGE_TOKENS; slot++) {
        check_slot(&to, slot < slots ? &from : &before, slot);
      }
    }
  }
}

// kernels/kernels.c — the tables: what each variant runs for each type. Constant data; nothing is
// bound at run time but the choice of the table.
#include "kernels/kernels.h"

#include <string.h>

#include "kernels/act.h"
#include "kernels/families.h"

#define TYPE_OPS(family, form, variant) \
  {family##_matrix_bytes, family##_repack, family##_row_dequant, form, family##_matmul_##variant}

#define KV_ABSENT {.k_bytes = kv_absent_bytes, .v_bytes = kv_absent_bytes}

static const wick_kernels table_scalar = {
    .name = "scalar",
    .types =
        {
            [WICK_TYPE_F32] = TYPE_OPS(f32, KERNEL_ACT_F32, scalar),
            [WICK_TYPE_F16] = TYPE_OPS(f16, KERNEL_ACT_F32, scalar),
            [WICK_TYPE_BF16] = TYPE_OPS(bf16, KERNEL_ACT_F32, scalar),
            [WICK_TYPE_Q4_0] = TYPE_OPS(q4_0, KERNEL_ACT_Q8, scalar),
            [WICK_TYPE_Q8_0] = TYPE_OPS(q8_0, KERNEL_ACT_Q8, scalar),
            [WICK_TYPE_Q6_K] = TYPE_OPS(q6_k, KERNEL_ACT_Q8, scalar),
        },
    .act_bytes = act_bytes_scalar,
    .act_make = act_make_scalar,
    .kv =
        {
            [KERNEL_KV_F32] = {kv_f32_bytes, kv_f32_bytes, kv_f32_k_write, kv_f32_v_write,
                               kv_f32_k_read, kv_f32_v_read},
            [KERNEL_KV_F16] = {kv_f16_bytes, kv_f16_bytes, kv_f16_k_write, kv_f16_v_write,
                               kv_f16_k_read, kv_f16_v_read},
            [KERNEL_KV_Q8] = KV_ABSENT,
            [KERNEL_KV_Q4] = KV_ABSENT,
        },
    .attention_begin = attention_begin,
    .attention_page =
        {
            [KERNEL_KV_F32] = {[KERNEL_KV_F32] = attention_page_f32_f32_scalar,
                               [KERNEL_KV_F16] = attention_page_f32_f16_scalar},
            [KERNEL_KV_F16] = {[KERNEL_KV_F32] = attention_page_f16_f32_scalar,
                               [KERNEL_KV_F16] = attention_page_f16_f16_scalar},
        },
    .attention_end = attention_end,
    .rms_norm = rms_norm_scalar,
    .rope = rope_scalar,
    .silu_mul = silu_mul_scalar,
    .add = add_scalar,
    .scale = scale_scalar,
};

const wick_kernels *kernels_bind(void) { return &table_scalar; }

const wick_kernels *kernels_by_name(const char *name) {
  const size_t length = strlen(table_scalar.name);
  return strlen(name) == length && memcmp(name, table_scalar.name, length) == 0 ? &table_scalar
                                                                                : NULL;
}

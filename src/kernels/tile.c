// kernels/tile.c — products of block-quantised types; see tile.h.
#include "kernels/tile.h"

#include "kernels/fours.h"

#ifdef WICK_SIMD128

// Memory is faster if several positions are read in parallel. So the rows of a strip are divided
// into STREAMS ranges that are processed alternately, in chunks of TILE_PARTS parts.
enum { STREAMS = 4, TILE_BATCH = 32, TILE_PARTS = 8 };

// The number of tokens and groups that are multiplied in fours. Their data is on the stack:
// activations, copied into all lanes and one part long (20 KB), fit into the L1 cache, and sums (64
// KB) into the L2 cache.
enum { FOURS_TOKENS_MIN = 32, FOURS_TOKENS_MAX = 64, FOURS_GROUPS = 32 };

// ---- unpacked parts as a type ----

#define PART(record) ((const tile_part *)(const void *)(record))

SIMD_INLINE void part_super(const uint8_t *record, strip_super *super) {
  (void)record;
  (void)super;
}

// Reads the scales. Fields that a kind does not have are not used.
SIMD_INLINE void part_scales(const uint8_t *record, uint32_t part, const strip_super *super,
                             strip_scales *scales) {
  (void)part;
  (void)super;
  for (uint32_t h = 0; h < 2; h++) {
    scales->scales[h] = wasm_v128_load(PART(record)->scales + 4 * h);
    scales->mins[h] = wasm_v128_load(PART(record)->mins + 4 * h);
    for (uint32_t s = 0; s < 2; s++) {
      scales->half_scales[s][h] = wasm_v128_load(PART(record)->half_scales[s] + 4 * h);
      scales->sub_scales[s][h] = wasm_v128_load(PART(record)->sub_scales[s] + 4 * h);
      scales->sub_mins[s][h] = wasm_v128_load(PART(record)->sub_mins[s] + 4 * h);
    }
  }
}

SIMD_INLINE void part_codes(const uint8_t *record, uint32_t part, uint32_t step, uint32_t half,
                            v128_t state[2], v128_t *codes) {
  (void)part;
  (void)state;
  codes[0] = wasm_v128_load(PART(record)->codes[step] + 16 * half);
}

#define PART_TYPE(kind_)                                        \
  {.record_bytes = sizeof(tile_part),                           \
   .parts = 1,                                                  \
   .kind = (kind_),                                             \
   .steps = 8,                                                  \
   .per_step = 1,                                               \
   .step_groups = 1,                                            \
   .super = part_super,                                         \
   .scales = part_scales,                                       \
   .begin = strip_begin_nothing,                                \
   .codes = part_codes,                                         \
   .is_of_job = (kind_) == BLOCK_CODES || (kind_) == BLOCK_SUB, \
   .is_unrolled = true}

// Indexed by block_kind, like the tables of tile_kernels.
static const strip_type part_types[6] = {PART_TYPE(BLOCK_CODES),  PART_TYPE(BLOCK_MINS),
                                         PART_TYPE(BLOCK_SUB),    PART_TYPE(BLOCK_SUB_MINS),
                                         PART_TYPE(BLOCK_SIGNED), PART_TYPE(BLOCK_HALVES)};

#define TILE_KERNEL(name, kind, flavor) \
  static void name(const strip_job *job) { strip_run_pairs(&part_types[kind], job, flavor); }

// Multiplies one part of a group by fours of tokens. sums: [4 * fours tokens][8 rows].
typedef void fours_kernel(const tile_part *part, const four_act *act, uint32_t fours,
                          int32_t offset, float *sums);

#define FOURS_KERNEL(name, kind, flavor)                                                       \
  static void name(const tile_part *part, const four_act *act, uint32_t fours, int32_t offset, \
                   float *sums) {                                                              \
    _Pragma("nounroll") for (; fours > 0; fours--, act++, sums += FOUR * KERNEL_ROW_GROUP) {   \
      SIMD_OPAQUE(part);                                                                       \
      SIMD_OPAQUE(act);                                                                        \
      four_run(part, act, offset, kind, flavor, sums);                                         \
    }                                                                                          \
  }

struct tile_kernels {
  simd_flavor flavor;
  tile_strip *by_kind[6];  // pairs of tokens, [block_kind]
  fours_kernel *fours[6];  // NULL: the kind has no fours
};

#define TILE_KERNELS(variant, flavor_, fours_signed)                                      \
  TILE_KERNEL(part_codes_##variant, BLOCK_CODES, flavor_)                                 \
  TILE_KERNEL(part_mins_##variant, BLOCK_MINS, flavor_)                                   \
  TILE_KERNEL(part_sub_##variant, BLOCK_SUB, flavor_)                                     \
  TILE_KERNEL(part_sub_mins_##variant, BLOCK_SUB_MINS, flavor_)                           \
  TILE_KERNEL(part_signed_##variant, BLOCK_SIGNED, flavor_)                               \
  TILE_KERNEL(part_halves_##variant, BLOCK_HALVES, flavor_)                               \
  FOURS_KERNEL(fours_codes_##variant, BLOCK_CODES, flavor_)                               \
  FOURS_KERNEL(fours_mins_##variant, BLOCK_MINS, flavor_)                                 \
  const tile_kernels SIMD_NAME(tile_kernels_##variant) = {                                \
      .flavor = (flavor_),                                                                \
      .by_kind = {part_codes_##variant, part_mins_##variant, part_sub_##variant,          \
                  part_sub_mins_##variant, part_signed_##variant, part_halves_##variant}, \
      .fours = {[BLOCK_CODES] = fours_codes_##variant,                                    \
                [BLOCK_MINS] = fours_mins_##variant,                                      \
                [BLOCK_SIGNED] = (fours_signed)}};

FOURS_KERNEL(fours_signed_simd128, BLOCK_SIGNED, SIMD_PLAIN)
TILE_KERNELS(simd128, SIMD_PLAIN, fours_signed_simd128)
#ifdef WICK_RELAXED
FOURS_KERNEL(fours_signed_pairs, BLOCK_SIGNED, SIMD_PAIRS)
TILE_KERNELS(pairs, SIMD_PAIRS, fours_signed_pairs)
#if SIMD_HAS_BYTES
TILE_KERNELS(quads, SIMD_QUADS, fours_codes_quads)
#else
FOURS_KERNEL(fours_signed_quads, BLOCK_SIGNED, SIMD_QUADS)
TILE_KERNELS(quads, SIMD_QUADS, fours_signed_quads)
#endif
#endif

// Stores a row's 32 codes with `offset` added.
static void codes_store(const int8_t from[32], int32_t offset, uint8_t *to) {
  const v128_t add = wasm_i8x16_splat((int8_t)offset);
  for (uint32_t i = 0; i < 2; i++, to += 128) {
    const v128_t codes = wasm_i8x16_add(wasm_v128_load(from + 16 * i), add);
    wasm_v128_store32_lane(to, codes, 0);
    wasm_v128_store32_lane(to + 32, codes, 1);
    wasm_v128_store32_lane(to + 64, codes, 2);
    wasm_v128_store32_lane(to + 96, codes, 3);
  }
}

void tile_unpack_rows(const uint8_t *record, uint32_t first, uint32_t last, const block_type *type,
                      int32_t offset, tile_part *out) {
  block_part part = {0};
  for (uint32_t p = first; p < last; p++, out++) {
    for (uint32_t r = 0; r < KERNEL_ROW_GROUP; r++) {
      type->load(record, r, p, &part);
      codes_store(part.codes, offset, out->codes[0] + layout_word_offset(r));
      out->scales[r] = part.scale;
      if (type->kind != BLOCK_HALVES && !kind_has_sub(type->kind)) continue;
      for (uint32_t s = 0; s < 2; s++) {
        out->half_scales[s][r] = part.half_scales[s];
        out->sub_scales[s][r] = part.sub_scales[s];
      }
    }
  }
}

static void part_widen(tile_part *part, bool is_signed) {
#pragma nounroll
  for (uint32_t k = 0; k < 8; k++) {
    for (uint32_t h = 0; h < 2; h++) {
      tile_part_widen(wasm_v128_load(part->codes[k] + 16 * h), k, h, is_signed, part);
    }
  }
}

// ---- the product ----

typedef struct tile_job {
  const kernel_matrix *matrix;
  const tile_type *type;
  const tile_kernels *kernels;
  uint32_t row_first, row_last;
  uint32_t parts;  // number of 32-column parts in a row
  const uint8_t *act;
  size_t act_stride_bytes;
  float *y;
  size_t y_stride;
} tile_job;

static const uint8_t *job_record(const tile_job *job, uint32_t row) {
  const size_t per_row = job->parts / job->type->parts;
  return job->matrix->data + row / KERNEL_ROW_GROUP * per_row * job->type->record_bytes;
}

static uint32_t group_rows(const tile_job *job, uint32_t row) {
  return job->row_last - row < KERNEL_ROW_GROUP ? job->row_last - row : KERNEL_ROW_GROUP;
}

// Copies the first `rows` of 8 floats. (A memcpy of variable size is a slow call in V8.)
SIMD_INLINE void rows_copy(float *to, const float *from, uint32_t rows) {
  if (rows == KERNEL_ROW_GROUP) {
    const v128_t low = wasm_v128_load(from), high = wasm_v128_load(from + 4);
    wasm_v128_store(to, low);
    wasm_v128_store(to + 4, high);
    return;
  }
#pragma nounroll
  for (uint32_t r = 0; r < rows; r++) to[r] = from[r];
}

// Copies the sums of each group to y; groups are `stride` rows apart, starting at `row`. Copies
// token by token, because y is likely to be in memory and the sums are in a cache.
static __attribute__((noinline)) void sums_store(const tile_job *job, const strip_job *strip,
                                                 uint32_t row, uint32_t groups, uint32_t stride,
                                                 uint32_t token) {
#pragma nounroll
  for (uint32_t t = 0; t < strip->tokens; t++) {
    float *y = job->y + job->y_stride * (token + t);
    const float *sum = strip->sums + (size_t)t * KERNEL_ROW_GROUP;
#pragma nounroll
    for (uint32_t g = 0; g < groups; g++, sum += (size_t)strip->slots * KERNEL_ROW_GROUP) {
      rows_copy(y + row + g * stride, sum, group_rows(job, row + g * stride));
    }
  }
}

// Computes one chunk with unpacked parts, a group at a time.
static void run_unpacked(const tile_job *job, const strip_job *strip) {
  tile_part parts[TILE_PARTS];
  strip_job of_parts = *strip;
  of_parts.groups = 1;
  of_parts.record = (const uint8_t *)parts;
  for (uint32_t g = 0; g < strip->groups; g++) {
    const uint8_t *record = strip->record + g * strip->group_stride_bytes;
    for (uint32_t p = 0; p < strip->parts; p += job->type->parts) {
      job->type->unpack(record, 0, job->type->parts, parts + p);
      record += job->type->record_bytes;
    }
    job->kernels->by_kind[job->type->kind](&of_parts);
    of_parts.sums += (size_t)strip->slots * KERNEL_ROW_GROUP;
  }
}

// Multiplies all parts of strip->groups groups, starting at `record`.
static void run_parts(const tile_job *job, strip_job *strip, const uint8_t *record,
                      const strip_act *act) {
  const bool is_direct = strip->tokens <= job->type->strip_tokens;
  tile_strip *kernel = strip->tokens == 1 ? job->type->single : job->type->pairs;
  memset(strip->sums, 0, (size_t)strip->groups * strip->slots * KERNEL_ROW_GROUP * sizeof(float));
  strip->record = record;
  strip->act = *act;
  for (uint32_t p = 0; p < job->parts; p += TILE_PARTS) {
    strip->parts = job->parts - p < TILE_PARTS ? job->parts - p : TILE_PARTS;
    if (is_direct) {
      kernel(strip);
    } else {
      run_unpacked(job, strip);
    }
    strip->record += (size_t)(TILE_PARTS / job->type->parts) * job->type->record_bytes;
    strip->act.x += TILE_PARTS * ACT_WORDS;
    strip->act.wide += TILE_PARTS * ACT_WORDS;
  }
}

// Multiplies `tokens` tokens starting at `token`: one, an even number, or any number if parts are
// unpacked.
static void run_tokens(const tile_job *job, uint32_t token, uint32_t tokens) {
  float sums[STREAMS * TILE_BATCH * KERNEL_ROW_GROUP];
  const uint32_t groups = ceil_div_u32(job->row_last - job->row_first, KERNEL_ROW_GROUP);
  const uint32_t range = groups / STREAMS;
  const uint8_t *x = job->act + job->act_stride_bytes * token;
  const strip_act act = {(const int32_t *)(const void *)x,
                         (const int32_t *)(const void *)(x + act_wide_offset(job->matrix->cols))};
  const bool is_single = tokens == 1 && job->type->strip_tokens > 0;
  strip_job strip = {.act_stride = job->act_stride_bytes / sizeof(int32_t),
                     .tokens = tokens,
                     .slots = is_single ? 1 : (tokens + 1) & ~1u,
                     .offset = job->type->offset,
                     .sums = sums};
  for (uint32_t i = 0; i < groups;) {
    const bool is_even = i < range;  // all streams still have a group
    const uint32_t row = job->row_first + i * KERNEL_ROW_GROUP, stride = range * KERNEL_ROW_GROUP;
    const uint8_t *record = job_record(job, row);
    // A single token needs pairs of groups, so a last group without a partner is paired with
    // itself.
    strip.groups = is_even ? STREAMS : is_single ? 2 : 1;
    strip.group_stride_bytes = is_even ? (size_t)(job_record(job, row + stride) - record) : 0;
    run_parts(job, &strip, record, &act);
    sums_store(job, &strip, row, is_even ? STREAMS : 1, stride, token);
    i = is_even && i + 1 == range ? range * STREAMS : i + 1;
  }
}

// ---- many tokens ----

// Copies a part of the activations of `tokens` tokens into all lanes. The last token is repeated to
// fill the last four.
static void spread(const tile_job *job, uint32_t part, uint32_t token, uint32_t tokens,
                   four_form form, int32_t offset, four_act *out) {
  const size_t wide_offset = act_wide_offset(job->matrix->cols);
#pragma nounroll
  for (uint32_t t = 0; t % FOUR != 0 || t < tokens; t++) {
    const uint32_t from = token + (t < tokens ? t : tokens - 1);
    const uint8_t *x = job->act + job->act_stride_bytes * from;
    four_act_make((const act_block *)(const void *)x + part,
                  (const act_wide *)(const void *)(x + wide_offset) + part, form, offset, t % FOUR,
                  &out[t / FOUR]);
  }
}

// Returns the offset that codes have in a dot: that of the type, or 128 for signed codes if the dot
// reads them as unsigned.
static int32_t offset_of(const tile_type *type, four_form form) {
  if (!SIMD_HAS_BYTES || form != FOUR_CODES || !kind_is_signed(type->kind)) return type->offset;
  const v128_t dot = simd_dot_quads(wasm_v128_load(simd_mask.low_1), wasm_v128_load(simd_mask.top),
                                    wasm_i32x4_splat(0));
  return wasm_i32x4_extract_lane(dot, 0) > 0 ? 128 : 0;
}

// Adds 128 to signed codes, which makes them unsigned bytes.
static void part_raise(tile_part *part) {
  const v128_t top = wasm_v128_load(simd_mask.top);
#pragma nounroll
  for (uint32_t k = 0; k < 8; k++) {
    for (uint32_t h = 0; h < 2; h++) {
      uint8_t *codes = part->codes[k] + 16 * h;
      wasm_v128_store(codes, wasm_v128_xor(wasm_v128_load(codes), top));
    }
  }
}

// Reads TILE_PARTS parts of each group, starting at part `first`, so that they are fetched from
// memory in one piece. A single part is too short for the processor to prefetch.
static void touch(const tile_job *job, const uint8_t *record, uint32_t first, uint32_t groups,
                  size_t group_bytes) {
  const uint32_t parts = job->parts - first < TILE_PARTS ? job->parts - first : TILE_PARTS;
  const size_t bytes = (size_t)(parts / job->type->parts) * job->type->record_bytes;
  const uint32_t range = (groups + STREAMS - 1) / STREAMS;
#pragma nounroll
  for (uint32_t g = 0; g < range; g++, record += group_bytes) {
#pragma nounroll
    for (size_t i = 0; i < bytes; i += 64) {
#pragma nounroll
      for (uint32_t s = 0; s + g < groups; s += range) {
        (void)*(const volatile uint8_t *)(record + s * group_bytes + i);
      }
    }
  }
}

// Multiplies `tokens` tokens starting at `token` by at most FOURS_GROUPS groups starting at `row`.
static void run_fours(const tile_job *job, uint32_t row, uint32_t token, uint32_t tokens) {
  const tile_type *type = job->type;
  const four_form form = four_form_of(type->kind, job->kernels->flavor);
  const int32_t offset = offset_of(type, form);
  const uint32_t fours = ceil_div_u32(tokens, FOUR);
  const uint32_t left = ceil_div_u32(job->row_last - row, KERNEL_ROW_GROUP);
  const uint32_t groups = left < FOURS_GROUPS ? left : FOURS_GROUPS;
  const size_t group_bytes = (size_t)(job->parts / type->parts) * type->record_bytes;
  float sums[FOURS_GROUPS * FOURS_TOKENS_MAX * KERNEL_ROW_GROUP];
  four_act act[FOURS_TOKENS_MAX / FOUR];
  tile_part part;
  strip_job strip = {.tokens = tokens, .slots = fours * FOUR, .sums = sums};
  const size_t group_sums = (size_t)strip.slots * KERNEL_ROW_GROUP;
  // Cleared piece by piece: clearing 64 KB at once would be memory.fill, which calls the C library
  // in V8.
  for (uint32_t g = 0; g < groups; g++) {
    memset(sums + g * group_sums, 0, group_sums * sizeof *sums);
    SIMD_FORGET();
  }
  for (uint32_t p = 0; p < job->parts; p++) {
    const uint8_t *record = job_record(job, row) + (size_t)(p / type->parts) * type->record_bytes;
    float *sum = sums;
    if (p % TILE_PARTS == 0) touch(job, record, p, groups, group_bytes);
    spread(job, p, token, tokens, form, offset, act);
    for (uint32_t g = 0; g < groups; g++, record += group_bytes, sum += group_sums) {
      type->unpack(record, p % type->parts, p % type->parts + 1, &part);
      if (form == FOUR_WIDE) part_widen(&part, kind_is_signed(type->kind));
      if (offset != type->offset) part_raise(&part);
      job->kernels->fours[type->kind](&part, act, fours, offset, sum);
    }
  }
  sums_store(job, &strip, row, groups, KERNEL_ROW_GROUP, token);
}

// Returns how many of the next `left` tokens are multiplied together.
static uint32_t count_tokens(const tile_job *job, uint32_t left, bool *go_by_fours) {
  const uint32_t strip_tokens = job->type->strip_tokens;
  *go_by_fours = left >= FOURS_TOKENS_MIN && left > strip_tokens &&
                 job->kernels->fours[job->type->kind] != NULL;
  if (*go_by_fours && left > FOURS_TOKENS_MAX && left < FOURS_TOKENS_MAX + FOURS_TOKENS_MIN) {
    return (left / 2 + FOUR - 1) / FOUR *
           FOUR;  // so that the remaining tokens are also multiplied in fours
  }
  if (*go_by_fours) return left < FOURS_TOKENS_MAX ? left : FOURS_TOKENS_MAX;
  const uint32_t count = left < TILE_BATCH ? left : TILE_BATCH;
  // with the type's own strips, a single odd token is faster if it is multiplied separately
  return count > 1 && count <= strip_tokens ? count & ~1u : count;
}

void tile_matmul(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last,
                 const void *act, size_t act_stride_bytes, uint32_t tokens, float *y,
                 size_t y_stride, const tile_type *type, const tile_kernels *kernels) {
  const tile_job job = {.matrix = matrix,
                        .type = type,
                        .kernels = kernels,
                        .row_first = row_first,
                        .row_last = row_last,
                        .parts = matrix->cols / BLOCK_PART,
                        .act = act,
                        .act_stride_bytes = act_stride_bytes,
                        .y = y,
                        .y_stride = y_stride};
  for (uint32_t token = 0; token < tokens;) {
    bool go_by_fours;
    const uint32_t count = count_tokens(&job, tokens - token, &go_by_fours);
    if (go_by_fours) {
      for (uint32_t row = row_first; row < row_last; row += FOURS_GROUPS * KERNEL_ROW_GROUP) {
        run_fours(&job, row, token, count);
      }
    } else {
      run_tokens(&job, token, count);
    }
    token += count;
  }
}

#endif

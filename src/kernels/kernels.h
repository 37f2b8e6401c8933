// kernels/kernels.h — the table of kernels that the forward pass calls. `scalar` is the reference.
// Each variant is one table, bound once (kernels_bind). Call sites never test for features.
//
// Layout of a weight matrix [rows, cols] (kernel layout, made by `repack` while the file is
// streamed in; one layout per type, shared by products, embedding lookup and tied output): rows are
// interleaved in groups of KERNEL_ROW_GROUP = 8, padded with zero rows at the end. A group has one
// record per block of columns. A record stores the scales of 8 rows and then their codes, so that
// one activation block is multiplied by 8 rows from consecutive memory. Each type's record is
// described in its own file.
//
// Invariant (docs/architecture.md): an output y[token][row] does not depend on the other tokens of
// the call, on the row range or on the thread, not even in the last bit: integer dots per block are
// exact, and float partial sums are added in one fixed order of blocks in every micro-kernel of a
// variant.
#ifndef WICK_KERNELS_H
#define WICK_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "format/types.h"

enum { KERNEL_ROW_GROUP = 8, KERNEL_PAGE_TOKENS = 16 };

// A form of activations. Each weight type requires one form. Each row of activations is converted
// once, and all products that need the form share the result (q, k, v of a layer).
typedef enum kernel_act_form {
  KERNEL_ACT_F32 = 0,  // plain floats
  KERNEL_ACT_Q8 = 1,   // per 32 values: int8 codes with scale and sums (see act.h)
  KERNEL_ACT_FORM_COUNT = 2
} kernel_act_form;

typedef struct kernel_matrix {
  const uint8_t *data;  // kernel layout, 64-byte aligned
  uint32_t rows, cols;  // cols: a multiple of the type's block
  uint32_t type;        // ggml_type
  uint32_t flags;       // KERNEL_MATRIX_*
} kernel_matrix;

// Set by repack. HAS_MINUS_128: a Q8_0 tensor has the code -128 (llama-quantize writes none); the
// relaxed kernel then uses an exact path. HAS_WILD_F16: a 16-bit float, scale or element, is Inf or
// NaN. The conversion of the SIMD kernels does not support these, so the scalar reference
// multiplies the matrix.
enum { KERNEL_MATRIX_HAS_MINUS_128 = 1, KERNEL_MATRIX_HAS_WILD_F16 = 2 };

typedef struct kernel_type_ops {
  // Computes the size in bytes of the kernel layout, with rows padded to whole groups. Returns
  // false if the shape does not fit.
  bool (*matrix_bytes)(uint32_t rows, uint32_t cols, uint64_t *bytes);
  // Stores `block_count` consecutive file blocks of one row, starting at block `first_block`. Calls
  // may be made in any order. Old contents are replaced, so memory need not be cleared, except for
  // the rows that pad the last group, which must be zeros. Returns flags to be or-ed into the
  // matrix's flags.
  uint32_t (*repack)(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                     uint32_t block_count, const uint8_t *file_blocks);
  // Computes out[cols] = the row as floats (embedding lookup), exactly like ggml's dequantisation.
  void (*row_dequant)(const kernel_matrix *matrix, uint32_t row, float *out);
  kernel_act_form act_form;
  // Computes y[t * y_stride + r] = sum over c of W[r][c] * x[t][c], for r in [row_first, row_last)
  // and t in [0, tokens). row_first is a multiple of KERNEL_ROW_GROUP; row_last is also a multiple
  // of it, or equals rows. Nothing outside of the range is written. `act`: `tokens` rows of
  // activations in the type's form, act_stride_bytes apart, each 64-byte aligned. The micro-kernel
  // is selected by `tokens`.
  void (*matmul)(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last,
                 const void *act, size_t act_stride_bytes, uint32_t tokens, float *y,
                 size_t y_stride);
} kernel_type_ops;

// Element types of KV pages. Q8 and Q4 are codes with one scale per 32 values of a row. C8 and C4,
// which are only for keys, have one offset and one scale per channel of a page. R4, which is only
// for values, is Q4 after a rotation of each head. Saved states contain these numbers.
typedef enum kernel_kv_type {
  KERNEL_KV_F32 = 0,
  KERNEL_KV_F16 = 1,
  KERNEL_KV_Q8 = 2,
  KERNEL_KV_Q4 = 3,
  KERNEL_KV_C8 = 4,
  KERNEL_KV_C4 = 5,
  KERNEL_KV_R4 = 6,
  KERNEL_KV_TYPE_COUNT = 7
} kernel_kv_type;

// Pages of a KV head that attention adds in one step, and their number of tokens.
enum { KERNEL_STEP_PAGES = 4, KERNEL_STEP_TOKENS = KERNEL_STEP_PAGES * KERNEL_PAGE_TOKENS };

// The memory that will be read next: while a call computes, it prefetches `bytes` from each of
// these addresses. Processors prefetch automatically, but not beyond the end of a 4 KB page. If
// bytes is 0, nothing is prefetched.
typedef struct kernel_ahead {
  const uint8_t *from[KERNEL_STEP_PAGES];
  uint32_t bytes;
} kernel_ahead;

// A page of one KV head: 16 tokens of K and of V, laid out by type (kv_pages.h). Only the tokens in
// [first, last) count, 0 <= first < last <= 16.
typedef struct kernel_page {
  const uint8_t *k, *v;
  uint32_t first, last;
  uint32_t position;  // of slot 0; used if a state has biases
  bool is_open;       // K is F16 although the type is C8 or C4; only for the last pages of a step
} kernel_page;

// ALiBi (Press et al. 2021): slope * (position of a token - the query's position) is added to its
// score.
typedef struct kernel_bias {
  float slope;
  uint32_t position;  // of the query
} kernel_bias;

// Attention of the query heads that share one KV head, with an online softmax over steps of pages
// (Milakov and Gimelshein 2018; FlashAttention's recurrence, Dao et al. 2022).
typedef struct kernel_attention {
  uint32_t group;             // query heads per KV head
  uint32_t head_dim;          // a multiple of 4
  const float *q;             // [group][head_dim], rotated, multiplied by the softmax scale, then
                              // converted for the keys' type (kernel_kv_ops.queries_make)
  float *acc;                 // [group][head_dim], sum of p * V
  float *max;                 // [group], running maximum
  float *sum;                 // [group], running sum of p
  float cap;                  // not 0: scores become cap * tanh(score / cap)
  const kernel_bias *biases;  // [group] or NULL; added after the cap
  const uint8_t *factors;     // [group] rows of kernel_kv_ops.factors_make, or NULL
  kernel_ahead ahead;
} kernel_attention;

typedef struct kernel_kv_ops {
  // Returns the size in bytes of the K (or V) of one KV head in one page, or 0 if this build does
  // not support the type.
  size_t (*k_bytes)(uint32_t head_dim);
  size_t (*v_bytes)(uint32_t head_dim);
  // Stores one token's row of one KV head in slot 0..15. Returns how many values were not finite or
  // did not fit the type (they are stored as 0 or the largest value); the engine then fails the
  // step.
  uint32_t (*k_write)(void *k_page, uint32_t slot, const float *k, uint32_t head_dim);
  uint32_t (*v_write)(void *v_page, uint32_t slot, const float *v, uint32_t head_dim);
  // Reads a row back as floats (for tests, saving, shifting).
  void (*k_read)(const void *k_page, uint32_t slot, float *k, uint32_t head_dim);
  void (*v_read)(const void *v_page, uint32_t slot, float *v, uint32_t head_dim);
  // Copies the rows of slots [0, slots); the other rows are unchanged.
  void (*k_copy)(void *to, const void *from, uint32_t slots, uint32_t head_dim);
  void (*v_copy)(void *to, const void *from, uint32_t slots, uint32_t head_dim);
  // Converts queries [heads][head_dim] in place to the form for attention over keys of this type
  // (factors of 16 bits for types of codes). NULL: queries stay unchanged.
  void (*queries_make)(float *q, uint32_t heads, uint32_t head_dim);
  // For types that encode whole pages of keys: encodes the slots [first, last) of an F16 page of K,
  // ignoring the other slots. NULL: rows are written by k_write. If this is not NULL, k_write is
  // NULL, and k_copy copies the whole page.
  void (*k_encode)(void *k_page, const void *f16_page, uint32_t first, uint32_t last,
                   uint32_t head_dim);
  // For types that encode whole pages of keys: makes factors of queries [heads][head_dim], which
  // attention over pages of codes needs in addition to the queries. The factors of a query are
  // kv_factor_bytes long and 16-byte aligned.
  void (*factors_make)(const float *q, uint32_t heads, uint32_t head_dim, void *factors);
  // Rotates the result of attention over values of this type [heads][head_dim] back, in place.
  // NULL: the result stays unchanged.
  void (*values_end)(float *values, uint32_t heads, uint32_t head_dim);
} kernel_kv_ops;

// Adds the tokens of 1 to KERNEL_STEP_PAGES pages to the running attention, as one step. The last
// bits of the result depend on how tokens are divided into steps.
typedef void (*kernel_attention_step)(const kernel_attention *state, const kernel_page *pages,
                                      uint32_t count);

enum { KERNEL_CONV_WIDTH_MAX = 8, KERNEL_CONV_CHANNELS = 16 };

// A causal convolution with one filter per channel, before a gated delta net or a Mamba scan, or on
// its own (LFM2's short convolution).
typedef struct kernel_conv {
  uint32_t tokens, channels, width;  // width: taps, 2 to KERNEL_CONV_WIDTH_MAX
  const float *weight;               // [width][channels], the tap of the newest input last
  const float *bias;                 // [channels] or NULL
  const float *state_in;  // [width - 1][channels]: inputs before the first token, oldest first
  float *state_out;       // the state after the last token; must not be state_in
  const float *x;         // [tokens] rows, x_stride floats apart
  float *y;               // [tokens] rows, y_stride floats apart; may be x (same stride)
  size_t x_stride, y_stride;
} kernel_conv;

// One head of the gated delta rule (Yang et al. 2024, "Gated Delta Networks").
typedef struct kernel_delta {
  uint32_t tokens, key_dim, value_dim;  // at least 1 each
  const float *q, *k, *v;               // rows of tokens; q and k are normalised, q is scaled
  size_t qk_stride, v_stride;
  const float *decay, *beta;  // [tokens], gate_stride floats apart; decay in [0, 1]
  size_t gate_stride;
  const float *state_in;  // [key_dim][value_dim]
  float *state_out;       // the state after the last token; must not be state_in
  float *y;               // [tokens] rows of value_dim, y_stride floats apart
  size_t y_stride;
} kernel_delta;

// Mamba's selective scan, S6 (Gu and Dao 2023), in which each value of the state has its own decay.
typedef struct kernel_scan {
  uint32_t tokens, channels, states;  // states: values per channel
  const float *x, *dt;                // rows of tokens, [channels]; dt is after its softplus
  size_t x_stride, dt_stride;
  const float *b, *c;  // rows of tokens, [states]
  size_t bc_stride;
  const float *a;         // [channels][states]
  const float *d;         // [channels] or NULL
  const float *state_in;  // [channels][states]
  float *state_out;       // the state after the last token; must not be state_in
  float *y;               // rows of tokens, [channels]; may be x (same stride)
  size_t y_stride;
} kernel_scan;

// One head of Mamba 2 (Dao and Gu 2024, "Transformers are SSMs"), which has one decay per head.
typedef struct kernel_ssd {
  uint32_t tokens, states, head_dim;  // at least 1 each
  const float *x;                     // rows of tokens, [head_dim]
  size_t x_stride;
  const float *b, *c;  // rows of tokens, [states]
  size_t bc_stride;
  const float *decay, *dt;  // [tokens], gate_stride floats apart; decay = e^(dt A)
  size_t gate_stride;
  float d;
  const float *state_in;  // [states][head_dim]
  float *state_out;       // the state after the last token; must not be state_in
  float *y;               // rows of tokens, [head_dim]; may be x (same stride)
  size_t y_stride;
} kernel_ssd;

// One head of RWKV-7 (Peng et al. 2025, "RWKV-7 Goose"): a delta rule with one decay per key.
typedef struct kernel_wkv {
  uint32_t tokens, dim;                // dim: of keys and of values
  const float *r, *w, *k, *v, *a, *b;  // rows of tokens, [dim]; w: decays
  const float *state_in;               // [dim keys][dim values]
  float *state_out;                    // the state after the last token; must not be state_in
  float *y;                            // rows of tokens, [dim]; must not be one of the inputs
  size_t stride;                       // of all rows
} kernel_wkv;

typedef struct kernel_xielu {
  float grow, shrink, slope, most;
} kernel_xielu;

enum { KERNEL_DOTS = 100 };

typedef struct kernel_table {
  // "scalar"; WebAssembly: "simd128", "relaxed-pairs", "relaxed-quads"; x86-64: "sse2", "avx2",
  // "avxvnni"; arm64: "neon"
  const char *name;
  // Returns whether KERNEL_DOTS relaxed dots currently produce correct results. NULL: the table has
  // no relaxed dots. Cost: a microsecond.
  bool (*dots_are_right)(void);
  kernel_type_ops types[GGML_TYPE_COUNT];  // matmul is NULL for an unsupported type
  // Returns the size in bytes of one row of activations of `cols` values in a form, a multiple of
  // 64.
  size_t (*act_bytes)(kernel_act_form form, uint32_t cols);
  void (*act_make)(kernel_act_form form, const float *x, uint32_t cols, void *act);

  kernel_kv_ops kv[KERNEL_KV_TYPE_COUNT];
  void (*attention_begin)(const kernel_attention *state);  // acc = 0, max = -inf, sum = 0
  kernel_attention_step attention_step[KERNEL_KV_TYPE_COUNT][KERNEL_KV_TYPE_COUNT];  // [k][v]
  // Merges `part`, which has sums over other tokens, into `state`, as if it were one page. Both
  // have the same heads.
  void (*attention_merge)(const kernel_attention *state, const kernel_attention *part);
  void (*attention_end)(const kernel_attention *state, float *out);  // out = acc / sum

  // Computes out[n] = x / sqrt(mean(x^2) + epsilon) * weight (Zhang and Sennrich 2019). out may be
  // x, weight may be NULL.
  void (*rms_norm)(const float *x, const float *weight, uint32_t n, float epsilon, float *out);
  // Computes out[n] = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias (Ba et al. 2016).
  // bias may be NULL, out may be x.
  void (*layer_norm)(const float *x, const float *weight, const float *bias, uint32_t n,
                     float epsilon, float *out);
  // Rotates the first n_rot values of each head (RoFormer, Su et al. 2021). cos_sin has n_rot / 2
  // pairs (cos, sin). interleaved: pairs are (2i, 2i+1), otherwise (i, i + n_rot/2).
  void (*rope)(float *x, uint32_t heads, uint32_t head_dim, uint32_t n_rot, const float *cos_sin,
               bool interleaved);
  // Computes gate[i] = silu(gate[i]) * up[i]. Relative error of the sigmoid below 1e-6.
  void (*silu_mul)(float *gate, const float *up, uint32_t n);
  // Compute x[i] = gelu(x[i]) * up[i], in the tanh form, and relu(x) * up. If up is NULL, there is
  // no product.
  void (*gelu_mul)(float *x, const float *up, uint32_t n);
  void (*relu_mul)(float *x, const float *up, uint32_t n);
  // Computes x[i] = gelu(x[i]) * up[i] in the exact form, gelu(x) = x / 2 * (1 + erf(x / sqrt(2))).
  // If up is NULL, computes only gelu(x[i]).
  void (*gelu_erf_mul)(float *x, const float *up, uint32_t n);
  // Computes gpt-oss's g sigmoid(1.702 g) * (u + 1), with g = min(gate, 7) and u = up clamped to
  // [-7, 7].
  void (*swiglu_clamped)(float *gate, const float *up, uint32_t n);
  void (*relu_square)(float *x, uint32_t n);  // x = relu(x)^2
  // Computes, for x > 0, grow x^2 + slope x; otherwise shrink (e^min(x, most) - 1 - x) + slope x
  // (xIELU, Huang and Schlag 2024).
  void (*xielu)(float *x, const kernel_xielu *curve, uint32_t n);
  void (*soft_cap)(float *x, float cap, uint32_t n);             // x = cap * tanh(x / cap)
  void (*clamp)(float *x, float limit, uint32_t n);              // to [-limit, limit]
  void (*multiply)(float *x, const float *y, uint32_t n);        // x *= y
  void (*silu)(float *x, uint32_t n);                            // x *= sigmoid(x)
  void (*sigmoid_mul)(float *x, const float *gate, uint32_t n);  // x *= sigmoid(gate)
  void (*softplus)(float *x, uint32_t n);                        // x = ln(1 + e^x)
  void (*add)(float *x, const float *y, uint32_t n);             // x += y
  void (*scale)(float *x, float factor, uint32_t n);
  // Computes out[n] = x / max(sqrt(sum of x^2), epsilon). out may be x.
  void (*l2_norm)(const float *x, uint32_t n, float epsilon, float *out);

  // Recurrent mixers. Every variant is bit-identical to the scalar one, regardless of how tokens
  // are divided into calls (the state is carried over) and of the range.
  void (*conv)(const kernel_conv *conv, uint32_t channel_first, uint32_t channel_last);
  // Computes for each token: S *= decay; d = (v - S^T k) * beta; S += k d^T; y = S^T q, with sums
  // in order of key_dim. (The decay is a factor of the first sum, not of its terms.)
  void (*delta)(const kernel_delta *delta);
  // Computes h[c][s] = e^(dt[c] a[c][s]) * h[c][s] + dt[c] * x[c] * b[s]; y[c] = sum over s of
  // h[c][s] * c[s], plus d[c] * x[c]; for any channels [first, last). The sum is kept in 4 parts.
  void (*scan)(const kernel_scan *scan, uint32_t channel_first, uint32_t channel_last);
  // Computes S = S * decay + b (dt x)^T; y = d x + S^T c, with sums in order of the states.
  void (*ssd)(const kernel_ssd *ssd);
  // Computes s = S^T a; S = diag(w) S + k v^T + b s^T; y = S^T r, with sums in order of the keys.
  void (*wkv)(const kernel_wkv *wkv);
} kernel_table;

// Returns the best table of this build for this processor.
const kernel_table *kernels_bind(void);
// Returns a table by name, for tests, or NULL if this build has no such table or the processor does
// not support it.
const kernel_table *kernels_by_name(const char *name);

#endif

// media/conformer.c — layers of conformers (Gulati et al. 2020): half-step feed-forwards around
// attention with relative positions and a convolution over time.
#include <string.h>

#include "base/math.h"
#include "media/audio_encode.h"

enum { SINUSOID_WIDTH = 512 };

static const double GEMMA_CAP = 50;

// ---- relative positions ----

// The distances i - j that a row can have, from the smallest.
typedef struct distances {
  int64_t least;
  uint32_t count;
} distances;

static distances distances_of(const media_model *model, uint32_t rows) {
  const audio_weights *sound = model->sound;
  if (model->audio->stem == STEM_GEMMA4A) return (distances){0, sound->attended};
  if (model->audio->stem == STEM_LFM2A) return (distances){1 - (int64_t)rows, 2 * rows - 1};
  return (distances){-(int64_t)sound->farthest, 2 * sound->farthest + 1};
}

static uint32_t sinusoid_width(const media_model *model) {
  return model->audio->stem == STEM_LFM2A ? SINUSOID_WIDTH : model->width;
}

uint64_t conformer_relative_floats(const media_model *model, uint32_t rows) {
  const uint64_t count = distances_of(model, rows).count;
  return count * (arena_line_floats(sinusoid_width(model)) +
                  arena_line_floats(model->heads * model->head_dim));
}

uint32_t conformer_thread_floats(const media_model *model, uint32_t rows) {
  return arena_line_floats(rows) + 2 * arena_line_floats(model->head_dim);
}

static void put_sinusoid(const row_job *job, uint32_t row) {
  const media_model *model = job->encoding->model;
  const int64_t distance = distances_of(model, job->encoding->grid.rows).least + row;
  float *out = job->rows + row * job->stride;
  const uint32_t width = sinusoid_width(model), half = width / 2;
  const bool is_gemma = model->audio->stem == STEM_GEMMA4A;
  for (uint32_t i = 0; i < half; i++) {
    const double exponent = is_gemma ? -(double)i / (half < 2 ? 1 : half - 1) : -2.0 * i / width;
    double sine, cosine;
    math_sin_cos((double)distance * math_pow(10000, exponent), &sine, &cosine);
    out[is_gemma ? i : 2 * i] = (float)sine;
    out[is_gemma ? half + i : 2 * i + 1] = (float)cosine;
  }
}

// Computes the rows of relative positions [distances][heads * head_dim]; Granite's table is shared
// by all heads.
static const float *make_relative(media_encoding *encoding, const conformer_layer *layer,
                                  size_t *stride) {
  const media_model *model = encoding->model;
  const distances range = distances_of(model, encoding->grid.rows);
  if (layer->table != NULL) {
    *stride = model->head_dim;
    return layer->table;
  }
  const size_t in_stride = arena_line_floats(sinusoid_width(model));
  float *sinusoids = encoding->relative, *out = sinusoids + range.count * in_stride;
  *stride = arena_line_floats(model->heads * model->head_dim);
  const row_job job = {.encoding = encoding,
                       .run = put_sinusoid,
                       .rows = sinusoids,
                       .stride = in_stride,
                       .macs = 2048ull * sinusoid_width(model)};
  if (encoding->layer == 0) rows_run(&job, range.count);
  rows_multiply(encoding, &layer->relative, sinusoids, in_stride, range.count, out, *stride);
  return out;
}

// ---- attention ----

typedef struct conformer_attention {
  const conformer_layer *layer;
  const float *relative;
  size_t relative_stride;
  distances range;
} conformer_attention;

// Determines the rows [*first, *end) that row i attends to.
static void seen_rows(const media_encoding *encoding, uint32_t i, uint32_t *first, uint32_t *end) {
  const media_model *model = encoding->model;
  const uint32_t attended = model->sound->attended, rows = encoding->grid.rows;
  *first = 0;
  *end = rows;
  if (model->audio->stem == STEM_GEMMA4A) {
    *first = i + 1 > attended ? i + 1 - attended : 0;
    *end = i + 1;
  } else if (model->audio->stem == STEM_GRANITE) {
    *first = i / attended * attended;
    *end = rows - *first < attended ? rows : *first + attended;
  }
}

static float dot(const float *a, const float *b, uint32_t n) {
  float sums[4] = {0};
  for (uint32_t i = 0; i < n; i++) sums[i % 4] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Computes the queries of a head for keys and for positions.
static void make_queries(const media_model *model, const conformer_layer *layer, const float *q,
                         uint32_t head, float *keys, float *positions) {
  const uint32_t dim = model->head_dim;
  const double ln2 = 0.69314718055994530942;
  const float root = 1 / __builtin_sqrtf((float)dim);
  const float scale = layer->query_scale == NULL ? root : root / (float)ln2;
  for (uint32_t c = 0; c < dim; c++) {
    const size_t at = (size_t)head * dim + c;
    const float part = layer->query_scale == NULL ? scale : scale * layer->query_scale[c];
    keys[c] = (q[c] + (layer->bias_u == NULL ? 0 : layer->bias_u[at])) * part;
    positions[c] = (q[c] + (layer->bias_v == NULL ? 0 : layer->bias_v[at])) * part;
  }
}

static float tanh_of(float x) {
  const double power = math_exp(2 * (double)x);
  return x > 20 ? 1 : (float)((power - 1) / (power + 1));
}

// Turns scores into weights.
static void soft_max(float *scores, uint32_t count) {
  float most = scores[0], sum = 0;
  for (uint32_t i = 1; i < count; i++) most = scores[i] > most ? scores[i] : most;
  for (uint32_t i = 0; i < count; i++) {
    scores[i] = (float)math_exp((double)scores[i] - most);
    sum += scores[i];
  }
  for (uint32_t i = 0; i < count; i++) scores[i] /= sum;
}

static void attend_head(const row_job *job, uint32_t i, uint32_t head, float *scratch) {
  const media_encoding *encoding = job->encoding;
  const media_model *model = encoding->model;
  const conformer_attention *attention = job->more;
  const uint32_t dim = model->head_dim, all = model->heads * dim;
  const bool is_gemma = model->audio->stem == STEM_GEMMA4A;
  const bool is_shared = attention->layer->table != NULL;
  const float key_scale = is_gemma ? (float)(1.31326168751822283405 / 0.69314718055994530942) : 1;
  float *keys = scratch, *positions = keys + arena_line_floats(dim);
  float *scores = positions + arena_line_floats(dim);
  const float *q = encoding->qkv + i * encoding->qkv_stride + (size_t)head * dim;
  float *out = encoding->attended + i * encoding->attended_stride + (size_t)head * dim;
  uint32_t first, end;
  seen_rows(encoding, i, &first, &end);
  make_queries(model, attention->layer, q, head, keys, positions);
  for (uint32_t j = first; j < end; j++) {
    const float *k = encoding->qkv + j * encoding->qkv_stride + all + (size_t)head * dim;
    const int64_t place = (int64_t)i - j - attention->range.least;
    const float *r = attention->relative + (size_t)place * attention->relative_stride +
                     (is_shared ? 0 : (size_t)head * dim);
    float score = dot(keys, k, dim) * key_scale + dot(positions, r, dim);
    if (is_gemma) score = (float)GEMMA_CAP * tanh_of(score / (float)GEMMA_CAP);
    scores[j - first] = score;
  }
  soft_max(scores, end - first);
  memset(out, 0, dim * sizeof *out);
  for (uint32_t j = first; j < end; j++) {
    const float *v = encoding->qkv + j * encoding->qkv_stride + 2 * all + (size_t)head * dim;
    for (uint32_t c = 0; c < dim; c++) out[c] += scores[j - first] * v[c];
  }
}

static void attend_row(const row_job *job, uint32_t i) {
  const media_encoding *encoding = job->encoding;
  float *scratch = encoding->per_thread + (size_t)job->thread * encoding->per_thread_stride;
  for (uint32_t head = 0; head < encoding->model->heads; head++) {
    attend_head(job, i, head, scratch);
  }
}

// Computes normed = out(attention(normed)).
static void attend(media_encoding *encoding, const conformer_layer *layer) {
  const media_model *model = encoding->model;
  const uint32_t rows = encoding->grid.rows, all = model->heads * model->head_dim;
  const float *x = encoding->normed;
  float *q = encoding->qkv;
  conformer_attention attention = {.layer = layer, .range = distances_of(model, rows)};
  rows_multiply(encoding, &layer->q, x, encoding->stride, rows, q, encoding->qkv_stride);
  rows_multiply(encoding, &layer->k, x, encoding->stride, rows, q + all, encoding->qkv_stride);
  rows_multiply(encoding, &layer->v, x, encoding->stride, rows, q + 2 * all, encoding->qkv_stride);
  attention.relative = make_relative(encoding, layer, &attention.relative_stride);
  const uint32_t seen = rows < model->sound->attended ? rows : model->sound->attended;
  const row_job job = {.encoding = encoding,
                       .run = attend_row,
                       .macs = 8ull * (seen == 0 ? rows : seen) * all,
                       .more = &attention};
  rows_run(&job, rows);
  rows_multiply(encoding, &layer->out, encoding->attended, encoding->attended_stride, rows,
                encoding->normed, encoding->stride);
}

// ---- convolution ----

// Computes A sigmoid(B) of a row's halves, in place.
static void gate_row(const row_job *job, uint32_t row) {
  float *x = job->rows + row * job->stride;
  job->encoding->model->kernels->sigmoid_mul(x, x + job->width, job->width);
}

// Computes a row of the convolution over time, then the norm and the activation.
static void convolve_row(const row_job *job, uint32_t row) {
  const media_encoding *encoding = job->encoding;
  const media_model *model = encoding->model;
  const audio_weights *sound = model->sound;
  const conformer_layer *layer = job->more;
  const uint32_t channels = sound->conv_channels, taps = sound->conv_taps;
  const bool is_causal = model->audio->stem == STEM_GEMMA4A;
  const int64_t first = (int64_t)row - (is_causal ? taps - 1 : taps / 2);
  float *to = job->rows + row * job->stride;
  for (uint32_t c = 0; c < channels; c++)
    to[c] = layer->taps_bias == NULL ? 0 : layer->taps_bias[c];
  for (uint32_t tap = 0; tap < taps; tap++) {
    const int64_t at = first + tap;
    if (at < 0 || at >= encoding->grid.rows) continue;
    const float *from = job->from + (size_t)at * job->from_stride;
    for (uint32_t c = 0; c < channels; c++) to[c] += layer->taps[c * taps + tap] * from[c];
  }
  if (is_causal) {
    model->kernels->rms_norm(to, layer->conv_inner.weight, channels, model->epsilon, to);
  } else {
    model->kernels->multiply(to, layer->conv_inner.weight, channels);
    if (layer->conv_inner.bias != NULL) model->kernels->add(to, layer->conv_inner.bias, channels);
  }
  model->kernels->silu(to, channels);
}

// Computes normed = the convolution block of normed.
static void convolve(media_encoding *encoding, const conformer_layer *layer) {
  const audio_weights *sound = encoding->model->sound;
  const uint32_t rows = encoding->grid.rows, channels = sound->conv_channels;
  const size_t wide = arena_line_floats(2 * channels), narrow = arena_line_floats(channels);
  float *gated = encoding->maps[0], *out = encoding->maps[1];
  rows_multiply(encoding, &layer->conv_in, encoding->normed, encoding->stride, rows, gated, wide);
  row_job job = {
      .encoding = encoding, .run = gate_row, .rows = gated, .stride = wide, .width = channels};
  rows_run(&job, rows);
  job = (row_job){.encoding = encoding,
                  .run = convolve_row,
                  .rows = out,
                  .stride = narrow,
                  .from = gated,
                  .from_stride = wide,
                  .macs = 4ull * channels * sound->conv_taps,
                  .more = layer};
  rows_run(&job, rows);
  rows_multiply(encoding, &layer->conv_out, out, narrow, rows, encoding->normed, encoding->stride);
}

// ---- the layer ----

// Computes hidden += factor * post(normed).
static void add_row(const row_job *job, uint32_t row) {
  const media_model *model = job->encoding->model;
  float *y = job->encoding->normed + row * job->stride;
  if (job->post != NULL) model->kernels->rms_norm(y, job->post, job->width, model->epsilon, y);
  model->kernels->scale(y, *job->scale, job->width);
  model->kernels->add(job->encoding->hidden + row * job->stride, y, job->width);
}

static void add_part(media_encoding *encoding, float factor, const float *post) {
  const row_job job = {.encoding = encoding,
                       .run = add_row,
                       .stride = encoding->stride,
                       .width = encoding->model->width,
                       .scale = &factor,
                       .post = post};
  rows_run(&job, encoding->grid.rows);
}

static void norm_to(media_encoding *encoding, const media_norm *norm, float *to) {
  const media_model *model = encoding->model;
  rows_norm(encoding, norm, model->has_rms_norms, model->epsilon, model->width, encoding->hidden,
            encoding->stride, to, encoding->stride, encoding->grid.rows);
}

static void run_half(media_encoding *encoding, const conformer_layer *layer, int half) {
  norm_to(encoding, &layer->ffn_norm[half], encoding->normed);
  rows_feed_forward(encoding, &layer->ffn[half], ACTIVATION_SILU, encoding->normed,
                    encoding->stride, encoding->grid.rows, encoding->normed, encoding->stride);
  add_part(encoding, 0.5f, layer->ffn_post[half]);
}

static void soft_max_row(const row_job *job, uint32_t row) {
  soft_max(job->rows + row * job->stride, job->width);
}

// Computes hidden += back(softmax(aside(hidden))), in blocks of rows.
static void add_classes(media_encoding *encoding) {
  const audio_weights *sound = encoding->model->sound;
  const uint32_t rows = encoding->grid.rows, classes = sound->aside.matrix.dims[1];
  const size_t stride = encoding->wide_stride;
  for (uint32_t row = 0; row < rows; row += ENCODE_BLOCK_ROWS) {
    const uint32_t left = rows - row;
    const uint32_t some = left < ENCODE_BLOCK_ROWS ? left : ENCODE_BLOCK_ROWS;
    rows_multiply(encoding, &sound->aside, encoding->hidden + row * encoding->stride,
                  encoding->stride, some, encoding->wide, stride);
    const row_job job = {.encoding = encoding,
                         .run = soft_max_row,
                         .rows = encoding->wide,
                         .stride = stride,
                         .width = classes};
    rows_run(&job, some);
    rows_multiply(encoding, &sound->back, encoding->wide, stride, some,
                  encoding->normed + row * encoding->stride, encoding->stride);
  }
  add_part(encoding, 1, NULL);
}

void conformer_layer_run(media_encoding *encoding) {
  const media_model *model = encoding->model;
  const conformer_layer *layer = &model->sound->layers[encoding->layer];
  run_half(encoding, layer, 0);
  norm_to(encoding, &layer->attention_norm, encoding->normed);
  attend(encoding, layer);
  add_part(encoding, 1, layer->attention_post);
  norm_to(encoding, &layer->conv_norm, encoding->normed);
  convolve(encoding, layer);
  add_part(encoding, 1, NULL);
  run_half(encoding, layer, 1);
  norm_to(encoding, &layer->last_norm, encoding->hidden);
}

void conformer_add_classes(media_encoding *encoding) {
  const media_model *model = encoding->model;
  if (linear_is_present(&model->sound->aside) && encoding->layer + 1 == model->layer_count / 2) {
    add_classes(encoding);
  }
}

// media/encode.c — runs an encoder one layer at a time (media.h): a transformer over the patches of
// an image or the rows of a spectrum, or a conformer.
#include "media/encode.h"

#include <string.h>

#include "base/math.h"
#include "media/audio_encode.h"
#include "model/whole_attention.h"

// ---- buffers ----

static uint32_t widest(const media_model *model) {
  uint32_t most = 3 * model->layout.patch * model->layout.patch;
  if (model->audio != NULL) most = stem_widest(model);
  if (model->width > most) most = model->width;
  if (model->heads * model->head_dim > most) most = model->heads * model->head_dim;
  for (uint32_t i = 0; i < model->layer_count && model->layers != NULL; i++) {
    if (model->layers[i].feed_forward.width > most) most = model->layers[i].feed_forward.width;
  }
  return most;
}

static void widen(const media_projector *projector, uint32_t *most) {
  for (uint32_t i = 0; i < projector->count; i++) {
    const media_bound_step *bound = &projector->steps[i];
    if (bound->in > *most) *most = bound->in;
    if (bound->gated.width > *most) *most = bound->gated.width;
  }
}

static void measure_projector(const media_encoding *encoding, const media_projector *projector,
                              uint32_t merge, uint64_t *floats, uint32_t *most) {
  uint32_t rows = encoding->grid.patches + 1;
  if (encoding->chunk.rows > rows) rows = encoding->chunk.rows;
  const uint64_t needed = project_floats(projector, rows, merge);
  if (needed > *floats) *floats = needed;
  widen(projector, most);
}

static void take_projector(media_encoding *encoding, uint32_t *most) {
  const media_model *model = encoding->model;
  uint64_t floats = 0;
  measure_projector(encoding, &model->projector, model->merge, &floats, most);
  for (uint32_t i = 0; i < model->layer_count && model->layers != NULL; i++) {
    const media_projector *deepstack = model->layers[i].deepstack;
    if (deepstack != NULL) measure_projector(encoding, deepstack, model->merge, &floats, most);
  }
  if (model->reduction != NULL) {
    measure_projector(encoding, &model->reduction->projector, 2, &floats, most);
  }
  encoding->ping = arena_take_floats(&encoding->arena, floats);
  encoding->pong = arena_take_floats(&encoding->arena, floats);
}

// Returns the size in bytes of the keys and values of all rows. The input, or each of its windows,
// begins on a new page.
static uint64_t page_bytes(const media_encoding *encoding) {
  const media_model *model = encoding->model;
  const kernel_kv_ops *kv = &model->kernels->kv[KERNEL_KV_F32];
  const uint64_t pages = encoding->grid.rows / KERNEL_PAGE_TOKENS + encoding->grid.windows + 1;
  return pages * model->kv_heads * (kv->k_bytes(model->head_room) + kv->v_bytes(model->head_room));
}

static void take_audio(media_encoding *encoding) {
  const media_model *model = encoding->model;
  const uint32_t rows = encoding->grid.rows;
  uint64_t relative = 0;
  encoding->spectrum =
      arena_take_floats(&encoding->arena, (uint64_t)encoding->chunk.width * encoding->chunk.height);
  for (uint32_t i = 0; i < 2; i++) {
    encoding->maps[i] =
        arena_take_floats(&encoding->arena, stem_map_floats(model, encoding->chunk.width));
  }
  if (model->audio->is_conformer) relative = conformer_relative_floats(model, rows);
  if (model->sound->qformer.width != 0) {
    const uint64_t former = qformer_floats(model, rows);
    if (former > relative) relative = former;
  }
  encoding->relative = arena_take_floats(&encoding->arena, relative);
}

// Reserves the buffers. An arena without memory only measures.
static void take_buffers(media_encoding *encoding) {
  const media_model *model = encoding->model;
  scratch_arena *arena = &encoding->arena;
  patch_grid *grid = &encoding->grid;
  const uint32_t q = model->heads * model->head_room, kv = model->kv_heads * model->head_room;
  const uint64_t rows = grid->rows;
  uint32_t most = widest(model);
  encoding->stride = arena_line_floats(model->width);
  encoding->qkv_stride = arena_line_floats(q + 2 * kv);
  encoding->attended_stride = arena_line_floats(q);
  // audio features are stored before the last rows
  const uint32_t features =
      model->feature_count + (model->sound != NULL && model->feature_count != 0);
  encoding->feature_stride = arena_line_floats(model->width * features);
  grid_take(grid, arena);
  encoding->hidden = arena_take_floats(arena, rows * encoding->stride);
  encoding->normed = arena_take_floats(arena, rows * encoding->stride);
  encoding->qkv = arena_take_floats(arena, rows * encoding->qkv_stride);
  encoding->attended = arena_take_floats(arena, rows * encoding->attended_stride);
  encoding->feature_rows = arena_take_floats(arena, rows * encoding->feature_stride);
  if (model->kind->rotary != ROTARY_NONE) {
    encoding->cos_sin = arena_take_floats(arena, (uint64_t)grid->patches * model->head_dim);
  }
  take_projector(encoding, &most);
  encoding->wide_stride = arena_line_floats(most);
  const uint64_t wide = (uint64_t)ENCODE_BLOCK_ROWS * encoding->wide_stride;
  encoding->wide = arena_take_floats(arena, wide);
  encoding->gate = arena_take_floats(arena, wide);
  encoding->copy = arena_take_floats(arena, wide);
  encoding->act = arena_take_act(arena, ENCODE_BLOCK_ROWS, most);
  encoding->pages = arena_take_bytes(arena, page_bytes(encoding));
  if (model->audio != NULL) take_audio(encoding);
  encoding->per_thread_stride = arena_line_floats(
      whole_attention_thread_floats(model->heads, model->kv_heads, model->head_room));
  if (model->audio != NULL && model->audio->is_conformer) {
    encoding->per_thread_stride = conformer_thread_floats(model, grid->rows);
  }
  encoding->per_thread =
      arena_take_floats(arena, (uint64_t)arena->threads * encoding->per_thread_stride);
}

static void measure(media_encoding *encoding, const media_model *model, const media_chunk *chunk,
                    uint32_t threads) {
  *encoding = (media_encoding){.model = model, .chunk = *chunk};
  encoding->arena = (scratch_arena){.kernels = model->kernels, .threads = threads};
  if (model->audio != NULL) {
    const uint32_t rows = audio_inner_rows(model, chunk->width);
    encoding->grid =
        (patch_grid){.across = rows, .down = 1, .patches = rows, .rows = rows, .windows = 1};
  } else {
    grid_measure(model, chunk, &encoding->grid);
  }
  take_buffers(encoding);
}

uint64_t encode_bytes(const media_model *model, const media_chunk *chunk, uint32_t threads) {
  media_encoding encoding;
  measure(&encoding, model, chunk, threads);
  return encoding.arena.peak_bytes + sizeof encoding;
}

// ---- attention ----

static void norm_heads(const row_job *job, float *rows, const float *weight, uint32_t heads) {
  const media_model *model = job->encoding->model;
  for (uint32_t h = 0; h < heads; h++) {
    float *head = rows + (size_t)h * model->head_dim;
    if (model->has_rms_norms) {
      model->kernels->rms_norm(head, weight, model->head_dim, model->epsilon, head);
    } else {
      model->kernels->layer_norm(head, weight, NULL, model->head_dim, model->epsilon, head);
    }
  }
}

static void rotate(const row_job *job, float *rows, uint32_t heads, const float *cos_sin) {
  const media_model *model = job->encoding->model;
  const uint32_t dim = model->head_dim;
  const bool are_neighbours = model->kind->rotary == ROTARY_NEIGHBOURS;
  if (model->kind->rotary != ROTARY_QUARTERS) {
    model->kernels->rope(rows, heads, dim, dim, cos_sin, are_neighbours);
    return;
  }
  for (uint32_t half = 0; half < 2 * heads; half++) {
    model->kernels->rope(rows + (size_t)half * (dim / 2), 1, dim / 2, dim / 2,
                         cos_sin + half % 2 * (dim / 2), false);
  }
}

// Widens heads of head_dim values to head_room values, padded with zeros.
static void widen_heads(const media_model *model, float *row) {
  const uint32_t dim = model->head_dim, room = model->head_room;
  for (uint32_t h = model->heads + 2 * model->kv_heads; h-- > 0 && dim != room;) {
    memmove(row + (size_t)h * room, row + (size_t)h * dim, dim * sizeof *row);
    memset(row + (size_t)h * room + dim, 0, (room - dim) * sizeof *row);
  }
}

static void narrow_row(const row_job *job, uint32_t row) {
  const media_model *model = job->encoding->model;
  float *heads = job->rows + row * job->stride;
  for (uint32_t h = 1; h < model->heads; h++) {
    memmove(heads + (size_t)h * model->head_dim, heads + (size_t)h * model->head_room,
            model->head_dim * sizeof *heads);
  }
}

// Applies norms and rotation to the queries and keys of a row.
static void prepare_row(const row_job *job, uint32_t row) {
  const media_encoding *encoding = job->encoding;
  const media_model *model = encoding->model;
  const vision_attention *attention = job->more;
  float *q = encoding->qkv + row * encoding->qkv_stride;
  float *k = q + (size_t)model->heads * model->head_dim;
  float *v = k + (size_t)model->kv_heads * model->head_dim;
  if (attention->q_norm != NULL) norm_heads(job, q, attention->q_norm, model->heads);
  if (attention->k_norm != NULL) norm_heads(job, k, attention->k_norm, model->kv_heads);
  if (model->kind->norms_values) norm_heads(job, v, NULL, model->kv_heads);
  if (encoding->cos_sin != NULL && row < encoding->grid.patches) {
    const float *cos_sin = encoding->cos_sin + (size_t)row * model->head_dim;
    rotate(job, q, model->heads, cos_sin);
    rotate(job, k, model->kv_heads, cos_sin);
  }
  widen_heads(model, q);
}

static void project_heads(media_encoding *encoding, const vision_attention *attention) {
  const media_model *model = encoding->model;
  const uint32_t rows = encoding->grid.rows, stride = encoding->qkv_stride;
  float *q = encoding->qkv, *k = q + (size_t)model->heads * model->head_dim;
  float *v = k + (size_t)model->kv_heads * model->head_dim;
  const float *x = encoding->normed;
  if (linear_is_present(&attention->qkv)) {
    rows_multiply(encoding, &attention->qkv, x, encoding->stride, rows, q, stride);
  } else {
    rows_multiply(encoding, &attention->q, x, encoding->stride, rows, q, stride);
    rows_multiply(encoding, &attention->k, x, encoding->stride, rows, k, stride);
    rows_multiply(encoding, &attention->v, x, encoding->stride, rows, v, stride);
  }
  const row_job job = {.encoding = encoding, .run = prepare_row, .more = attention};
  rows_run(&job, rows);
}

// Returns the number of multiply-adds of one unit of attention's work.
static uint64_t unit_macs(const paged_attention *attention, uint32_t seen) {
  const uint64_t all = 2ull * attention->count * seen * attention->heads * attention->head_dim;
  return all / whole_attention_units(attention) + 1;
}

static wick_status run_attention(media_encoding *encoding, const paged_attention *attention,
                                 uint32_t seen, wick_error *error) {
  const uint32_t units = whole_attention_units(attention);
  const uint64_t macs = unit_macs(attention, seen);
  const uint64_t fitting = encoding->slice_macs_max / macs;
  const uint32_t most = fitting == 0 ? 1 : fitting < units ? (uint32_t)fitting : units;
  wick_status status = WICK_OK;
  if (encode_takes(encoding, 16ull * attention->count * attention->kv_stride)) {
    status = whole_attention_write(attention, encoding->pages, encoding->threads, encoding->layer,
                                   error);
  }
  for (uint32_t first = 0; first < units && status == WICK_OK; first += most) {
    const uint32_t last = units - first < most ? units : first + most;
    if (encode_takes(encoding, (last - first) * macs)) {
      whole_attention_attend(attention, encoding->pages, encoding->threads, first, last);
    }
  }
  return status;
}

// Computes normed = out(attention(norm(hidden))).
static wick_status attend(media_encoding *encoding, const vision_attention *weights,
                          bool is_windowed, wick_error *error) {
  const media_model *model = encoding->model;
  const patch_grid *grid = &encoding->grid;
  rows_norm(encoding, &weights->norm, model->has_rms_norms, model->epsilon, model->width,
            encoding->hidden, encoding->stride, encoding->normed, encoding->stride, grid->rows);
  project_heads(encoding, weights);
  float *q = encoding->qkv, *k = q + (size_t)model->heads * model->head_room;
  const paged_attention attention = {
      .kernels = model->kernels,
      .heads = model->heads,
      .kv_heads = model->kv_heads,
      .head_dim = model->head_room,
      .scale = model->kind->has_unit_scale ? 1 : 1 / __builtin_sqrtf((float)model->head_dim),
      .inputs = is_windowed ? grid->windowed : grid->whole,
      .count = grid->rows,
      .batch_tokens = grid->rows,
      .q = q,
      .k = k,
      .v = k + (size_t)model->kv_heads * model->head_room,
      .out = encoding->attended,
      .q_stride = encoding->qkv_stride,
      .kv_stride = encoding->qkv_stride,
      .out_stride = encoding->attended_stride,
      .per_thread = encoding->per_thread,
      .per_thread_stride = encoding->per_thread_stride};
  const uint32_t seen = is_windowed ? grid->rows / grid->windows + 1 : grid->rows;
  const wick_status status = run_attention(encoding, &attention, seen, error);
  if (status != WICK_OK) return status;
  if (model->head_room != model->head_dim) {
    const row_job narrow = {.encoding = encoding,
                            .run = narrow_row,
                            .rows = encoding->attended,
                            .stride = encoding->attended_stride};
    rows_run(&narrow, grid->rows);
  }
  rows_multiply(encoding, &weights->out, encoding->attended, encoding->attended_stride, grid->rows,
                encoding->normed, encoding->stride);
  return WICK_OK;
}

// ---- layers ----

// Computes hidden += normed, after scaling and normalising it as the layer requires.
static void add_row(const row_job *job, uint32_t row) {
  const media_model *model = job->encoding->model;
  float *y = job->encoding->normed + row * job->stride;
  float *hidden = job->rows + row * job->stride;
  if (job->scale != NULL) model->kernels->multiply(y, job->scale, job->width);
  if (job->post != NULL) model->kernels->rms_norm(y, job->post, job->width, model->epsilon, y);
  model->kernels->add(hidden, y, job->width);
  if (job->after != NULL) model->kernels->multiply(hidden, job->after, job->width);
}

static void add_normed(media_encoding *encoding, const float *scale, const float *post,
                       const float *after) {
  const row_job job = {.encoding = encoding,
                       .run = add_row,
                       .rows = encoding->hidden,
                       .stride = encoding->stride,
                       .width = encoding->model->width,
                       .scale = scale,
                       .post = post,
                       .after = after};
  rows_run(&job, encoding->grid.rows);
}

static void keep_features(media_encoding *encoding, uint32_t layer) {
  const media_model *model = encoding->model;
  for (uint32_t i = 0; i < model->feature_count; i++) {
    if (model->features[i] != layer) continue;
    const bool is_now = encode_takes(encoding, (uint64_t)encoding->grid.rows * model->width);
    float *to = encoding->feature_rows + (size_t)encoding->features++ * model->width;
    for (uint32_t row = 0; row < encoding->grid.rows && is_now; row++) {
      memcpy(to + row * encoding->feature_stride, encoding->hidden + row * encoding->stride,
             model->width * sizeof *to);
    }
  }
}

static void add_deepstack(media_encoding *encoding, const media_projector *deepstack) {
  const uint32_t width = encoding->model->text.width;
  encoding->deepstacks++;
  project(encoding, deepstack, encoding->hidden, encoding->stride, encoding->model->merge,
          encoding->out + (size_t)encoding->deepstacks * width, media_row_width(encoding->model));
}

// Computes normed[block] += the mean of the block's rows.
static void add_mean(const row_job *job, uint32_t block) {
  const media_encoding *encoding = job->encoding;
  const patch_grid *grid = &encoding->grid;
  const uint32_t across = grid->across / 2, y = block / across * 2, x = block % across * 2;
  float *to = encoding->normed + block * encoding->stride;
  for (uint32_t i = 0; i < 4; i++) {
    const uint32_t row = grid->row_of[(y + i / 2) * grid->across + x + i % 2];
    const float *from = encoding->hidden + row * encoding->stride;
    for (uint32_t c = 0; c < encoding->model->width; c++) to[c] += 0.25f * from[c];
  }
}

static wick_status reduce(media_encoding *encoding, wick_error *error) {
  const vision_reduction *reduction = encoding->model->reduction;
  patch_grid *grid = &encoding->grid;
  const wick_status status = attend(encoding, &reduction->attention, true, error);
  if (status != WICK_OK) return status;
  add_normed(encoding, NULL, NULL, NULL);
  project(encoding, &reduction->projector, encoding->hidden, encoding->stride, 2, encoding->normed,
          encoding->stride);
  const row_job job = {.encoding = encoding, .run = add_mean, .width = 4 * encoding->model->width};
  rows_run(&job, grid->patches / 4);
  if (encoding->is_paused) return WICK_OK;
  grid->across /= 2;
  grid->down /= 2;
  grid->rows = grid->patches = grid->across * grid->down;
  grid->window = 0;
  memcpy(encoding->hidden, encoding->normed, (size_t)grid->rows * encoding->stride * sizeof(float));
  grid_fill(grid);
  return WICK_OK;
}

static wick_status run_layer(media_encoding *encoding, wick_error *error) {
  const media_model *model = encoding->model;
  const vision_layer *layer = &model->layers[encoding->layer];
  const uint32_t rows = encoding->grid.rows, stride = encoding->stride;
  keep_features(encoding, encoding->layer);
  const wick_status status = attend(encoding, &layer->attention, layer->is_windowed, error);
  if (status != WICK_OK) return status;
  add_normed(encoding, layer->attention_scale, layer->attention_post, NULL);
  rows_norm(encoding, &layer->norm, model->has_rms_norms, model->epsilon, model->width,
            encoding->hidden, stride, encoding->normed, stride, rows);
  rows_feed_forward(encoding, &layer->feed_forward, ACTIVATION_FILE, encoding->normed, stride, rows,
                    encoding->normed, stride);
  // here the post norm is before the scale
  if (layer->ffn_post != NULL) {
    const media_norm norm = {layer->ffn_post, NULL};
    rows_norm(encoding, &norm, true, model->epsilon, model->width, encoding->normed, stride,
              encoding->normed, stride, rows);
  }
  add_normed(encoding, layer->ffn_scale, NULL, layer->scale);
  if (layer->deepstack != NULL) add_deepstack(encoding, layer->deepstack);
  if (model->reduction != NULL && model->reduction->after == encoding->layer) {
    return reduce(encoding, error);
  }
  return WICK_OK;
}

// Runs a layer of a conformer; features are stored before the classes are added.
static void run_conformer(media_encoding *encoding) {
  if (encoding->layer == 0) keep_features(encoding, 0);
  conformer_layer_run(encoding);
  keep_features(encoding, encoding->layer + 1);
  conformer_add_classes(encoding);
}

// For Granite, passes the features, then the last rows, through the Q-Former.
static void finish_granite(media_encoding *encoding) {
  const media_model *model = encoding->model;
  const float *from = encoding->hidden;
  size_t from_stride = encoding->stride;
  float *queries;
  if (model->feature_count != 0) {
    const bool is_now = encode_takes(encoding, (uint64_t)encoding->grid.rows * model->width);
    for (uint32_t row = 0; row < encoding->grid.rows && is_now; row++) {
      memcpy(encoding->feature_rows + row * encoding->feature_stride +
                 (size_t)model->feature_count * model->width,
             encoding->hidden + row * encoding->stride, model->width * sizeof(float));
    }
    from = encoding->feature_rows;
    from_stride = encoding->feature_stride;
  }
  encoding->grid.patches = qformer_run(encoding, from, from_stride, &queries, &from_stride);
  project(encoding, &model->projector, queries, from_stride, 1, encoding->out,
          media_row_width(model));
}

static wick_status check_rows(const media_encoding *encoding, wick_error *error) {
  const uint32_t width = media_row_width(encoding->model);
  const uint64_t values = (uint64_t)encoding->chunk.rows * width;
  for (uint64_t i = 0; i < values; i++) {
    if (math_is_finite_f32(encoding->out[i])) continue;
    return fail_with(error, WICK_E_NONFINITE, WICK_NO_OFFSET,
                     "media: row %llu of an embedding is not finite",
                     (unsigned long long)(i / width));
  }
  return WICK_OK;
}

static wick_status finish(media_encoding *encoding, wick_error *error) {
  const media_model *model = encoding->model;
  const uint32_t stride = encoding->stride, width = media_row_width(model);
  if (model->sound != NULL && model->sound->qformer.width != 0) {
    finish_granite(encoding);
    return encoding->is_paused ? WICK_OK : check_rows(encoding, error);
  }
  if (model->post_norm.weight != NULL) {
    rows_norm(encoding, &model->post_norm, model->has_rms_norms, model->epsilon, model->width,
              encoding->hidden, stride, encoding->hidden, stride, encoding->grid.rows);
  }
  keep_features(encoding, model->layer_count);
  const bool has_features = model->feature_count != 0;
  const float *from = has_features ? encoding->feature_rows : encoding->hidden;
  const size_t from_stride = has_features ? encoding->feature_stride : stride;
  if (model->class_row != NULL && model->kind->drops_first_row &&
      model->options.follows_llama_cpp) {
    from += from_stride;
  }
  project(encoding, &model->projector, from, from_stride, model->merge, encoding->out, width);
  if (encoding->is_paused) return WICK_OK;
  for (uint32_t line = 1; model->line_break != NULL && line < encoding->chunk.down; line++) {
    const size_t row = (size_t)line * (encoding->chunk.across + 1) - 1;
    memcpy(encoding->out + row * width, model->line_break, width * sizeof(float));
  }
  return check_rows(encoding, error);
}

// ---- steps ----

wick_status media_encode_begin(const media_model *model, const media_plan *plan,
                               const media_prepared *prepared, uint32_t chunk, thread_pool *threads,
                               uint32_t thread_count, float *rows, media_encoding **out,
                               wick_error *error) {
  *out = NULL;
  media_encoding measured;
  measure(&measured, model, &plan->chunks[chunk], thread_count);
  const uint64_t bytes = measured.arena.peak_bytes;
  media_encoding *encoding = memory_alloc(model->memory, sizeof *encoding);
  uint8_t *base = memory_alloc_wide(model->memory, bytes);
  if (encoding == NULL || base == NULL) {
    memory_free(model->memory, base);
    memory_free(model->memory, encoding);
    return memory_fail(model->memory, error, "the encoding of an image");
  }
  *encoding = measured;
  encoding->arena.used_bytes = 0;
  arena_begin(&encoding->arena, base, bytes);
  encoding->threads = threads;
  encoding->out = rows;
  encoding->slice_macs_max = ENCODE_SLICE_MACS;
  take_buffers(encoding);
  grid_fill(&encoding->grid);
  wick_status status = WICK_OK;
  if (model->audio == NULL) {
    encoding->pixels = media_chunk_pixels(plan, prepared, chunk);
  } else {
    encoding->recording = media_recording(model, plan, prepared);
    status = sound_begin(model->memory, &encoding->recording, plan->chunks[chunk].column,
                         &encoding->sound_job, error);
  }
  if (status == WICK_OK) {
    *out = encoding;
  } else {
    media_encode_end(encoding);
  }
  return status;
}

bool encode_takes(media_encoding *encoding, uint64_t macs) {
  if (encoding->pieces++ < encoding->pieces_done || encoding->is_paused) return false;
  if (encoding->slice_macs != 0 && encoding->slice_macs + macs > encoding->slice_macs_max) {
    encoding->is_paused = true;
    return false;
  }
  encoding->slice_macs += macs;
  encoding->pieces_done++;
  return true;
}

static wick_status run_step(media_encoding *encoding, wick_error *error) {
  const media_model *model = encoding->model;
  if (!encoding->has_begun) {
    (model->audio == NULL ? patches_embed : stem_embed)(encoding);
    return WICK_OK;
  }
  if (encoding->layer == model->layer_count) return finish(encoding, error);
  if (model->audio == NULL || !model->audio->is_conformer) return run_layer(encoding, error);
  run_conformer(encoding);
  return WICK_OK;
}

wick_status media_encode_step(media_encoding *encoding, bool *is_done, wick_error *error) {
  const uint32_t deepstacks = encoding->deepstacks, features = encoding->features;
  *is_done = false;
  encoding->pieces = 0;
  encoding->slice_macs = 0;
  encoding->is_paused = false;
  const wick_status status = run_step(encoding, error);
  if (status != WICK_OK) return status;
  if (encoding->is_paused) {
    encoding->deepstacks = deepstacks;
    encoding->features = features;
    return WICK_OK;
  }
  encoding->pieces_done = 0;
  *is_done = encoding->layer == encoding->model->layer_count && encoding->has_begun;
  if (encoding->has_begun) encoding->layer++;
  encoding->has_begun = true;
  return WICK_OK;
}

void media_encode_end(media_encoding *encoding) {
  if (encoding == NULL) return;
  memory_gate *memory = encoding->model->memory;
  memory_free(memory, encoding->sound_job);
  memory_free(memory, encoding->arena.base);
  memory_free(memory, encoding);
}

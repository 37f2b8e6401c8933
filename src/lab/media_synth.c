// lab/media_synth.c — writes an mmproj file with random weights in the shape of a known image
// encoder. Shapes are from the models' published configurations.
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "cli/args.h"
#include "format/gguf_writer.h"
#include "lab/lab.h"
#include "lab/synth_shape.h"
#include "lab/synth_weights.h"
#include "platform/platform.h"

enum {
  HAS_FUSED_QKV = 1,
  HAS_GATE = 2,
  HAS_BIASES = 4,
  HAS_HEAD_NORMS = 8,
  HAS_POST_NORMS = 16,
  HAS_CLAMPS = 32,
  HAS_SECOND_FRAME = 64,
  HAS_GELU = 128,
  HAS_LAST_NORM = 256
};

// A matrix of the projector, with a bias if the layers have biases.
typedef struct projector_matrix {
  const char *name;
  uint32_t in, out;
} projector_matrix;

typedef struct encoder_shape {
  const char *name, *projector;
  uint32_t image, patch, width, ffn, layers, heads, positions, text, flags;
  uint32_t longest, scale;  // 0: the file has no such key
  uint32_t deepstack_step;  // layers 5, 5 + step ... up to three; 0: none
  projector_matrix matrices[2];
} encoder_shape;

static const encoder_shape SHAPES[] = {
    {"smolvlm-256m",
     "idefics3",
     512,
     16,
     768,
     3072,
     12,
     12,
     1024,
     576,
     HAS_BIASES | HAS_GELU | HAS_LAST_NORM,
     2048,
     4,
     0,
     {{"mm.model.fc", 12288, 576}}},
    {"lfm2-vl-450m",
     "lfm2",
     256,
     16,
     768,
     3072,
     12,
     12,
     256,
     1024,
     HAS_BIASES | HAS_GELU | HAS_LAST_NORM,
     0,
     2,
     0,
     {{"mm.1", 3072, 2560}, {"mm.2", 2560, 1024}}},
    {"qwen3-vl-2b",
     "qwen3vl_merger",
     768,
     16,
     1024,
     4096,
     24,
     16,
     2304,
     2048,
     HAS_BIASES | HAS_GELU | HAS_LAST_NORM | HAS_FUSED_QKV | HAS_SECOND_FRAME,
     0,
     0,
     6,
     {{"mm.0", 4096, 4096}, {"mm.2", 4096, 2048}}},
    {"gemma4-e2b",
     "gemma4v",
     224,
     16,
     768,
     3072,
     16,
     12,
     10240,
     1536,
     HAS_GATE | HAS_HEAD_NORMS | HAS_POST_NORMS | HAS_CLAMPS,
     0,
     0,
     0,
     {{"mm.input_projection", 768, 1536}}},
};
enum { SHAPES_COUNT = sizeof SHAPES / sizeof *SHAPES, DEEPSTACKS_MAX = 3, STRIP_BYTES = 1 << 20 };

typedef struct mmproj_job {
  const encoder_shape *shape;
  uint32_t layers;
  ggml_type type;  // type of the matrices
  output_file file;
  memory_gate memory;
  gguf_writer *writer;
  uint8_t *strip;
  bool is_header;  // true: tensors are declared; false: they are written
  wick_status status;
  wick_error error;
} mmproj_job;

static bool write_bytes(void *context, const void *bytes, size_t size_bytes) {
  mmproj_job *job = context;
  return output_file_write(&job->file, bytes, size_bytes);
}

// ---- Tensors: each function declares a tensor in the first pass and writes it in the second ----

static bool has(const mmproj_job *job, uint32_t flag) { return (job->shape->flags & flag) != 0; }

static void put_tensor(mmproj_job *job, const char *name, ggml_type type, float mean,
                       float deviation, const uint64_t *dims, uint32_t count) {
  if (job->status != WICK_OK) return;
  if (job->is_header) {
    gguf_writer_add_tensor(job->writer, name, type, dims, count);
    return;
  }
  const ggml_type_facts *facts = type_facts(type);
  uint64_t values = 1;
  for (uint32_t i = 0; i < count; i++) values *= dims[i];
  const uint64_t seed = hash_bytes(name, strlen(name), 1);
  synth_filler filler;
  synth_filler_init(&filler, type, deviation, seed);
  uint64_t left = values / facts->block_values;
  while (left > 0 && job->status == WICK_OK) {
    const uint64_t most = STRIP_BYTES / facts->block_bytes, blocks = left < most ? left : most;
    synth_fill(&filler, job->strip, (size_t)blocks);
    float *floats = (float *)(void *)job->strip;
    for (size_t i = 0; i < blocks && mean != 0; i++) floats[i] += mean;
    job->status = gguf_writer_write_data(job->writer, job->strip,
                                         (size_t)blocks * facts->block_bytes, &job->error);
    left -= blocks;
  }
}

static void put_vector(mmproj_job *job, const char *prefix, const char *name, float mean,
                       uint64_t count) {
  char full[80];
  text_format(full, sizeof full, "%s%s", prefix, name);
  put_tensor(job, full, GGML_TYPE_F32, mean, 0.02f, &count, 1);
}

static void put_norm(mmproj_job *job, const char *prefix, const char *name, uint32_t count) {
  char full[48];
  text_format(full, sizeof full, "%s.weight", name);
  put_vector(job, prefix, full, 1, count);
  text_format(full, sizeof full, "%s.bias", name);
  if (has(job, HAS_BIASES)) put_vector(job, prefix, full, 0, count);
}

static void put_matrix(mmproj_job *job, const char *prefix, const char *name, uint32_t in,
                       uint32_t out) {
  static const char *const CLAMPS[4] = {".input_min", ".input_max", ".output_min", ".output_max"};
  char full[80];
  const uint64_t dims[2] = {in, out};
  text_format(full, sizeof full, "%s%s.weight", prefix, name);
  put_tensor(job, full, job->type, 0, 1.0f / __builtin_sqrtf((float)in), dims, 2);
  text_format(full, sizeof full, "%s.bias", name);
  if (has(job, HAS_BIASES)) put_vector(job, prefix, full, 0, out);
  for (int i = 0; i < 4 && has(job, HAS_CLAMPS); i++) {
    text_format(full, sizeof full, "%s%s", name, CLAMPS[i]);
    put_vector(job, prefix, full, i % 2 == 0 ? -20 : 20, 1);
  }
}

static void put_layer(mmproj_job *job, uint32_t index) {
  const encoder_shape *shape = job->shape;
  const uint32_t width = shape->width, head = width / shape->heads;
  char prefix[32];
  text_format(prefix, sizeof prefix, "v.blk.%u.", (unsigned)index);
  put_norm(job, prefix, "ln1", width);
  put_norm(job, prefix, "ln2", width);
  if (has(job, HAS_FUSED_QKV)) {
    put_matrix(job, prefix, "attn_qkv", width, 3 * width);
  } else {
    put_matrix(job, prefix, "attn_q", width, width);
    put_matrix(job, prefix, "attn_k", width, width);
    put_matrix(job, prefix, "attn_v", width, width);
  }
  put_matrix(job, prefix, "attn_out", width, width);
  if (has(job, HAS_HEAD_NORMS)) {
    put_vector(job, prefix, "attn_q_norm.weight", 1, head);
    put_vector(job, prefix, "attn_k_norm.weight", 1, head);
  }
  if (has(job, HAS_POST_NORMS)) {
    put_vector(job, prefix, "attn_post_norm.weight", 1, width);
    put_vector(job, prefix, "ffn_post_norm.weight", 1, width);
  }
  if (has(job, HAS_GATE)) put_matrix(job, prefix, "ffn_gate", width, shape->ffn);
  put_matrix(job, prefix, "ffn_up", width, shape->ffn);
  put_matrix(job, prefix, "ffn_down", shape->ffn, width);
}

static void put_deepstack(mmproj_job *job, uint32_t layer) {
  const uint32_t wide = 4 * job->shape->width;
  char prefix[32];
  text_format(prefix, sizeof prefix, "v.deepstack.%u.", (unsigned)layer);
  put_norm(job, prefix, "norm", wide);
  put_matrix(job, prefix, "fc1", wide, wide);
  put_matrix(job, prefix, "fc2", wide, job->shape->text);
}

static void put_tensors(mmproj_job *job) {
  const encoder_shape *shape = job->shape;
  const uint64_t patch[4] = {shape->patch, shape->patch, 3, shape->width};
  const uint64_t positions[3] = {shape->width, shape->positions, has(job, HAS_HEAD_NORMS) ? 2 : 1};
  put_tensor(job, "v.patch_embd.weight", GGML_TYPE_F32, 0, 0.03f, patch, 4);
  if (has(job, HAS_SECOND_FRAME)) {
    put_tensor(job, "v.patch_embd.weight.1", GGML_TYPE_F32, 0, 0.03f, patch, 4);
  }
  if (has(job, HAS_BIASES)) put_vector(job, "v.", "patch_embd.bias", 0, shape->width);
  put_tensor(job, "v.position_embd.weight", GGML_TYPE_F32, 0, 0.02f, positions,
             positions[2] == 2 ? 3 : 2);
  for (uint32_t i = 0; i < job->layers; i++) put_layer(job, i);
  for (uint32_t i = 0; i < DEEPSTACKS_MAX && shape->deepstack_step != 0; i++) {
    const uint32_t layer = 5 + i * shape->deepstack_step;
    if (layer < job->layers) put_deepstack(job, layer);
  }
  if (has(job, HAS_LAST_NORM)) put_norm(job, "v.", "post_ln", shape->width);
  for (int i = 0; i < 2 && shape->matrices[i].name != NULL; i++) {
    const projector_matrix *matrix = &shape->matrices[i];
    put_matrix(job, "", matrix->name, matrix->in, matrix->out);
  }
}

// ---- metadata ----

static void put_metadata(mmproj_job *job) {
  gguf_writer *writer = job->writer;
  const encoder_shape *shape = job->shape;
  const float middle[3] = {0.5f, 0.5f, 0.5f}, none[3] = {0, 0, 0}, one[3] = {1, 1, 1};
  const bool is_raw = has(job, HAS_CLAMPS);  // Gemma 4
  gguf_writer_add_string(writer, "general.architecture", "clip", 4);
  gguf_writer_add_string(writer, "clip.projector_type", shape->projector, strlen(shape->projector));
  gguf_writer_add_bool(writer, "clip.has_vision_encoder", true);
  if (has(job, HAS_GELU)) gguf_writer_add_bool(writer, "clip.use_gelu", true);
  gguf_writer_add_u32(writer, "clip.vision.image_size", shape->image);
  gguf_writer_add_u32(writer, "clip.vision.patch_size", shape->patch);
  gguf_writer_add_u32(writer, "clip.vision.embedding_length", shape->width);
  gguf_writer_add_u32(writer, "clip.vision.feed_forward_length", shape->ffn);
  gguf_writer_add_u32(writer, "clip.vision.block_count", job->layers);
  gguf_writer_add_u32(writer, "clip.vision.attention.head_count", shape->heads);
  gguf_writer_add_u32(writer, "clip.vision.projection_dim", shape->text);
  gguf_writer_add_f32(writer, "clip.vision.attention.layer_norm_epsilon", 1e-6f);
  gguf_writer_add_array(writer, "clip.vision.image_mean", GGUF_F32, is_raw ? none : middle, 3);
  gguf_writer_add_array(writer, "clip.vision.image_std", GGUF_F32, is_raw ? one : middle, 3);
  if (shape->longest != 0) {
    gguf_writer_add_u32(writer, "clip.vision.preproc_image_size", shape->longest);
  }
  if (shape->scale != 0) {
    gguf_writer_add_u32(writer, "clip.vision.projector.scale_factor", shape->scale);
  }
}

static void write_model(mmproj_job *job) {
  job->status = gguf_writer_create(&job->memory, write_bytes, job, 32, &job->writer, &job->error);
  job->strip = memory_alloc(&job->memory, STRIP_BYTES);
  if (job->status == WICK_OK && job->strip == NULL) {
    job->status = memory_fail(&job->memory, &job->error, "a strip of weights");
  }
  if (job->status == WICK_OK) {
    put_metadata(job);
    job->is_header = true;
    put_tensors(job);
    job->is_header = false;
    job->status = gguf_writer_write_header(job->writer, &job->error);
  }
  put_tensors(job);
  if (job->status == WICK_OK) job->status = gguf_writer_finish(job->writer, &job->error);
  gguf_writer_destroy(job->writer);
  memory_free(&job->memory, job->strip);
}

exit_code lab_mmproj(int argc, char **argv) {
  mmproj_job job = {0};
  char names[256] = "shapes:";
  for (int i = 0; i < SHAPES_COUNT; i++) {
    const size_t used = strlen(names);
    text_format(names + used, sizeof names - used, " %s", SHAPES[i].name);
  }
  const args_option options[] = {
      args_u32("--layers", &job.layers, "N", 1, 64,
               "set the encoder's number of layers (default: the shape's)")};
  const args_spec spec = {"wick-lab mmproj SHAPE TYPE OUT [options]   (TYPE: f32, f16, q8_0 ...)",
                          names, options, sizeof options / sizeof options[0], 3};
  const char *given[ARGS_POSITIONALS_MAX];
  const exit_code parsed = args_parse(&spec, argc, argv, given);
  if (parsed != EXIT_NOT_YET) return parsed;
  const synth_mix *mix = synth_find_mix(given[1]);
  for (int i = 0; i < SHAPES_COUNT; i++) {
    if (strcmp(SHAPES[i].name, given[0]) == 0) job.shape = &SHAPES[i];
  }
  if (mix == NULL || job.shape == NULL) {
    report("unknown %s '%s' ('wick-lab mmproj --help')", mix == NULL ? "type" : "shape",
           mix == NULL ? given[1] : given[0]);
    return EXIT_USAGE;
  }
  job.type = mix->type;
  if (job.layers == 0) job.layers = job.shape->layers;
  job.file.path = given[2];
  memory_init(&job.memory, 0, platform_alloc, platform_free);
  write_model(&job);
  const bool must_report = job.status != WICK_OK && job.status != WICK_E_IO;
  return output_file_end(&job.file, must_report ? report_error(given[2], &job.error) : EXIT_DONE);
}

// lab/synth.c — writes a model of a known shape with random weights, for benchmarks and tests.
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/math.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "format/gguf_writer.h"
#include "lab/synth_metadata.h"
#include "lab/synth_shape.h"
#include "lab/synth_weights.h"
#include "platform/platform.h"

typedef struct synth_job {
  const synth_shape *shape;
  const synth_mix *mix;
  uint64_t seed;
  output_file file;
  memory_gate memory;
  gguf_writer *writer;
} synth_job;

static bool write_bytes(void *context, const void *bytes, size_t size_bytes) {
  synth_job *job = context;
  return output_file_write(&job->file, bytes, size_bytes);
}

// ---- tensors ----

// Returns Llama 3.1's RoPE factors, which stretch long wavelengths: factor 32 above a context of
// 8192, as written by llama.cpp's convert_hf_to_gguf.py.
static float rope_factor(const synth_shape *shape, uint64_t index) {
  const double factor = 32, low = 1, high = 4, context = 8192, pi = 3.141592653589793;
  const double head_dim = (double)synth_head_dim(shape);
  const double wavelength =
      2 * pi * math_pow((double)shape->rope_theta, 2 * (double)index / head_dim);
  if (wavelength < context / high) return 1.0f;
  if (wavelength > context / low) return (float)factor;
  const double smooth = (context / wavelength - low) / (high - low);
  return (float)(1 / ((1 - smooth) / factor + smooth));
}

static wick_status write_values(synth_job *job, const synth_tensor *tensor, uint64_t seed,
                                wick_error *error) {
  synth_random random = {seed};
  const uint64_t rows = tensor->dim_count > 1 ? tensor->dims[1] : 1;
  for (uint64_t i = 0; i < tensor->dims[0] * rows; i++) {
    float value = synth_random_f32(&random) * tensor->deviation;
    if (tensor->content == SYNTH_NORM) value += 1.0f;
    if (tensor->content == SYNTH_DECAY) value -= 1.0f;
    if (tensor->content == SYNTH_ROPE_FACTORS) value = rope_factor(job->shape, i);
    const wick_status status = gguf_writer_write_data(job->writer, &value, sizeof value, error);
    if (status != WICK_OK) return status;
  }
  return WICK_OK;
}

enum { STRIP_BYTES = 1024 * 1024 };

static wick_status write_matrix(synth_job *job, const synth_tensor *tensor, uint64_t seed,
                                uint8_t *strip, wick_error *error) {
  const ggml_type_facts *facts = type_facts(tensor->type);
  const size_t strip_blocks = STRIP_BYTES / facts->block_bytes;
  uint64_t left = tensor->dims[0] / facts->block_values * tensor->dims[1];
  if (tensor->dim_count > 2) left *= tensor->dims[2];
  synth_filler filler;
  synth_filler_init(&filler, tensor->type, tensor->deviation, seed);
  while (left > 0) {
    const size_t blocks = left < strip_blocks ? (size_t)left : strip_blocks;
    synth_fill(&filler, strip, blocks);
    const wick_status status =
        gguf_writer_write_data(job->writer, strip, blocks * facts->block_bytes, error);
    if (status != WICK_OK) return status;
    left -= blocks;
  }
  return WICK_OK;
}

static wick_status write_tensors(synth_job *job, wick_error *error) {
  uint8_t *strip = memory_alloc(&job->memory, STRIP_BYTES);
  if (strip == NULL) return memory_fail(&job->memory, error, "a strip of weights");
  wick_status status = WICK_OK;
  synth_tensor tensor;
  synth_cursor at = {0};
  while (status == WICK_OK && synth_next_tensor(job->shape, job->mix, &at, &tensor)) {
    const uint64_t seed = hash_bytes(tensor.name, strlen(tensor.name), job->seed);
    status = tensor.content == SYNTH_MATRIX ? write_matrix(job, &tensor, seed, strip, error)
                                            : write_values(job, &tensor, seed, error);
  }
  memory_free(&job->memory, strip);
  return status;
}

static wick_status write_model(synth_job *job, wick_error *error) {
  wick_status status = gguf_writer_create(&job->memory, write_bytes, job, 32, &job->writer, error);
  if (status != WICK_OK) return status;
  synth_add_metadata(job->writer, job->shape, job->mix, &job->memory);
  synth_tensor tensor;
  for (synth_cursor at = {0}; synth_next_tensor(job->shape, job->mix, &at, &tensor);) {
    gguf_writer_add_tensor(job->writer, tensor.name, tensor.type, tensor.dims, tensor.dim_count);
  }
  status = gguf_writer_write_header(job->writer, error);
  if (status == WICK_OK) status = write_tensors(job, error);
  if (status == WICK_OK) status = gguf_writer_finish(job->writer, error);
  gguf_writer_destroy(job->writer);
  return status;
}

// ---- the command ----

static exit_code write_file(synth_job *job, const char *path) {
  job->file.path = path;
  memory_init(&job->memory, 0, platform_alloc, platform_free);
  wick_error error;
  const wick_status status = write_model(job, &error);
  const bool must_report = status != WICK_OK && status != WICK_E_IO;
  return output_file_end(&job->file, must_report ? report_error(path, &error) : EXIT_DONE);
}

static bool find_names(synth_job *job, const char *shape, const char *mix) {
  job->shape = synth_find_shape(shape);
  job->mix = synth_find_mix(mix);
  if (job->shape == NULL) {
    report("unknown shape '%s' ('%s synth --help' lists them)", shape, PROGRAM_NAME);
  }
  if (job->mix == NULL) {
    report("unknown type '%s' ('%s synth --help' lists them)", mix, PROGRAM_NAME);
  }
  return job->shape != NULL && job->mix != NULL;
}

// Writes "shapes: tiny ...\ntypes:  f32 ...".
static void list_names(char *out, size_t size_bytes) {
  size_t used = (size_t)snprintf(out, size_bytes, "shapes:");
  for (uint32_t i = 0; synth_shape_at(i) != NULL; i++)
    used += (size_t)snprintf(out + used, size_bytes - used, " %s", synth_shape_at(i)->name);
  used += (size_t)snprintf(out + used, size_bytes - used, "\ntypes: ");
  for (uint32_t i = 0; synth_mix_at(i) != NULL; i++)
    used += (size_t)snprintf(out + used, size_bytes - used, " %s", synth_mix_at(i)->name);
}

exit_code command_synth(int argc, char **argv) {
  synth_job job = {.seed = 1};
  char usage[64], names[512];
  text_format(usage, sizeof usage, "%s synth SHAPE TYPE OUT [--seed S]   (OUT: a file, or -)",
              PROGRAM_NAME);
  list_names(names, sizeof names);
  const args_option options[] = {
      args_u64("--seed", &job.seed, "S", "seed the weights (default 1)"),
  };
  const args_spec spec = {usage, names, options, sizeof options / sizeof options[0], 3};
  const char *given[ARGS_POSITIONALS_MAX];
  const exit_code parsed = args_parse(&spec, argc, argv, given);
  if (parsed != EXIT_NOT_YET) return parsed;
  if (!find_names(&job, given[0], given[1])) return EXIT_USAGE;
  return write_file(&job, given[2]);
}

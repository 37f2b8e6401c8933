// model/adapter.c — see adapter.h: checks a file's pairs of matrices against the model, and stores
// them.
#include "model/adapter.h"

#include <string.h>

#include "base/math.h"
#include "base/text.h"
#include "kernels/answers.h"
#include "model/arena.h"
#include "model/family.h"
#include "quantize/decode.h"

// ---- Keys ----

static wick_status check_text(const gguf_directory *directory, const char *key, const char *wanted,
                              wick_status otherwise, wick_error *error) {
  gguf_string text = {"", 0};
  char quoted[GGUF_QUOTE_BYTES];
  const wick_status status = gguf_get_string(directory, key, &text, error);
  if (status == WICK_E_NODATA) {
    return fail_with(error, WICK_E_FORMAT, WICK_NO_OFFSET,
                     "the key '%s' is missing: the file is not an adapter", key);
  }
  if (status != WICK_OK || gguf_string_equals(text, wanted)) return status;
  return fail_with(error, otherwise, gguf_find(directory, key)->offset_bytes,
                   "the adapter's key '%s' is '%s', expected '%s'", key, gguf_quote(text, quoted),
                   wanted);
}

static wick_status read_keys(model_adapter *adapter, const char *architecture,
                             const gguf_directory *directory, wick_error *error) {
  static const char INVOCATION[] = "adapter.alora.invocation_tokens",
                    ALPHA[] = "adapter.lora.alpha";
  wick_status status = check_text(directory, "general.type", "adapter", WICK_E_FORMAT, error);
  if (status == WICK_OK) {
    status = check_text(directory, "adapter.type", "lora", WICK_E_UNSUPPORTED, error);
  }
  if (status == WICK_OK) {
    status = check_text(directory, "general.architecture", architecture, WICK_E_MISMATCH, error);
  }
  if (status != WICK_OK) return status;
  const gguf_value *invocation = gguf_find(directory, INVOCATION);
  if (invocation != NULL) {
    return fail_with(error, WICK_E_UNSUPPORTED, invocation->offset_bytes,
                     "activated adapters ('%s') are not supported", INVOCATION);
  }
  double alpha = 0;
  status = gguf_get_f64(directory, ALPHA, &alpha, error);
  if (status != WICK_OK && status != WICK_E_NODATA) return status;
  adapter->alpha = (float)alpha;
  if (math_is_finite_f32(adapter->alpha)) return WICK_OK;
  return fail_with(error, WICK_E_FORMAT, gguf_find(directory, ALPHA)->offset_bytes,
                   "the adapter's key '%s' is not a finite number", ALPHA);
}

// ---- Tensors ----

static const char SUFFIX_A[] = ".lora_a", SUFFIX_B[] = ".lora_b";
enum { SUFFIX_BYTES = sizeof SUFFIX_A - 1, NAME_BYTES = GGUF_TENSOR_NAME_BYTES_MAX + 1 };

static bool ends_with(gguf_string name, const char *suffix) {
  return name.size_bytes > SUFFIX_BYTES &&
         memcmp(name.bytes + name.size_bytes - SUFFIX_BYTES, suffix, SUFFIX_BYTES) == 0;
}

// Finds the other tensor of a pair. Names may contain zero bytes.
static wick_status find_partner(const gguf_directory *directory, const gguf_tensor *tensor,
                                const gguf_tensor **partner, wick_error *error) {
  char name[NAME_BYTES], quoted[GGUF_QUOTE_BYTES], missing[GGUF_QUOTE_BYTES];
  const bool is_a = ends_with(tensor->name, SUFFIX_A);
  if (!is_a && !ends_with(tensor->name, SUFFIX_B)) {
    return fail_with(error, WICK_E_UNSUPPORTED, tensor->entry_offset_bytes,
                     "the adapter's tensor '%s' is neither lora_a nor lora_b of a weight",
                     gguf_quote(tensor->name, quoted));
  }
  const size_t size = (size_t)tensor->name.size_bytes;
  const gguf_string wanted = {name, size};
  memcpy(name, tensor->name.bytes, size);
  memcpy(name + size - SUFFIX_BYTES, is_a ? SUFFIX_B : SUFFIX_A, SUFFIX_BYTES);
  *partner = gguf_find_tensor_string(directory, wanted);
  if (*partner != NULL) return WICK_OK;
  return fail_with(error, WICK_E_FORMAT, tensor->entry_offset_bytes,
                   "the adapter has a tensor '%s' but no '%s'", gguf_quote(tensor->name, quoted),
                   gguf_quote(wanted, missing));
}

// Finds the model's tensor that a pair changes, and its index.
static wick_status find_target(const loaded_model *model, const model_tensors *tensors,
                               const gguf_tensor *a, const weight_tensor **target,
                               wick_error *error) {
  char name[NAME_BYTES], quoted[GGUF_QUOTE_BYTES];
  const gguf_string base = {a->name.bytes, a->name.size_bytes - SUFFIX_BYTES};
  gguf_quote(base, quoted);
  const size_t read = text_format(name, sizeof name, "%.*s", (int)base.size_bytes, base.bytes);
  // the model's names do not contain zero bytes
  const int32_t index = read < base.size_bytes ? -1 : tensors->find(tensors->context, name);
  if (index < 0) {
    return fail_with(error, WICK_E_MISMATCH, a->entry_offset_bytes,
                     "the adapter changes a tensor '%s', which the model does not have", quoted);
  }
  const model_binding *binding = &model->bindings[index];
  *target = binding->matrix;
  if (*target == &model->embedding && model->is_tied) {
    return fail_with(error, WICK_E_UNSUPPORTED, a->entry_offset_bytes,
                     "the adapter changes '%s', which is also the model's output", quoted);
  }
  if (*target != NULL && (binding->is_adaptable || *target == &model->embedding)) return WICK_OK;
  return fail_with(error, WICK_E_UNSUPPORTED, a->entry_offset_bytes,
                   "the adapter changes the tensor '%s', which is not supported", quoted);
}

static bool is_stack(const gguf_tensor *tensor, uint64_t cols, uint64_t rows, uint64_t count) {
  return tensor->dims[0] == cols && tensor->dims[1] == rows && tensor->dims[2] == count &&
         tensor->dims[3] == 1;
}

static wick_status refuse_shapes(const gguf_tensor *a, const gguf_tensor *b,
                                 const weight_tensor *target, wick_error *error) {
  char quoted[GGUF_QUOTE_BYTES];
  gguf_quote(a->name, quoted);
  if (target->dims[2] == 1) {
    return fail_with(error, WICK_E_SHAPE, a->entry_offset_bytes,
                     "the adapter's '%s' is %llu x %llu and its lora_b is %llu x %llu, but the "
                     "model's tensor is %u x %u (row length x rows)",
                     quoted, (unsigned long long)a->dims[0], (unsigned long long)a->dims[1],
                     (unsigned long long)b->dims[0], (unsigned long long)b->dims[1],
                     target->dims[0], target->dims[1]);
  }
  return fail_with(error, WICK_E_SHAPE, a->entry_offset_bytes,
                   "the adapter's '%s' is %llu x %llu x %llu and its lora_b is %llu x %llu x %llu, "
                   "but the model's tensor is %u x %u x %u (row length x rows x matrices)",
                   quoted, (unsigned long long)a->dims[0], (unsigned long long)a->dims[1],
                   (unsigned long long)a->dims[2], (unsigned long long)b->dims[0],
                   (unsigned long long)b->dims[1], (unsigned long long)b->dims[2], target->dims[0],
                   target->dims[1], target->dims[2]);
}

static wick_status check_shapes(const gguf_tensor *a, const gguf_tensor *b,
                                const weight_tensor *target, bool is_lookup, wick_error *error) {
  const uint64_t rank = b->dims[0], cols = target->dims[0], rows = target->dims[1];
  const uint64_t count = target->dims[2];
  const bool fits = is_lookup ? is_stack(a, rank, rows, count) && is_stack(b, rank, cols, count)
                              : is_stack(a, cols, rank, count) && is_stack(b, rank, rows, count);
  char quoted[GGUF_QUOTE_BYTES];
  if (!fits) return refuse_shapes(a, b, target, error);
  if (rank <= ADAPTER_RANK_MAX) return WICK_OK;
  return fail_with(error, WICK_E_UNSUPPORTED, a->entry_offset_bytes,
                   "the adapter's '%s' has rank %llu, the limit is %d", gguf_quote(a->name, quoted),
                   (unsigned long long)rank, (int)ADAPTER_RANK_MAX);
}

// Returns the type to store: F32, F16 and BF16 are unchanged, all others become F32.
static ggml_type kept_type(uint32_t type) {
  return type == GGML_TYPE_F16 || type == GGML_TYPE_BF16 ? (ggml_type)type : GGML_TYPE_F32;
}

// Adds the size of a matrix to the total.
static wick_status plan_matrix(model_adapter *adapter, const gguf_tensor *from,
                               weight_tensor *matrix, wick_error *error) {
  char quoted[GGUF_QUOTE_BYTES];
  if (!quantize_can_decode(adapter->kernels, (ggml_type)from->type)) {
    return fail_with(error, WICK_E_UNSUPPORTED, from->entry_offset_bytes,
                     "the adapter's tensor '%s' is of type %s, which is not supported",
                     gguf_quote(from->name, quoted), type_facts(from->type)->name);
  }
  *matrix = (weight_tensor){
      .type = kept_type(from->type),
      .dims = {(uint32_t)from->dims[0], (uint32_t)from->dims[1], (uint32_t)from->dims[2], 1}};
  const wick_status status = tensor_interleave(matrix, adapter->kernels, error);
  // the total fits into 64 bits even for as many matrices of the model's size and rank as a file
  // may have
  adapter->weights_bytes += matrix->size_bytes;
  return status;
}

static wick_status add_pair(model_adapter *adapter, const loaded_model *model,
                            const model_tensors *tensors, const gguf_tensor *a,
                            const gguf_tensor *b, wick_error *error) {
  const weight_tensor *target = NULL;
  wick_status status = find_target(model, tensors, a, &target, error);
  if (status != WICK_OK || target == NULL) return status;
  status = check_shapes(a, b, target, target == &model->embedding, error);
  adapter_pair *pair = &adapter->pairs[adapter->pair_count];
  if (status == WICK_OK) status = plan_matrix(adapter, a, &pair->a, error);
  if (status == WICK_OK) status = plan_matrix(adapter, b, &pair->b, error);
  if (status != WICK_OK) return status;
  adapter->pair_of[target->number] = ++adapter->pair_count;
  if (pair->b.dims[0] > adapter->rank_max) adapter->rank_max = pair->b.dims[0];
  return WICK_OK;
}

static wick_status read_pairs(model_adapter *adapter, const loaded_model *model,
                              const model_tensors *tensors, const gguf_directory *directory,
                              wick_error *error) {
  wick_status status = WICK_OK;
  for (uint32_t i = 0; i < adapter->tensor_count && status == WICK_OK; i++) {
    const gguf_tensor *tensor = gguf_tensor_at(directory, i), *partner = NULL;
    status = find_partner(directory, tensor, &partner, error);
    if (partner == NULL || ends_with(tensor->name, SUFFIX_B)) continue;
    adapter->place_of[i] = 2 * adapter->pair_count;
    adapter->place_of[partner - gguf_tensor_at(directory, 0)] = 2 * adapter->pair_count + 1;
    status = add_pair(adapter, model, tensors, tensor, partner, error);
  }
  if (status != WICK_OK || adapter->pair_count != 0) return status;
  return fail_with(error, WICK_E_FORMAT, WICK_NO_OFFSET, "the adapter has no tensors");
}

// Checks that the kernels can multiply the adapter's types, which may differ from the model's.
static wick_status check_kernels(const model_adapter *adapter, wick_error *error) {
  kernel_needs needs = {.types = {false}};
  for (uint32_t i = 0; i < adapter->pair_count; i++) {
    needs.types[adapter->pairs[i].a.type] = needs.types[adapter->pairs[i].b.type] = true;
  }
  return kernels_check(adapter->kernels, &needs, error);
}

wick_status adapter_read(model_adapter *adapter, const loaded_model *model,
                         const model_tensors *tensors, const gguf_directory *directory,
                         uint32_t rows_max, wick_error *error) {
  adapter->memory = model->memory;
  adapter->kernels = model->kernels;
  adapter->tensor_count = (uint32_t)gguf_tensor_count(directory);
  wick_status status = read_keys(adapter, model->family->name, directory, error);
  if (status != WICK_OK) return status;
  const size_t pairs = adapter->tensor_count / 2 + 1, numbers = (size_t)model->binding_count + 1;
  adapter->pairs = memory_alloc_zeroed(model->memory, pairs * sizeof *adapter->pairs);
  adapter->pair_of = memory_alloc_zeroed(model->memory, numbers * sizeof *adapter->pair_of);
  adapter->place_of =
      memory_alloc_array(model->memory, adapter->tensor_count, sizeof *adapter->place_of);
  if (adapter->pairs == NULL || adapter->pair_of == NULL || adapter->place_of == NULL) {
    return memory_fail(model->memory, error, "the adapter's lists");
  }
  status = read_pairs(adapter, model, tensors, directory, error);
  if (status == WICK_OK) status = check_kernels(adapter, error);
  adapter->rows_max = rows_max;
  adapter->low_stride = arena_line_floats(adapter->rank_max);
  adapter->low_bytes =
      (uint64_t)ADAPTER_TARGETS_MAX * rows_max * adapter->low_stride * sizeof(float);
  return status;
}

uint64_t adapter_bytes(const model_adapter *adapter) {
  return adapter->weights_bytes + adapter->low_bytes + adapter->pair_count * sizeof(adapter_pair);
}

wick_status adapter_allocate(model_adapter *adapter, wick_error *error) {
  adapter->weights = memory_alloc_wide(adapter->memory, adapter->weights_bytes);
  adapter->low = memory_alloc_wide(adapter->memory, adapter->low_bytes);
  if (adapter->weights == NULL || adapter->low == NULL) {
    return memory_fail(adapter->memory, error, "the adapter");
  }
  uint8_t *at = adapter->weights;
  for (uint32_t i = 0; i < adapter->pair_count; i++) {
    adapter_pair *pair = &adapter->pairs[i];
    tensor_settle(&pair->a, at);
    at += pair->a.size_bytes;
    tensor_settle(&pair->b, at);
    at += pair->b.size_bytes;
  }
  return WICK_OK;
}

wick_status adapter_place(void *receiver, uint32_t tensor, uint32_t type, uint32_t row,
                          uint32_t first_block, uint32_t block_count, const uint8_t *blocks,
                          wick_error *error) {
  const model_adapter *adapter = receiver;
  (void)error;
  adapter_pair *pair = &adapter->pairs[adapter->place_of[tensor] / 2];
  weight_tensor *matrix = adapter->place_of[tensor] % 2 == 0 ? &pair->a : &pair->b;
  if (matrix->type == type) {
    tensor_place(matrix, adapter->kernels, row, first_block, block_count, blocks);
    return WICK_OK;
  }
  float values[QUANTIZE_CHUNK_VALUES];
  const ggml_type_facts *facts = type_facts(type);
  const uint32_t most = QUANTIZE_CHUNK_VALUES / facts->block_values;
  while (block_count > 0) {
    const uint32_t taken = block_count < most ? block_count : most;
    const uint32_t count = taken * facts->block_values;
    quantize_decode(adapter->kernels, (ggml_type)type, blocks, count, values);
    tensor_place(matrix, adapter->kernels, row, first_block * facts->block_values, count,
                 (const uint8_t *)values);
    blocks += (size_t)taken * facts->block_bytes;
    first_block += taken;
    block_count -= taken;
  }
  return WICK_OK;
}

void adapter_clear(model_adapter *adapter) {
  memory_gate *memory = adapter->memory;
  if (memory == NULL) return;
  memory_free(memory, adapter->pairs);
  memory_free(memory, adapter->pair_of);
  memory_free(memory, adapter->place_of);
  memory_free(memory, adapter->weights);
  memory_free(memory, adapter->low);
}

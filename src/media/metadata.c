// media/metadata.c — reads the metadata of mmproj files (weights.h).
#include "base/math.h"
#include "base/text.h"
#include "media/weights.h"

enum { KEY_BYTES = 96, HEADS_MAX = 1024 };

// Returns clip.MODALITY.NAME, or `name` if it is a complete key.
static const char *key_of(const weight_reader *reader, const char *name, char out[KEY_BYTES]) {
  const bool is_whole = name[0] == 'c' && name[1] == 'l' && name[2] == 'i' && name[3] == 'p';
  text_format(out, KEY_BYTES, "%s%s%s", is_whole ? "" : "clip.", is_whole ? "" : reader->modality,
              name);
  return out;
}

bool metadata_fail_key(const weight_reader *reader, wick_status status, const char *name,
                       const char *why) {
  char key[KEY_BYTES];
  const bool is_tensor = name[0] == 't' && name[1] == 'e' && name[2] == 'n';
  (void)fail_with(reader->error, status, WICK_NO_OFFSET, "mmproj: %s %s",
                  is_tensor ? name : key_of(reader, name, key), why);
  return false;
}

static bool has_key(const weight_reader *reader, const char *name) {
  char key[KEY_BYTES];
  return gguf_find(reader->directory, key_of(reader, name, key)) != NULL;
}

bool metadata_u32(const weight_reader *reader, const char *name, uint32_t low, uint32_t high,
                  bool is_optional, uint32_t *out) {
  char key[KEY_BYTES];
  const wick_status status =
      gguf_get_u32(reader->directory, key_of(reader, name, key), out, reader->error);
  if (status == WICK_E_NODATA) {
    return is_optional || metadata_fail_key(reader, WICK_E_NODATA, name, "is missing");
  }
  if (status != WICK_OK) return false;
  if (*out >= low && *out <= high) return true;
  (void)fail_with(reader->error, WICK_E_FORMAT, WICK_NO_OFFSET,
                  "mmproj: %s is %u, not between %u and %u", key, (unsigned)*out, (unsigned)low,
                  (unsigned)high);
  return false;
}

bool metadata_flag(const weight_reader *reader, const char *name, bool *out) {
  *out = false;
  const wick_status status = gguf_get_bool(reader->directory, name, out, reader->error);
  return status == WICK_OK || status == WICK_E_NODATA;
}

bool metadata_list(const weight_reader *reader, const char *name, const gguf_value **out) {
  char key[KEY_BYTES];
  *out = gguf_find(reader->directory, key_of(reader, name, key));
  if (*out == NULL) return true;
  if ((*out)->type != GGUF_ARRAY || (*out)->item_type == GGUF_STRING) {
    return metadata_fail_key(reader, WICK_E_FORMAT, name, "is not a list of numbers");
  }
  return true;
}

bool metadata_projector(const weight_reader *reader, gguf_string *out) {
  const char *name = "clip.projector_type";
  if (!has_key(reader, name)) name = "projector_type";
  char key[KEY_BYTES];
  const wick_status status =
      gguf_get_string(reader->directory, key_of(reader, name, key), out, reader->error);
  if (status == WICK_E_NODATA) {
    return metadata_fail_key(reader, WICK_E_NODATA, name, "is missing");
  }
  return status == WICK_OK;
}

bool metadata_unknown_projector(const weight_reader *reader, gguf_string name) {
  char quoted[GGUF_QUOTE_BYTES];
  (void)fail_with(reader->error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
                  "mmproj: projector type '%s' is not supported", gguf_quote(name, quoted));
  return false;
}

bool metadata_epsilon(weight_reader *reader) {
  const char *name = "attention.layer_norm_epsilon";
  char key[KEY_BYTES];
  double epsilon;
  const wick_status status =
      gguf_get_f64(reader->directory, key_of(reader, name, key), &epsilon, reader->error);
  if (status == WICK_E_NODATA) {
    return metadata_fail_key(reader, WICK_E_NODATA, name, "is missing");
  }
  if (status != WICK_OK) return false;
  if (!(epsilon >= 0 && epsilon < 1)) {
    return metadata_fail_key(reader, WICK_E_FORMAT, name, "is not between 0 and 1");
  }
  reader->model->epsilon = (float)epsilon;
  return true;
}

bool metadata_heads(weight_reader *reader) {
  media_model *model = reader->model;
  const char *name = "attention.head_count";
  if (!metadata_u32(reader, name, 1, HEADS_MAX, false, &model->heads)) return false;
  model->kv_heads = model->heads;
  model->head_dim = model->width / model->heads;
  if (model->width % model->heads != 0 && !has_key(reader, "attention.head_dim")) {
    return metadata_fail_key(reader, WICK_E_FORMAT, name, "does not divide the embedding length");
  }
  if (!metadata_u32(reader, "attention.head_count_kv", 1, HEADS_MAX, true, &model->kv_heads) ||
      !metadata_u32(reader, "attention.head_dim", 1, 1024, true, &model->head_dim)) {
    return false;
  }
  if (model->heads % model->kv_heads != 0) {
    return metadata_fail_key(reader, WICK_E_FORMAT, name, "is not a multiple of head_count_kv");
  }
  model->head_room = (model->head_dim + 3) / 4 * 4;
  return true;
}

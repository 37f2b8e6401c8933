// model/families/apertus.c — Apertus (Swiss AI 2025): normalised heads and a plain feed-forward
// with xIELU, whose curve is learned per layer. The keys of the curve have no architecture prefix.
#include "base/math.h"
#include "model/families/decoder.h"
#include "model/families/families.h"

// Reads a layer's number: an item of an array, or one number for all layers. If the key is absent
// or not a number, fails and returns 0.
static double read_of_layer(model_plan *plan, const char *key, uint32_t layer) {
  model_keys *keys = plan->keys;
  double number = 0;
  if (keys->status != WICK_OK) return 0;
  const gguf_value *value = gguf_find(keys->directory, key);
  if (value != NULL && value->type == GGUF_ARRAY) {
    const bool has_numbers = value->item_type != GGUF_STRING && value->item_type != GGUF_ARRAY;
    if (has_numbers && layer < value->count) return gguf_array_f64(value, layer);
    keys->status = fail_with(keys->error, WICK_E_FORMAT, value->offset_bytes,
                             "'%s' has no number for layer %u", key, layer);
    return 0;
  }
  const wick_status status = gguf_get_f64(keys->directory, key, &number, keys->error);
  if (status == WICK_E_NODATA) {
    keys->status =
        fail_with(keys->error, WICK_E_FORMAT, WICK_NO_OFFSET, "the key '%s' is missing", key);
  } else {
    keys->status = status;
  }
  return number;
}

static double softplus(double x) {
  return x > 0 ? x + math_log(1 + math_exp(-x)) : math_log(1 + math_exp(x));
}

static kernel_xielu read_curve(model_plan *plan, uint32_t layer) {
  const double slope = read_of_layer(plan, "xielu.beta", layer);
  const double grow = softplus(read_of_layer(plan, "xielu.alpha_p", layer));
  const double shrink = slope + softplus(read_of_layer(plan, "xielu.alpha_n", layer));
  return (kernel_xielu){(float)grow, (float)shrink, (float)slope,
                        (float)read_of_layer(plan, "xielu.eps", layer)};
}

static void plan_apertus(model_plan *plan) {
  const uint32_t layers = plan->model->config.layers;
  attention_settings attention = attention_read_rotated(plan, false);
  dense_settings dense = dense_read(plan);
  attention.qk_norms = ATTENTION_HEAD_NORMS;
  dense.is_plain = true;
  dense.activation = DENSE_XIELU;
  for (uint32_t layer = 0; layer < layers && plan->keys->status == WICK_OK; layer++) {
    dense.xielu = read_curve(plan, layer);
    model_block *mixer = attention_make(plan, &attention);
    plan_layer(plan, layer, mixer, dense_make(plan, &dense));
  }
}

const model_family FAMILY_APERTUS = {.name = "apertus", .plan = plan_apertus};

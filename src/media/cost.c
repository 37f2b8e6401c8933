// media/cost.c — counts the multiply-adds of an encoding, from the shapes of its weights
// (encode.h).
#include "media/audio_encode.h"

// Returns the number of multiply-adds per row.
static uint64_t linear_macs(const media_linear *linear) {
  return (uint64_t)linear->matrix.dims[0] * linear->matrix.dims[1];
}

static uint64_t feed_forward_macs(const media_feed_forward *ffn) {
  return linear_macs(&ffn->gate) + linear_macs(&ffn->up) + linear_macs(&ffn->down);
}

static uint64_t attention_macs(const media_model *model, const vision_attention *attention,
                               uint64_t seen) {
  return linear_macs(&attention->qkv) + linear_macs(&attention->q) + linear_macs(&attention->k) +
         linear_macs(&attention->v) + linear_macs(&attention->out) +
         2 * seen * model->heads * model->head_dim;
}

static uint64_t projector_macs(const media_model *model, const media_projector *projector,
                               uint32_t merge, uint64_t rows) {
  uint64_t macs = 0;
  for (uint32_t i = 0; i < projector->count; i++) {
    const media_bound_step *bound = &projector->steps[i];
    rows = project_rows(model, bound, merge, rows);
    macs += rows * (linear_macs(&bound->linear) + feed_forward_macs(&bound->gated));
  }
  return macs;
}

// Counts a conformer: attention, two feed-forwards, the convolution block.
static uint64_t conformer_macs(const media_model *model, uint64_t rows) {
  const audio_weights *sound = model->sound;
  const uint64_t width = model->width, ffn = sound->layers[0].ffn[0].width;
  return model->layer_count * rows *
         (4 * width * width + 4 * width * ffn + 3 * width * sound->conv_channels);
}

static uint64_t transformer_macs(const media_model *model, uint64_t *rows) {
  const uint64_t window = (uint64_t)model->window * model->window;
  uint64_t macs = *rows * linear_macs(&model->patches);
  for (uint32_t i = 0; i < model->layer_count; i++) {
    const vision_layer *layer = &model->layers[i];
    const uint64_t seen = layer->is_windowed && window < *rows ? window : *rows;
    macs += *rows * (attention_macs(model, &layer->attention, seen) +
                     feed_forward_macs(&layer->feed_forward));
    if (layer->deepstack != NULL) {
      macs += projector_macs(model, layer->deepstack, model->merge, *rows);
    }
    if (model->reduction == NULL || model->reduction->after != i) continue;
    macs += *rows * attention_macs(model, &model->reduction->attention, window) +
            projector_macs(model, &model->reduction->projector, 2, *rows);
    *rows /= 4;
  }
  return macs;
}

uint64_t encode_macs(const media_model *model, uint32_t across, uint32_t down) {
  uint64_t rows = (uint64_t)across * down;
  const bool is_conformer = model->audio != NULL && model->audio->is_conformer;
  const uint64_t layers =
      is_conformer ? conformer_macs(model, rows) : transformer_macs(model, &rows);
  return layers + projector_macs(model, &model->projector, model->merge, rows);
}

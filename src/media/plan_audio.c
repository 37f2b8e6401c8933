// media/plan_audio.c — the chunks of a recording in a prompt, and its spectra.
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "media/audio_encode.h"

static void put_text(media_plan *plan, const char *text) {
  if (text == NULL) return;
  media_chunk *chunk = &plan->chunks[plan->count++];
  *chunk = (media_chunk){.is_text = true};
  text_format(chunk->text, sizeof chunk->text, "%s", text);
}

static void put_rows(const media_model *model, media_plan *plan, uint32_t index) {
  const sound_front *front = &model->sound->front;
  media_chunk *chunk = &plan->chunks[plan->count++];
  *chunk = (media_chunk){.is_audio = true,
                         .counts_rows = true,
                         .column = index,
                         .width = sound_chunk_frames(front, plan->samples, index),
                         .height = model->bands * (front->stack == 0 ? 1 : front->stack)};
  chunk->rows = chunk->positions = chunk->across = audio_rows(model, chunk->width);
  chunk->down = 1;
  chunk->macs = encode_macs(model, audio_inner_rows(model, chunk->width), 1);
  plan->tiles++;
  plan->rows += chunk->rows;
  plan->macs += chunk->macs;
  const uint64_t bytes = encode_bytes(model, chunk, 1) +
                         sound_spectrum_bytes(front, model->bands, plan->samples, index);
  if (bytes > plan->encode_bytes) plan->encode_bytes = bytes;
}

wick_status media_plan_audio(const media_model *model, uint64_t samples, media_plan *out,
                             wick_error *error) {
  *out = (media_plan){.samples = samples};
  if (samples == 0 || samples > (uint64_t)SOUND_SECONDS_MAX * SOUND_RATE) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "audio: %llu samples, must be 1 to %llu",
                     (unsigned long long)samples,
                     (unsigned long long)SOUND_SECONDS_MAX * SOUND_RATE);
  }
  const uint32_t chunks = sound_measure(&model->sound->front, samples).chunks;
  out->chunks = memory_alloc_array(model->memory, (size_t)chunks + 2, sizeof *out->chunks);
  if (out->chunks == NULL) return memory_fail(model->memory, error, "the plan of a recording");
  put_text(out, model->audio->before);
  for (uint32_t i = 0; i < chunks; i++) put_rows(model, out, i);
  put_text(out, model->audio->after);
  if (out->rows != 0) return WICK_OK;
  media_plan_free(model->memory, out);
  return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "audio: %llu samples are too few for a row",
                   (unsigned long long)samples);
}

sound_recording media_recording(const media_model *model, const media_plan *plan,
                                const media_prepared *prepared) {
  return (sound_recording){.front = &model->sound->front,
                           .bands = model->bands,
                           .samples = prepared->samples,
                           .count = plan->samples,
                           .maximum = prepared->maximum};
}

void media_begin_audio(const float *samples, media_prepared *out) {
  *out = (media_prepared){.samples = samples};
}

wick_status media_listen(const media_model *model, const media_plan *plan, media_prepared *prepared,
                         bool *is_done, wick_error *error) {
  sound_recording recording = media_recording(model, plan, prepared);
  const wick_status status = sound_listen(model->memory, &recording, &prepared->heard,
                                          ENCODE_SLICE_MACS / SOUND_FRAME_MACS, is_done, error);
  prepared->maximum = recording.maximum;
  return status;
}

wick_status media_prepare_audio(const media_model *model, const media_plan *plan,
                                const float *samples, media_prepared *out, wick_error *error) {
  bool is_done = false;
  wick_status status = WICK_OK;
  media_begin_audio(samples, out);
  while (status == WICK_OK && !is_done) status = media_listen(model, plan, out, &is_done, error);
  return status;
}

wick_status media_chunk_spectrum(const media_model *model, const media_plan *plan,
                                 const media_prepared *prepared, uint32_t chunk, float *out,
                                 wick_error *error) {
  const sound_recording recording = media_recording(model, plan, prepared);
  return sound_spectrum(model->memory, &recording, plan->chunks[chunk].column, out, error);
}

uint64_t media_hash_samples(const float *samples, uint64_t count) {
  enum { PIECE = 1 << 16 };
  uint64_t hash = hash_mix_u64(count);
  for (uint64_t at = 0; at < count; at += PIECE) {
    const uint64_t left = count - at;
    hash = hash_bytes(samples + at, (size_t)(left < PIECE ? left : PIECE) * sizeof *samples, hash);
  }
  return hash;
}

// media/audio_encode.h — the parts of audio encoders other than the transformer (encode.h).
#ifndef WICK_MEDIA_AUDIO_ENCODE_H
#define WICK_MEDIA_AUDIO_ENCODE_H

#include "media/audio.h"
#include "media/encode.h"

// The cost of computing a frame's spectrum, as the number of multiply-adds that take the same time.
enum { SOUND_FRAME_MACS = 1 << 21 };

// Returns the recording of a plan (plan_audio.c).
sound_recording media_recording(const media_model *model, const media_plan *plan,
                                const media_prepared *prepared);
// Computes the spectrum and sets hidden to its rows (stem.c).
void stem_embed(media_encoding *encoding);
// Return the number of floats of each of the two maps, and of the widest row that is multiplied.
uint64_t stem_map_floats(const media_model *model, uint32_t frames);
uint32_t stem_widest(const media_model *model);

// Runs layer encoding->layer of a conformer (conformer.c). Uses the buffers of attention.
void conformer_layer_run(media_encoding *encoding);
// For Granite, adds the scores of its classes after half of the layers.
void conformer_add_classes(media_encoding *encoding);
// Return the number of floats of the rows of relative positions, and of a thread's scores and
// queries.
uint64_t conformer_relative_floats(const media_model *model, uint32_t rows);
uint32_t conformer_thread_floats(const media_model *model, uint32_t rows);

// Turns Granite's windows of `from` into queries, *out (qformer.c). Returns the number of rows.
uint32_t qformer_run(media_encoding *encoding, const float *from, size_t from_stride, float **out,
                     size_t *out_stride);
uint64_t qformer_floats(const media_model *model, uint32_t rows);

#endif

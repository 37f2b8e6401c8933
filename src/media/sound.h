// media/sound.h — the front ends of audio encoders, which turn recordings into spectra. A recording
// is 16 kHz mono in floats from -1 to 1.
#ifndef WICK_MEDIA_SOUND_H
#define WICK_MEDIA_SOUND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

enum { SOUND_RATE = 16000, SOUND_HOP = 160, SOUND_SECONDS_MAX = 4 * 3600, SOUND_MELS_MAX = 512 };

// How the ends of a recording are extended to compute its spectra.
typedef enum sound_ends {
  ENDS_WHISPER,  // reflected at the start, 30 seconds of silence at the end
  ENDS_REFLECT,  // reflected on both sides, zeros if the recording is too short
  ENDS_CLAMPED,  // like ENDS_REFLECT, with clamped indices
  ENDS_ZEROS,    // zeros on both sides
  ENDS_PIECES    // 160 zeros before each piece of 30 seconds
} sound_ends;

// How the bands are scaled.
typedef enum sound_scaling {
  SCALING_MAXIMUM,    // log10, at most 8 below the maximum, (x + 4) / 4
  SCALING_LOGARITHM,  // ln(max(x, 0.001))
  SCALING_DEVIATION   // ln(x + 2^-24), each band normalised by its mean and standard deviation
} sound_scaling;

typedef struct sound_front {
  uint32_t transform, window;  // samples
  bool has_symmetric_window;
  bool begins_with_window;  // the window is at the start of the transform instead of its centre
  bool has_magnitudes;      // uses magnitudes instead of powers
  bool has_htk_bands;       // HTK's mel bands instead of Slaney's, which have equal areas
  bool emphasises;          // computes x[i] - 0.97 x[i - 1]
  sound_ends ends;
  sound_scaling scaling;
  float floor;            // SCALING_MAXIMUM
  float llama_cpp_floor;  // llama.cpp's value; 0: equal to `floor`
  uint32_t piece_frames;  // frames per chunk; 0: all frames
  uint32_t round_frames;  // chunks are padded with zeros to a multiple of this; 0: not padded
  bool drops_rest;        // drops an incomplete piece
  uint32_t stack;         // adjacent frames that become one; the remainder is dropped
} sound_front;

// Frames of all chunks of a recording.
typedef struct sound_shape {
  uint32_t chunks;
  uint64_t frames;  // frames that are computed
} sound_shape;

sound_shape sound_measure(const sound_front *front, uint64_t samples);
// Returns the number of frames of a chunk as it is encoded, after stacking.
uint32_t sound_chunk_frames(const sound_front *front, uint64_t samples, uint32_t chunk);

typedef struct sound_recording {
  const sound_front *front;
  uint32_t bands;
  const float *samples;
  uint64_t count;
  double maximum;  // of all bands, computed by sound_listen
} sound_recording;

// If the scaling needs it, finds the maximum of up to `most` frames starting at *frame, and
// advances *frame. recording->maximum must be 0 before the first call. Sets *is_done when
// recording->maximum covers all frames. WICK_E_NOMEM.
wick_status sound_listen(memory_gate *memory, sound_recording *recording, uint64_t *frame,
                         uint64_t most, bool *is_done, wick_error *error);
// Computes out[bands * stack][sound_chunk_frames] after sound_listen is done. WICK_E_NOMEM.
wick_status sound_spectrum(memory_gate *memory, const sound_recording *recording, uint32_t chunk,
                           float *out, wick_error *error);
// A spectrum that is computed in parts. The recording must outlive the job, which memory_free
// frees.
typedef struct sound_job sound_job;
wick_status sound_begin(memory_gate *memory, const sound_recording *recording, uint32_t chunk,
                        sound_job **out, wick_error *error);
uint32_t sound_frames(const sound_job *job);
void sound_compute(sound_job *job, uint32_t first, uint32_t count);  // frames
void sound_finish(sound_job *job, float *out);                       // after all frames
// Returns the temporary memory of sound_spectrum.
uint64_t sound_spectrum_bytes(const sound_front *front, uint32_t bands, uint64_t count,
                              uint32_t chunk);

#endif

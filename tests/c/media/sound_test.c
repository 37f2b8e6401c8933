// Spectra of recordings: numbers of frames and chunks by hand, a tone in its band, silence.
#include "base/math.h"
#include "check.h"
#include "media/audio.h"
#include "platform/platform.h"

enum { BANDS = 80, SAMPLES = 16000 };

static memory_gate memory;
static wick_error error;
static float samples[SAMPLES], out[BANDS * 3000];

static const sound_front *front_of(const char *name) {
  size_t size = 0;
  while (name[size] != '\0') size++;
  return &audio_kind_find((gguf_string){name, size})->front;
}

static void check_shape(const char *name, uint64_t count, uint32_t chunks, uint32_t last_frames) {
  const sound_front *front = front_of(name);
  CHECK_EQ_UINT(sound_measure(front, count).chunks, chunks);
  CHECK_EQ_UINT(sound_chunk_frames(front, count, chunks - 1), last_frames);
}

TEST(whisper_has_a_second_piece_from_30_seconds_on) {
  check_shape("ultravox", 1, 1, 3000);
  check_shape("ultravox", 479839, 1, 3000);
  check_shape("ultravox", 479840, 2, 3000);
}

TEST(windows_of_qwen_are_filled_to_whole_seconds) {
  check_shape("qwen3a", 16000, 1, 200);  // 101 frames
  check_shape("qwen3a", 8 * 16000, 2, 100);
  check_shape("qwen3a", 9 * 16000, 2, 200);
}

TEST(pieces_of_gemma_are_30_seconds) {
  check_shape("gemma4a", 16000, 1, 99);
  check_shape("gemma4a", 480000, 1, 2999);
  check_shape("gemma4a", 480001, 2, 1);
}

TEST(frames_of_granite_are_in_pairs) {
  check_shape("granite_speech", 37000, 1, 116);
  check_shape("lfm2a", 37000, 1, 232);
}

static uint32_t loudest_band(const sound_front *front, double hz) {
  for (uint32_t i = 0; i < SAMPLES; i++) {
    double sine, cosine;
    math_sin_cos(6.283185307179586 * hz * i / (double)SAMPLES, &sine, &cosine);
    samples[i] = (float)(0.5 * sine);
  }
  memory_init(&memory, 0, platform_alloc, platform_free);
  CHECK_EQ_INT(sound_spectra(&memory, front, BANDS, samples, SAMPLES, out, &error), WICK_OK);
  CHECK_EQ_UINT(memory.blocks_now, 0);
  const uint32_t frames = sound_chunk_frames(front, SAMPLES, 0);
  uint32_t best = 0;
  for (uint32_t band = 1; band < BANDS; band++) {
    if (out[band * frames + 50] > out[best * frames + 50]) best = band;
  }
  return best;
}

TEST(a_tone_is_loudest_in_its_band) {
  // HTK: 1000 Hz is 999.99 mel of 2840.02, so point 28.5 of 81, between the bands 27 and 28
  const uint32_t htk = loudest_band(front_of("gemma4a"), 1000);
  CHECK(htk == 27 || htk == 28);
  // Slaney: 1000 Hz is 15 mel of 45.25, so point 26.85 of 81, and bands begin at point 1
  CHECK_EQ_UINT(loudest_band(front_of("qwen3a"), 1000), 26);
  CHECK_EQ_UINT(loudest_band(front_of("ultravox"), 1000), 26);
}

TEST(silence_is_the_floor) {
  for (uint32_t i = 0; i < SAMPLES; i++) samples[i] = 0;
  memory_init(&memory, 0, platform_alloc, platform_free);
  const sound_front *front = front_of("ultravox");
  CHECK_EQ_INT(sound_spectra(&memory, front, BANDS, samples, SAMPLES, out, &error), WICK_OK);
  // log10(2^-24) is the maximum, too
  CHECK_NEAR(out[0], (-24 * 0.30102999566 + 4) / 4, 1e-6);
  CHECK_NEAR(out[BANDS * 3000 - 1], (-24 * 0.30102999566 + 4) / 4, 1e-6);
}

TEST(memory_that_runs_out_is_reported) {
  for (uint64_t call = 1; call <= 2; call++) {
    memory_init(&memory, 0, platform_alloc, platform_free);
    memory.fail_at_call = call;
    CHECK_EQ_INT(sound_spectra(&memory, front_of("lfm2a"), BANDS, samples, 800, out, &error),
                 WICK_E_NOMEM);
    CHECK_EQ_UINT(memory.blocks_now, 0);
  }
}

// Spectra of recordings: frame and chunk counts computed by hand, a tone in its band, silence.
#include "base/math.h"
#include "check.h"
#include "media/audio.h"
#include "media/media.h"
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

TEST(whisper_adds_a_second_chunk_at_30_seconds) {
  check_shape("ultravox", 1, 1, 3000);
  check_shape("ultravox", 479839, 1, 3000);
  check_shape("ultravox", 479840, 2, 3000);
}

TEST(qwen_pads_windows_to_whole_seconds) {
  check_shape("qwen3a", 16000, 1, 200);  // 101 frames
  check_shape("qwen3a", 8 * 16000, 2, 100);
  check_shape("qwen3a", 9 * 16000, 2, 200);
}

TEST(gemma_chunks_are_30_seconds) {
  check_shape("gemma4a", 16000, 1, 99);
  check_shape("gemma4a", 480000, 1, 2999);
  check_shape("gemma4a", 480001, 2, 1);
}

TEST(granite_frames_are_paired) {
  check_shape("granite_speech", 37000, 1, 116);
  check_shape("lfm2a", 37000, 1, 232);
}

// Measures the recording in slices of three frames.
static wick_status listen(sound_recording *recording) {
  uint64_t frame = 0;
  bool is_done = false;
  wick_status status = WICK_OK;
  recording->maximum = 0;
  while (status == WICK_OK && !is_done) {
    status = sound_listen(&memory, recording, &frame, 3, &is_done, &error);
  }
  return status;
}

// Computes the spectrum of the first chunk of the samples.
static wick_status spectrum_of(const sound_front *front, uint64_t count) {
  sound_recording recording = {.front = front, .bands = BANDS, .samples = samples, .count = count};
  const wick_status status = listen(&recording);
  if (status != WICK_OK) return status;
  return sound_spectrum(&memory, &recording, 0, out, &error);
}

static uint32_t loudest_band(const sound_front *front, double hz) {
  for (uint32_t i = 0; i < SAMPLES; i++) {
    double sine, cosine;
    math_sin_cos(6.283185307179586 * hz * i / (double)SAMPLES, &sine, &cosine);
    samples[i] = (float)(0.5 * sine);
  }
  memory_init(&memory, 0, platform_alloc, platform_free);
  CHECK_EQ_INT(spectrum_of(front, SAMPLES), WICK_OK);
  CHECK_EQ_UINT(memory.blocks_now, 0);
  const uint32_t frames = sound_chunk_frames(front, SAMPLES, 0);
  uint32_t best = 0;
  for (uint32_t band = 1; band < BANDS; band++) {
    if (out[band * frames + 50] > out[best * frames + 50]) best = band;
  }
  return best;
}

TEST(a_tone_is_loudest_in_its_band) {
  // HTK: 1000 Hz is 999.99 mel of 2840.02, so point 28.5 of 81, between bands 27 and 28
  const uint32_t htk = loudest_band(front_of("gemma4a"), 1000);
  CHECK(htk == 27 || htk == 28);
  // Slaney: 1000 Hz is 15 mel of 45.25, so point 26.85 of 81, and bands begin at point 1
  CHECK_EQ_UINT(loudest_band(front_of("qwen3a"), 1000), 26);
  CHECK_EQ_UINT(loudest_band(front_of("ultravox"), 1000), 26);
}

TEST(silence_gives_the_minimum_value) {
  for (uint32_t i = 0; i < SAMPLES; i++) samples[i] = 0;
  memory_init(&memory, 0, platform_alloc, platform_free);
  const sound_front *front = front_of("ultravox");
  CHECK_EQ_INT(spectrum_of(front, SAMPLES), WICK_OK);
  CHECK_NEAR(out[0], (-10.0 + 4) / 4, 1e-6);  // log10(1e-10) is also the maximum
  CHECK_NEAR(out[BANDS * 3000 - 1], (-10.0 + 4) / 4, 1e-6);
  sound_front like = *front;
  like.floor = front->llama_cpp_floor;
  CHECK_EQ_INT(spectrum_of(&like, SAMPLES), WICK_OK);
  CHECK_NEAR(out[0], (-24 * 0.30102999566 + 4) / 4, 1e-6);
}

TEST(a_chunk_is_scaled_by_the_maximum_of_the_recording) {
  static float click[8 * SAMPLES + SAMPLES / 2];
  const sound_front *front = front_of("qwen3a");  // windows of 8 seconds
  sound_recording recording = {.front = front, .bands = BANDS, .samples = click};
  recording.count = sizeof click / sizeof *click;
  memory_init(&memory, 0, platform_alloc, platform_free);
  // a click in the second window: none, in the middle of a frame, on the last sample
  const uint64_t places[] = {0, recording.count - 400, recording.count - 1};
  float levels[3];
  for (int i = 0; i < 3; i++) {
    if (i > 0) click[places[i]] = 100;
    CHECK_EQ_INT(listen(&recording), WICK_OK);
    CHECK_EQ_INT(sound_spectrum(&memory, &recording, 0, out, &error), WICK_OK);
    levels[i] = out[0];
    click[places[i]] = 0;
  }
  // silence is raised to 8 decades below the maximum
  CHECK_NEAR(levels[0], (-10.0 + 4) / 4, 1e-6);
  CHECK(levels[1] > levels[0] + 0.01f);
  CHECK(levels[2] > levels[1] - 0.05f);
}

TEST(memory_depends_on_the_chunk_not_on_the_recording) {
  const sound_front *front = front_of("ultravox");
  const uint64_t minute = 60 * SAMPLES, hour = 60 * minute;
  CHECK_EQ_UINT(sound_spectrum_bytes(front, BANDS, hour, 7),
                sound_spectrum_bytes(front, BANDS, minute, 0));
  CHECK(sound_spectrum_bytes(front, BANDS, hour, 7) < 4 << 20);
}

TEST(allocation_failures_are_reported) {
  for (uint64_t call = 1; call <= 2; call++) {
    memory_init(&memory, 0, platform_alloc, platform_free);
    memory.fail_at_call = call;
    CHECK_EQ_INT(spectrum_of(front_of("ultravox"), 800), WICK_E_NOMEM);
    CHECK_EQ_UINT(memory.blocks_now, 0);
  }
}

// Recordings with equal hashes share their rows.
TEST(the_hash_of_a_recording_depends_on_every_sample) {
  enum { COUNT = 1000 };
  for (size_t i = 0; i < COUNT; i++) samples[i] = (float)i;
  const uint64_t whole = media_hash_samples(samples, COUNT);
  CHECK(media_hash_samples(samples, COUNT - 1) != whole);
  for (size_t i = 0; i < COUNT; i++) {
    samples[i] += 1;
    CHECK(media_hash_samples(samples, COUNT) != whole);
    samples[i] -= 1;
  }
}

// media/sound.c — see sound.h. Sums use doubles, because the logarithm magnifies rounding errors in
// nearly empty bands.
#include "media/sound.h"

#include <string.h>

#include "base/math.h"

enum { PIECE_SAMPLES = 30 * SOUND_RATE, PIECE_LEAD = 160, TRANSFORM_MAX = 512 };

static const double PI = 3.14159265358979323846;

// ---- frames ----

// Returns the number of samples by which frame 0 begins before the recording.
static int64_t lead_of(const sound_front *front) {
  return front->ends == ENDS_PIECES ? PIECE_LEAD : front->transform / 2;
}

static uint64_t piece_frames_of(uint64_t samples) {
  const uint64_t padded = samples + PIECE_LEAD;
  return padded < 321 ? 1 : (padded - 321) / SOUND_HOP + 1;
}

sound_shape sound_measure(const sound_front *front, uint64_t samples) {
  sound_shape shape = {.chunks = 1};
  if (front->ends == ENDS_PIECES) {
    shape.chunks = (uint32_t)((samples + PIECE_SAMPLES - 1) / PIECE_SAMPLES);
    if (shape.chunks == 0) shape.chunks = 1;
    const uint64_t last = samples - (uint64_t)(shape.chunks - 1) * PIECE_SAMPLES;
    shape.frames = (shape.chunks - 1) * piece_frames_of(PIECE_SAMPLES) + piece_frames_of(last);
    return shape;
  }
  if (front->ends == ENDS_WHISPER && samples < 201) samples = 201;
  if (front->ends == ENDS_WHISPER) samples += PIECE_SAMPLES;
  shape.frames = samples / SOUND_HOP + 1;
  if (front->piece_frames == 0) return shape;
  const uint64_t rest = front->drops_rest ? 0 : front->piece_frames - 1;
  shape.chunks = (uint32_t)((shape.frames + rest) / front->piece_frames);
  return shape;
}

// Returns the number of frames of a chunk, before they are padded and stacked; *first is the first
// frame.
static uint64_t chunk_range(const sound_front *front, uint64_t samples, uint32_t chunk,
                            uint64_t *first) {
  const sound_shape shape = sound_measure(front, samples);
  const uint64_t step =
      front->ends == ENDS_PIECES ? piece_frames_of(PIECE_SAMPLES) : front->piece_frames;
  *first = chunk * step;
  const uint64_t left = shape.frames - *first;
  return step != 0 && left > step ? step : left;
}

uint32_t sound_chunk_frames(const sound_front *front, uint64_t samples, uint32_t chunk) {
  uint64_t first;
  uint64_t count = chunk_range(front, samples, chunk, &first);
  const uint32_t round = front->round_frames;
  if (round != 0) count = (count + round - 1) / round * round;
  return (uint32_t)(count / (front->stack == 0 ? 1 : front->stack));
}

// Returns the sample at a position that may be outside of the recording.
static double sample_at(const sound_front *front, const float *samples, int64_t count, int64_t at) {
  if (front->ends == ENDS_WHISPER && count < 201) {  // zeros up to 201 samples
    if (at < 0) at = -at;
    return at < count ? samples[at] : 0;
  }
  const bool reflects = front->ends == ENDS_REFLECT || front->ends == ENDS_CLAMPED;
  if (at < 0) {
    if (!reflects && front->ends != ENDS_WHISPER) return 0;
    at = -at;
  } else if (at >= count && reflects) {
    at = 2 * (count - 1) - at;
  }
  if (front->ends == ENDS_CLAMPED) at = at < 0 ? 0 : at >= count ? count - 1 : at;
  if (at < 0 || at >= count) return 0;
  if (!front->emphasises || at == 0) return samples[at];
  return samples[at] - 0.97f * samples[at - 1];
}

// ---- the transform ----

typedef struct spectrum {
  uint32_t size, odd;  // size = odd * 2^k
  double cosine[TRANSFORM_MAX], sine[TRANSFORM_MAX], window[TRANSFORM_MAX];
  double real[TRANSFORM_MAX], imaginary[TRANSFORM_MAX], in[TRANSFORM_MAX];
} spectrum;

static void begin_spectrum(spectrum *s, const sound_front *front) {
  s->size = s->odd = front->transform;
  while (s->odd % 2 == 0) s->odd /= 2;
  for (uint32_t i = 0; i < s->size; i++) {
    math_sin_cos(2 * PI * i / s->size, &s->sine[i], &s->cosine[i]);
    s->window[i] = 0;
  }
  const uint32_t offset = front->begins_with_window ? 0 : (s->size - front->window) / 2;
  const uint32_t period = front->has_symmetric_window ? front->window - 1 : front->window;
  for (uint32_t i = 0; i < front->window; i++) {
    double sine, cosine;
    math_sin_cos(2 * PI * i / period, &sine, &cosine);
    s->window[offset + i] = 0.5 - 0.5 * cosine;
  }
}

static uint32_t reversed(uint32_t value, uint32_t below) {
  uint32_t out = 0;
  for (uint32_t bit = 1; bit < below; bit *= 2) {
    out = 2 * out + (value & 1);
    value /= 2;
  }
  return out;
}

// Computes transforms of `odd` values each, of every (size / odd)th input.
static void transform_parts(spectrum *s) {
  const uint32_t parts = s->size / s->odd;
  for (uint32_t part = 0; part < parts; part++) {
    const uint32_t first = reversed(part, parts);
    for (uint32_t k = 0; k < s->odd; k++) {
      double real = 0, imaginary = 0;
      for (uint32_t j = 0; j < s->odd; j++) {
        const double value = s->in[first + j * parts];
        const uint32_t angle = j * k % s->odd * parts;
        real += value * s->cosine[angle];
        imaginary -= value * s->sine[angle];
      }
      s->real[part * s->odd + k] = real;
      s->imaginary[part * s->odd + k] = imaginary;
    }
  }
}

// Computes the transform of `in` by decimation in time.
static void transform(spectrum *s) {
  transform_parts(s);
  for (uint32_t half = s->odd; half < s->size; half *= 2) {
    for (uint32_t base = 0; base < s->size; base += 2 * half) {
      for (uint32_t k = 0; k < half; k++) {
        const uint32_t angle = k * (s->size / (2 * half)), a = base + k, b = a + half;
        const double cosine = s->cosine[angle], sine = -s->sine[angle];
        const double real = s->real[b] * cosine - s->imaginary[b] * sine;
        const double imaginary = s->real[b] * sine + s->imaginary[b] * cosine;
        s->real[b] = s->real[a] - real;
        s->imaginary[b] = s->imaginary[a] - imaginary;
        s->real[a] += real;
        s->imaginary[a] += imaginary;
      }
    }
  }
}

// ---- bands ----

static double root_of(double x) { return __builtin_sqrt(x); }

static double mel_of(const sound_front *front, double hz) {
  if (front->has_htk_bands) return 2595 * math_log(1 + hz / 700) / math_log(10);
  return hz < 1000 ? hz * 3 / 200 : 15 + math_log(hz / 1000) / (math_log(6.4) / 27);
}

static double hz_of(const sound_front *front, double mel) {
  if (front->has_htk_bands) return 700 * (math_exp(mel / 2595 * math_log(10)) - 1);
  return mel < 15 ? mel * 200 / 3 : 1000 * math_exp((mel - 15) * (math_log(6.4) / 27));
}

// Computes weights [bands][size / 2 + 1].
static void make_bands(const sound_front *front, uint32_t bands, double *weights) {
  const uint32_t bins = front->transform / 2 + 1;
  const double top = mel_of(front, (double)(SOUND_RATE / 2));
  for (uint32_t band = 0; band < bands; band++) {
    const double left = hz_of(front, top * band / (bands + 1));
    const double middle = hz_of(front, top * (band + 1) / (bands + 1));
    const double right = hz_of(front, top * (band + 2) / (bands + 1));
    for (uint32_t bin = 0; bin < bins; bin++) {
      const double hz = (double)((uint64_t)bin * SOUND_RATE) / front->transform;
      const double up = (hz - left) / (middle - left), down = (right - hz) / (right - middle);
      double weight = up < down ? up : down;
      if (weight < 0) weight = 0;
      if (!front->has_htk_bands) weight *= 2 / (right - left);
      weights[(size_t)band * bins + bin] = weight;
    }
  }
}

// A band has weights for the bins [first, end).
typedef struct band_range {
  uint32_t first, end;
} band_range;

// A range of consecutive frames of a recording.
struct sound_job {
  const sound_recording *recording;
  uint64_t first, frames;  // of the recording
  uint32_t chunk;
  double *weights;  // [bands][bins]
  double *rows;     // [frames][bands]
  spectrum state;
  band_range ranges[SOUND_MELS_MAX];
};

static void find_ranges(sound_job *job) {
  const uint32_t bins = job->recording->front->transform / 2 + 1;
  for (uint32_t band = 0; band < job->recording->bands; band++) {
    const double *weights = job->weights + (size_t)band * bins;
    band_range *range = &job->ranges[band];
    range->end = bins;
    while (range->end > 0 && weights[range->end - 1] == 0) range->end--;
    while (range->first < range->end && weights[range->first] == 0) range->first++;
  }
}

// Copies the samples of a frame; returns false if all of them are 0.
static bool take_frame(sound_job *job, uint64_t frame) {
  spectrum *s = &job->state;
  const sound_recording *recording = job->recording;
  const sound_front *front = recording->front;
  int64_t at = (int64_t)frame * SOUND_HOP, count = (int64_t)recording->count, first = 0;
  if (front->ends == ENDS_PIECES) {
    const uint64_t step = piece_frames_of(PIECE_SAMPLES), piece = frame / step;
    at = (int64_t)(frame - piece * step) * SOUND_HOP;
    first = (int64_t)piece * PIECE_SAMPLES;
    count = count - first < PIECE_SAMPLES ? count - first : PIECE_SAMPLES;
  }
  bool is_silent = true;
  for (uint32_t i = 0; i < s->size; i++) {
    const double value =
        sample_at(front, recording->samples + first, count, at + i - lead_of(front)) * s->window[i];
    s->in[i] = value;
    if (value != 0) is_silent = false;
  }
  return !is_silent;
}

// Computes out[bands] of frame `frame` of the recording.
static void compute_frame(sound_job *job, uint64_t frame, double *out) {
  spectrum *s = &job->state;
  const uint32_t bins = s->size / 2 + 1, bands = job->recording->bands;
  memset(out, 0, bands * sizeof *out);
  if (!take_frame(job, frame)) return;
  transform(s);
  for (uint32_t bin = 0; bin < bins; bin++) {
    const double power = s->real[bin] * s->real[bin] + s->imaginary[bin] * s->imaginary[bin];
    s->in[bin] = job->recording->front->has_magnitudes ? root_of(power) : power;
  }
  for (uint32_t band = 0; band < bands; band++) {
    const double *weights = job->weights + (size_t)band * bins;
    const band_range range = job->ranges[band];
    for (uint32_t bin = range.first; bin < range.end; bin++) out[band] += weights[bin] * s->in[bin];
  }
}

// ---- scaling ----

static double log10_above(double value, double floor) {
  return math_log(value > floor ? value : floor) / math_log(10);
}

static void scale_by_maximum(sound_job *job) {
  const uint64_t values = job->frames * job->recording->bands;
  const double floor = job->recording->front->floor;
  const double least = log10_above(job->recording->maximum, floor) - 8;
  for (uint64_t i = 0; i < values; i++) {
    const double value = log10_above(job->rows[i], floor);
    job->rows[i] = ((value > least ? value : least) + 4) / 4;
  }
}

static void scale_by_logarithm(sound_job *job) {
  for (uint64_t i = 0; i < job->frames * job->recording->bands; i++) {
    job->rows[i] = math_log(job->rows[i] > 0.001 ? job->rows[i] : 0.001);
  }
}

// Scales the values of a job that has all frames of the recording.
static void scale_by_deviation(sound_job *job) {
  const uint64_t heard = job->recording->count / SOUND_HOP;
  const size_t step = job->recording->bands;
  for (uint32_t band = 0; band < job->recording->bands; band++) {
    double *at = job->rows + band, sum = 0, squares = 0;
    for (uint64_t i = 0; i < heard; i++) {
      at[i * step] = math_log(at[i * step] + 0x1p-24);
      sum += at[i * step];
    }
    const double mean = heard == 0 ? 0 : sum / (double)heard;
    for (uint64_t i = 0; i < heard; i++) {
      squares += (at[i * step] - mean) * (at[i * step] - mean);
    }
    const double deviation = heard < 2 ? 0 : root_of(squares / (double)(heard - 1));
    for (uint64_t i = 0; i < job->frames; i++) {
      at[i * step] = i < heard ? (at[i * step] - mean) / (deviation + 1e-5) : 0;
    }
  }
}

// ---- chunks ----

static uint64_t job_doubles(const sound_front *front, uint32_t bands, uint64_t frames) {
  return bands * (front->transform / 2 + 1 + frames);
}

// Creates a job with room for rows of `frames` frames. Returns NULL if memory runs out.
static sound_job *begin_job(memory_gate *memory, const sound_recording *recording,
                            uint64_t frames) {
  const sound_front *front = recording->front;
  const uint64_t doubles = job_doubles(front, recording->bands, frames);
  sound_job *job = memory_alloc_wide(memory, sizeof *job + doubles * sizeof(double));
  if (job == NULL) return NULL;
  memset(job, 0, sizeof *job);
  job->recording = recording;
  job->frames = frames;
  job->weights = (double *)(void *)(job + 1);
  job->rows = job->weights + (size_t)recording->bands * (front->transform / 2 + 1);
  begin_spectrum(&job->state, front);
  make_bands(front, recording->bands, job->weights);
  find_ranges(job);
  return job;
}

wick_status sound_listen(memory_gate *memory, sound_recording *recording, uint64_t *frame,
                         uint64_t most, bool *is_done, wick_error *error) {
  *is_done = recording->front->scaling != SCALING_MAXIMUM;
  if (*is_done) return WICK_OK;
  const uint64_t frames = sound_measure(recording->front, recording->count).frames;
  const uint64_t end = frames - *frame < most ? frames : *frame + most;
  sound_job *job = begin_job(memory, recording, 1);
  if (job == NULL) return memory_fail(memory, error, "the spectra of a recording");
  for (; *frame < end; ++*frame) {
    compute_frame(job, *frame, job->rows);
    for (uint32_t band = 0; band < recording->bands; band++) {
      if (job->rows[band] > recording->maximum) recording->maximum = job->rows[band];
    }
  }
  *is_done = end == frames;
  memory_free(memory, job);
  return WICK_OK;
}

// Writes the rows of a chunk; missing frames are zeros.
static void put_rows(const sound_job *job, uint32_t chunk, float *out) {
  const sound_recording *recording = job->recording;
  const uint32_t bands = recording->bands;
  const uint32_t stack = recording->front->stack == 0 ? 1 : recording->front->stack;
  const uint32_t frames = sound_chunk_frames(recording->front, recording->count, chunk);
  for (uint32_t row = 0; row < bands * stack; row++) {
    for (uint32_t frame = 0; frame < frames; frame++) {
      const uint64_t at = (uint64_t)frame * stack + row / bands;
      const double *from = job->rows + at * bands + row % bands;
      out[(size_t)row * frames + frame] = at < job->frames ? (float)*from : 0;
    }
  }
}

wick_status sound_begin(memory_gate *memory, const sound_recording *recording, uint32_t chunk,
                        sound_job **out, wick_error *error) {
  uint64_t first;
  const uint64_t frames = chunk_range(recording->front, recording->count, chunk, &first);
  *out = begin_job(memory, recording, frames);
  if (*out == NULL) return memory_fail(memory, error, "the spectra of a recording");
  (*out)->first = first;
  (*out)->chunk = chunk;
  return WICK_OK;
}

uint32_t sound_frames(const sound_job *job) { return (uint32_t)job->frames; }

void sound_compute(sound_job *job, uint32_t first, uint32_t count) {
  for (uint32_t i = first; i < first + count; i++) {
    compute_frame(job, job->first + i, job->rows + (size_t)i * job->recording->bands);
  }
}

void sound_finish(sound_job *job, float *out) {
  const sound_scaling scaling = job->recording->front->scaling;
  if (scaling == SCALING_MAXIMUM) scale_by_maximum(job);
  if (scaling == SCALING_LOGARITHM) scale_by_logarithm(job);
  if (scaling == SCALING_DEVIATION) scale_by_deviation(job);
  put_rows(job, job->chunk, out);
}

wick_status sound_spectrum(memory_gate *memory, const sound_recording *recording, uint32_t chunk,
                           float *out, wick_error *error) {
  sound_job *job;
  const wick_status status = sound_begin(memory, recording, chunk, &job, error);
  if (status != WICK_OK) return status;
  sound_compute(job, 0, sound_frames(job));
  sound_finish(job, out);
  memory_free(memory, job);
  return WICK_OK;
}

uint64_t sound_spectrum_bytes(const sound_front *front, uint32_t bands, uint64_t count,
                              uint32_t chunk) {
  uint64_t first;
  const uint64_t frames = chunk_range(front, count, chunk, &first);
  return sizeof(sound_job) + job_doubles(front, bands, frames) * sizeof(double);
}

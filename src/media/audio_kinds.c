// media/audio_kinds.c — the table of audio encoders (audio.h).
#include <stddef.h>

#include "media/audio.h"

static const media_step ULTRAVOX[] = {
    STEP_LAYER_NORM("a.post_ln", 0),
    STEP(STACK),
    {.op = OP_RMS_NORM, .name = "mm.a.norm_pre", .epsilon = 1e-6f},
    STEP_LINEAR("mm.a.mlp.1"),
    STEP(SWIGLU),
    {.op = OP_RMS_NORM, .name = "mm.a.norm_mid", .epsilon = 1e-6f},
    STEP_LINEAR("mm.a.mlp.2"),
    STEPS_END};
static const media_step VOXTRAL[] = {{.op = OP_MEAN_OF_TWO, .is_unpublished = true},
                                     STEP_LAYER_NORM("a.post_ln", 0),
                                     STEP(STACK),
                                     STEPS_MLP("mm.a.mlp.1", GELU_ERF, "mm.a.mlp.2"),
                                     STEPS_END};
static const media_step QWEN2A[] = {STEP(MEAN_OF_TWO), STEP_LAYER_NORM("a.post_ln", 0),
                                    STEP_LINEAR("mm.a.fc"), STEPS_END};
static const media_step QWEN3A[] = {STEP_LAYER_NORM("a.post_ln", 0),
                                    STEPS_MLP("mm.a.mlp.1", GELU_ERF, "mm.a.mlp.2"), STEPS_END};
static const media_step GEMMA4A[] = {
    STEP_LINEAR("a.pre_encode.out"),
    {.op = OP_UNIT_NORM, .name = "mm.a.soft_emb_norm", .epsilon = 1e-6f},
    STEP_LINEAR("mm.a.input_projection"),
    STEPS_END};
static const media_step LFM2A[] = {STEP_LAYER_NORM("mm.a.mlp.0", 1e-5f),
                                   STEPS_MLP("mm.a.mlp.1", GELU_ERF, "mm.a.mlp.3"), STEPS_END};
static const media_step GRANITE[] = {STEP_LINEAR("a.proj_linear"), STEPS_END};

#define WHISPER_FRONT              \
  {.transform = 400,               \
   .window = 400,                  \
   .ends = ENDS_WHISPER,           \
   .scaling = SCALING_MAXIMUM,     \
   .floor = 1e-10f,                \
   .llama_cpp_floor = 0x1p-24f,    \
   .piece_frames = WHISPER_FRAMES, \
   .drops_rest = true}

static const audio_kind KINDS[] = {
    {.name = "ultravox", .front = WHISPER_FRONT, .stem = STEM_WHISPER, .steps = ULTRAVOX},
    {.name = "voxtral",
     .front = WHISPER_FRONT,
     .stem = STEM_WHISPER,
     .steps = VOXTRAL,
     .before = "[BEGIN_AUDIO]"},
    {.name = "qwen2a",
     .front = WHISPER_FRONT,
     .stem = STEM_WHISPER,
     .steps = QWEN2A,
     .before = "<|audio_bos|>",
     .after = "<|audio_eos|>"},
    {.name = "qwen3a",
     .front = {.transform = 400,
               .window = 400,
               .ends = ENDS_REFLECT,
               .scaling = SCALING_MAXIMUM,
               .floor = 1e-10f,
               .llama_cpp_floor = 0x1p-24f,
               .piece_frames = 800,
               .round_frames = QWEN3A_FRAMES},
     .stem = STEM_QWEN3A,
     .steps = QWEN3A,
     .before = "<|audio_start|>",
     .after = "<|audio_end|>"},
    {.name = "gemma4a",
     .front = {.transform = 512,
               .window = 320,
               .begins_with_window = true,
               .has_magnitudes = true,
               .has_htk_bands = true,
               .ends = ENDS_PIECES,
               .scaling = SCALING_LOGARITHM},
     .stem = STEM_GEMMA4A,
     .is_conformer = true,
     .has_rms_norms = true,
     .epsilon = 1e-6f,
     .steps = GEMMA4A,
     .before = "<|audio>",
     .after = "<audio|>"},
    {.name = "lfm2a",
     .front = {.transform = 512,
               .window = 400,
               .has_symmetric_window = true,
               .emphasises = true,
               .ends = ENDS_ZEROS,
               .scaling = SCALING_DEVIATION},
     .stem = STEM_LFM2A,
     .is_conformer = true,
     .epsilon = 1e-5f,
     .steps = LFM2A},
    {.name = "granite_speech",
     .front = {.transform = 512,
               .window = 400,
               .has_htk_bands = true,
               .ends = ENDS_CLAMPED,
               .scaling = SCALING_MAXIMUM,
               .floor = 1e-10f,
               .stack = 2},
     .stem = STEM_GRANITE,
     .is_conformer = true,
     .steps = GRANITE},
};

const audio_kind *audio_kind_find(gguf_string name) {
  for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
    if (gguf_string_equals(name, KINDS[i].name)) return &KINDS[i];
  }
  return NULL;
}

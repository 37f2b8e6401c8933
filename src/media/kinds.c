// media/kinds.c — see kinds.h.
#include "media/kinds.h"

#include <stddef.h>

static const media_step IDEFICS3[] = {STEP(SHUFFLE), STEP_LINEAR("mm.model.fc"), STEPS_END};
static const media_step LFM2[] = {
    STEP(SHUFFLE),
    {.op = OP_LAYER_NORM, .name = "mm.input_norm", .is_optional = true, .epsilon = 1e-5f},
    STEPS_MLP("mm.1", GELU_TANH, "mm.2"),
    STEPS_END};
static const media_step GEMMA3[] = {STEP(POOL),
                                    {.op = OP_RMS_NORM, .name = "mm.soft_emb_norm"},
                                    {.op = OP_LINEAR_TURNED, .name = "mm.input_projection"},
                                    STEPS_END};
static const media_step QWEN[] = {STEP(SHUFFLE), STEPS_MLP("mm.0", GELU_TANH, "mm.2"), STEPS_END};
static const media_step INTERNVL[] = {STEP(SHUFFLE), STEP_LAYER_NORM("mm.model.mlp.0", 1e-5f),
                                      STEPS_MLP("mm.model.mlp.1", GELU_TANH, "mm.model.mlp.3"),
                                      STEPS_END};
static const media_step MLP[] = {STEPS_MLP("mm.0", GELU_TANH, "mm.2"), STEPS_END};
static const media_step GEMMA4V[] = {STEP(POOL),
                                     STEP(ROOT_OF_WIDTH),
                                     STEP(STANDARDISE),
                                     STEP(UNIT_NORM),
                                     STEP_LINEAR("mm.input_projection"),
                                     STEPS_END};
static const media_step PADDLEOCR[] = {STEP_LAYER_NORM("mm.input_norm", 1e-5f), STEP(SHUFFLE),
                                       STEPS_MLP("mm.1", FILE, "mm.2"), STEPS_END};
static const media_step PIXTRAL[] = {
    {.op = OP_RMS_NORM, .name = "mm.input_norm", .is_optional = true},
    {.op = OP_GATHER, .name = "mm.patch_merger", .is_optional = true},
    {.op = OP_LINEAR, .name = "mm.patch_merger", .is_optional = true},
    STEPS_MLP("mm.1", GELU_TANH, "mm.2"),
    STEPS_END};
static const media_step GLM4V[] = {{.op = OP_GATHER, .name = "mm.patch_merger"},
                                   STEP_LINEAR("mm.patch_merger"),
                                   STEP_LINEAR("mm.model.fc"),
                                   STEP_LAYER_NORM("mm.post_norm", 1e-5f),
                                   {.op = OP_ACTIVATION, .activation = ACTIVATION_GELU_ERF},
                                   {.op = OP_GATED, .name = "mm", .activation = ACTIVATION_FILE},
                                   STEPS_END};
static const media_step MINICPM[] = {STEP(SHUFFLE), STEP_LAYER_NORM("mm.input_norm", 0),
                                     STEPS_MLP("mm.up", GELU_ERF, "mm.down"), STEPS_END};

// Near its own size, in blocks of 2 x 2 patches with two rotary positions.
#define QWEN_GRID                                                                       \
  .sizing = SIZING_SMART, .filter = IMAGE_BICUBIC, .rotary = ROTARY_HALVES, .merge = 2, \
  .has_fixed_merge = true, .blocks_min = 8, .blocks_max = 4096
#define QWEN_STEPS .steps = QWEN, .before = "<|vision_start|>", .after = "<|vision_end|>"

static const vision_kind KINDS[] = {
    {.name = "idefics3",
     .sizing = SIZING_IDEFICS,
     .filter = IMAGE_LANCZOS,
     .positions = POSITIONS_FIXED,
     .may_swap = true,
     .merge = 4,
     .steps = IDEFICS3},
    {.name = "lfm2",
     .sizing = SIZING_LFM2,
     .filter = IMAGE_BILINEAR,
     .positions = POSITIONS_ANTIALIAS,
     .merge = 2,
     .blocks_min = 64,
     .blocks_max = 256,
     .steps = LFM2,
     .before = "<|image_start|>",
     .after = "<|image_end|>"},
    {.name = "gemma3",
     .sizing = SIZING_SQUARE,
     .filter = IMAGE_BILINEAR,
     .positions = POSITIONS_FIXED,
     .stretches = true,
     .may_swap = true,
     .merge = 4,
     .steps = GEMMA3,
     .before = "<start_of_image>",
     .after = "<end_of_image>"},
    {.name = "qwen3vl_merger", QWEN_GRID, .positions = POSITIONS_CORNERS, QWEN_STEPS},
    {.name = "qwen2.5vl_merger",
     QWEN_GRID,
     .has_rms_norms = true,
     .has_windows = true,
     .may_swap = true,
     QWEN_STEPS},
    {.name = "qwen2vl_merger", QWEN_GRID, .may_swap = true, QWEN_STEPS},
    {.name = "internvl",
     .sizing = SIZING_CANDIDATES,
     .filter = IMAGE_BICUBIC,
     .positions = POSITIONS_FIXED,
     .merge = 2,
     .steps = INTERNVL,
     .before = "<img>",
     .after = "</img>"},
    {.name = "mlp",
     .sizing = SIZING_PINPOINTS,
     .filter = IMAGE_BICUBIC,
     .positions = POSITIONS_FIXED,
     .may_swap = true,
     .leaves_last = true,
     .drops_first_row = true,
     .has_fixed_merge = true,
     .merge = 1,
     .steps = MLP},
    {.name = "gemma4v",
     .sizing = SIZING_SMART,
     .filter = IMAGE_BICUBIC,
     .positions = POSITIONS_AXES,
     .rotary = ROTARY_QUARTERS,
     .has_rms_norms = true,
     .norms_values = true,
     .has_unit_scale = true,
     .merge = 3,
     .blocks_min = 70,
     .blocks_max = 1120,
     .steps = GEMMA4V,
     .before = "<|image>",
     .after = "<image|>"},
    {.name = "paddleocr",
     .sizing = SIZING_SMART,
     .filter = IMAGE_BICUBIC,
     .positions = POSITIONS_ANTIALIAS,
     .rotary = ROTARY_HALVES,
     .has_fixed_merge = true,
     .merge = 2,
     .steps = PADDLEOCR,
     .before = "<|IMAGE_START|>",
     .after = "<|IMAGE_END|>"},
    {.name = "pixtral",
     .sizing = SIZING_SMART,
     .filter = IMAGE_BICUBIC,
     .rotary = ROTARY_NEIGHBOURS,
     .has_rms_norms = true,
     .merge = 1,
     .blocks_min = 8,
     .blocks_max = 1024,
     .steps = PIXTRAL,
     .after = "[IMG_END]"},
    {.name = "lightonocr",
     .sizing = SIZING_LONGEST,
     .filter = IMAGE_BICUBIC,
     .rotary = ROTARY_NEIGHBOURS,
     .has_rms_norms = true,
     .merge = 1,
     .steps = PIXTRAL,
     .before = "<|im_start|>",
     .after = "<|im_end|>"},
    {.name = "glm4v",
     QWEN_GRID,
     .positions = POSITIONS_BICUBIC,
     .has_rms_norms = true,
     .steps = GLM4V,
     .before = "<|begin_of_image|>",
     .after = "<|end_of_image|>"},
    {.name = "minicpmv4_6",
     .sizing = SIZING_SLICES,
     .filter = IMAGE_BICUBIC,
     .positions = POSITIONS_BUCKETS,
     .merge = 4,
     .steps = MINICPM},
};

const vision_kind *vision_kind_find(gguf_string name) {
  for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
    if (gguf_string_equals(name, KINDS[i].name)) return &KINDS[i];
  }
  return NULL;
}

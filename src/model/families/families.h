// model/families/families.h — every family of this folder, for the list in model/family.c.
#ifndef WICK_MODEL_FAMILIES_H
#define WICK_MODEL_FAMILIES_H

#include "model/family.h"

extern const model_family FAMILY_LFM2, FAMILY_LLAMA, FAMILY_QWEN2, FAMILY_QWEN2MOE, FAMILY_QWEN3,
    FAMILY_QWEN35, FAMILY_QWEN3MOE;

#endif

// schedule/jump.h — jump-forward (Zheng et al. 2023, SGLang): if a grammar allows only one
// continuation, or reasoning must end, tokens are added without being sampled, and the next pass
// processes them together.
#ifndef WICK_SCHEDULE_JUMP_H
#define WICK_SCHEDULE_JUMP_H

#include "schedule/request.h"

// Finds the tokens that must follow a request's newest token, regardless of the model's prediction,
// at most JUMP_TOKENS_MAX. The last one is left to the sampler if a longer token may replace it. A
// token that a bias forbids is also left to the sampler, with all later ones. The tokens are stored
// in request->jump; their number is jump_count. Nothing is allocated: `shelf` provides the memory.
// The cost is one check of the grammar if the text is free, otherwise tokenizing up to
// JUMP_BYTES_MAX bytes and one mask.
void jump_find(request *request, memory_gate *memory, const grammar_shelf *shelf);

// If the reasoning has used up its tokens, stores the tokens of the tag that ends it in
// request->jump. Returns false if reasoning continues, or if the grammar does not allow the tag.
bool jump_end_thought(request *request);

#endif

// schedule/jump.h — jump-forward (Zheng et al. 2023, SGLang): if a grammar allows only one text, or
// reasoning has to end, tokens are taken without being sampled, and the next pass reads them
// together.
#ifndef WICK_SCHEDULE_JUMP_H
#define WICK_SCHEDULE_JUMP_H

#include "schedule/request.h"

// Finds the tokens that follow a request's newest token whatever the model predicts, at most
// JUMP_TOKENS_MAX: those of the text after that token. The last one is left to the sampler while a
// longer token may take its place; one that a bias forbids is left, too, with all after it. They go
// into request->jump; their number is jump_count. Nothing is allocated: `shelf` has the memory.
// Cost: one look at the grammar where the text is free, else tokenising up to JUMP_BYTES_MAX bytes
// and the mask of a place.
void jump_find(request *request, memory_gate *memory, const grammar_shelf *shelf);

// If the reasoning has used up its tokens, those of the mark that ends it go into request->jump.
// False: it continues, or the grammar refuses the mark.
bool jump_end_thought(request *request);

#endif

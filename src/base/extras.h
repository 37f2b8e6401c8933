// base/extras.h — whether the code is there that web builds keep in a module of its own, "extras"
// in flags.mk: rarer families, types, tokenizers and KV types, and saved state. It is there in all
// other builds. Only the thread of the engines asks and tells.
#ifndef WICK_EXTRAS_H
#define WICK_EXTRAS_H

#include <stdbool.h>

#if WICK_EXTRAS_APART
bool extras_are_there(void);
#else
static inline bool extras_are_there(void) { return true; }
#endif
// Something waits for them.
void extras_want(void);
bool extras_are_wanted(void);
// Also ends the waiting.
void extras_set(bool are_there);

#endif

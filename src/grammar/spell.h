// grammar/spell.h — the bytes of strings: unchanged, or as JSON strings (RFC 8259).
#ifndef WICK_GRAMMAR_SPELL_H
#define WICK_GRAMMAR_SPELL_H

#include "grammar/dfa.h"
#include "grammar/program.h"

typedef enum spelling {
  SPELL_RAW,
  SPELL_JSON,       // one form per character: escaped only if necessary, with the shortest escape
  SPELL_JSON_ANY,   // every form that JSON allows
  SPELL_JSON_SAFE,  // like SPELL_JSON, but "<" is escaped, so that no delimiter of a call format
                    // occurs
} spelling;

// Adds the strings of a set, from `from` to `to`, without quotes. spell_pending builds them.
void spell_set(program_builder *builder, const dfa *set, spelling spelling, uint32_t from,
               uint32_t to);
// Adds the strings of a set that have `least` to `most` (UINT32_MAX: any number) characters.
// O(characters * edges).
void spell_lengths(program_builder *builder, const dfa *set, spelling spelling, uint32_t least,
                   uint32_t most, uint32_t from, uint32_t to);
// Builds the sets for which spell_set and spell_lengths have been called. Returns false after a
// failure, or at a pause of resumable work, after which it continues.
bool spell_pending(program_builder *builder);
// Adds one string, which must be valid UTF-8, in quotes for JSON. Returns the state after it.
uint32_t spell_text(program_builder *builder, spelling spelling, uint32_t from, const uint8_t *text,
                    size_t size_bytes);
// Returns the rule for one character of a JSON string.
uint32_t spell_json_char(program_builder *builder, spelling spelling);

#endif

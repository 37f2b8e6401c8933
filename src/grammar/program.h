// grammar/program.h — the compiled form of every grammar: rules, each an automaton over bytes whose
// edges may call other rules. Names in the code call a state a place; state 0 is never used.
#ifndef WICK_GRAMMAR_PROGRAM_H
#define WICK_GRAMMAR_PROGRAM_H

#include "grammar/work.h"

enum {
  GRAMMAR_PLACES_MAX = 1 << 21,
  GRAMMAR_PLAIN_ENDLESS = 255,  // any number of plain characters may follow
};

typedef enum grammar_edge_kind {
  EDGE_BYTES,      // reads a byte in [low, high]
  EDGE_SKIP,       // reads nothing
  EDGE_CALL,       // matches rule `value`
  EDGE_END,        // the end of the rule
  EDGE_TOKEN,      // reads the token `value`
  EDGE_NOT_TOKEN,  // reads any token except `value`
  // Members of an object in any order, each once. The states of members that have arrived are on
  // the stack of return states, in the order of their numbers.
  EDGE_MEMBER,   // calls rule `value`, unless the member that `to` adds has arrived
  EDGE_ADD,      // the member whose state is `value` has arrived
  EDGE_SEEN,     // marks a member's state; `low`: it is required
  EDGE_MEMBERS,  // `value` required members have arrived; pops them from the stack
} grammar_edge_kind;

typedef struct grammar_edge {
  uint32_t next;  // the next edge of the same state; 0: none
  uint32_t to, value;
  uint8_t kind, low, high;
} grammar_edge;

// The minimum number of arbitrary plain characters (valid UTF-8, no control, no quote, no
// backslash) that may follow here. The masks rely on it.
typedef struct grammar_place {
  uint32_t edges;  // the first edge; 0: none
  uint8_t plain;
} grammar_place;

typedef struct grammar_program {
  grammar_place *places;
  uint32_t place_count;
  grammar_edge *edges;  // [0] is not used
  uint32_t edge_count;
  uint32_t *rules;  // the start of each rule
  uint32_t rule_count;
  uint32_t root;         // a rule
  uint8_t classes[256];  // no edge distinguishes bytes of one class
  uint32_t class_count;
  bool has_tokens;    // some edges read tokens
  bool has_controls;  // control tokens match their text; otherwise the text contains none
  bool ends_turn;     // where the text may end, it ends unless the model continues it
} grammar_program;

// ---- building, in working memory ----

typedef struct program_builder {
  grammar_work *work;
  struct {
    grammar_place *items;
    uint32_t count, capacity;
  } places;
  struct {
    grammar_edge *items;
    uint32_t count, capacity;
  } edges;
  work_u32_list rules;
  uint32_t above_ascii_rule;          // reads any character beyond ASCII; 0: not built yet
  uint32_t escaped_above_ascii_rule;  // reads the same characters, unchanged or escaped as in JSON
  uint32_t json_char_rule[3];         // a character of a JSON string, by spelling (spell.h)
  work_sets classes;                  // classes of characters (spell.c)
  work_u32_list class_rules;          // [classes] 0: not built yet
  struct {
    struct set_spelling *items;
    uint32_t count, capacity;
  } spellings;  // spellings of sets, which are built at the end (spell.c)
  uint32_t spelled;
  struct set_speller *speller;        // state of the current spelling; NULL: not begun
  struct program_finisher *finisher;  // NULL: not begun
  bool has_tokens, has_controls, ends_turn;
} program_builder;

bool program_begin(program_builder *builder, grammar_work *work);
// After a failure, undoes the changes made to the lists of `now` since `kept` was copied from it.
// The copy shares the lists.
void program_restore(const program_builder *now, program_builder *kept);
uint32_t program_place(program_builder *builder);
// Adds a rule without edges, which starts at the state program_start.
uint32_t program_rule(program_builder *builder);
static inline uint32_t program_start(const program_builder *builder, uint32_t rule) {
  return builder->rules.count > rule ? builder->rules.items[rule] : 0;
}
void program_bytes(program_builder *builder, uint32_t from, uint8_t low, uint8_t high, uint32_t to);
void program_skip(program_builder *builder, uint32_t from, uint32_t to);
void program_call(program_builder *builder, uint32_t from, uint32_t rule, uint32_t to);
void program_end(program_builder *builder, uint32_t from);
// Add the state of a member of an object whose members may be in any order, and the edges that
// match this member, between two states.
uint32_t program_member_place(program_builder *builder, bool is_required);
void program_member(program_builder *builder, uint32_t from, uint32_t rule, uint32_t member,
                    uint32_t to);
// Adds the end of an object whose members may be in any order. At this point, `required` required
// members must have arrived.
void program_members(program_builder *builder, uint32_t from, uint32_t required, uint32_t to);
void program_token(program_builder *builder, uint32_t from, uint32_t token, bool is_not,
                   uint32_t to);
// Adds consecutive bytes. Returns the state after them.
uint32_t program_text(program_builder *builder, uint32_t from, const void *bytes, size_t count);
// Adds the characters in [low, high] as UTF-8 (RFC 3629; surrogates are omitted).
void program_range(program_builder *builder, uint32_t from, uint32_t low, uint32_t high,
                   uint32_t to);
// Adds `least` to `most` repetitions of the rule (most UINT32_MAX: any number), separated by the
// rule `separator` (0: none). With `plain`, the rule reads a plain character. A rule that is
// repeated n times needs O(sqrt(n)) states.
void program_repeat(program_builder *builder, uint32_t from, uint32_t rule, uint32_t separator,
                    uint32_t least, uint32_t most, bool is_plain, uint32_t to);
// Returns the rule for any character beyond ASCII.
uint32_t program_above_ascii_rule(program_builder *builder);

// Merges states that the same bytes reach from one state. The accepted strings do not change.
// Returns false after a failure, or at a pause, after which it continues with `progress` (NULL at
// first).
typedef struct prefix_sharer prefix_sharer;
bool program_share_prefixes(program_builder *builder, prefix_sharer **progress);

// Finishes a program: drops states that lead nowhere, and rejects rules that call themselves before
// anything is read (WICK_E_UNSUPPORTED) and grammars without any end (WICK_E_ARG). `name_of`
// returns a rule's name for messages; it may be NULL. The program is allocated from the gate and
// freed by program_destroy. WICK_E_BUSY at a pause of resumable work: the next call continues.
typedef const char *(*program_namer)(void *context, uint32_t rule);
wick_status program_finish(program_builder *builder, uint32_t root, program_namer name_of,
                           void *context, grammar_program *out);
void program_destroy(memory_gate *memory, grammar_program *program);

#endif

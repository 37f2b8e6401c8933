// Random GBNF of nested alternatives, repetitions and rules that call each other, compared with a
// separate matcher, which computes sets of end positions until they no longer grow.
#include <stdlib.h>

#include "grammar_rig.h"

enum {
  RULES = 3,
  NODES_MAX = 1000,
  TEXT_MAX = 4,
  SYMBOLS = 4,
  GRAMMARS = 6000,
  SOURCE_BYTES = 1 << 15
};

// Two of the symbols have the same first byte.
static const char *const SYMBOL[SYMBOLS] = {"a", "b", "\xc3\xa9", "\xc3\xa8"};

typedef enum node_kind {
  NODE_TEXT,
  NODE_CLASS,
  NODE_BOTH,
  NODE_EITHER,
  NODE_TIMES,
  NODE_RULE
} kind;

typedef struct node {
  kind kind;
  uint32_t left, right;  // NODE_BOTH and NODE_EITHER; NODE_TIMES uses only left
  uint32_t least, most;  // NODE_TIMES
  // NODE_TEXT: two bits per symbol; NODE_CLASS: a set; NODE_RULE: its number
  uint32_t symbols, count;
} node;

static node nodes[NODES_MAX];
static uint32_t node_count, roots[RULES];
static char source[SOURCE_BYTES];
static size_t source_bytes;

static void add(const char *text) {
  const size_t size = strlen(text);
  REQUIRE(source_bytes + size < sizeof source);
  memcpy(source + source_bytes, text, size + 1);
  source_bytes += size;
}

// ---- making a grammar ----

static uint32_t make_node(uint64_t *random, int depth) {
  if (!CHECK(node_count < NODES_MAX)) abort();
  const uint32_t number = node_count++;
  node made = {.kind = NODE_TEXT};
  const uint64_t choice = random_below(random, depth == 0 ? 4 : 12);
  if (choice == 3) {
    made = (node){.kind = NODE_CLASS, .symbols = 1 + (uint32_t)random_below(random, 15)};
  } else if (choice < 3) {
    made.count = (uint32_t)random_below(random, 4);
    made.symbols = (uint32_t)random_below(random, 256);
  } else if (choice < 6) {
    made.kind = NODE_BOTH;
  } else if (choice < 9) {
    made.kind = NODE_EITHER;
  } else if (choice < 11) {
    made.kind = NODE_TIMES;
    made.least = (uint32_t)random_below(random, 3);
    made.most =
        random_below(random, 2) ? UINT32_MAX : made.least + (uint32_t)random_below(random, 3);
  } else {
    made = (node){.kind = NODE_RULE, .count = (uint32_t)random_below(random, RULES)};
  }
  if (made.kind == NODE_BOTH || made.kind == NODE_EITHER || made.kind == NODE_TIMES)
    made.left = make_node(random, depth - 1);
  if (made.kind == NODE_BOTH || made.kind == NODE_EITHER) made.right = make_node(random, depth - 1);
  nodes[number] = made;
  return number;
}

static void write_node(uint32_t number) {
  const node *one = &nodes[number];
  char text[40];
  switch (one->kind) {
    case NODE_TEXT:
      add("\"");
      for (uint32_t i = 0; i < one->count; i++) add(SYMBOL[one->symbols >> 2 * i & 3]);
      add("\"");
      break;
    case NODE_CLASS:
      add("[");
      for (uint32_t i = 0; i < SYMBOLS; i++) {
        if (one->symbols >> i & 1) add(SYMBOL[i]);
      }
      add("]");
      break;
    case NODE_RULE:
      snprintf(text, sizeof text, "%s", one->count == 0 ? "root" : one->count == 1 ? "s" : "t");
      add(text);
      break;
    case NODE_BOTH:
    case NODE_EITHER:
      add("(");
      write_node(one->left);
      add(one->kind == NODE_BOTH ? " " : " | ");
      write_node(one->right);
      add(")");
      break;
    case NODE_TIMES:
      add("(");
      write_node(one->left);
      snprintf(text, sizeof text, one->most == UINT32_MAX ? "){%u,}" : "){%u,%u}", one->least,
               one->most);
      add(text);
      break;
  }
}

// ---- matching: bit i of a set is end position i in the text ----

static uint32_t text_symbols, text_size;
static uint32_t rule_ends[RULES][TEXT_MAX + 1];

static uint32_t ends_of(uint32_t number, uint32_t at);

static uint32_t ends_of_all(uint32_t number, uint32_t starts) {
  uint32_t ends = 0;
  for (uint32_t at = 0; at <= text_size; at++) {
    if (starts >> at & 1) ends |= ends_of(number, at);
  }
  return ends;
}

static uint32_t ends_of_times(const node *one, uint32_t at) {
  uint32_t now = 1u << at, ends = one->least == 0 ? now : 0;
  // more repetitions than this cannot add end positions
  for (uint32_t i = 1; i <= one->most && i <= one->least + TEXT_MAX + 1; i++) {
    now = ends_of_all(one->left, now);
    if (i >= one->least) ends |= now;
  }
  return ends;
}

static uint32_t ends_of(uint32_t number, uint32_t at) {
  const node *one = &nodes[number];
  switch (one->kind) {
    case NODE_TEXT:
      if (at + one->count > text_size) return 0;
      for (uint32_t i = 0; i < one->count; i++) {
        if ((text_symbols >> 2 * (at + i) & 3) != (one->symbols >> 2 * i & 3)) return 0;
      }
      return 1u << (at + one->count);
    case NODE_CLASS:
      if (at == text_size || !(one->symbols >> (text_symbols >> 2 * at & 3) & 1)) return 0;
      return 2u << at;
    case NODE_BOTH:
      return ends_of_all(one->right, ends_of(one->left, at));
    case NODE_EITHER:
      return ends_of(one->left, at) | ends_of(one->right, at);
    case NODE_TIMES:
      return ends_of_times(one, at);
    case NODE_RULE:
      return rule_ends[one->count][at];
  }
  return 0;
}

static bool is_text_of_root(void) {
  memset(rule_ends, 0, sizeof rule_ends);
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t rule = 0; rule < RULES; rule++) {
      for (uint32_t at = 0; at <= text_size; at++) {
        const uint32_t ends = rule_ends[rule][at] | ends_of(roots[rule], at);
        changed = changed || ends != rule_ends[rule][at];
        rule_ends[rule][at] = ends;
      }
    }
  }
  return (rule_ends[0][0] >> text_size & 1) != 0;
}

// ---- comparison ----

static uint32_t check_texts(grammar_rig *rig) {
  uint32_t held = 0;
  for (text_size = 0; text_size <= TEXT_MAX; text_size++) {
    for (text_symbols = 0; text_symbols < 1u << 2 * text_size; text_symbols++) {
      char text[2 * TEXT_MAX + 1] = {0};
      for (uint32_t i = 0; i < text_size; i++) strcat(text, SYMBOL[text_symbols >> 2 * i & 3]);
      const bool wanted = is_text_of_root();
      held += wanted;
      if (!CHECK(rig_holds(rig, text) == wanted)) {
        printf("# %s: %d\n# %s\n", text, wanted, source);
        return held;
      }
    }
  }
  return held;
}

TEST(random_grammars_match_like_the_reference_matcher) {
  uint64_t random = 11;
  uint32_t compiled = 0, held = 0;
  for (uint32_t i = 0; i < soak_count(GRAMMARS); i++) {
    static const char *const BEGIN[RULES] = {"root ::= ", "\ns ::= ", "\nt ::= "};
    grammar_rig rig;
    node_count = 0;
    source_bytes = 0;
    for (uint32_t rule = 0; rule < RULES; rule++) {
      roots[rule] = make_node(&random, 5);
      add(BEGIN[rule]);
      write_node(roots[rule]);
    }
    const wick_grammar wanted = {
        .kind = WICK_GRAMMAR_GBNF, .text = source, .text_bytes = source_bytes};
    rig_compile(&rig, &wanted);
    if (rig.status == WICK_OK) {
      compiled++;
      held += check_texts(&rig);
    } else {  // rules that are left-recursive or never end
      CHECK(rig.status == WICK_E_UNSUPPORTED || rig.status == WICK_E_ARG);
    }
    rig_close(&rig);
  }
  CHECK(compiled > soak_count(GRAMMARS) / 4 && held > compiled);
  printf("# %u compiled, %u strings accepted\n", compiled, held);
}

// grammar/schema_members.c — objects: declared members in their order, followed by other members.
#include <string.h>

#include "base/hash.h"
#include "grammar/schema_expansion.h"

enum { TERMS_MAX = 256, GROUPS_MAX = 128, GRID_MAX = 200000, PART_STEPS = 40 };
// The machine has enough memory for these numbers (machine.h). Each optional member may follow any
// earlier member; in any order, each member that has arrived is a return state.
enum { OPTIONAL_MAX = 900, MEMBERS_ANY_ORDER_MAX = 700 };

// ---- patterns ----

typedef struct name_patterns {
  uint32_t nodes[PATTERNS_MAX];  // nodes of patternProperties members
  const dfa *sets[PATTERNS_MAX];
  uint32_t count;
} name_patterns;

static bool find_patterns(schema_compiler *c, const schema_case *value, name_patterns *out) {
  out->count = 0;
  for (const case_part *part = value->parts; part != NULL; part = part->previous) {
    const uint32_t list = keyword_of(c, part, "patternProperties");
    if (list == 0) continue;
    for (uint32_t child = node_of(c, list)->first; child != 0; child = node_of(c, child)->next) {
      if (out->count == PATTERNS_MAX)
        return schema_refuse(c, list, "more than 31 patterns of names");
      out->nodes[out->count] = child;
      out->sets[out->count] = schema_pattern(c, node_of(c, child)->key);
      if (out->sets[out->count++] == NULL) return false;
    }
  }
  return true;
}

static uint32_t patterns_of(const name_patterns *patterns, document_text name) {
  uint32_t bits = 0;
  for (uint32_t i = 0; i < patterns->count; i++) {
    if (dfa_holds(patterns->sets[i], name.bytes, name.size_bytes)) bits |= 1u << i;
  }
  return bits;
}

const dfa *schema_texts(schema_compiler *c, const case_list *cases) {
  const dfa *texts = dfa_none(c->work);
  for (uint32_t i = 0; i < cases->count; i++) {
    const schema_case *value = &cases->items[i];
    if ((value->types & TYPE_STRING) == 0) continue;
    const dfa *some = dfa_of_lengths(c->work, value->length_least, value->length_most);
    if (value->texts != NULL) some = dfa_combine(c->work, some, value->texts, DFA_AND);
    texts = dfa_combine(c->work, texts, some, DFA_OR);
  }
  return texts;
}

const dfa *schema_names(schema_compiler *c, uint32_t node) {
  schema_term term = term_of(TERM_SCHEMA, node);
  case_list cases;
  if (c->names[node] != NULL) return c->names[node];
  const uint32_t set = schema_set(c, &term, 1);
  if (set == UINT32_MAX || !schema_expand(c, set, &cases)) return NULL;
  c->names[node] = schema_texts(c, &cases);
  return c->names[node];
}

// Returns the node to report if a case is rejected.
static uint32_t node_for(const schema_case *value) {
  return value->parts == NULL ? 1 : term_node(value->parts->term);
}

// ---- the keywords about one member ----

typedef struct term_list {
  schema_term terms[TERMS_MAX];
  uint32_t count;
} term_list;

static void add_term(schema_compiler *c, term_list *list, term_kind kind, uint32_t node) {
  if (list->count == TERMS_MAX) {
    schema_refuse(c, node, "too many schemas for one value");
    return;
  }
  list->terms[list->count++] = term_of(kind, node);
}

// The name of a member. Names that no part declares are represented by an empty name; `bits` are
// the patterns that they match. `now`: those of the case's requirements on some member that this
// member meets.
typedef struct member_name {
  document_text name;
  bool is_declared;
  uint32_t bits, now;
  const name_patterns *patterns;
} member_name;

static bool matches_pattern(const schema_compiler *c, const member_name *name, uint32_t list,
                            term_list *terms) {
  bool matches = false;
  for (uint32_t i = 0; list != 0 && i < name->patterns->count; i++) {
    const uint32_t node = name->patterns->nodes[i];
    if ((name->bits >> i & 1) == 0 || node_of(c, node)->parent != list) continue;
    matches = true;
    if (terms != NULL && terms->count < TERMS_MAX) {
      terms->terms[terms->count++] = term_of(TERM_SCHEMA, node);
    }
  }
  return matches;
}

static bool part_evaluates(schema_compiler *c, const case_part *part, const member_name *name) {
  if (term_kind_of(part->term) == TERM_CONST) return true;
  const uint32_t properties = keyword_of(c, part, "properties");
  if (name->is_declared && properties != 0 &&
      document_member(&c->document, properties, name->name) != 0) {
    return true;
  }
  return keyword_of(c, part, "additionalProperties") != 0 ||
         matches_pattern(c, name, keyword_of(c, part, "patternProperties"), NULL);
}

static bool is_evaluated(schema_compiler *c, const schema_case *value, const case_part *by,
                         const member_name *name) {
  for (const case_part *part = value->parts; part != NULL; part = part->previous) {
    if (!part_is_within(part, term_node(by->term))) continue;
    if (part_evaluates(c, part, name)) return true;
    if (part != by && keyword_of(c, part, "unevaluatedProperties") != 0) return true;
  }
  return false;
}

static void part_terms(schema_compiler *c, const schema_case *value, const case_part *part,
                       const member_name *name, term_list *terms) {
  if (!work_step(c->work, PART_STEPS)) return;
  if (term_kind_of(part->term) == TERM_CONST) {
    const uint32_t child =
        name->is_declared ? document_member(&c->document, term_node(part->term), name->name) : 0;
    add_term(c, terms, child == 0 ? TERM_SCHEMA : TERM_CONST, child == 0 ? c->nothing : child);
    return;
  }
  const uint32_t properties = keyword_of(c, part, "properties");
  const uint32_t child = !name->is_declared || properties == 0
                             ? 0
                             : document_member(&c->document, properties, name->name);
  if (child != 0) add_term(c, terms, TERM_SCHEMA, child);
  const bool matches = matches_pattern(c, name, keyword_of(c, part, "patternProperties"), terms);
  const uint32_t others = keyword_of(c, part, "additionalProperties");
  if (child == 0 && !matches && others != 0) add_term(c, terms, TERM_SCHEMA, others);
  const uint32_t rest = keyword_of(c, part, "unevaluatedProperties");
  if (rest != 0 && c->dialect >= 2019 && !is_evaluated(c, value, part, name)) {
    add_term(c, terms, TERM_SCHEMA, rest);
  }
  const uint32_t names = keyword_of(c, part, "propertyNames");
  if (names == 0 || !name->is_declared) return;
  const dfa *set = schema_names(c, names);
  if (!dfa_holds(set, name->name.bytes, name->name.size_bytes)) {
    add_term(c, terms, TERM_SCHEMA, c->nothing);
  }
}

static uint32_t set_of_name(schema_compiler *c, const schema_case *value, const member_name *name) {
  term_list *terms = work_alloc(c->work, 1, sizeof *terms);
  if (terms == NULL) return UINT32_MAX;
  for (const case_part *part = value->parts; part != NULL; part = part->previous) {
    part_terms(c, value, part, name, terms);
  }
  for (const case_member *at = value->members; at != NULL && name->is_declared; at = at->previous) {
    if (at->is_item || !text_is_same(at->name, name->name)) continue;
    if (at->is_forbidden) add_term(c, terms, TERM_SCHEMA, c->nothing);
    if (at->term != 0) add_term(c, terms, term_kind_of(at->term), term_node(at->term));
  }
  uint32_t now = name->now;
  for (const case_member *at = value->somes; now != 0; at = at->previous, now >>= 1) {
    if ((now & 1) == 0 || at->term == 0) continue;
    add_term(c, terms, term_kind_of(at->term), term_node(at->term));
  }
  return work_is_ok(c->work) ? schema_set(c, terms->terms, terms->count) : UINT32_MAX;
}

uint32_t schema_member_set(schema_compiler *c, const schema_case *value, document_text name) {
  name_patterns patterns;
  if (!find_patterns(c, value, &patterns)) return UINT32_MAX;
  const member_name one = {name, true, patterns_of(&patterns, name), 0, &patterns};
  return set_of_name(c, value, &one);
}

// ---- all declared members ----

typedef struct member {
  document_text name;
  bool is_required;
  uint32_t rule;  // the name, the colon and the value
} member;

typedef struct name_group {
  const dfa *names;
  uint32_t bits;
} name_group;

typedef struct object_plan {
  const schema_case *value;
  name_patterns patterns;
  struct {
    member *items;
    uint32_t count, capacity;
  } members;
  work_sets names;    // the names of `members`, by two 64-bit hashes
  uint32_t declared;  // number of `members` declared by "properties"
  // Undeclared names, by the patterns that they match.
  struct {
    name_group *items;
    uint32_t count, capacity;
  } groups;
  bool is_impossible;  // a required member is impossible
  // Rules of undeclared members, by the requirements of the case on some member; 0: none.
  uint32_t others[1 << WANTED_MAX];
  uint32_t all;  // the last index: all requirements at once
} object_plan;

static void declare(schema_compiler *c, object_plan *plan, document_text name, bool is_required) {
  const uint64_t hashes[2] = {hash_bytes(name.bytes, name.size_bytes, 1),
                              hash_bytes(name.bytes, name.size_bytes, 2)};
  uint32_t key[4];
  memcpy(key, hashes, sizeof key);
  const uint32_t at = work_intern(c->work, &plan->names, key, 4);
  const member made = {.name = name, .is_required = is_required};
  if (!work_step(c->work, 1)) return;
  if (at == plan->members.count) {
    (void)WORK_PUSH(c->work, &plan->members, made);
  } else if (is_required) {
    plan->members.items[at].is_required = true;
  }
}

static void declare_part(schema_compiler *c, object_plan *plan, const case_part *part) {
  if (part == NULL) return;
  declare_part(c, plan, part->previous);
  const uint32_t list = term_kind_of(part->term) == TERM_CONST ? term_node(part->term)
                                                               : keyword_of(c, part, "properties");
  if (node_of(c, list)->kind != JSON_OBJECT) return;
  for (uint32_t child = node_of(c, list)->first; child != 0; child = node_of(c, child)->next) {
    declare(c, plan, node_of(c, child)->key, term_kind_of(part->term) == TERM_CONST);
  }
}

static void declare_all(schema_compiler *c, object_plan *plan) {
  declare_part(c, plan, plan->value->parts);
  plan->declared = plan->members.count;
  uint32_t count = 0;
  for (const case_member *at = plan->value->members; at != NULL; at = at->previous) count++;
  const case_member **members = work_alloc(c->work, count, sizeof *members);
  if (members == NULL) return;
  for (const case_member *at = plan->value->members; at != NULL; at = at->previous) {
    members[--count] = at;  // members keep the order of their names
  }
  for (const case_member *at = plan->value->members; at != NULL; at = at->previous) {
    const case_member *member = members[count++];
    if (!member->is_item) declare(c, plan, member->name, member->is_required);
  }
  uint32_t optional = 0;
  for (uint32_t i = 0; i < plan->members.count && optional <= OPTIONAL_MAX; i++) {
    optional = plan->members.items[i].is_required ? 0 : optional + 1;
  }
  if (optional > OPTIONAL_MAX) {
    schema_refuse(c, node_for(plan->value), "more than 900 optional members in a row");
  }
}

static void build_members(schema_compiler *c, object_plan *plan) {
  program_builder *builder = &c->builder;
  for (uint32_t i = 0; i < plan->members.count && work_is_ok(c->work); i++) {
    member *member = &plan->members.items[i];
    const member_name name = {member->name, true, patterns_of(&plan->patterns, member->name), 0,
                              &plan->patterns};
    const uint32_t set = set_of_name(c, plan->value, &name);
    const bool is_empty = member->is_required && schema_set_is_empty(c, set, 3);
    plan->is_impossible = plan->is_impossible || is_empty;
    if (c->is_outermost) {
      member->rule = argument_member_rule(c, member->name, set);
      continue;
    }
    member->rule = program_rule(builder);
    uint32_t at = program_start(builder, member->rule);
    at = argument_style_of(c) == ARGUMENT_MARKED
             ? argument_inner_name(c, at, member->name)
             : spell_text(builder, c->spelling, at, member->name.bytes, member->name.size_bytes);
    at = schema_call(c, at, c->colon);
    program_end(builder, schema_call(c, at, schema_rule(c, set)));
  }
}

// ---- other members ----

// Returns the names that no part declares.
static const dfa *other_names(schema_compiler *c, object_plan *plan) {
  nfa known;
  nfa_begin(&known, c->work);
  const uint32_t start = nfa_state(&known), end = nfa_state(&known);
  for (uint32_t i = 0; i < plan->members.count; i++) {
    const document_text name = plan->members.items[i].name;
    nfa_text(&known, start, name.bytes, name.size_bytes, end);
  }
  const dfa *names = schema_rest(c, TYPE_STRING, dfa_of_nfa(&known, start, end));
  for (const case_part *part = plan->value->parts; part != NULL; part = part->previous) {
    if (term_kind_of(part->term) == TERM_CONST) return dfa_none(c->work);
    const uint32_t allowed = keyword_of(c, part, "propertyNames");
    if (allowed == 0) continue;
    names = dfa_combine(c->work, names, schema_names(c, allowed), DFA_AND);
  }
  return names;
}

static void split_names(schema_compiler *c, object_plan *plan, const dfa *names, uint32_t patterns,
                        uint32_t bits) {
  if (names == NULL || names->count == 0) return;
  if (patterns == 0 && plan->groups.count == GROUPS_MAX) {
    schema_refuse(c, node_for(plan->value), "more than 128 kinds of names by patterns");
    return;
  }
  if (patterns == 0) {
    (void)WORK_PUSH(c->work, &plan->groups, ((name_group){names, bits}));
    return;
  }
  const dfa *set = plan->patterns.sets[--patterns];
  split_names(c, plan, dfa_combine(c->work, names, set, DFA_WITHOUT), patterns, bits);
  split_names(c, plan, dfa_combine(c->work, names, set, DFA_AND), patterns, bits | 1u << patterns);
}

// Whether decoding offers members that are declared neither by name nor by pattern.
static bool offers_others(schema_compiler *c, const object_plan *plan) {
  if (c->any || (plan->declared == 0 && plan->patterns.count == 0)) return true;
  if (plan->value->members_least > plan->members.count) return true;
  for (const case_part *part = plan->value->parts; part != NULL; part = part->previous) {
    if (keyword_of(c, part, "additionalProperties") != 0 ||
        keyword_of(c, part, "unevaluatedProperties") != 0) {
      return true;
    }
  }
  return false;
}

static bool plan_names(schema_compiler *c, object_plan *plan, const schema_case *value,
                       bool needs_others) {
  plan->value = value;
  if (!find_patterns(c, value, &plan->patterns)) return false;
  declare_all(c, plan);
  if (needs_others || plan->patterns.count != 0 || offers_others(c, plan)) {
    split_names(c, plan, other_names(c, plan), plan->patterns.count, 0);
  }
  return work_is_ok(c->work);
}

const option *schema_choose_member(schema_compiler *c, const schema_case *value, const task *some) {
  object_plan plan = {0};
  const option *options = NULL;
  const task *other = NULL;
  if (!plan_names(c, &plan, value, true)) return NULL;
  schema_push(c, &other, (task){.kind = TASK_OTHER, .set = some->set, .term = some->term});
  for (uint32_t i = 0; i < plan.groups.count && options == NULL; i++) {
    const dfa *names = dfa_combine(c->work, plan.groups.items[i].names, some->set, DFA_AND);
    const member_name name = {.bits = plan.groups.items[i].bits, .patterns = &plan.patterns};
    if (names == NULL || names->count == 0) continue;
    if (schema_set_is_empty(c, set_of_name(c, value, &name), 3)) continue;
    schema_add_option(c, &options, other);
  }
  for (uint32_t i = 0; i < plan.members.count && work_is_ok(c->work); i++) {
    const document_text name = plan.members.items[i].name;
    const task *tasks = NULL;
    if (!dfa_holds(some->set, name.bytes, name.size_bytes)) continue;
    if (some->term != 0) {
      schema_push_name(c, &tasks, TASK_MEMBER, name, some->term);
    }
    schema_push_name(c, &tasks, TASK_REQUIRE, name, 0);
    schema_add_option(c, &options, tasks);
  }
  return options;
}

// Adds members with names from a group, with the rule for all their schemas together.
static void add_others(schema_compiler *c, object_plan *plan, const name_group *group, uint32_t now,
                       uint32_t end) {
  program_builder *builder = &c->builder;
  const dfa *names = group->names;
  const case_member *some = plan->value->somes;
  for (uint32_t rest = now; rest != 0; some = some->previous, rest >>= 1) {
    if ((rest & 1) != 0) names = dfa_combine(c->work, names, some->names, DFA_AND);
  }
  if (names == NULL || names->count == 0) return;
  const member_name name = {.bits = group->bits, .now = now, .patterns = &plan->patterns};
  const uint32_t set = set_of_name(c, plan->value, &name);
  if (schema_set_is_empty(c, set, 3)) return;
  if (plan->others[now] == 0) plan->others[now] = program_rule(builder);
  const uint32_t after = program_place(builder);
  const uint32_t quote = schema_quote(c, program_start(builder, plan->others[now]));
  if (c->spelling == SPELL_RAW) names = argument_texts(c, names);
  spell_set(builder, names, c->spelling, quote, after);
  const uint32_t at = schema_call(c, schema_quote(c, after), c->colon);
  program_skip(builder, schema_call(c, at, schema_rule(c, set)), end);
}

static bool build_others(schema_compiler *c, object_plan *plan) {
  const bool offers = offers_others(c, plan);
  uint32_t said = 0, count = 0;
  for (const case_member *at = plan->value->somes; at != NULL; at = at->previous) count++;
  if (count > WANTED_MAX) {
    return schema_refuse(c, node_for(plan->value), "a fifth requirement on a member");
  }
  plan->all = (1u << count) - 1;
  for (uint32_t now = 0; now <= plan->all && !c->is_outermost; now++) {
    const uint32_t end = program_place(&c->builder);
    program_end(&c->builder, end);
    for (uint32_t i = 0; i < plan->groups.count && work_is_ok(c->work); i++) {
      const name_group *group = &plan->groups.items[i];
      if (now != 0 || offers || group->bits != 0) add_others(c, plan, group, now, end);
    }
    if (plan->others[now] != 0) said |= now;
  }
  plan->is_impossible = plan->is_impossible || said != plan->all;
  return work_is_ok(c->work);
}

// ---- the object ----

// States by the number of members so far, up to `cap`; without a limit, all larger numbers share
// one state.
typedef struct member_grid {
  uint32_t *places;
  uint32_t cap;
  bool is_limited;
} member_grid;

static uint32_t *new_row(schema_compiler *c, const member_grid *grid) {
  uint32_t *row = work_alloc(c->work, grid->cap + 1, sizeof *row);
  for (uint32_t i = 0; row != NULL && i <= grid->cap; i++) row[i] = program_place(&c->builder);
  return row;
}

// In decoding, a member that must be present is added last, so that no other member replaces it.
static bool may_follow(const schema_compiler *c, uint32_t came, uint32_t now) {
  return (came & now) == 0 && (c->any || now != 0 || came == 0);
}

// Adds one member after `count` others; returns false if no more are allowed.
static bool add_to_row(schema_compiler *c, const member_grid *grid, uint32_t from, uint32_t count,
                       uint32_t rule, const uint32_t *to) {
  if (grid->is_limited && count == grid->cap) return false;
  const uint32_t next = count < grid->cap ? count + 1 : count;
  const bool has_comma = count != 0 && (!c->is_outermost || c->form->style != ARGUMENT_PARAMS);
  const uint32_t at = has_comma ? schema_call(c, from, c->comma) : from;
  program_call(&c->builder, at, rule, to[next]);
  return true;
}

// Adds the members after the declared ones, by the requirements on some member that the members so
// far have met. Undeclared members may share one name, so they count as one.
static void end_object(schema_compiler *c, const object_plan *plan, const member_grid *grid,
                       const uint32_t *row, uint32_t to) {
  const uint32_t least = plan->value->members_least;
  uint32_t *others[1 << WANTED_MAX];
  if (!c->any && least > plan->members.count + 1) {
    c->work->left_out = "schema: minProperties needs several members that are not declared";
  }
  for (uint32_t came = 0; came <= plan->all; came++) others[came] = new_row(c, grid);
  for (uint32_t count = 0; count <= grid->cap && work_is_ok(c->work); count++) {
    if (count >= least && plan->all == 0) program_skip(&c->builder, row[count], to);
    for (uint32_t now = 0; now <= plan->all; now++) {
      if (plan->others[now] == 0) continue;
      if (c->any || count + 1 >= least) {
        add_to_row(c, grid, row[count], count, plan->others[now], others[now]);
      }
      for (uint32_t came = 0; came <= plan->all && count != 0; came++) {
        if (!may_follow(c, came, now)) continue;
        add_to_row(c, grid, others[came][count], count, plan->others[now], others[came | now]);
      }
    }
    if (count == 0 || (c->any && count < least)) continue;
    program_skip(&c->builder, others[plan->all][count], to);
  }
}

static bool allows_others(const object_plan *plan) {
  return plan->others[0] != 0 || plan->all != 0;
}

static bool plan_grid(schema_compiler *c, const object_plan *plan, member_grid *grid) {
  const schema_case *value = plan->value;
  uint32_t required = 0;
  for (uint32_t i = 0; i < plan->members.count; i++) {
    required += plan->members.items[i].is_required;
  }
  grid->is_limited = value->members_most != UINT32_MAX &&
                     (allows_others(plan) || value->members_most < plan->members.count);
  grid->cap =
      value->members_least > required || value->members_least > 1 ? value->members_least : 1;
  if (grid->is_limited) grid->cap = value->members_most;
  if (grid->cap == 0 && !grid->is_limited) grid->cap = 1;
  if ((uint64_t)(grid->cap + 1) * (plan->members.count + 1) > GRID_MAX) {
    return schema_refuse(c, node_for(value), "a number of members this large");
  }
  return true;
}

static uint32_t further_rule(schema_compiler *c, uint32_t rule) {
  const bool has_comma = !c->is_outermost || c->form->style != ARGUMENT_PARAMS;
  return has_comma ? schema_after_comma(c, rule) : rule;
}

// States in an object by the members so far: the requirements on some member that are already met,
// and the number of members, from 1 to `cap`.
typedef struct came_places {
  uint32_t *items;
  member_grid grid;
} came_places;

static uint32_t place_after(const came_places *places, uint32_t came, uint32_t count) {
  const uint32_t cap = places->grid.cap;
  return places->items[came * cap + (count < cap ? count : cap) - 1];
}

// Adds to each state a declared member, or other members that meet the requirements `now`.
static void follow(schema_compiler *c, const object_plan *plan, const came_places *places,
                   uint32_t member, uint32_t rule, uint32_t now) {
  const member_grid *grid = &places->grid;
  for (uint32_t came = 0; came <= plan->all; came++) {
    if (member == 0 && !may_follow(c, came, now)) continue;
    for (uint32_t count = 1; count <= grid->cap && work_is_ok(c->work); count++) {
      if (grid->is_limited && count == grid->cap) break;
      const uint32_t from = place_after(places, came, count);
      const uint32_t to = place_after(places, came | now, count + 1);
      if (member != 0) {
        program_member(&c->builder, from, rule, member, to);
      } else {
        program_call(&c->builder, from, rule, to);
      }
    }
  }
}

// Builds members in any order, each declared one at most once.
static bool build_any_order(schema_compiler *c, const object_plan *plan, uint32_t first,
                            uint32_t to) {
  program_builder *builder = &c->builder;
  came_places places = {0};
  uint32_t required = 0;
  if (!plan_grid(c, plan, &places.grid)) return false;
  const uint32_t cap = places.grid.cap, count = (plan->all + 1) * cap;
  places.items = work_alloc(c->work, count, sizeof *places.items);
  if (places.items == NULL) return false;
  for (uint32_t i = 0; i < count; i++) places.items[i] = program_place(builder);
  for (uint32_t i = 0; i < plan->members.count && work_is_ok(c->work); i++) {
    const member *member = &plan->members.items[i];
    required += member->is_required;
    if (cap == 0) continue;
    const uint32_t place = program_member_place(builder, member->is_required);
    program_member(builder, first, member->rule, place, place_after(&places, 0, 1));
    follow(c, plan, &places, place, further_rule(c, member->rule), 0);
  }
  for (uint32_t now = 0; now <= plan->all && cap != 0 && work_is_ok(c->work); now++) {
    if (plan->others[now] == 0) continue;
    program_call(builder, first, plan->others[now], place_after(&places, now, 1));
    follow(c, plan, &places, 0, further_rule(c, plan->others[now]), now);
  }
  const uint32_t least = plan->value->members_least;
  for (uint32_t i = least > 1 ? least : 1; i <= cap && work_is_ok(c->work); i++) {
    program_members(builder, place_after(&places, plan->all, i), required, to);
  }
  if (required == 0 && plan->all == 0 && least == 0) program_skip(builder, first, to);
  return work_is_ok(c->work);
}

static bool build_in_order(schema_compiler *c, const object_plan *plan, uint32_t from,
                           uint32_t to) {
  member_grid grid = {0};
  if (!plan_grid(c, plan, &grid)) return false;
  uint32_t *row = new_row(c, &grid);
  if (row == NULL) return false;
  program_skip(&c->builder, from, row[0]);
  for (uint32_t i = 0; i < plan->members.count && row != NULL; i++) {
    const member *member = &plan->members.items[i];
    uint32_t *next = new_row(c, &grid);
    for (uint32_t count = 0; next != NULL && count <= grid.cap; count++) {
      if (!member->is_required) program_skip(&c->builder, row[count], next[count]);
      add_to_row(c, &grid, row[count], count, member->rule, next);
    }
    row = next;
  }
  if (row == NULL) return false;
  end_object(c, plan, &grid, row, to);
  return work_is_ok(c->work);
}

bool schema_build_object(schema_compiler *c, const schema_case *value, uint32_t from, uint32_t to) {
  object_plan plan = {0};
  if (!plan_names(c, &plan, value, value->somes != NULL)) return false;
  build_members(c, &plan);
  if (!build_others(c, &plan)) return false;
  static const char *const BRACKETS[][2] = {{"{", "}"}, {"", ")"}, {"{", "}"}, {"", ""}};
  const char *const *brackets = BRACKETS[c->is_outermost ? c->form->style : ARGUMENT_JSON];
  const uint32_t inside = schema_open(c, from, brackets[0]), after = program_place(&c->builder);
  // decoding counts members only if their order is fixed
  const bool is_counted = value->members_least != 0 || value->members_most != UINT32_MAX;
  const bool is_large = plan.members.count > MEMBERS_ANY_ORDER_MAX;
  if (is_large && c->any && !plan.is_impossible) {
    return schema_refuse(c, node_for(plan.value), "more than 700 members in any order");
  }
  const bool any_order = (c->any || (c->is_call && !is_counted)) && !plan.is_impossible &&
                         plan.members.count > 0 && !is_large;
  const bool is_built = any_order ? build_any_order(c, &plan, inside, after)
                                  : build_in_order(c, &plan, inside, after);
  program_skip(&c->builder, schema_close(c, after, brackets[1]), to);
  return is_built;
}

// grammar/schema_items.c — arrays: items by index, then all others; contains.
#include "grammar/schema_expansion.h"

enum { TERMS_MAX = 256, GRID_MAX = 200000, PREFIX_MAX = 10000 };

// The content of one part: items by index, and the schema of all others (0: none).
typedef struct item_part {
  uint32_t list, count, rest;
  bool is_const;
} item_part;

static item_part read_part(const schema_compiler *c, const case_part *part) {
  const uint32_t node = term_node(part->term);
  item_part out = {0};
  if (term_kind_of(part->term) == TERM_CONST) {
    out.is_const = node_of(c, node)->kind == JSON_ARRAY;
    out.list = out.is_const ? node : 0;
  } else {
    const uint32_t prefix = schema_keyword(c, node, "prefixItems");
    const uint32_t items = document_find(&c->document, node, "items");
    const bool is_list = node_of(c, items)->kind == JSON_ARRAY;
    out.list = prefix != 0 ? prefix : is_list ? items : 0;
    out.rest = is_list ? document_find(&c->document, node, "additionalItems") : items;
  }
  if (out.list != 0) out.count = node_of(c, out.list)->count;
  return out;
}

static bool is_evaluated(schema_compiler *c, const schema_case *value, const case_part *by,
                         uint32_t index) {
  for (const case_part *part = value->parts; part != NULL; part = part->previous) {
    if (!part_is_within(part, term_node(by->term))) continue;
    const item_part said = read_part(c, part);
    if (said.is_const || index < said.count || said.rest != 0) return true;
    if (part != by && keyword_of(c, part, "unevaluatedItems") != 0) return true;
    const uint32_t contains = keyword_of(c, part, "contains");
    if (contains != 0) schema_refuse(c, contains, "contains together with unevaluatedItems");
  }
  return false;
}

static uint32_t item_terms(schema_compiler *c, const schema_case *value, uint32_t index,
                           schema_term *terms) {
  uint32_t count = 0;
  for (const case_part *part = value->parts; part != NULL; part = part->previous) {
    const item_part said = read_part(c, part);
    if (count + 3 > TERMS_MAX) {
      schema_refuse(c, term_node(part->term), "too many schemas for one value");
      return count;
    }
    if (index < said.count) {
      const term_kind kind = said.is_const ? TERM_CONST : TERM_SCHEMA;
      terms[count++] = term_of(kind, child_of(c, said.list, index));
    } else if (said.rest != 0) {
      terms[count++] = term_of(TERM_SCHEMA, said.rest);
    }
    const uint32_t others = keyword_of(c, part, "unevaluatedItems");
    if (others != 0 && c->dialect >= 2019 && !is_evaluated(c, value, part, index)) {
      terms[count++] = term_of(TERM_SCHEMA, others);
    }
  }
  for (const case_member *at = value->members; at != NULL; at = at->previous) {
    const bool is_this = at->is_item && !at->is_any_item && at->index == index;
    const bool is_none = at->is_any_item && at->most == 0;
    if (!is_this && !is_none) continue;
    if (count < TERMS_MAX) terms[count++] = is_none ? term_opposite(at->term) : at->term;
  }
  return count;
}

// Returns the set for item `index`, with at most WANTED_MAX + 1 additional terms.
static uint32_t item_set(schema_compiler *c, const schema_case *value, uint32_t index,
                         const schema_term *more, uint32_t more_count) {
  schema_term *terms = work_alloc(c->work, TERMS_MAX + WANTED_MAX + 1, sizeof *terms);
  if (terms == NULL) return UINT32_MAX;
  uint32_t count = item_terms(c, value, index, terms);
  for (uint32_t i = 0; i < more_count; i++) terms[count++] = more[i];
  return work_is_ok(c->work) ? schema_set(c, terms, count) : UINT32_MAX;
}

uint32_t schema_item_set(schema_compiler *c, const schema_case *value, uint32_t index) {
  return item_set(c, value, index, NULL, 0);
}

// ---- plans ----

typedef struct array_plan {
  const schema_case *value;
  uint32_t prefix;  // number of items with a schema by index
  uint32_t least, most;
  uint32_t unique;       // the node of uniqueItems; 0: none
  schema_term contains;  // items that match it are counted; 0: none
  uint32_t contains_least, contains_most;
  // requirements that some item must meet, each starting at an index
  schema_term wanted[WANTED_MAX];
  uint32_t wanted_from[WANTED_MAX];
  uint32_t wanted_count;
} array_plan;

// Sets the minimum and maximum number of items, starting at index `from`, that satisfy `term`.
static bool count_items(schema_compiler *c, array_plan *plan, schema_term term, uint32_t from,
                        uint32_t least, uint32_t most) {
  if (least == 0 && most == UINT32_MAX) return true;
  if (least == 1 && most == UINT32_MAX) {
    if (plan->wanted_count == WANTED_MAX) {
      return schema_refuse(c, term_node(term), "a fifth requirement on an item");
    }
    plan->wanted_from[plan->wanted_count] = from;
    plan->wanted[plan->wanted_count++] = term;
    return true;
  }
  if (plan->contains != 0) return schema_refuse(c, term_node(term), "a second contains");
  plan->contains = term;
  plan->contains_least = least;
  plan->contains_most = most;
  return true;
}

static bool plan_part(schema_compiler *c, array_plan *plan, const case_part *part) {
  const item_part said = read_part(c, part);
  if (said.count > plan->prefix) plan->prefix = said.count;
  if (said.is_const) {
    if (said.count > plan->least) plan->least = said.count;
    if (said.count < plan->most) plan->most = said.count;
  }
  const uint32_t unique = keyword_of(c, part, "uniqueItems");
  if (node_of(c, unique)->kind == JSON_TRUE) plan->unique = unique;
  const uint32_t contains = keyword_of(c, part, "contains");
  if (contains == 0) return true;
  const uint32_t schema = term_node(part->term);
  const uint32_t least = schema_contains_count(c, schema, "minContains", 1);
  const uint32_t most = schema_contains_count(c, schema, "maxContains", UINT32_MAX);
  return count_items(c, plan, term_of(TERM_SCHEMA, contains), 0, least, most);
}

static bool make_plan(schema_compiler *c, const schema_case *value, array_plan *plan) {
  *plan = (array_plan){.value = value, .least = value->items_least, .most = value->items_most};
  for (const case_part *part = value->parts; part != NULL; part = part->previous) {
    if (!plan_part(c, plan, part)) return false;
  }
  for (const case_member *at = value->members; at != NULL; at = at->previous) {
    if (!at->is_item) continue;
    const uint32_t prefix = at->index + !at->is_any_item;
    if (prefix > plan->prefix) plan->prefix = prefix;
    if (!at->is_any_item || at->most == 0) continue;
    if (!count_items(c, plan, at->term, at->index, at->least, at->most)) return false;
  }
  if (plan->prefix <= PREFIX_MAX) return true;
  return schema_refuse(c, 1, "more than 10000 items with separate schemas");
}

// ---- without contains ----

static void build_items(schema_compiler *c, const array_plan *plan, uint32_t from, uint32_t to) {
  program_builder *builder = &c->builder;
  const uint32_t rest =
      plan->most > plan->prefix ? schema_rule(c, schema_item_set(c, plan->value, plan->prefix)) : 0;
  if (plan->prefix == 0) {
    program_repeat(builder, from, rest, c->comma, plan->least, plan->most, false, to);
    return;
  }
  for (uint32_t i = 0; i < plan->prefix && work_is_ok(c->work); i++) {
    if (i >= plan->least) program_skip(builder, from, to);
    if (i == plan->most) return;
    if (i > 0) from = schema_call(c, from, c->comma);
    from = schema_call(c, from, schema_rule(c, schema_item_set(c, plan->value, i)));
  }
  const uint32_t unit = rest == 0 ? 0 : schema_after_comma(c, rest);
  const uint32_t least = plan->least > plan->prefix ? plan->least - plan->prefix : 0;
  const uint32_t most = plan->most == UINT32_MAX ? plan->most : plan->most - plan->prefix;
  program_repeat(builder, from, unit, 0, least, most, false, to);
}

// ---- with contains: states by the number of items, of matching items, and by the requirements met
// so far ----

typedef struct item_grid {
  const array_plan *plan;
  uint32_t rows, columns, all;  // the last index of each
  bool is_limited;
  uint32_t *places;
} item_grid;

static uint32_t place_at(const item_grid *grid, uint32_t row, uint32_t column, uint32_t came) {
  return grid->places[(row * (grid->columns + 1) + column) * (grid->all + 1) + came];
}

// Adds item `row`, which satisfies the terms in the bits of `now`, and may or may not count.
static void add_item(schema_compiler *c, const item_grid *grid, uint32_t row, uint32_t now,
                     bool counts) {
  const array_plan *plan = grid->plan;
  schema_term more[WANTED_MAX + 1];
  uint32_t count = 0;
  for (uint32_t i = 0; i < plan->wanted_count; i++) {
    if ((now >> i & 1) == 0) continue;
    if (row < plan->wanted_from[i]) return;
    more[count++] = plan->wanted[i];
  }
  if (counts) more[count++] = plan->contains;
  if (!counts && grid->is_limited) more[count++] = term_opposite(plan->contains);
  const uint32_t rule = schema_rule(c, item_set(c, plan->value, row, more, count));
  const uint32_t next = row == grid->rows ? row : row + 1;
  for (uint32_t column = 0; column <= grid->columns && work_is_ok(c->work); column++) {
    if (counts && column == grid->columns && grid->is_limited) continue;
    const uint32_t then = counts && column < grid->columns ? column + 1 : column;
    for (uint32_t came = 0; came <= grid->all; came++) {
      if ((came & now) != 0) continue;
      const uint32_t from = place_at(grid, row, column, came);
      const uint32_t at = row == 0 ? from : schema_call(c, from, c->comma);
      program_call(&c->builder, at, rule, place_at(grid, next, then, came | now));
    }
  }
}

static void add_row(schema_compiler *c, const item_grid *grid, uint32_t row, uint32_t to) {
  const array_plan *plan = grid->plan;
  for (uint32_t column = plan->contains_least; column <= grid->columns; column++) {
    if (row < plan->least) break;
    program_skip(&c->builder, place_at(grid, row, column, grid->all), to);
  }
  if (row == grid->rows && plan->most != UINT32_MAX) return;
  for (uint32_t now = 0; now <= grid->all && work_is_ok(c->work); now++) {
    add_item(c, grid, row, now, false);
    if (plan->contains != 0) add_item(c, grid, row, now, true);
  }
}

static void build_containing(schema_compiler *c, const array_plan *plan, uint32_t from,
                             uint32_t to) {
  const uint32_t beyond = plan->prefix > plan->least ? plan->prefix : plan->least;
  const bool is_limited = plan->contains != 0 && plan->contains_most != UINT32_MAX;
  item_grid grid = {.plan = plan,
                    .rows = plan->most != UINT32_MAX ? plan->most
                            : beyond == 0            ? 1
                                                     : beyond,
                    .columns = is_limited ? plan->contains_most : plan->contains_least,
                    .all = (1u << plan->wanted_count) - 1,
                    .is_limited = is_limited};
  const uint64_t places = ((uint64_t)grid.rows + 1) * ((uint64_t)grid.columns + 1);
  // from each state, an item has as many edges as there are sets of terms
  if (places > GRID_MAX || places * (grid.all + 1) * (grid.all + 1) > GRID_MAX) {
    const schema_term term = plan->contains != 0 ? plan->contains : plan->wanted[0];
    schema_refuse(c, term_node(term), "contains with counts this large");
    return;
  }
  const uint32_t count = (uint32_t)places * (grid.all + 1);
  grid.places = work_alloc(c->work, count, sizeof *grid.places);
  if (grid.places == NULL) return;
  for (uint32_t i = 0; i < count; i++) grid.places[i] = program_place(&c->builder);
  program_skip(&c->builder, from, grid.places[0]);
  for (uint32_t row = 0; row <= grid.rows && work_is_ok(c->work); row++) {
    add_row(c, &grid, row, to);
  }
}

bool schema_build_array(schema_compiler *c, const schema_case *value, uint32_t from, uint32_t to) {
  array_plan plan;
  if (!make_plan(c, value, &plan)) return false;
  if (plan.least > plan.most) return true;
  from = schema_open(c, from, "[");
  const uint32_t after = program_place(&c->builder);
  const bool has_contains = plan.contains != 0 || plan.wanted_count > 0;
  if (plan.unique != 0 && plan.most > 1) {
    if (has_contains || plan.prefix != 0) {
      return schema_refuse(c, plan.unique, "uniqueItems together with contains or items by index");
    }
    const uint32_t set = schema_item_set(c, value, 0);
    schema_build_unique(c, &(schema_count){set, plan.least, plan.most, plan.unique}, from, after);
  } else if (has_contains) {
    build_containing(c, &plan, from, after);
  } else {
    build_items(c, &plan, from, after);
  }
  program_skip(&c->builder, schema_close(c, after, "]"), to);
  return work_is_ok(c->work);
}

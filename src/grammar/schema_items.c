// grammar/schema_items.c — arrays: items by their place, then all others; contains.
#include "grammar/schema_parts.h"

enum { TERMS_MAX = 256, GRID_MAX = 200000, PREFIX_MAX = 10000 };

static const json_node *node_of(const schema_compiler *c, uint32_t node) {
  return document_node(&c->document, node);
}

// What one part says: items by place, and the schema of all others (0: none).
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

static uint32_t child_of(const schema_compiler *c, uint32_t list, uint32_t index) {
  uint32_t child = node_of(c, list)->first;
  while (child != 0 && index-- > 0) child = node_of(c, child)->next;
  return child;
}

static uint32_t keyword_of(const schema_compiler *c, const case_part *part, const char *name) {
  if (term_kind_of(part->term) != TERM_SCHEMA) return 0;
  return schema_keyword(c, term_node(part->term), name);
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
    if (is_this && count < TERMS_MAX) terms[count++] = at->term;
  }
  return count;
}

// The set of item `index`, with one more term (0: none).
static uint32_t item_set(schema_compiler *c, const schema_case *value, uint32_t index,
                         schema_term more) {
  schema_term *terms = work_alloc(c->work, TERMS_MAX + 1, sizeof *terms);
  if (terms == NULL) return UINT32_MAX;
  uint32_t count = item_terms(c, value, index, terms);
  if (more != 0) terms[count++] = more;
  return work_is_ok(c->work) ? schema_set(c, terms, count) : UINT32_MAX;
}

uint32_t schema_item_set(schema_compiler *c, const schema_case *value, uint32_t index) {
  return item_set(c, value, index, 0);
}

// ---- plans ----

typedef struct array_plan {
  const schema_case *value;
  uint32_t prefix;  // items with a schema by their place
  uint32_t least, most;
  schema_term contains;  // 0: none
  uint32_t contains_least, contains_most;
} array_plan;

static uint32_t count_beside(schema_compiler *c, const case_part *part, const char *name,
                             uint32_t otherwise) {
  const uint32_t node = document_find(&c->document, term_node(part->term), name);
  if (node == 0 || c->dialect < 2019) return otherwise;
  uint32_t count = 0;
  for (uint32_t i = 0; i < node_of(c, node)->text.size_bytes; i++) {
    const uint8_t digit = node_of(c, node)->text.bytes[i];
    if (digit == '.') break;
    if (digit < '0' || digit > '9' || count > 100000) return schema_fail(c, node, "a count"), 0;
    count = count * 10 + (digit - '0');
  }
  return count;
}

static bool plan_part(schema_compiler *c, array_plan *plan, const case_part *part) {
  const item_part said = read_part(c, part);
  if (said.count > plan->prefix) plan->prefix = said.count;
  if (said.is_const) {
    if (said.count > plan->least) plan->least = said.count;
    if (said.count < plan->most) plan->most = said.count;
  }
  const uint32_t unique = keyword_of(c, part, "uniqueItems");
  if (node_of(c, unique)->kind == JSON_TRUE && plan->most > 1) {
    return schema_refuse(c, unique, "uniqueItems");
  }
  const uint32_t contains = keyword_of(c, part, "contains");
  if (contains == 0) return true;
  const uint32_t least = count_beside(c, part, "minContains", 1);
  const uint32_t most = count_beside(c, part, "maxContains", UINT32_MAX);
  if (least == 0 && most == UINT32_MAX) return true;
  if (plan->contains != 0) return schema_refuse(c, contains, "a second contains");
  plan->contains = term_of(TERM_SCHEMA, contains);
  plan->contains_least = least;
  plan->contains_most = most;
  return true;
}

static bool make_plan(schema_compiler *c, const schema_case *value, array_plan *plan) {
  *plan = (array_plan){.value = value, .least = value->items_least, .most = value->items_most};
  for (const case_part *part = value->parts; part != NULL; part = part->previous) {
    if (!plan_part(c, plan, part)) return false;
  }
  for (const case_member *at = value->members; at != NULL; at = at->previous) {
    if (!at->is_item) continue;
    if (!at->is_any_item && at->index >= plan->prefix) plan->prefix = at->index + 1;
    if (!at->is_any_item) continue;
    if (plan->contains != 0) {
      return schema_refuse(c, term_node(at->term), "a second thing that an item must be");
    }
    plan->contains = at->term;
    plan->contains_least = 1;
    plan->contains_most = UINT32_MAX;
  }
  if (plan->prefix <= PREFIX_MAX) return true;
  return schema_refuse(c, 1, "more than 10000 items with a schema of their own");
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
  const uint32_t unit = program_rule(builder);
  const uint32_t behind = schema_call(c, program_start(builder, unit), c->comma);
  if (rest != 0) program_end(builder, schema_call(c, behind, rest));
  const uint32_t least = plan->least > plan->prefix ? plan->least - plan->prefix : 0;
  const uint32_t most = plan->most == UINT32_MAX ? plan->most : plan->most - plan->prefix;
  program_repeat(builder, from, unit, 0, least, most, false, to);
}

// ---- with contains: places by the number of items and of those that count ----

static void add_item(schema_compiler *c, uint32_t from, uint32_t index, uint32_t set, uint32_t to) {
  const uint32_t at = index == 0 ? from : schema_call(c, from, c->comma);
  program_call(&c->builder, at, schema_rule(c, set), to);
}

static void build_containing(schema_compiler *c, const array_plan *plan, uint32_t from,
                             uint32_t to) {
  const uint32_t beyond = plan->prefix > plan->least ? plan->prefix : plan->least;
  const uint32_t rows = plan->most != UINT32_MAX ? plan->most : beyond == 0 ? 1 : beyond;
  const bool is_limited = plan->contains_most != UINT32_MAX;
  const uint32_t columns = is_limited ? plan->contains_most : plan->contains_least;
  if ((uint64_t)(rows + 1) * (columns + 1) > GRID_MAX) {
    schema_refuse(c, term_node(plan->contains), "contains with counts this large");
    return;
  }
  uint32_t *places = work_alloc(c->work, (size_t)(rows + 1) * (columns + 1), sizeof *places);
  if (places == NULL) return;
  for (uint32_t i = 0; i < (rows + 1) * (columns + 1); i++) places[i] = program_place(&c->builder);
  program_skip(&c->builder, from, places[0]);
  for (uint32_t row = 0; row <= rows && work_is_ok(c->work); row++) {
    const bool is_last = row == rows;
    const schema_term without = is_limited ? term_of(TERM_NOT, term_node(plan->contains)) : 0;
    const bool ends = is_last && plan->most != UINT32_MAX;
    const uint32_t one = ends ? 0 : item_set(c, plan->value, row, plan->contains);
    const uint32_t other = ends ? 0 : item_set(c, plan->value, row, without);
    const uint32_t next = is_last ? row : row + 1;
    for (uint32_t column = 0; column <= columns && work_is_ok(c->work); column++) {
      const uint32_t at = places[row * (columns + 1) + column];
      if (row >= plan->least && column >= plan->contains_least) program_skip(&c->builder, at, to);
      if (ends) continue;
      add_item(c, at, row, other, places[next * (columns + 1) + column]);
      if (column == columns && is_limited) continue;
      const uint32_t counted = column < columns ? column + 1 : column;
      add_item(c, at, row, one, places[next * (columns + 1) + counted]);
    }
  }
}

bool schema_build_array(schema_compiler *c, const schema_case *value, uint32_t from, uint32_t to) {
  array_plan plan;
  if (!make_plan(c, value, &plan)) return false;
  if (plan.least > plan.most) return true;
  from = schema_open(c, from, "[");
  const uint32_t behind = program_place(&c->builder);
  if (plan.contains != 0) {
    build_containing(c, &plan, from, behind);
  } else {
    build_items(c, &plan, from, behind);
  }
  program_skip(&c->builder, schema_close(c, behind, "]"), to);
  return work_is_ok(c->work);
}

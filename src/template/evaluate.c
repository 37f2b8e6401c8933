// template/evaluate.c — evaluates expressions.
#include "template/run.h"

// DEPTH_MAX limits nested expressions, statements and calls: each level needs a few hundred bytes
// of stack.
enum { DEPTH_MAX = 200, ARGUMENTS_MAX = 64 };

static const jinja_node *node_at(const jinja_run *run, uint32_t node) {
  return &run->program->nodes[node];
}

static const uint32_t *links_at(const jinja_run *run, uint32_t links) {
  return &run->program->links[links];
}

// ---- literals ----

static jinja_value evaluate_list(jinja_run *run, const jinja_node *node) {
  const uint32_t *links = links_at(run, node->a);
  jinja_list *list = jinja_new_list(run, links[0]);
  for (uint32_t i = 1; i <= links[0] && run->status == WICK_OK; i++) {
    jinja_add_item(run, list, jinja_evaluate(run, links[i]));
  }
  if (list == NULL) return JINJA_NOTHING;
  return (jinja_value){.kind = node->kind == NODE_TUPLE ? JINJA_TUPLE : JINJA_LIST, .list = list};
}

static jinja_value evaluate_dict(jinja_run *run, const jinja_node *node) {
  const uint32_t *links = links_at(run, node->a);
  jinja_dict *dict = jinja_new_dict(run);
  for (uint32_t i = 1; i < links[0] && run->status == WICK_OK; i += 2) {
    const jinja_value key = jinja_evaluate(run, links[i]);
    jinja_put(run, dict, key, jinja_evaluate(run, links[i + 1]));
  }
  if (dict == NULL) return JINJA_NOTHING;
  return (jinja_value){.kind = JINJA_DICT, .dict = dict};
}

// ---- operators ----

static jinja_value evaluate_sign(jinja_run *run, const jinja_node *node) {
  const jinja_value value = jinja_evaluate(run, node->a);
  if (run->status != WICK_OK) return JINJA_NOTHING;
  if (value.kind == JINJA_FLOAT) {
    return node->kind == NODE_NEGATE ? jinja_float(-value.real) : value;
  }
  if (value.kind == JINJA_BIG) return node->kind == NODE_NEGATE ? jinja_negate(run, value) : value;
  return jinja_binary(run, node->kind == NODE_NEGATE ? '-' : '+', jinja_int(0), value);
}

static jinja_value evaluate_concat(jinja_run *run, const jinja_node *node) {
  const uint32_t *links = links_at(run, node->a);
  jinja_list *parts = jinja_new_list(run, links[0]);
  for (uint32_t i = 1; i <= links[0] && run->status == WICK_OK; i++) {
    jinja_add_item(run, parts, jinja_evaluate(run, links[i]));
  }
  if (run->status != WICK_OK) return JINJA_NOTHING;
  jinja_buffer *buffer = jinja_begin_append(run, jinja_text_of(run, parts->items[0]));
  for (uint32_t i = 1; i < parts->count && buffer != NULL; i++) {
    jinja_write_value(run, buffer, parts->items[i]);
  }
  return jinja_end_append(run, buffer);
}

static jinja_value evaluate_comparison(jinja_run *run, const jinja_node *node) {
  const uint32_t *links = links_at(run, node->b);
  jinja_value left = jinja_evaluate(run, node->a);
  for (uint32_t i = 1; i < links[0] && run->status == WICK_OK; i += 2) {
    const jinja_value right = jinja_evaluate(run, links[i + 1]);
    if (run->status != WICK_OK) break;
    if (!jinja_compare_is(run, links[i], left, right)) return jinja_bool(false);
    left = right;
  }
  return jinja_bool(true);
}

// Evaluates a binary operator. A chain of the same operators nests to the left, so it is walked in
// a loop, without recursion.
static jinja_value evaluate_binary(jinja_run *run, const jinja_node *node) {
  enum { CHAIN_MAX = 64 };
  const jinja_node *chain[CHAIN_MAX];
  uint32_t count = 0;
  uint32_t first = 0;
  for (const jinja_node *at = node; at->kind == NODE_BINARY && count < CHAIN_MAX;
       at = node_at(run, at->a)) {
    chain[count++] = at;
    first = at->a;
  }
  jinja_value value = jinja_evaluate(run, first);
  while (count > 0 && run->status == WICK_OK) {
    const jinja_node *at = chain[--count];
    const jinja_value right = jinja_evaluate(run, at->b);
    if (run->status != WICK_OK) break;
    run->line = at->line;
    value = jinja_binary(run, at->op, value, right);
  }
  return value;
}

// ---- calls ----

// Counts the arguments, including those of *args and **kwargs.
typedef struct spread {
  const jinja_list *items;  // of *args
  const jinja_dict *dict;   // of **kwargs
} spread;

static spread evaluate_spread(jinja_run *run, const uint32_t *links) {
  static const jinja_list no_items = {0};
  static const jinja_dict no_dict = {0};
  spread more = {&no_items, &no_dict};
  if (links[ARGUMENTS_LIST] != 0) {
    const jinja_list *items = jinja_items_of(run, jinja_evaluate(run, links[ARGUMENTS_LIST]));
    if (items != NULL) more.items = items;
  }
  if (links[ARGUMENTS_DICT] != 0) {
    const jinja_value value = jinja_evaluate(run, links[ARGUMENTS_DICT]);
    if (value.kind == JINJA_DICT) more.dict = value.dict;
  }
  return more;
}

static void add_named(jinja_arguments *arguments, const jinja_string **names, jinja_value *named,
                      const jinja_string *name, jinja_value value) {
  names[arguments->named_count] = name;
  named[arguments->named_count++] = value;
}

// Evaluates the arguments of a call, in the run's memory; `caller` is added by name.
static bool collect_arguments(jinja_run *run, uint32_t at, const jinja_value *caller,
                              jinja_arguments *arguments) {
  const uint32_t *links = links_at(run, at) + 1;
  const uint32_t plain_count = links[ARGUMENTS_PLAIN], named_count = links[ARGUMENTS_NAMED];
  const jinja_string *const *texts = run->program->names;
  *arguments = (jinja_arguments){0};
  const spread more = evaluate_spread(run, links);
  // counted now, because an argument that is evaluated below may change the list or the dict
  const uint32_t item_count = more.items->count, entry_count = more.dict->count;
  const size_t plain_room = (size_t)plain_count + item_count;
  const size_t named_room = (size_t)named_count + entry_count + (caller != NULL);
  if (run->status != WICK_OK) return false;
  if (plain_room + named_room == 0) return true;
  jinja_value *plain = jinja_take(run, (plain_room + named_room) * sizeof *plain);
  const jinja_string **names = jinja_take(run, named_room * sizeof *names);
  if (plain == NULL || names == NULL) return false;
  jinja_value *named = plain + plain_room;
  arguments->plain = plain;
  arguments->names = names;
  arguments->named = named;
  const uint32_t *next = links + ARGUMENTS_FIRST;
  for (uint32_t i = 0; i < plain_count; i++) {
    plain[arguments->plain_count++] = jinja_evaluate(run, *next++);
  }
  for (uint32_t i = 0; i < item_count && i < more.items->count; i++) {
    plain[arguments->plain_count++] = more.items->items[i];
  }
  for (uint32_t i = 0; i < named_count; i++, next += 2) {
    add_named(arguments, names, named, texts[next[0]], jinja_evaluate(run, next[1]));
  }
  for (uint32_t i = 0; i < entry_count && i < more.dict->count; i++) {
    const jinja_entry *entry = &more.dict->entries[i];
    if (entry->key.kind != JINJA_STRING) continue;
    add_named(arguments, names, named, entry->key.string, entry->value);
  }
  if (caller != NULL) {
    add_named(arguments, names, named, texts[run->program->name_caller], *caller);
  }
  return run->status == WICK_OK;
}

static jinja_value recurse_loop(jinja_run *run, const jinja_loop *loop,
                                const jinja_arguments *arguments) {
  const uint32_t *parts = links_at(run, node_at(run, loop->node)->c) + 1;
  if (parts[FOR_IS_RECURSIVE] == 0 || arguments->plain_count != 1) {
    return jinja_fail(run, WICK_E_FORMAT, "a loop that is not recursive is called");
  }
  jinja_buffer buffer = {0};
  jinja_buffer *const out = run->out;
  jinja_scope *const scope = run->scope;
  run->out = &buffer;
  run->scope = loop->scope;
  jinja_execute_loop(run, loop->node, arguments->plain[0], loop->depth0 + 1);
  run->out = out;
  run->scope = scope;
  return jinja_buffer_value(run, &buffer);
}

static jinja_value call_value(jinja_run *run, jinja_value callee,
                              const jinja_arguments *arguments) {
  switch (callee.kind) {
    case JINJA_METHOD:
      return jinja_invoke(run, callee.method->named, callee.method->self, arguments);
    case JINJA_FUNCTION:
      return jinja_invoke(run, callee.function, JINJA_NOTHING, arguments);
    case JINJA_MACRO:
      return jinja_call_macro(run, callee.macro, arguments);
    case JINJA_LOOP:
      return recurse_loop(run, callee.loop, arguments);
    case JINJA_UNDEFINED:
      return jinja_fail_undefined(run, callee);
    default:
      return jinja_fail(run, WICK_E_FORMAT, "the called value is not a function");
  }
}

jinja_value jinja_evaluate_call(jinja_run *run, const jinja_node *node, const jinja_value *caller) {
  jinja_arguments arguments;
  const jinja_value callee = jinja_evaluate(run, node->a);
  if (run->status != WICK_OK || !collect_arguments(run, node->b, caller, &arguments)) {
    return JINJA_NOTHING;
  }
  run->line = node->line;
  return call_value(run, callee, &arguments);
}

static jinja_value apply_filter(jinja_run *run, const jinja_node *node, jinja_value input) {
  jinja_arguments arguments;
  if (run->status != WICK_OK || !collect_arguments(run, node->b, NULL, &arguments)) {
    return JINJA_NOTHING;
  }
  run->line = node->line;
  return jinja_filter(run, run->program->names[node->c], input, &arguments);
}

jinja_value jinja_evaluate_filters(jinja_run *run, uint32_t node, jinja_value input) {
  if (node == 0) return input;
  const jinja_node *filter = node_at(run, node);
  if (run->depth >= DEPTH_MAX) return jinja_fail(run, WICK_E_FULL, "nested too deeply");
  run->depth++;
  const jinja_value inner = jinja_evaluate_filters(run, filter->a, input);
  run->depth--;
  return apply_filter(run, filter, inner);
}

static jinja_value evaluate_test(jinja_run *run, const jinja_node *node) {
  jinja_arguments arguments;
  const jinja_value input = jinja_evaluate(run, node->a);
  if (run->status != WICK_OK || !collect_arguments(run, node->b, NULL, &arguments)) {
    return JINJA_NOTHING;
  }
  run->line = node->line;
  return jinja_bool(jinja_test(run, run->program->names[node->c], input, &arguments));
}

// ---- all expressions ----

static jinja_value evaluate_item(jinja_run *run, const jinja_node *node) {
  const jinja_value object = jinja_evaluate(run, node->a);
  const jinja_node *index = node_at(run, node->b);
  if (run->status != WICK_OK) return JINJA_NOTHING;
  if (index->kind != NODE_SLICE) {
    const jinja_value key = jinja_evaluate(run, node->b);
    run->line = node->line;
    return jinja_get_item(run, object, key);
  }
  jinja_value parts[3];
  const uint32_t nodes[3] = {index->a, index->b, index->c};
  for (int i = 0; i < 3; i++) {
    parts[i] = nodes[i] == 0 ? jinja_none() : jinja_evaluate(run, nodes[i]);
  }
  if (run->status != WICK_OK) return JINJA_NOTHING;
  run->line = node->line;
  return jinja_get_slice(run, object, parts);
}

static jinja_value evaluate_logic(jinja_run *run, const jinja_node *node) {
  const jinja_value left = jinja_evaluate(run, node->a);
  if (run->status != WICK_OK) return JINJA_NOTHING;
  return jinja_truth(left) == (node->kind == NODE_OR) ? left : jinja_evaluate(run, node->b);
}

static jinja_value evaluate_choice(jinja_run *run, const jinja_node *node) {
  const jinja_value condition = jinja_evaluate(run, node->b);
  if (run->status != WICK_OK) return JINJA_NOTHING;
  if (jinja_truth(condition)) return jinja_evaluate(run, node->a);
  return node->c == 0 ? JINJA_NOTHING : jinja_evaluate(run, node->c);
}

static jinja_value evaluate_attribute(jinja_run *run, const jinja_node *node) {
  const jinja_value object = jinja_evaluate(run, node->a);
  if (run->status != WICK_OK) return JINJA_NOTHING;
  run->line = node->line;
  return jinja_get_attribute(run, object, run->program->names[node->b]);
}

static jinja_value evaluate_node(jinja_run *run, const jinja_node *node) {
  switch ((jinja_node_kind)node->kind) {
    case NODE_CONST:
      return run->program->constants[node->a];
    case NODE_NAME:
      return jinja_get_variable(run, node->a);
    case NODE_LIST:
    case NODE_TUPLE:
      return evaluate_list(run, node);
    case NODE_DICT:
      return evaluate_dict(run, node);
    case NODE_NEGATE:
    case NODE_PLUS:
      return evaluate_sign(run, node);
    case NODE_NOT:
      return jinja_bool(!jinja_truth(jinja_evaluate(run, node->a)));
    case NODE_AND:
    case NODE_OR:
      return evaluate_logic(run, node);
    case NODE_BINARY:
      return evaluate_binary(run, node);
    case NODE_CONCAT:
      return evaluate_concat(run, node);
    case NODE_COMPARE:
      return evaluate_comparison(run, node);
    case NODE_CHOICE:
      return evaluate_choice(run, node);
    case NODE_ATTRIBUTE:
      return evaluate_attribute(run, node);
    case NODE_ITEM:
      return evaluate_item(run, node);
    case NODE_CALL:
      return jinja_evaluate_call(run, node, NULL);
    case NODE_FILTER:
      return apply_filter(run, node, jinja_evaluate(run, node->a));
    case NODE_TEST:
      return evaluate_test(run, node);
    default:
      return JINJA_NOTHING;
  }
}

jinja_value jinja_evaluate(jinja_run *run, uint32_t node) {
  if (!jinja_step(run, 1)) return JINJA_NOTHING;
  if (run->depth >= DEPTH_MAX) return jinja_fail(run, WICK_E_FULL, "nested too deeply");
  const jinja_node *at = node_at(run, node);
  run->depth++;
  run->line = at->line;
  const jinja_value value = evaluate_node(run, at);
  run->depth--;
  return value;
}

// template/statements.c — runs statements, with scopes as in Jinja: variables that are set in a
// loop, a macro or a `with` are dropped at its end; variables that are set in an `if` are kept.
#include "template/run.h"

enum { STATEMENT_DEPTH_MAX = 200, VARIABLES_FIRST = 4 };

static const jinja_node *node_at(const jinja_run *run, uint32_t node) {
  return &run->program->nodes[node];
}

static const uint32_t *links_at(const jinja_run *run, uint32_t links) {
  return &run->program->links[links];
}

// ---- scopes ----

jinja_scope *jinja_new_scope(jinja_run *run, jinja_scope *parent) {
  jinja_scope *scope = jinja_take(run, sizeof *scope);
  if (scope != NULL) *scope = (jinja_scope){.parent = parent};
  return scope;
}

static jinja_variable *find_in_scope(const jinja_scope *scope, uint32_t name) {
  for (uint32_t i = 0; i < scope->count; i++) {
    if (scope->variables[i].name == name) return &scope->variables[i];
  }
  return NULL;
}

static void set_variable(jinja_run *run, jinja_scope *scope, uint32_t name, jinja_value value) {
  if (!jinja_step(run, 1 + scope->count / STEP_BYTES)) return;
  jinja_variable *known = find_in_scope(scope, name);
  if (known != NULL) {
    known->value = value;
    return;
  }
  if (scope->count == scope->capacity) {
    const uint32_t capacity = scope->capacity == 0 ? VARIABLES_FIRST : scope->capacity * 2;
    jinja_variable *variables =
        jinja_arena_extend(run->arena, scope->variables, scope->count * sizeof *variables,
                           capacity * sizeof *variables);
    if (variables == NULL) {
      jinja_fail_memory(run);
      return;
    }
    scope->variables = variables;
    scope->capacity = capacity;
  }
  scope->variables[scope->count++] = (jinja_variable){name, value};
}

jinja_value jinja_get_variable(jinja_run *run, uint32_t name) {
  for (const jinja_scope *scope = run->scope; scope != NULL; scope = scope->parent) {
    if (!jinja_step(run, scope->count / STEP_BYTES)) return JINJA_NOTHING;
    const jinja_variable *found = find_in_scope(scope, name);
    if (found != NULL) return found->value;
  }
  const jinja_string *text = run->program->names[name];
  const jinja_entry *given = jinja_look_up(run, run->variables, jinja_of_string(text));
  if (given != NULL) return given->value;
  jinja_value function;
  if (jinja_find_function(text, &function)) return function;
  return (jinja_value){.kind = JINJA_UNDEFINED, .string = text};
}

static void assign_items(jinja_run *run, const jinja_node *target, jinja_value value) {
  const uint32_t *links = links_at(run, target->a);
  const jinja_list *items = jinja_items_of(run, value);
  if (items == NULL) return;
  if (items->count != links[0]) {
    jinja_fail(run, WICK_E_FORMAT, "%u values for %u names", items->count, links[0]);
    return;
  }
  for (uint32_t i = 0; i < links[0]; i++) jinja_assign(run, links[i + 1], items->items[i]);
}

void jinja_assign(jinja_run *run, uint32_t target, jinja_value value) {
  const jinja_node *node = node_at(run, target);
  if (!jinja_step(run, 1)) return;
  if (node->kind == NODE_NAME) {
    set_variable(run, run->scope, node->a, value);
  } else if (node->kind == NODE_TUPLE) {
    assign_items(run, node, value);
  } else if (node->kind == NODE_ATTRIBUTE) {
    const jinja_value object = jinja_evaluate(run, node->a);
    if (object.kind != JINJA_NAMESPACE) {
      jinja_fail(run, WICK_E_FORMAT, "only namespaces have attributes that can be set");
      return;
    }
    jinja_put(run, object.dict, jinja_of_string(run->program->names[node->b]), value);
  } else {
    jinja_fail(run, WICK_E_FORMAT, "the target of set is not a name");
  }
}

// ---- rendered bodies ----

// Renders a body to a string.
static jinja_value capture(jinja_run *run, uint32_t body, jinja_scope *scope) {
  if (scope == NULL) return JINJA_NOTHING;
  jinja_buffer buffer = {0};
  jinja_buffer *const out = run->out;
  jinja_scope *const outer = run->scope;
  run->out = &buffer;
  run->scope = scope;
  jinja_execute(run, body);
  run->out = out;
  run->scope = outer;
  return jinja_buffer_value(run, &buffer);
}

// ---- loops ----

// Returns the items for which the condition holds.
static jinja_list *choose_items(jinja_run *run, const jinja_node *node, const jinja_list *items,
                                uint32_t condition) {
  jinja_list *chosen = jinja_new_list(run, 0);
  jinja_scope *const outer = run->scope;
  jinja_scope *scope = jinja_new_scope(run, outer);
  if (chosen == NULL || scope == NULL) return NULL;
  run->scope = scope;
  for (uint32_t i = 0; i < items->count && run->status == WICK_OK; i++) {
    jinja_assign(run, node->a, items->items[i]);
    if (jinja_truth(jinja_evaluate(run, condition))) jinja_add_item(run, chosen, items->items[i]);
  }
  run->scope = outer;
  return run->status == WICK_OK ? chosen : NULL;
}

static void run_items(jinja_run *run, const jinja_node *node, uint32_t body, jinja_loop *loop) {
  jinja_scope *const outer = run->scope;
  jinja_scope *scope = jinja_new_scope(run, outer);
  if (scope == NULL) return;
  run->scope = scope;
  const jinja_value loop_value = {.kind = JINJA_LOOP, .loop = loop};
  for (uint32_t i = 0; i < loop->items->count && run->status == WICK_OK; i++) {
    loop->index0 = i;
    scope->count = 0;  // variables of the previous iteration are dropped
    set_variable(run, scope, run->program->name_loop, loop_value);
    jinja_assign(run, node->a, loop->items->items[i]);
    if (jinja_execute(run, body) == FLOW_BREAK) break;
  }
  run->scope = outer;
}

// Runs the else part of a loop. Variables set in it are dropped; a break in it leaves the enclosing
// loop.
static jinja_flow run_else(jinja_run *run, uint32_t body) {
  jinja_scope *const outer = run->scope;
  jinja_scope *scope = jinja_new_scope(run, outer);
  if (scope == NULL) return FLOW_GOES_ON;
  run->scope = scope;
  const jinja_flow flow = jinja_execute(run, body);
  run->scope = outer;
  return flow;
}

jinja_flow jinja_execute_loop(jinja_run *run, uint32_t node, jinja_value iterable,
                              uint32_t depth0) {
  const jinja_node *at = node_at(run, node);
  const uint32_t *parts = links_at(run, at->c) + 1;
  jinja_list *items = jinja_items_of(run, iterable);
  if (items == NULL) return FLOW_GOES_ON;
  if (parts[FOR_CONDITION] != 0) items = choose_items(run, at, items, parts[FOR_CONDITION]);
  jinja_loop *loop = jinja_take(run, sizeof *loop);
  if (items == NULL || loop == NULL) return FLOW_GOES_ON;
  *loop = (jinja_loop){.items = items,
                       .depth0 = depth0,
                       .node = node,
                       .scope = run->scope,
                       .changed = JINJA_NOTHING};
  if (items->count == 0) return run_else(run, parts[FOR_ELSE]);
  run_items(run, at, parts[FOR_BODY], loop);
  return FLOW_GOES_ON;
}

// ---- macros ----

static jinja_value extra_arguments(jinja_run *run, const jinja_arguments *arguments,
                                   uint32_t from) {
  jinja_list *list = jinja_new_list(run, 0);
  for (uint32_t i = from; i < arguments->plain_count; i++) {
    jinja_add_item(run, list, arguments->plain[i]);
  }
  if (list == NULL) return JINJA_NOTHING;
  return (jinja_value){.kind = JINJA_TUPLE, .list = list};
}

static bool is_parameter(const jinja_run *run, const uint32_t *links, const jinja_string *name) {
  for (uint32_t i = 1; i < links[0]; i += 2) {
    if (jinja_string_equal(run->program->names[links[i]], name)) return true;
  }
  return false;
}

static void bind_named(jinja_run *run, jinja_scope *scope, const uint32_t *links,
                       const jinja_arguments *arguments) {
  const jinja_program *program = run->program;
  jinja_dict *others = jinja_new_dict(run);
  const uint32_t count = arguments->named == NULL ? 0 : arguments->named_count;
  for (uint32_t i = 0; i < count; i++) {
    const jinja_string *name = arguments->names[i];
    if (jinja_string_equal(name, program->names[program->name_caller])) {
      set_variable(run, scope, program->name_caller, arguments->named[i]);
    } else if (!is_parameter(run, links, name)) {
      jinja_put(run, others, jinja_of_string(name), arguments->named[i]);
    }
  }
  set_variable(run, scope, program->name_kwargs, (jinja_value){.kind = JINJA_DICT, .dict = others});
}

jinja_value jinja_call_macro(jinja_run *run, const jinja_macro *macro,
                             const jinja_arguments *arguments) {
  const uint32_t *links = links_at(run, macro->parameters);
  jinja_scope *scope = jinja_new_scope(run, macro->scope);
  if (scope == NULL) return JINJA_NOTHING;
  jinja_scope *const outer = run->scope;
  for (uint32_t i = 0; 2 * i < links[0] && run->status == WICK_OK; i++) {
    const uint32_t name = links[2 * i + 1], otherwise = links[2 * i + 2];
    jinja_value value = {.kind = JINJA_UNDEFINED, .string = run->program->names[name]};
    const jinja_value *given = NULL;
    for (uint32_t k = 0; k < arguments->named_count && given == NULL; k++) {
      const bool is_it = jinja_string_equal(arguments->names[k], run->program->names[name]);
      if (is_it) given = &arguments->named[k];
    }
    if (i < arguments->plain_count) given = &arguments->plain[i];
    if (given != NULL) {
      value = *given;
    } else if (otherwise != 0) {
      run->scope = scope;
      value = jinja_evaluate(run, otherwise);
      run->scope = outer;
    }
    set_variable(run, scope, name, value);
  }
  set_variable(run, scope, run->program->name_varargs,
               extra_arguments(run, arguments, links[0] / 2));
  bind_named(run, scope, links, arguments);
  return capture(run, macro->body, scope);
}

static jinja_value make_macro(jinja_run *run, uint32_t name, const jinja_node *node) {
  jinja_macro *macro = jinja_take(run, sizeof *macro);
  if (macro == NULL) return JINJA_NOTHING;
  *macro = (jinja_macro){.name = name, .parameters = node->b, .body = node->c, .scope = run->scope};
  return (jinja_value){.kind = JINJA_MACRO, .macro = macro};
}

// ---- statements ----

static jinja_flow execute_body(jinja_run *run, const jinja_node *node) {
  const uint32_t *links = links_at(run, node->a);
  jinja_flow flow = FLOW_GOES_ON;
  for (uint32_t i = 1; i <= links[0] && flow == FLOW_GOES_ON && run->status == WICK_OK; i++) {
    flow = jinja_execute(run, links[i]);
  }
  return flow;
}

static jinja_flow execute_if(jinja_run *run, const jinja_node *node) {
  const uint32_t *links = links_at(run, node->a);
  for (uint32_t i = 1; i < links[0] && run->status == WICK_OK; i += 2) {
    const bool holds = links[i] == 0 || jinja_truth(jinja_evaluate(run, links[i]));
    if (holds && run->status == WICK_OK) return jinja_execute(run, links[i + 1]);
  }
  return FLOW_GOES_ON;
}

static jinja_flow execute_with(jinja_run *run, const jinja_node *node) {
  const uint32_t *links = links_at(run, node->a);
  jinja_scope *const outer = run->scope;
  jinja_scope *scope = jinja_new_scope(run, outer);
  if (scope == NULL) return FLOW_GOES_ON;
  for (uint32_t i = 1; i < links[0] && run->status == WICK_OK; i += 2) {
    const jinja_value value = jinja_evaluate(run, links[i + 1]);
    set_variable(run, scope, node_at(run, links[i])->a, value);
  }
  run->scope = scope;
  const jinja_flow flow = jinja_execute(run, node->b);
  run->scope = outer;
  return flow;
}

static void execute_set_block(jinja_run *run, const jinja_node *node) {
  const jinja_value text = capture(run, node->b, jinja_new_scope(run, run->scope));
  if (run->status != WICK_OK) return;
  const jinja_value value = jinja_evaluate_filters(run, node->c, text);
  if (run->status == WICK_OK) jinja_assign(run, node->a, value);
}

static void execute_call_block(jinja_run *run, const jinja_node *node) {
  const jinja_value caller = make_macro(run, run->program->name_caller, node);
  if (run->status != WICK_OK) return;
  const jinja_value value = jinja_evaluate_call(run, node_at(run, node->a), &caller);
  if (run->status == WICK_OK) jinja_write_value(run, run->out, value);
}

static void execute_filter_block(jinja_run *run, const jinja_node *node) {
  const jinja_value text = capture(run, node->b, jinja_new_scope(run, run->scope));
  if (run->status != WICK_OK) return;
  const jinja_value value = jinja_evaluate_filters(run, node->a, text);
  if (run->status != WICK_OK) return;
  if (value.kind == JINJA_STRING) {
    jinja_write_string(run, run->out, value.string);
  } else {
    jinja_fail(run, WICK_E_FORMAT, "a block's filter returns no string");
  }
}

static jinja_flow execute_node(jinja_run *run, uint32_t index, const jinja_node *node) {
  switch ((jinja_node_kind)node->kind) {
    case NODE_BODY:
      return execute_body(run, node);
    case NODE_TEXT:
      jinja_write_string(run, run->out, run->program->constants[node->a].string);
      break;
    case NODE_OUTPUT: {
      const jinja_value value = jinja_evaluate(run, node->a);
      if (run->status == WICK_OK) jinja_write_value(run, run->out, value);
      break;
    }
    case NODE_IF:
      return execute_if(run, node);
    case NODE_FOR: {
      const jinja_value iterable = jinja_evaluate(run, node->b);
      if (run->status != WICK_OK) break;
      return jinja_execute_loop(run, index, iterable, 0);
    }
    case NODE_SET: {
      const jinja_value value = jinja_evaluate(run, node->b);
      if (run->status == WICK_OK) jinja_assign(run, node->a, value);
      break;
    }
    case NODE_SET_BLOCK:
      execute_set_block(run, node);
      break;
    case NODE_MACRO:
      set_variable(run, run->scope, node->a, make_macro(run, node->a, node));
      break;
    case NODE_CALL_BLOCK:
      execute_call_block(run, node);
      break;
    case NODE_FILTER_BLOCK:
      execute_filter_block(run, node);
      break;
    case NODE_WITH:
      return execute_with(run, node);
    case NODE_DO:
      jinja_evaluate(run, node->a);
      break;
    case NODE_BREAK:
      return FLOW_BREAK;
    case NODE_CONTINUE:
      return FLOW_CONTINUE;
    default:
      break;
  }
  return FLOW_GOES_ON;
}

jinja_flow jinja_execute(jinja_run *run, uint32_t node) {
  if (node == 0 || !jinja_step(run, 1)) return FLOW_GOES_ON;
  if (run->depth >= STATEMENT_DEPTH_MAX) {
    jinja_fail(run, WICK_E_FULL, "nested too deeply");
    return FLOW_GOES_ON;
  }
  run->depth++;
  const jinja_node *at = node_at(run, node);
  run->line = at->line;
  const jinja_flow flow = execute_node(run, node, at);
  run->depth--;
  return flow;
}

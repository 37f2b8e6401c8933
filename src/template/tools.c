// template/tools.c — the tools of a conversation: adds members that a template needs but clients
// omit, and alternative names for the list.
#include "template/messages.h"

typedef struct tools_walk {
  jinja_run *run;
  bool is_filling;
  bool has_gaps;
} tools_walk;

static jinja_value make_dict(jinja_run *run) {
  jinja_dict *dict = jinja_new_dict(run);
  return dict == NULL ? JINJA_NOTHING : (jinja_value){.kind = JINJA_DICT, .dict = dict};
}

// Returns a member, after setting it to `value` if it is missing.
static jinja_value *need(tools_walk *walk, jinja_value holder, const char *name,
                         jinja_value otherwise) {
  if (messages_member(holder, name) == NULL) {
    walk->has_gaps = true;
    if (walk->is_filling) messages_set(walk->run, holder, name, otherwise);
  }
  return messages_member(holder, name);
}

static jinja_value *first_of(jinja_value schema, const char *name) {
  jinja_value *list = messages_member(schema, name);
  return list != NULL && list->kind == JINJA_LIST && list->list->count > 0 ? list->list->items
                                                                           : NULL;
}

// Infers the type of a schema without "type" from its other members. Templates iterate over any
// word that is not a JSON Schema type as if it were a list of types, letter by letter.
static jinja_value find_type(jinja_run *run, jinja_value schema) {
  static const char *const choices[] = {"anyOf", "oneOf", "allOf"};
  for (uint32_t i = 0; i < sizeof choices / sizeof *choices; i++) {
    const jinja_value *choice = first_of(schema, choices[i]);
    const jinja_value *type = choice == NULL ? NULL : messages_member(*choice, "type");
    if (type != NULL && type->kind == JINJA_STRING) return *type;
  }
  const jinja_value *value = first_of(schema, "enum");
  const char *type = "string";
  if (value != NULL && value->kind == JINJA_INT) type = "integer";
  if (messages_member(schema, "items") != NULL) type = "array";
  if (messages_member(schema, "properties") != NULL) type = "object";
  return jinja_text_value(run, type);
}

// Replaces a list of types with the first type that is not null.
static void fill_type(tools_walk *walk, jinja_value schema) {
  jinja_value *type = need(walk, schema, "type", find_type(walk->run, schema));
  if (type == NULL || type->kind != JINJA_LIST) return;
  walk->has_gaps = true;
  const jinja_list *list = type->list;
  for (uint32_t i = 0; walk->is_filling && i < list->count && type->kind == JINJA_LIST; i++) {
    const jinja_value one = list->items[i];
    if (one.kind == JINJA_STRING && !jinja_string_is(one.string, "null")) *type = one;
  }
}

static void fill_schema(tools_walk *walk, jinja_value *schema);

static void fill_members(tools_walk *walk, jinja_value schema) {
  const jinja_value *type = messages_member(schema, "type");
  const bool has_type = type != NULL && type->kind == JINJA_STRING;
  if (has_type && jinja_string_is(type->string, "array")) {
    fill_schema(walk, need(walk, schema, "items", make_dict(walk->run)));
  }
  jinja_value *properties = messages_member(schema, "properties");
  if (has_type && jinja_string_is(type->string, "object")) {
    need(walk, schema, "additionalProperties", make_dict(walk->run));
    properties = need(walk, schema, "properties", make_dict(walk->run));
  }
  if (properties == NULL || properties->kind != JINJA_DICT) return;
  for (uint32_t i = 0; i < properties->dict->count && jinja_step(walk->run, 1); i++) {
    fill_schema(walk, &properties->dict->entries[i].value);
  }
}

static void fill_schema(tools_walk *walk, jinja_value *schema) {
  if (schema != NULL && schema->kind == JINJA_BOOL) {
    walk->has_gaps = true;
    if (walk->is_filling) *schema = make_dict(walk->run);
  }
  if (schema == NULL || schema->kind != JINJA_DICT || walk->run->status != WICK_OK) return;
  need(walk, *schema, "description", jinja_text_value(walk->run, ""));
  fill_type(walk, *schema);
  fill_members(walk, *schema);
}

static void remove_nulls(jinja_dict *dict) {
  for (uint32_t i = dict->count; i-- > 0;) {
    if (dict->entries[i].value.kind == JINJA_NONE) jinja_dict_remove(dict, &dict->entries[i]);
  }
}

static void fill_tool(tools_walk *walk, jinja_value tool) {
  const jinja_value *function = messages_member(tool, "function");
  if (function == NULL || function->kind != JINJA_DICT) return;
  remove_nulls(function->dict);
  need(walk, *function, "description", jinja_text_value(walk->run, ""));
  jinja_value *parameters = need(walk, *function, "parameters", make_dict(walk->run));
  if (parameters == NULL || parameters->kind != JINJA_DICT) return;
  need(walk, *parameters, "type", jinja_text_value(walk->run, "object"));
  need(walk, *parameters, "properties", make_dict(walk->run));
  fill_members(walk, *parameters);
}

static void set_variable(jinja_run *run, const char *name, jinja_value value) {
  if (run->status != WICK_OK || !messages_template_names(run, name)) return;
  if (jinja_dict_find_text(run->variables, name) != NULL) return;
  jinja_put(run, run->variables, jinja_text_value(run, name), value);
}

// Sets the variables of templates that do not use `tools`.
static void add_names(jinja_run *run, const jinja_value *tools) {
  if (messages_template_names(run, "tools")) return;
  if (tools != NULL) set_variable(run, "xml_tools", *tools);
  if (!messages_template_names(run, "functions")) return;
  const jinja_json_style style = {0};
  jinja_buffer text = {0};
  if (tools != NULL) jinja_write_json(run, &text, *tools, &style);
  set_variable(run, "functions", jinja_buffer_value(run, &text));
  if (!run->has_now || run->status != WICK_OK) return;
  const jinja_value format = jinja_text_value(run, "%b %d %Y %H:%M:%S GMT");
  if (run->status == WICK_OK) set_variable(run, "datetime", jinja_strftime(run, format.string));
}

void tools_prepare(jinja_run *run, const messages_form *form, messages *out) {
  jinja_value *tools = jinja_dict_find_text(run->variables, "tools");
  if (tools != NULL && messages_is_nothing(*tools)) {
    messages_remove(run, run->variables, "tools");
    tools = NULL;
  }
  tools_walk walk = {.run = run, .is_filling = form->has_whole_tools};
  const bool is_list = tools != NULL && tools->kind == JINJA_LIST;
  for (uint32_t i = 0; is_list && i < tools->list->count && jinja_step(run, 1); i++) {
    fill_tool(&walk, tools->list->items[i]);
  }
  out->has_partial_tools = walk.has_gaps;
  add_names(run, tools);
}

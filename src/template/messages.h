// template/messages.h — the messages of a conversation before they are passed to a template. They
// may come from another server, a saved file or a router: members without meaning are removed, and
// messages that a template refuses are written in another form. Internal to template/.
#ifndef WICK_TEMPLATE_MESSAGES_H
#define WICK_TEMPLATE_MESSAGES_H

#include "template/run.h"

// The place of the texts of several system messages, or of later ones.
typedef enum system_form {
  SYSTEM_AS_GIVEN,
  SYSTEM_THEN_USER,  // the leading ones are joined; later ones join the user message next to them
  SYSTEM_FIRST,      // all are joined into the first message
  SYSTEM_NONE        // all are joined into the first user message
} system_form;
enum { SYSTEM_FORMS = SYSTEM_NONE + 1 };

typedef enum turns_form {
  TURNS_AS_GIVEN,
  TURNS_NULL_CONTENT,  // a message with calls and no text has the content null
  // Adjacent messages of one role are joined, so that the roles alternate. For a template without
  // tools, calls are text of the assistant and results are text of the user.
  TURNS_JOINED,
  TURNS_SPLIT,  // in addition, a message has one call or text, and is followed by the call's result
  TURNS_SPLIT_NULL_CONTENT
} turns_form;
enum { TURNS_FORMS = TURNS_SPLIT_NULL_CONTENT + 1 };

// The parts that are rendered in a form that differs from the input.
typedef struct messages_form {
  system_form system;
  turns_form turns;
  // ids of calls have nine letters and digits, as Mistral's templates require, and results have the
  // ids of their calls
  bool has_short_ids;
  bool has_known_effort;  // reasoning_effort is one of the words that the template contains
  bool has_whole_tools;   // tools and parameters without type or description get one
} messages_form;

typedef struct messages {
  jinja_list *list;     // NULL: there are none
  jinja_list *systems;  // texts of system messages, trimmed; none if there is only a leading one
  bool *used;           // [used_count] which messages and calls are written
  uint32_t used_count;
  // Whether these forms would change anything.
  bool has_system, has_several_systems, has_long_ids, has_unknown_effort, has_partial_tools;
  bool has_repeated_turns, has_calls;
} messages;

// Changes run->variables.
void messages_prepare(jinja_run *run, const messages_form *form, messages *out);
// Whether the rendered text contains all messages except the assistant's, and all calls.
bool messages_are_rendered(jinja_run *run, const messages *prepared, const jinja_buffer *text);

// ---- parts ----

jinja_value *messages_member(jinja_value message, const char *name);  // NULL: no such member
bool messages_have_role(jinja_value message, const char *role);
void messages_set(jinja_run *run, jinja_value message, const char *name, jinja_value value);
// Both texts with a separator between them; an empty one is left out.
jinja_value messages_join(jinja_run *run, jinja_value first, const char *separator,
                          jinja_value second);
bool messages_is_nothing(jinja_value value);  // null, or a text, list or dict that is empty
// Whether this word is one of the template's string literals.
bool messages_template_has(const jinja_run *run, const char *word);
// Whether it is one of the template's names of variables and attributes.
bool messages_template_names(const jinja_run *run, const char *word);
bool messages_has_id(jinja_run *run, jinja_value call, jinja_value result);
void messages_remove(jinja_run *run, jinja_dict *dict, const char *name);  // if it exists
// A message, or nothing if the run has failed.
jinja_value messages_make(jinja_run *run, const char *role, jinja_value text);
// Maps OpenAI's values of reasoning effort in the variables to those of the template.
void effort_prepare(jinja_run *run, const messages_form *form, messages *out);
void systems_prepare(jinja_run *run, const messages_form *form, messages *out);
void turns_prepare(jinja_run *run, const messages_form *form, messages *out);
void tools_prepare(jinja_run *run, const messages_form *form, messages *out);

#endif

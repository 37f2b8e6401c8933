// template/messages.h — the messages of a conversation before they are passed to a template. They
// may come from another server, a saved file or a router: members without meaning are removed, and
// messages that a template rejects are changed to a different form. Internal to template/.
#ifndef WICK_TEMPLATE_MESSAGES_H
#define WICK_TEMPLATE_MESSAGES_H

#include "template/run.h"

// The position of several system messages, or of later system messages.
typedef enum system_form {
  SYSTEM_AS_GIVEN,
  SYSTEM_THEN_USER,  // leading system messages are joined; later ones are merged into an adjacent
                     // user message
  SYSTEM_FIRST,      // all system messages are merged into the first message
  SYSTEM_NONE        // all system messages are merged into the first user message
} system_form;
enum { SYSTEM_FORMS = SYSTEM_NONE + 1 };

typedef enum turns_form {
  TURNS_AS_GIVEN,
  TURNS_NULL_CONTENT,  // a message with calls and no text has the content null
  // Adjacent messages with the same role are merged, so that the roles alternate. For a template
  // without tools, calls become assistant text and results become user text.
  TURNS_JOINED,
  TURNS_SPLIT,  // in addition, each message has either one call or text, and a call's result
                // follows it
  TURNS_SPLIT_NULL_CONTENT
} turns_form;
enum { TURNS_FORMS = TURNS_SPLIT_NULL_CONTENT + 1 };

// The changes to the input's form.
typedef struct messages_form {
  system_form system;
  turns_form turns;
  // call ids have nine letters and digits, as Mistral's templates require, and results have the ids
  // of their calls
  bool has_short_ids;
  bool has_known_effort;  // reasoning_effort is one of the words that the template contains
  bool has_whole_tools;   // missing types and descriptions of tools and parameters are added
} messages_form;

typedef struct messages {
  jinja_list *list;     // NULL: none
  jinja_list *systems;  // trimmed system messages
  bool *used;           // [used_count] whether each message or call was rendered
  uint32_t used_count;
  // Whether these changes would have any effect.
  bool has_system, has_several_systems, has_long_ids, has_unknown_effort, has_partial_tools;
  bool has_repeated_turns, has_calls;
} messages;

// Applies the changes to run->variables.
void messages_prepare(jinja_run *run, const messages_form *form, messages *out);
// Whether the rendered text contains all messages except the assistant's, and all calls.
bool messages_are_rendered(jinja_run *run, const messages *prepared, const jinja_buffer *text);

// ---- parts ----

jinja_value *messages_member(jinja_value message, const char *name);  // NULL if missing
bool messages_have_role(jinja_value message, const char *role);
void messages_set(jinja_run *run, jinja_value message, const char *name, jinja_value value);
// Returns both strings with a separator between them; an empty string is omitted.
jinja_value messages_join(jinja_run *run, jinja_value first, const char *separator,
                          jinja_value second);
bool messages_is_nothing(jinja_value value);  // null, or an empty string, list or dict
// Whether this word is one of the template's string literals.
bool messages_template_has(const jinja_run *run, const char *word);
// Whether the word is a variable or attribute name in the template.
bool messages_template_names(const jinja_run *run, const char *word);
bool messages_has_id(jinja_run *run, jinja_value call, jinja_value result);
void messages_remove(jinja_run *run, jinja_dict *dict, const char *name);  // if it exists
// Returns a message, or nothing if the run has failed.
jinja_value messages_make(jinja_run *run, const char *role, jinja_value text);
// Maps OpenAI's reasoning effort values in the variables to the template's values.
void effort_prepare(jinja_run *run, const messages_form *form, messages *out);
void systems_prepare(jinja_run *run, const messages_form *form, messages *out);
void turns_prepare(jinja_run *run, const messages_form *form, messages *out);
void tools_prepare(jinja_run *run, const messages_form *form, messages *out);

#endif

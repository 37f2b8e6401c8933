// reply/forms.h — the formats in which models write calls and reasoning, as data.
#ifndef WICK_REPLY_FORMS_H
#define WICK_REPLY_FORMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Where the arguments are.
typedef enum reply_arguments {
  ARGUMENTS_JSON,     // an object, after the name
  ARGUMENTS_CALLS,    // whole calls as JSON: an object with name and arguments, or a list of them
  ARGUMENTS_PARAMS,   // parameters between tags; the tool's schema declares their types
  ARGUMENTS_PYTHON,   // name(key=value, ...), or a list of such calls
  ARGUMENTS_QUOTED,   // {key:value}, with strings between delimiters
  ARGUMENTS_CHANNELS  // messages with a header that contains channel and recipient (harmony)
} reply_arguments;

enum {
  FORM_BARE = 1,        // without a tag, at the reply's beginning; the tool must be known
  FORM_ID_LAST = 2,     // the id follows the arguments
  FORM_NAME_IN_ID = 4,  // functions.NAME:0
  FORM_NAME_IS_KEY = 8,
  FORM_RECIPIENT = 16,  // the name "all" starts content
  FORM_LINES = 32,      // values are on separate lines
  FORM_KNOWN = 64,      // only if the template has its trait, because prose could contain the tag
  // Properties of the calls:
  FORM_LIST = 128,       // calls as a list
  FORM_MANY = 256,       // several calls between the tags
  FORM_MAY_CLOSE = 512,  // some models omit `close`
  FORM_BRACKET = 1024,   // the tag is an ordinary word, so it counts only if a bracket follows
  FORM_WHOLE = 2048      // not specific to a model: a call only if it is the whole reply
};

// In patterns: a tool's name, an id, optional white space.
#define PATTERN_NAME "\1"
#define PATTERN_ID "\2"
#define PATTERN_SPACE "\3"
#define PATTERN_ARGUMENTS "\4"  // arguments, in `call`
#define PATTERN_GAP "\5"        // a space, a line break, or nothing
#define PATTERN_INDEX "\6"      // digits
// Command R's built-in tool that announces an answer: not a call.
#define FORM_ANSWER_TOOL "directly-answer"

// Tags of parameters: before and after a key, before and after a value, after the last parameter.
// The tag after a value may end with the key (PATTERN_NAME) and ">". For Gemma's objects, `key` is
// the delimiter around strings.
typedef struct reply_params {
  const char *key, *key_end, *value, *value_end, *end;
  // Attributes that mark a value as a string or as JSON; they may contain its type (SCHEMA_TYPE).
  const char *says_text, *says_json;
  const char *attributes_end;  // NULL: ">"
  const char *wrap,
      *unwrap;        // delimiters of a string that may contain the tags around values, or NULL
  bool has_elements;  // lists and objects are elements with the same tags
  bool escapes_keys;  // & and " are &amp; and &quot;
} reply_params;

static inline const char *params_attributes_end(const reply_params *params) {
  return params->attributes_end == NULL ? ">" : params->attributes_end;
}

typedef struct reply_form {
  const char *trait;  // a string in every template with this format
  const char *open;   // the tag that begins it in content
  const char *head;   // pattern of the text before the arguments of each call
  const char *tail;   // pattern of the text after the arguments, or NULL
  const char *close;  // the tag that ends the calls; NULL: there is only one call
  uint8_t arguments;
  uint16_t flags;
  const reply_params *params;  // or NULL
  const char *call;  // for ARGUMENTS_CALLS: pattern of a call, as the format's models write it
} reply_form;

extern const reply_form REPLY_FORMS[];
extern const uint32_t REPLY_FORM_COUNT;

typedef struct reply_thought {
  const char *trait, *open, *close;
} reply_thought;
extern const reply_thought REPLY_THOUGHTS[];

// Tags that only enclose content, and are removed.
typedef struct reply_wrapper {
  const char *trait, *mark;
} reply_wrapper;
extern const reply_wrapper REPLY_WRAPPERS[];
extern const uint32_t REPLY_WRAPPER_COUNT;

enum { REPLY_BEGINNING_BYTES = 320 };
// Writes the beginning of a call without a tag, up to the bracket of its arguments. Returns its
// size in bytes.
size_t reply_call_beginning(const reply_form *form, const char *name, size_t name_bytes,
                            char out[REPLY_BEGINNING_BYTES]);

// Whether two strings are the same.
static inline bool forms_are_same(const char *a, const char *b) {
  while (*a != '\0' && *a == *b) a++, b++;
  return *a == *b;
}

#endif

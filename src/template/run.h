// template/run.h — the state of one rendering, and the functions that its source files share.
// Internal to template/.
//
// A failure is stored in the run: later calls do nothing, and their results are meaningless. All
// memory comes from the run's arena. Each evaluated node, each item, and each 32 bytes of text that
// are read or written count as a step. The number of steps is limited.
#ifndef WICK_TEMPLATE_RUN_H
#define WICK_TEMPLATE_RUN_H

#include "base/status.h"
#include "template/node.h"

enum { STEP_BYTES = 32 };

// A growable string with its marks.
struct jinja_buffer {
  char *bytes;
  uint8_t *marks;
  uint32_t size_bytes, capacity;
  uint8_t seen;  // a bit for each mark that was seen
};

typedef struct jinja_variable {
  uint32_t name;
  jinja_value value;
} jinja_variable;

typedef struct jinja_scope jinja_scope;
struct jinja_scope {
  jinja_scope *parent;
  jinja_variable *variables;
  uint32_t count, capacity;
};

struct jinja_loop {
  jinja_list *items;
  uint32_t index0, depth0;
  uint32_t node;        // the for statement
  jinja_scope *scope;   // the enclosing scope
  jinja_value changed;  // last argument of changed()
};

struct jinja_macro {
  uint32_t name, parameters, body;
  jinja_scope *scope;  // scope of the macro's definition
};

struct jinja_method {
  jinja_value self;
  const jinja_named *named;
};

typedef enum jinja_flow { FLOW_GOES_ON, FLOW_BREAK, FLOW_CONTINUE } jinja_flow;

typedef struct jinja_run {
  const jinja_program *program;
  jinja_arena *arena;
  jinja_buffer *out;
  jinja_scope *scope;
  jinja_dict *variables;  // passed by the caller
  uint64_t steps, steps_max;
  uint32_t output_bytes_max;
  uint32_t depth;
  uint32_t line;
  int64_t now_s;  // local time since 1970, for strftime_now
  bool has_now;
  bool has_arguments;     // the conversation has arguments of tool calls
  bool quotes_arguments;  // a tool call's arguments, given as a string, were passed to tojson ...
  bool prints_arguments;  // ... or, given as a dict, were printed as Python writes dicts
  wick_status status;
  wick_error *error;
} jinja_run;

// Arguments of a call. `names` and `named` correspond to each other.
typedef struct jinja_arguments {
  const jinja_value *plain;
  const jinja_string *const *names;
  const jinja_value *named;
  uint32_t plain_count, named_count;
} jinja_arguments;

// ---- the run (run.c) ----
// Ends the rendering; the message is reported with the line. Returns undefined, for the caller to
// return.
jinja_value jinja_fail(jinja_run *run, wick_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
jinja_value jinja_fail_memory(jinja_run *run);
// Fails with an error that names the undefined value.
jinja_value jinja_fail_undefined(jinja_run *run, jinja_value value);
// Counts steps; returns false if the run has failed or the limit is exceeded.
bool jinja_step(jinja_run *run, uint64_t steps);
bool jinja_step_bytes(jinja_run *run, uint64_t bytes);
// Counts the steps for a key, by its bytes.
bool jinja_step_key(jinja_run *run, jinja_value key);
// Returns the entry, or NULL; counts the steps for the key.
jinja_entry *jinja_look_up(jinja_run *run, const jinja_dict *dict, jinja_value key);
// Counts the steps of reading or writing a float; very large and very small floats are slow.
bool jinja_step_float(jinja_run *run, double value);
// Allocates memory. Returns NULL after a failure.
void *jinja_take(jinja_run *run, size_t size_bytes);
jinja_list *jinja_new_list(jinja_run *run, uint32_t capacity);
void jinja_add_item(jinja_run *run, jinja_list *list, jinja_value item);
jinja_value jinja_list_value(jinja_list *list);  // NULL: undefined
jinja_dict *jinja_new_dict(jinja_run *run);
void jinja_put(jinja_run *run, jinja_dict *dict, jinja_value key, jinja_value value);

// ---- scopes and statements (statements.c) ----
jinja_scope *jinja_new_scope(jinja_run *run, jinja_scope *parent);
jinja_value jinja_get_variable(jinja_run *run, uint32_t name);
void jinja_assign(jinja_run *run, uint32_t target, jinja_value value);
jinja_flow jinja_execute(jinja_run *run, uint32_t node);
// Executes a loop. Returns how its else part ended, if that part ran.
jinja_flow jinja_execute_loop(jinja_run *run, uint32_t node, jinja_value iterable, uint32_t depth0);
jinja_value jinja_call_macro(jinja_run *run, const jinja_macro *macro,
                             const jinja_arguments *arguments);

// ---- expressions (evaluate.c, operators.c) ----
jinja_value jinja_evaluate(jinja_run *run, uint32_t node);
jinja_value jinja_evaluate_call(jinja_run *run, const jinja_node *node, const jinja_value *caller);
// Applies a filter to the text of a block.
jinja_value jinja_evaluate_filters(jinja_run *run, uint32_t node, jinja_value input);
jinja_value jinja_get_attribute(jinja_run *run, jinja_value object, const jinja_string *name);
jinja_value jinja_get_item(jinja_run *run, jinja_value object, jinja_value key);
jinja_value jinja_get_slice(jinja_run *run, jinja_value object, const jinja_value parts[3]);
jinja_value jinja_binary(jinja_run *run, uint32_t op, jinja_value a, jinja_value b);
// Returns a whole number beyond 64 bits, from its digits, which are copied; and its negation.
jinja_value jinja_big(jinja_run *run, const char *digits, size_t size_bytes);
jinja_value jinja_negate(jinja_run *run, jinja_value big);
bool jinja_compare_is(jinja_run *run, uint32_t op, jinja_value a, jinja_value b);
bool jinja_equal(jinja_run *run, jinja_value a, jinja_value b);
// Returns a negative number, 0 or a positive number; fails for values that have no order.
int jinja_order(jinja_run *run, jinja_value a, jinja_value b);
// Returns the indices of `count` items in order, with equal items in their original order (a merge
// sort with runs of doubling length); NULL after a failure.
typedef int jinja_comparison(jinja_run *run, const void *context, uint32_t a, uint32_t b);
uint32_t *jinja_sort(jinja_run *run, uint32_t count, jinja_comparison *compare,
                     const void *context);
// Fails unless Python can hash the value, so that a dict or `unique` can look it up.
bool jinja_check_key(jinja_run *run, jinja_value value);
bool jinja_contains(jinja_run *run, jinja_value container, jinja_value item);
// Returns the items over which a `for` iterates as a list, without copying a list. NULL after a
// failure.
jinja_list *jinja_items_of(jinja_run *run, jinja_value value);

// ---- names of filters, tests, functions, methods (names.h) ----
jinja_value jinja_filter(jinja_run *run, const jinja_string *name, jinja_value input,
                         const jinja_arguments *arguments);
bool jinja_test(jinja_run *run, const jinja_string *name, jinja_value input,
                const jinja_arguments *arguments);
// Finds a global function. Returns false if there is no function with this name.
bool jinja_find_function(const jinja_string *name, jinja_value *function);
// Returns the numbers from `start` up to, but excluding, `stop`.
jinja_value jinja_range(jinja_run *run, int64_t start, int64_t stop, int64_t step);
bool jinja_find_method(jinja_run *run, jinja_value self, const jinja_string *name,
                       jinja_value *method);
// Calls a function with a method's object or a filter's input.
jinja_value jinja_invoke(jinja_run *run, const jinja_named *named, jinja_value input,
                         const jinja_arguments *arguments);

// ---- strings (buffer.c, strings.c) ----
void jinja_write(jinja_run *run, jinja_buffer *buffer, const char *bytes, size_t size_bytes,
                 uint8_t mark);
void jinja_write_text(jinja_run *run, jinja_buffer *buffer, const char *text, uint8_t mark);
void jinja_write_part(jinja_run *run, jinja_buffer *buffer, const jinja_string *string,
                      uint32_t from, uint32_t to);
void jinja_write_string(jinja_run *run, jinja_buffer *buffer, const jinja_string *string);
// Writes a string in quotes. `escape` returns the number of bytes for a character, or 0 if it is
// written unchanged.
typedef size_t jinja_escape_character(char out[16], uint32_t code, uint32_t style);
void jinja_write_quoted(jinja_run *run, jinja_buffer *buffer, const jinja_string *string,
                        char quote, jinja_escape_character *escape, uint32_t style);
// Writes the escape of a character: a backslash and a letter if `names` has the character (pairs of
// a character and its letter; returns 0 if not); or a backslash, a letter and digits.
size_t jinja_escape_named(char out[16], uint32_t code, const char *names);
size_t jinja_escape_hex(char out[16], uint32_t code, char letter, uint32_t digits);
// Write values like Python's str() and repr().
void jinja_write_value(jinja_run *run, jinja_buffer *buffer, jinja_value value);
void jinja_write_repr(jinja_run *run, jinja_buffer *buffer, jinja_value value);
jinja_value jinja_buffer_value(jinja_run *run, const jinja_buffer *buffer);
// Return a buffer that begins with a string, and the string of the buffer's content after more was
// written. A string that grows piece by piece is not copied for each piece. NULL after a failure.
jinja_buffer *jinja_begin_append(jinja_run *run, const jinja_string *begin);
jinja_value jinja_end_append(jinja_run *run, jinja_buffer *buffer);
// Returns str() of a value; an empty string after a failure.
const jinja_string *jinja_text_of(jinja_run *run, jinja_value value);
jinja_value jinja_text_value(jinja_run *run, const char *text);
jinja_value jinja_part(jinja_run *run, const jinja_string *string, uint32_t from, uint32_t to);
// Returns the first position of `part` at or after `from`, or UINT32_MAX.
uint32_t jinja_find_part(jinja_run *run, const jinja_string *string, const jinja_string *part,
                         uint32_t from);
// Returns the last position of `part` at which it ends at or before `end`, or UINT32_MAX.
uint32_t jinja_find_last(jinja_run *run, const jinja_string *string, const jinja_string *part,
                         uint32_t end);
// Returns the string without the characters of `set` (NULL: white space) at either end.
jinja_value jinja_strip(jinja_run *run, const jinja_string *string, const jinja_string *set,
                        bool left, bool right);
jinja_value jinja_replace(jinja_run *run, const jinja_string *string, const jinja_string *from,
                          const jinja_string *to, int64_t count_max);
typedef enum jinja_case { CASE_UPPER, CASE_LOWER, CASE_TITLE, CASE_CAPITAL } jinja_case;
jinja_value jinja_change_case(jinja_run *run, const jinja_string *string, jinja_case kind);
jinja_value jinja_escape(jinja_run *run, jinja_value value);
// Returns the same string, marked as not to be escaped again.
jinja_value jinja_markup(jinja_run *run, jinja_value text);
bool jinja_is_space_at(const jinja_string *string, uint32_t at, uint32_t *size_bytes);

// ---- formats (format.c, json_text.c, json_read.c, clock.c) ----
jinja_value jinja_format_percent(jinja_run *run, const jinja_string *format, jinja_value values);
jinja_value jinja_format_braces(jinja_run *run, const jinja_string *format,
                                const jinja_arguments *arguments);
typedef struct jinja_json_style {
  const jinja_string *indent;                          // NULL: one line
  const jinja_string *item_separator, *key_separator;  // NULL: Python's separators
  bool is_ascii, sorts_keys;
} jinja_json_style;
void jinja_write_json(jinja_run *run, jinja_buffer *buffer, jinja_value value,
                      const jinja_json_style *style);
// Parses JSON. Its strings count as content, or have separate marks if the JSON is a string of the
// template language. Fails with WICK_E_FORMAT.
jinja_value jinja_read_json(jinja_run *run, const char *bytes, size_t size_bytes, uint8_t mark);
jinja_value jinja_strftime(jinja_run *run, const jinja_string *format);

#endif

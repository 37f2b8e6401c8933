// template/effort.c — the reasoning effort: maps OpenAI's words to those of templates.
#include "template/messages.h"

// The levels in ascending order. The base words are passed to templates that do not list their
// levels.
static const struct {
  const char *word;
  uint32_t base;  // the word to use if the template does not contain this one
} LEVELS[] = {{"none", 0}, {"minimal", 2}, {"low", 2}, {"medium", 3},
              {"high", 4}, {"xhigh", 4},   {"max", 4}};
enum { NONE = 0, XHIGH = 5, MAX = 6, LEVEL_COUNT = 7 };

static bool is_known(const jinja_run *run, uint32_t level) {
  return messages_template_has(run, LEVELS[level].word);
}

// Returns the nearest level except "none" that the template contains; of two equally near levels,
// the higher one.
static uint32_t nearest(const jinja_run *run, uint32_t level) {
  for (uint32_t distance = 0; distance < LEVEL_COUNT; distance++) {
    if (level + distance < LEVEL_COUNT && is_known(run, level + distance)) return level + distance;
    if (level > distance && is_known(run, level - distance)) return level - distance;
  }
  return level;
}

static uint32_t usual(const jinja_run *run, uint32_t level) {
  if (is_known(run, level)) return level;
  const uint32_t other = level == MAX ? XHIGH : MAX;
  if (level >= XHIGH && is_known(run, other)) return other;
  return LEVELS[level].base;
}

static void set_unless_given(jinja_run *run, const char *name, jinja_value value) {
  if (jinja_dict_find_text(run->variables, name) != NULL || run->status != WICK_OK) return;
  jinja_put(run, run->variables, jinja_text_value(run, name), value);
}

void effort_prepare(jinja_run *run, const messages_form *form, messages *out) {
  jinja_value *given = jinja_dict_find_text(run->variables, "reasoning_effort");
  uint32_t level = 0;
  if (given == NULL || given->kind != JINJA_STRING) return;
  while (level < LEVEL_COUNT && !jinja_string_is(given->string, LEVELS[level].word)) level++;
  if (level == LEVEL_COUNT) return;  // a word that only the template defines
  out->has_unknown_effort = level != NONE && nearest(run, level) != usual(run, level);
  if (level == NONE && !is_known(run, NONE)) {
    messages_remove(run, run->variables, "reasoning_effort");
  } else if (level != NONE) {
    level = form->has_known_effort ? nearest(run, level) : usual(run, level);
    *given = jinja_text_value(run, LEVELS[level].word);
    set_unless_given(run, "thinking_effort", *given);
  }
  set_unless_given(run, "enable_thinking", jinja_bool(level != NONE));
  set_unless_given(run, "thinking", jinja_bool(level != NONE));
}

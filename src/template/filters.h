// template/filters.h — filters by name. Internal to template/.
#ifndef WICK_TEMPLATE_FILTERS_H
#define WICK_TEMPLATE_FILTERS_H

#include "template/run.h"

typedef jinja_value (*jinja_filter_function)(jinja_run *run, jinja_value input,
                                             const jinja_arguments *arguments);

typedef struct jinja_filter_entry {
  const char *name;
  jinja_filter_function function;
} jinja_filter_entry;

// The list ends with a NULL name.
extern const jinja_filter_entry JINJA_TEXT_FILTERS[], JINJA_LIST_FILTERS[];

#endif

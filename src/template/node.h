// template/node.h — a template as a compact tree: nodes of 20 bytes in one array, which refer to
// each other by index. 0 means no node. Lists of nodes are in `links`: a count, followed by the
// indices.
#ifndef WICK_TEMPLATE_NODE_H
#define WICK_TEMPLATE_NODE_H

#include "template/value.h"

typedef enum jinja_node_kind {
  NODE_NONE,
  // expressions
  NODE_CONST,      // a: index of a constant
  NODE_NAME,       // a: index of a name
  NODE_LIST,       // a: links
  NODE_TUPLE,      // a: links; also a target of assignments
  NODE_DICT,       // a: links of alternating keys and values
  NODE_NEGATE,     // a
  NODE_PLUS,       // a
  NODE_NOT,        // a
  NODE_AND,        // a, b
  NODE_OR,         // a, b
  NODE_BINARY,     // op, a, b
  NODE_CONCAT,     // a: links
  NODE_COMPARE,    // a, b: links of alternating operators and operands
  NODE_CHOICE,     // a if b else c
  NODE_ATTRIBUTE,  // a . name b
  NODE_ITEM,       // a [ b ]
  NODE_SLICE,      // the index b of an ITEM: a : b : c, each may be 0
  NODE_CALL,       // a, b: arguments
  NODE_FILTER,     // a (0: the text of a block), b: arguments, c: name
  NODE_TEST,       // a, b: arguments, c: name
  // statements
  NODE_BODY,          // a: links
  NODE_TEXT,          // a: index of a constant
  NODE_OUTPUT,        // a
  NODE_IF,            // a: links of alternating conditions and bodies; condition 0: else
  NODE_FOR,           // a: target, b: iterable, c: links of for_part
  NODE_SET,           // a: target, b
  NODE_SET_BLOCK,     // a: target, b: body, c: filters or 0
  NODE_MACRO,         // a: name, b: links of parameters (name, default or 0), c: body
  NODE_CALL_BLOCK,    // a: the call, b: links of parameters, c: body
  NODE_FILTER_BLOCK,  // a: filters, b: body
  NODE_WITH,          // a: links of targets and values, b: body
  NODE_DO,            // a
  NODE_BREAK,
  NODE_CONTINUE
} jinja_node_kind;

// Parts of NODE_FOR's `c`
enum { FOR_BODY, FOR_ELSE, FOR_CONDITION, FOR_IS_RECURSIVE, FOR_PARTS };

// Arguments in links: the numbers of positional and named arguments, the nodes of *args and
// **kwargs or 0, then the positional arguments, then alternating names and values.
enum { ARGUMENTS_PLAIN, ARGUMENTS_NAMED, ARGUMENTS_LIST, ARGUMENTS_DICT, ARGUMENTS_FIRST };

// Operators, of one or two characters as in the source.
#define JINJA_OP(first, second) ((uint32_t)(first) | (uint32_t)(second) << 8)
enum {
  OP_EQUAL = JINJA_OP('=', '='),
  OP_UNEQUAL = JINJA_OP('!', '='),
  OP_LESS_EQUAL = JINJA_OP('<', '='),
  OP_GREATER_EQUAL = JINJA_OP('>', '='),
  OP_FLOOR_DIVIDE = JINJA_OP('/', '/'),
  OP_POWER = JINJA_OP('*', '*'),
  OP_IN = JINJA_OP('i', 'n'),
  OP_NOT_IN = JINJA_OP('n', 'i')
};

typedef struct jinja_node {
  uint16_t kind;  // jinja_node_kind
  uint16_t op;
  uint32_t line;
  uint32_t a, b, c;
} jinja_node;

typedef struct jinja_program {
  jinja_arena arena;
  jinja_node *nodes;
  uint32_t *links;
  jinja_value *constants;
  const jinja_string **names;
  uint32_t node_count, node_capacity, link_count, link_capacity;
  uint32_t constant_count, constant_capacity, name_count, name_capacity;
  jinja_dict *name_ids;
  uint32_t body;       // the node of the whole template
  uint32_t name_loop;  // names that the language defines
  uint32_t name_caller, name_varargs, name_kwargs;
} jinja_program;

#endif

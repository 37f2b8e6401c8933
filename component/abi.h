// component/abi.h — values as the component model's canonical ABI stores them in memory
// (CanonicalABI.md of the component model: "Storing", "Flattening").
#ifndef WICK_COMPONENT_ABI_H
#define WICK_COMPONENT_ABI_H

#include <stdint.h>

// Declares a function of an imported interface.
#define ABI_IMPORT(interface, name) \
  __attribute__((__import_module__(interface), __import_name__(name)))
#define ABI_EXPORT(name) __attribute__((__export_name__(name)))

typedef int32_t abi_handle;  // a resource, stream, future or waitable

typedef struct abi_list {  // also a string
  void *items;             // allocated by cabi_realloc with the C library
  uint32_t count;
} abi_list;

typedef struct abi_result {  // a result with a handle or a list; also an option or a variant
  uint8_t is_error;          // the index of the case
  union {
    abi_handle handle;
    abi_list list;  // or a string
    struct {
      uint8_t code;
      abi_handle handle;
    } error;
  };
} abi_result;

// Space for a result with an error-code of wasi:http, which is not read.
typedef struct abi_error_room {
  uint64_t words[6];
} abi_error_room;

// The two ends of a stream or future, or two values.
typedef struct abi_pair {
  abi_handle first, second;
} abi_pair;

// Frees a list of lists with all its items.
void abi_free_lists(abi_list lists);

// ---- tasks (CanonicalABI.md, "callback") ----

enum { CODE_EXIT = 0, CODE_YIELD = 1, CODE_WAIT = 2 };  // how a task continues
enum { EVENT_SUBTASK = 1, EVENT_STREAM_READ = 2, EVENT_STREAM_WRITE = 3, EVENT_FUTURE_WRITE = 5 };
enum { STATUS_BLOCKED = -1 };  // otherwise the state, and the copied amount in the bits above it
enum { STATE_COMPLETED = 0, STATE_DROPPED = 1, STATE_BITS = 4, STATE_MASK = 15 };
enum { SUBTASK_RETURNED = 2 };

ABI_IMPORT("$root", "[waitable-set-new]") abi_handle set_create(void);
ABI_IMPORT("$root", "[waitable-set-drop]") void set_drop(abi_handle set);
ABI_IMPORT("$root", "[waitable-join]") void set_join(abi_handle waitable, abi_handle set);
ABI_IMPORT("$root", "[subtask-drop]") void subtask_drop(abi_handle subtask);
ABI_IMPORT("$root", "[context-get-0]") void *context_get(void);
ABI_IMPORT("$root", "[context-set-0]") void context_set(void *context);

// Creates a stream or future: the readable end is in the low half, the writable end in the high
// half.
typedef int64_t abi_ends;

static inline abi_handle readable_of(abi_ends ends) { return (abi_handle)(uint32_t)ends; }
static inline abi_handle writable_of(abi_ends ends) {
  return (abi_handle)(uint32_t)((uint64_t)ends >> 32);
}

// Lets a task wait for the events of a set.
static inline int32_t wait_for(abi_handle set) {
  return CODE_WAIT | (int32_t)((uint32_t)set << STATE_BITS);
}

#endif

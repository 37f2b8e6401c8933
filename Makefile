# Wick: `make help` lists the targets. Compilers and flags are in flags.mk.

.DEFAULT_GOAL := all
include flags.mk

# As many jobs as processors, unless the command line has -j.
MAKEFLAGS += --no-builtin-rules --no-builtin-variables $(if $(filter 0,$(MAKELEVEL)),-j$(shell nproc))
SHELL := /bin/bash
.DELETE_ON_ERROR:
.SECONDARY:
Q := $(if $(V),,@)
NODE ?= node
NPX := node_modules/.bin/
comma := ,
space := $(subst ,, )

# ---- sources: new files are found automatically ----
# The small command-line program has the common commands, the others have all. wick-lab is the same
# program with the commands in src/lab; synth is in both.
MEDIA_CLI_SRC := $(filter-out src/cli/media_options.c,$(wildcard src/cli/media*.c))
CLI_SRC := $(filter-out src/cli/commands_usual.c $(MEDIA_CLI_SRC),$(wildcard src/cli/*.c)) $(wildcard src/lab/synth*.c)
LAB_SRC := $(filter-out src/lab/synth%,$(wildcard src/lab/*.c))
POSIX_SRC := src/platform/posix.c src/platform/pthreads.c
# Entropy from the C library, on hosts that have it: WASI and Emscripten
ENTROPY_SRC := src/platform/getentropy.c
# Required by the specification but not by inference: linked only into unit tests and fuzzers.
REFERENCE_SRC := $(wildcard src/reference/*.c)
# Encoders of images and audio
MEDIA_SRC := $(wildcard src/media/*.c src/api/media*.c)
ENGINE_SRC := $(filter-out src/cli/% src/lab/% $(MEDIA_SRC) $(POSIX_SRC) $(ENTROPY_SRC) $(REFERENCE_SRC),\
  $(wildcard src/*.c src/*/*.c src/*/*/*.c))
NATIVE_SRC := $(ENGINE_SRC) $(MEDIA_SRC) $(wildcard $(POSIX_SRC))
WASI_SRC := $(ENGINE_SRC) $(ENTROPY_SRC) wasi/platform_wasi.c web/web_heap.c web/libc/string.c
# Sources that the WASI programs link in addition to the engine
WASI_PROGRAM_SRC := $(CLI_SRC) src/cli/commands_usual.c $(LAB_SRC) wasi/malloc.c
# Sources that the small WASI program leaves out
WASI_MEDIA_SRC := $(MEDIA_SRC) $(MEDIA_CLI_SRC)
WEB_SRC := $(ENGINE_SRC) $(MEDIA_SRC) $(wildcard web/*.c web/libc/*.c)
# Sources that are also compiled for each of LEVELS (flags.mk)
LEVEL_SRC := $(wildcard src/kernels/*_simd.c) \
  $(patsubst %,src/kernels/%.c,tile grids nvfp4 ternary)

UNIT_SRC := $(wildcard tests/c/*/*_test.c)
vpath %_test.c $(sort $(dir $(UNIT_SRC)))
TSAN_TESTS := $(filter %_tsan_test,$(basename $(notdir $(UNIT_SRC))))
UNIT_TESTS := $(filter-out $(TSAN_TESTS),$(basename $(notdir $(UNIT_SRC))))
ARM_TESTS := $(filter-out %_tsan_test answers_test,$(basename $(notdir $(wildcard tests/c/kernels/*_test.c))))
FUZZERS := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*_fuzz.c))
WASI_PROGRAMS := $(patsubst %,build/wasi/%.wasm,wick wick-relaxed wick-full wick-full-relaxed)
WEB_VARIANTS := simd128-single simd128-threads relaxed-single relaxed-threads
# Always compiled by clang, with threads: every host with 64-bit addresses supports shared WebAssembly memory, even if a page may not share it
WIDE_VARIANTS := simd128-threads relaxed-threads
WIDE_MODULES := $(WIDE_VARIANTS:%-threads=build/web/wick-%-wide.wasm)
WEB_MODULES := $(foreach variant,$(WEB_VARIANTS),$(foreach part,.wasm -grammar.wasm -extras.wasm -media.wasm,build/$(WEB)/wick-$(variant)$(part)))

# ---- prerequisite of all targets: the toolchain (installed once) ----
.PHONY: setup-core setup-dev setup-edge setup-bench setup-library setup-component setup-arm setup-all
setup-core:
	@tools/setup.sh core
setup-dev:
	@tools/setup.sh core dev
setup-edge:
	@tools/setup.sh core edge
setup-bench:
	@tools/setup.sh core browsers bench
setup-library:
	@tools/setup.sh core library
setup-component:
	@tools/setup.sh core edge component
setup-arm:
	@tools/setup.sh core edge arm
setup-all:
	@tools/setup.sh core dev browsers edge component bundlers text clients embed smollm2 bench library zig arm deploy rust

# ---- objects ----
# $(call objects,CONFIG,COMPILER,FLAGS,SOURCES): build/obj/CONFIG/SOURCE.o for each source, listed in
# the variable objects_CONFIG; build/obj/CONFIG/list changes when a source is added or removed. The
# sanitizers need more of the toolchain.
setup_of = $(if $(filter asan% tsan coverage fuzz,$(1)),setup-dev,setup-$(if \
  $(filter emscripten% web-emcc%,$(1)),library,$(if $(filter arm,$(1)),arm,core)))
define objects
objects_$(1) := $(patsubst %.c,build/obj/$(1)/%.o,$(4))
build/obj/$(1)/%.o: %.c flags.mk | $(call setup_of,$(1))
	@mkdir -p $$(@D)
	@echo "  CC $(1) $$<"
	$$(Q)$(2) $(C_FLAGS) $(3) $$(file_flags) -MMD -MP -c $$< -o $$@
build/obj/$(1)/units/%.o: %.c flags.mk | $(call setup_of,$(1))
	@mkdir -p $$(@D)
	@echo "  CC $(1) $$<"
	$$(Q)$(2) $(C_FLAGS) -Itests/c/support $(3) -MMD -MP -c $$< -o $$@
build/obj/$(1)/list: FORCE
	@mkdir -p $$(@D)
	@echo '$$(objects_$(1))' | cmp -s - $$@ || echo '$$(objects_$(1))' >$$@
-include $$(objects_$(1):.o=.d)
endef
.PHONY: FORCE
MODULE_CONFIGS := wasi wasi-relaxed $(WEB_VARIANTS:%=$(WEB)-%) $(WIDE_VARIANTS:%=wide-%)
$(foreach config,$(MODULE_CONFIGS),\
  $(eval build/obj/$(config)/web/libc/string.o: file_flags := $(STRING_FLAGS))\
  $(eval build/obj/$(config)/wasi/malloc.o: file_flags := $(MALLOC_FLAGS)))
# Code that runs once per load, request or step is optimized for size: flags.mk, docs/build.md. These
# errors are needed because make would use the later of two levels and ignore a name without a source.
MODULE_SRC := $(sort $(WEB_SRC) $(WASI_SRC) $(WASI_PROGRAM_SRC))
of_modules = $(filter $(1:%=%.c),$(MODULE_SRC))
twice := $(filter $(SHORTEST_SOURCES:%=%.c),$(call of_modules,$(SHORT_SOURCES)))
$(if $(twice),$(error flags.mk: in SHORTEST_SOURCES and in SHORT_SOURCES: $(twice)))
$(foreach list,SHORTEST_SOURCES SHORT_SOURCES GRAMMAR_SOURCES EXTRAS_SOURCES MEDIA_SOURCES,$(foreach name,$($(list)),\
  $(if $(call of_modules,$(name)),,$(error flags.mk: $(list) has $(name), which is not a source of a module))))
$(foreach config,$(MODULE_CONFIGS),$(foreach sources,$(SHORT_SOURCES),\
  $(eval build/obj/$(config)/$(sources).o: file_flags := $(SHORT_FLAGS))))
$(foreach config,$(MODULE_CONFIGS),$(foreach sources,$(SHORTEST_SOURCES),\
  $(eval build/obj/$(config)/$(sources).o: file_flags := $(SHORTEST_FLAGS))))

variant_flags = $(if $(findstring relaxed,$(1)),$(RELAXED_FLAGS)) \
  $(if $(findstring threads,$(1)),$(WEB_THREADS_FLAGS),$(WEB_SINGLE_FLAGS))
web_flags = $(RELEASE) $(WEB_FLAGS) $(variant_flags)
wide_flags = $(RELEASE) $(WIDE_FLAGS) $(variant_flags)
native_flags = $(NATIVE_RELEASE) $(NATIVE_FLAGS) $(SIMDE_FLAGS)
test_flags = $(CHECKED) $(NATIVE_FLAGS) $(SIMDE_FLAGS) $(CHECKED_FLAGS) $(1)
level_flags = $($(1)_FLAGS) -DWICK_LEVEL=$(1)

$(eval $(call objects,native,$(NATIVE_CC),$(native_flags) $(LEVELS_FLAGS),$(NATIVE_SRC) $(CLI_SRC) $(MEDIA_CLI_SRC) $(LAB_SRC)))
$(foreach level,$(LEVELS),$(eval $(call objects,native-$(level),$(NATIVE_CC),\
  $(native_flags) $(call level_flags,$(level)),$(LEVEL_SRC))))
$(eval $(call objects,wasi,$(WASM_CC),$(RELEASE) $(WASI_FLAGS),\
  $(WASI_SRC) $(WASI_PROGRAM_SRC) $(WASI_MEDIA_SRC)))
$(eval $(call objects,wasi-relaxed,$(WASM_CC),$(RELEASE) $(WASI_FLAGS) $(RELAXED_FLAGS),\
  $(WASI_SRC) $(WASI_PROGRAM_SRC) $(WASI_MEDIA_SRC)))
$(foreach variant,$(WEB_VARIANTS),\
  $(eval $(call objects,$(WEB)-$(variant),$(WEB_CC),$(call web_flags,$(variant)),$(WEB_SRC))))
$(foreach variant,$(WIDE_VARIANTS),\
  $(eval $(call objects,wide-$(variant),$(WASM_CC),$(call wide_flags,$(variant)),$(WEB_SRC))))
$(eval $(call objects,asan,$(NATIVE_CC),$(call test_flags,$(ASAN_FLAGS)) $(LEVELS_FLAGS),\
  $(NATIVE_SRC)))
$(foreach level,$(LEVELS),$(eval $(call objects,asan-$(level),$(NATIVE_CC),\
  $(call test_flags,$(ASAN_FLAGS)) $(call level_flags,$(level)),$(LEVEL_SRC))))
$(eval $(call objects,tsan,$(NATIVE_CC),$(call test_flags,$(TSAN_FLAGS)),$(NATIVE_SRC)))
$(eval $(call objects,arm,$(ARM_CC),$(native_flags),$(NATIVE_SRC) $(CLI_SRC) $(MEDIA_CLI_SRC)))
$(eval $(call objects,coverage,$(NATIVE_CC),$(call test_flags,$(COVERAGE_FLAGS)),$(NATIVE_SRC)))
$(eval $(call objects,fuzz,$(NATIVE_CC),$(call test_flags,$(FUZZ_FLAGS)),$(NATIVE_SRC)))

# ---- programs and modules ----
.PHONY: all native wasi web dist
all: native wasi web dist ## native, wasi, web and dist, and prints sizes (the default)
	@$(NODE) tools/build/sizes.mjs

native: build/native/wick build/native/wick-lab ## the command-line program build/native/wick, and wick-lab for developers of Wick
wasi: $(WASI_PROGRAMS) build/wasi/wick-lab.wasm ## the command-line program for WASI runtimes: a small one, and one with everything
web: $(WEB_MODULES) $(WIDE_MODULES) ## the modules for browsers (COMPILER=emcc: compiled by Emscripten, in build/web-emcc)

# $(call levels,CONFIG): the objects of all levels
levels = $(foreach level,$(LEVELS),$(objects_$(1)-$(level)))
# $(call others,CONFIG,SOURCES): objects of CONFIG without those of SOURCES
others = $(filter-out $(patsubst %.c,build/obj/$(1)/%.o,$(2)),$(objects_$(1)))
build/native/wick: $(call others,native,$(LAB_SRC))
build/native/wick-lab: $(call others,native,src/cli/commands_all.c)
build/native/wick build/native/wick-lab: $(call levels,native) build/obj/native/list
	@mkdir -p $(@D)
	@echo "  LD $@"
	$(Q)$(NATIVE_CC) $(filter %.o,$^) $(NATIVE_RELEASE_LINK) $(NATIVE_LINK) -o $@

# For ARM64, run by emulation (.toolchain/arm/run64)
build/arm/wick: $(objects_arm) build/obj/arm/list
	@mkdir -p $(@D)
	@echo "  LD $@"
	$(Q)$(ARM_CC) $(objects_arm) $(ARM_LINK) $(NATIVE_RELEASE_LINK) -o $@

# $(call linked,CONFIG,NAME,COMPILER AND LINK FLAGS,SOURCES LEFT OUT): links CONFIG's objects. The linked file keeps its
# symbol names for profilers and disassemblers; the shipped modules do not. Its map lists the object of each
# function.
define linked
linked_$(1)_$(2) := $(call others,$(1),$(4))
build/obj/$(1)/$(2).wasm: $$(linked_$(1)_$(2)) build/obj/$(1)/list flags.mk
	@echo "  LD $$@"
	$$(Q)$(3) -Wl,-Map=$$@.map $$(linked_$(1)_$(2)) -o $$@
endef
shorten := $(or $(WASM_OPT:%=% $(WASM_OPT_FLAGS)),$(WASM_STRIP))
shorten_more := $(or $(WASM_OPT:%=% $(WASM_OPT_GRAMMAR_FLAGS)),$(WASM_STRIP))
web_link = $(WEB_LINK) $(if $(findstring threads,$(1)),$(WEB_THREADS_LINK))
$(foreach config,wasi wasi-relaxed,\
  $(eval $(call linked,$(config),wick,$(WASM_CC) $(WASI_LINK) $(WASI_SMALL_LINK),$(EXTRAS_SOURCES:%=%.c) src/cli/commands_all.c $(LAB_SRC) $(WASI_MEDIA_SRC)))\
  $(eval $(call linked,$(config),wick-full,$(WASM_CC) $(WASI_LINK),src/cli/commands_usual.c $(LAB_SRC))))
# wick-lab submits no conversations, so it needs no templates.
$(foreach config,wasi wasi-relaxed,\
  $(eval $(call linked,$(config),wick-lab,$(WASM_CC) $(WASI_LINK) $(WASI_SMALL_LINK),src/api/conversation.c src/cli/commands_usual.c src/cli/commands_all.c)))
$(foreach variant,$(WEB_VARIANTS),$(eval $(call linked,$(WEB)-$(variant),wick,$(WEB_CC) $(call web_link,$(variant)))))
$(foreach variant,$(WIDE_VARIANTS),\
  $(eval $(call linked,wide-$(variant),wick,$(WASM_CC) $(WIDE_LINK) $(WEB_THREADS_LINK))))

build/wasi/wick.wasm: build/obj/wasi/wick.wasm build/obj/wasi/extras.ok
build/wasi/wick-relaxed.wasm: build/obj/wasi-relaxed/wick.wasm build/obj/wasi-relaxed/extras.ok
extras_objects = $(EXTRAS_SOURCES:%=build/obj/$(1)/%.o) $(WASI_MEDIA_SRC:%.c=build/obj/$(1)/%.o)
$(foreach config,wasi wasi-relaxed,$(eval build/obj/$(config)/extras.ok: $(call extras_objects,$(config))))
build/obj/%/extras.ok: build/obj/%/wick.wasm tools/build/check_extras.mjs
	$(Q)NM=$(LLVM_NM) $(NODE) tools/build/check_extras.mjs $(call extras_objects,$*) -- $(linked_$*_wick)
	@touch $@
build/wasi/wick-full.wasm: build/obj/wasi/wick-full.wasm
build/wasi/wick-lab.wasm: build/obj/wasi/wick-lab.wasm
build/wasi/wick-full-relaxed.wasm: build/obj/wasi-relaxed/wick-full.wasm
build/wasi/wick-lab-relaxed.wasm: build/obj/wasi-relaxed/wick-lab.wasm
build/wasi/%.wasm:
	@mkdir -p $(@D)
	$(Q)$(shorten) $< -o $@
listed = $(subst $(space),$(comma),$(strip $(1)))
build/$(WEB)/wick-%.wasm build/$(WEB)/wick-%-grammar.wasm build/$(WEB)/wick-%-extras.wasm build/$(WEB)/wick-%-media.wasm: build/obj/$(WEB)-%/wick.wasm \
  tools/build/split.mjs tools/build/part_data.mjs tools/build/wasm_bytes.mjs flags.mk
	@mkdir -p $(@D)
	$(Q)$(NODE) tools/build/split.mjs --linked $< --map $<.map --out $< --part 'grammar=$(call listed,$(GRAMMAR_SOURCES))' \
	  --part 'extras=$(call listed,$(EXTRAS_SOURCES))' \
	  --part 'media=$(call listed,$(MEDIA_SOURCES))' --wasm-split '$(WASM_SPLIT)'
	$(Q)$(shorten) $<.main -o $(@D)/wick-$*.wasm
	$(Q)$(shorten_more) $<.grammar -o $(@D)/wick-$*-grammar.wasm
	$(Q)$(shorten) $<.extras -o $(@D)/wick-$*-extras.wasm
	$(Q)$(shorten) $<.media -o $(@D)/wick-$*-media.wasm
	@rm $<.main $<.grammar $<.extras $<.media
build/web/wick-%-wide.wasm: build/obj/wide-%-threads/wick.wasm tools/build/wide_module.mjs tools/build/wasm_bytes.mjs flags.mk
	@mkdir -p $(@D)
	$(Q)$(or $(WASM_OPT:%=% $(WASM_OPT_WIDE_FLAGS)),$(WASM_STRIP)) $< -o $<.short
	$(Q)$(NODE) tools/build/wide_module.mjs $<.short $@
	@rm $<.short

# ---- the npm package ----
JS_SRC := $(wildcard js/* js/*/* tools/build/bundle.mjs package.json package-lock.json) web/layout.mjs include/options.mjs
DIST_STAMP := build/$(notdir $(DIST)).stamp
dist: $(DIST_STAMP) ## dist/, the npm package's files
$(DIST_STAMP): $(JS_SRC) $(WEB_MODULES) $(WIDE_MODULES) $(WASI_PROGRAMS)
	@echo "  BUNDLE $(DIST)/"
	$(Q)$(NODE) tools/build/layout.mjs --check
	$(Q)$(if $(wildcard tools/build/bundle.mjs),$(NODE) tools/build/bundle.mjs --web build/$(WEB) --out $(DIST))
	@touch $@

# ---- tools/bench/spread.mjs: the kernels of the web builds under a pass that may suspend ----
SPREAD_SRC := tools/bench/spread/spread.c src/lab/synth_weights.c $(wildcard src/kernels/*.c) \
  $(patsubst %,src/base/%.c,extras hash math) src/format/types.c web/web_heap.c $(wildcard web/libc/*.c)
build/obj/web-%/tools/bench/spread/spread.o: file_flags := -Iweb
define spread
build/bench/spread-$(1).wasm: $$(SPREAD_SRC:%.c=build/obj/web-$(1)-single/%.o)
	@mkdir -p $$(@D)
	@echo "  LD $$@"
	$$(Q)$$(WASM_CC) $$(WEB_LINK) $$^ -o $$@
endef
$(foreach simd,simd128 relaxed,$(eval $(call spread,$(simd))))

# ---- the C library ----
include library/library.mk

# ---- components of wasi:http ----
include component/component.mk

# ---- tests ----
# Each tests/c/*/NAME_test.c becomes a native program with sanitizers, and WASI modules that link the
# shipped objects; build/test/release/NAME is native without sanitizers, for measurements. Names are unique:
# the object is build/obj/CONFIG/units/NAME.o. Helpers for all tests are in tests/c/support/, helpers for
# fuzzers in tests/fuzz/.
TEST_HELPERS := $(wildcard tests/c/support/*.c) $(REFERENCE_SRC) src/lab/summary.c src/lab/verdict.c
FUZZ_HELPERS := $(filter-out %_fuzz.c,$(wildcard tests/fuzz/*.c)) \
  $(patsubst %,tests/c/support/%.c,consistency gguf_files load_sink model_builder) $(REFERENCE_SRC)

# $(call archive,FILE,CONFIG,HELPERS): the engine and helpers
define archive
$(1): $(filter-out build/obj/$(2)/src/cli/% build/obj/$(2)/src/lab/% build/obj/$(2)/wasi/malloc.o,$(objects_$(2))) $(3:%.c=build/obj/$(2)/%.o) \
  $(call levels,$(2)) \
  build/obj/$(2)/list
	@mkdir -p $$(@D)
	@rm -f $$@
	$$(Q)$(WASM_AR) rcs $$@ $$(filter %.o,$$^)
-include $(3:%.c=build/obj/$(2)/%.d)
endef
$(eval $(call archive,build/test/native-asan/libwick.a,asan,$(TEST_HELPERS)))
$(eval $(call archive,build/test/native-release/libwick.a,native,$(TEST_HELPERS)))
$(eval $(call archive,build/test/native-tsan/libwick.a,tsan,$(TEST_HELPERS)))
$(eval $(call archive,build/test/arm-release/libwick.a,arm,$(TEST_HELPERS)))
$(eval $(call archive,build/test/native-coverage/libwick.a,coverage,$(TEST_HELPERS)))
$(eval $(call archive,build/test/native-fuzz/libwick.a,fuzz,$(FUZZ_HELPERS)))
$(eval $(call archive,build/test/wasi-plain/libwick.a,wasi,$(TEST_HELPERS)))
$(eval $(call archive,build/test/wasi-fast/libwick.a,wasi-relaxed,$(TEST_HELPERS)))

# $(call program,FILE PATTERN,CONFIG,SOURCE FOLDER,ARCHIVE,COMPILER,LINK FLAGS,NAMES)
define program
$(1): build/obj/$(2)/$(3)/%.o $(4)
	@mkdir -p $$(@D)
	@echo "  LD $$@"
	$$(Q)$(5) $$^ $(6) -o $$@
-include $(7:%=build/obj/$(2)/$(3)/%.d)
endef
$(eval $(call program,build/test/native/%,asan,units,build/test/native-asan/libwick.a,\
  $(NATIVE_CC),$(NATIVE_LINK) $(ASAN_FLAGS) -lm,$(UNIT_TESTS)))
$(eval $(call program,build/test/release/%,native,units,build/test/native-release/libwick.a,\
  $(NATIVE_CC),$(NATIVE_LINK) -lm,$(UNIT_TESTS)))
$(eval $(call program,build/test/tsan/%,tsan,units,build/test/native-tsan/libwick.a,\
  $(NATIVE_CC),$(NATIVE_LINK) $(TSAN_FLAGS) -lm,$(TSAN_TESTS)))
$(eval $(call program,build/test/coverage/%,coverage,units,\
  build/test/native-coverage/libwick.a,$(NATIVE_CC),$(NATIVE_LINK) $(COVERAGE_FLAGS) -lm,$(UNIT_TESTS)))
$(eval $(call program,build/test/arm/%,arm,units,build/test/arm-release/libwick.a,\
  $(ARM_CC),$(ARM_LINK),$(ARM_TESTS)))
$(eval $(call program,build/test/fuzz/%,fuzz,tests/fuzz,build/test/native-fuzz/libwick.a,\
  $(NATIVE_CC),$(NATIVE_LINK) $(ASAN_FLAGS) -fsanitize=fuzzer,$(FUZZERS)))
$(eval $(call program,build/test/wasi/%.wasm,wasi,units,build/test/wasi-plain/libwick.a,\
  $(WASM_CC),$(WASI_LINK),$(UNIT_TESTS)))
$(eval $(call program,build/test/wasi-relaxed/%.wasm,wasi-relaxed,units,\
  build/test/wasi-fast/libwick.a,$(WASM_CC),$(WASI_LINK),$(UNIT_TESTS)))

.PHONY: test-programs test-native test-wasi test-arm arm fuzz-programs conformance fuzz check format layout
test-native: setup-dev $(UNIT_TESTS:%=build/test/native/%) $(TSAN_TESTS:%=build/test/tsan/%) \
  build/test/host_shim.so
# For LD_PRELOAD: a host that runs out of memory, and a fast clock.
build/test/host_shim.so: tests/support/host_shim.c | setup-dev
	@mkdir -p $(@D)
	$(Q)$(NATIVE_CC) -O1 -shared -fPIC -Wall -Wextra -Werror -o $@ $<
test-wasi: $(UNIT_TESTS:%=build/test/wasi/%.wasm) $(UNIT_TESTS:%=build/test/wasi-relaxed/%.wasm)
fuzz-programs: setup-dev $(FUZZERS:%=build/test/fuzz/%)
arm: build/arm/wick $(foreach name,$(ARM_TESTS),build/test/arm/$(name) build/test/wasi/$(name).wasm build/test/wasi-relaxed/$(name).wasm)
test-programs: test-native test-wasi fuzz-programs ## the C tests and fuzzers, built but not run

# tests/plan.mjs assigns files to groups. The output ends with the failed tests, the durations of setup, build and tests,
# and the test runner's counts; in CI it is TAP.
RUN_TESTS := $(NODE) tools/run_tests.mjs
TEST_GROUPS := engine package interfaces pages edge repository
main_build := all library edge test-native
engine_build := all library test-programs arm
package_build := all
interfaces_build := all
pages_build := all
edge_build := all library edge emcc
repository_build := $(main_build)
all_build := $(main_build) test-programs arm emcc
changed_build = $(main_build) $(foreach group,$(shell $(RUN_TESTS) --list),$($(group)_build))
.PHONY: test test-all test-changed $(TEST_GROUPS:%=test-%)
test: BUILD = $(main_build)
test: ARGUMENTS := --level main
test: ## sets up, builds and runs the tests that a change is likely to break: minutes
test-all: BUILD = $(all_build)
test-all: ARGUMENTS := --level all
test-all: SETUP_MORE = @tools/setup.sh models || echo "test-all: tests of Gemma 3 will be skipped"
test-all: ## sets up, builds and runs every test
test-changed: BUILD = $(sort $(changed_build))
test-changed: ARGUMENTS := --level changed
test-changed: ## make test, and all tests of groups with changes since the last make test-all
test-engine: ## every test of the engine; also test-package, -interfaces, -pages, -edge, -repository
$(TEST_GROUPS:%=test-%): BUILD = $($(@:test-%=%)_build)
$(TEST_GROUPS:%=test-%): ARGUMENTS = --level all --group $(@:test-%=%)

test-arm: setup-arm native wasi arm ## the engine on an emulated ARM64 processor, natively and in Node: results bit-identical to x86
	$(Q)$(RUN_TESTS) tests/engine/arm.test.mjs

# Tests that run the engine from dist/, with the package whose modules emcc has compiled
.PHONY: emcc test-emcc
emcc: all
	@$(MAKE) --no-print-directory dist COMPILER=emcc
test-emcc: setup-library emcc ## the package's tests with modules compiled by emcc
	$(Q)WICK_DIST=build/dist-emcc $(RUN_TESTS) $(shell grep -l support/package tests/package/*.test.mjs) tests/edge/emcc.test.mjs

TIMES := build/test/times
test test-all test-changed $(TEST_GROUPS:%=test-%):
	@mkdir -p $(dir $(TIMES)) && date +%s >$(TIMES)
	@$(MAKE) --no-print-directory setup-all
	$(SETUP_MORE)
	@date +%s >>$(TIMES)
	@$(MAKE) --no-print-directory $(BUILD)
	@date +%s >>$(TIMES)
	$(Q)WICK_TEST_TIMES="$$(echo $$(cat $(TIMES)))" $(RUN_TESTS) $(ARGUMENTS)

CONFORMANCE_TESTS := $(filter conformance_%,$(UNIT_TESTS))
conformance: setup-dev $(CONFORMANCE_TESTS:%=build/test/native/%) ## runs the seed systems' 80 cases and prints one line for each
	$(Q)$(NODE) tools/conformance.mjs

fuzz: fuzz-programs ## runs only the fuzzers, each for FUZZ_SECONDS (60)
	$(Q)FUZZ_SECONDS=$(or $(FUZZ_SECONDS),60) $(RUN_TESTS) tests/engine/fuzz.test.mjs

# WICK_SEED is the first seed of random tests. CI runs a twentieth of this.
SOAKS := tests/engine/c_units.test.mjs $(shell grep -l support/soak.mjs tests/*/*.test.mjs)
.PHONY: outside
outside: native ## runs test suites from other projects and writes docs/outside.md
	@$(NODE) tools/outside/run.mjs

.PHONY: soak coverage
soak: setup-dev all test-native fuzz-programs ## runs random tests with 20 times as many cases as in CI (WICK_SEED=1)
	$(Q)seed=$${WICK_SEED:-$$RANDOM$$RANDOM}; echo "soak: WICK_SEED=$$seed"; \
	  WICK_SOAK=1 WICK_SEED=$$seed $(RUN_TESTS) $(sort $(SOAKS))

coverage: setup-dev all $(UNIT_TESTS:%=build/test/coverage/%) ## lines and branches covered by tests, by folder (ONLY=c or js)
	$(Q)LLVM=$(LLVM) ONLY='$(ONLY)' $(NODE) tools/coverage/run.mjs

# Inserts small faults, one at a time, and checks whether the tests detect them. tools/mutants/run.mjs describes SEED,
# C, JS, ROOM, AT, JOBS and RESUME. It takes hours; CI does not run it.
.PHONY: mutants
mutants: setup-dev all $(if $(filter 0,$(C)),,edge $(if $(filter component,$(ROOM)),,\
  $(UNIT_TESTS:%=build/test/native/%) $(UNIT_TESTS:%=build/test/coverage/%) build/test/host_shim.so)) ## checks whether the tests detect faults (SEED=1 C=300 JS=200 ROOM=kv RESUME=1)
	$(Q)MUTANTS_CC='$(NATIVE_CC)' MUTANTS_AR='$(WASM_AR)' \
	  MUTANTS_PLAIN_FLAGS='$(C_FLAGS) $(native_flags) $(LEVELS_FLAGS)' \
	  MUTANTS_TEST_FLAGS='$(C_FLAGS) $(call test_flags,$(ASAN_FLAGS)) $(LEVELS_FLAGS) -g0' \
	  MUTANTS_TEST_LINK='-fuse-ld=lld $(NATIVE_LINK) $(ASAN_FLAGS)' \
	  MUTANTS_WICK_OBJECTS='$(call others,native,$(LAB_SRC)) $(call levels,native)' \
	  MUTANTS_WICK_LAB_OBJECTS='$(call others,native,src/cli/commands_all.c) $(call levels,native)' \
	  MUTANTS_COMPONENT_FLAGS='$(C_FLAGS) -Wno-everything' \
	  MUTANTS_BUDGET_MS='$(if $(filter component,$(ROOM)),90000)' \
	  MUTANTS_NATIVE_LINK='-fuse-ld=lld $(NATIVE_RELEASE_LINK) $(NATIVE_LINK)' \
	  LLVM='$(LLVM)' SEED='$(SEED)' C='$(C)' JS='$(JS)' ROOM='$(ROOM)' AT='$(AT)' JOBS='$(JOBS)' RESUME='$(RESUME)' \
	  $(NODE) tools/mutants/run.mjs

# ---- checks ----
C_FILES := $(wildcard include/*.h src/*.[ch] src/*/*.[ch] src/*/*/*.[ch] web/*.[ch] web/*/*.[ch] wasi/*.[ch] \
  emscripten/*.[ch] component/*.[ch] library/*.[ch] tests/c/*/*.[ch] tests/fuzz/*.[ch] tests/library/*.[ch] examples/c/*.[ch] tools/bench/*.[ch] tools/bench/*/*.[ch])
HEADERS := $(filter %.h,$(C_FILES))

# $(call tidy,NAME,FLAGS,SOURCES): lints each source with the flags of one host
define tidy
tidy: $(3:%=build/tidy/$(1)/%.ok)
build/tidy/$(1)/%.ok: % .clang-tidy flags.mk $(HEADERS) | setup-dev
	@mkdir -p $$(@D)
	@echo "  TIDY $(1) $$<"
	$$(Q)clang-tidy-$(LLVM) --quiet $$< -- $(C_FLAGS) $(2) 2>$$@.log || { cat $$@.log; exit 1; }
	@touch $$@
endef
.PHONY: tidy check-quick
$(eval $(call tidy,native,$(NATIVE_FLAGS),$(NATIVE_SRC) $(CLI_SRC) $(MEDIA_CLI_SRC) $(LAB_SRC) $(REFERENCE_SRC) $(LIBRARY_SRC)))
$(eval $(call tidy,wasi,$(WASI_FLAGS),$(ENTROPY_SRC) src/cli/commands_usual.c src/platform/no_threads.c $(wildcard wasi/*.c component/*.c)))
$(eval $(call tidy,web,$(WEB_FLAGS) $(RELAXED_FLAGS) $(WEB_THREADS_FLAGS),\
  $(wildcard web/*.c web/libc/*.c src/kernels/*.c)))

$(eval $(call tidy,emscripten,$(EMSCRIPTEN_TIDY_FLAGS),emscripten/platform_emscripten.c))
build/tidy/emscripten/emscripten/platform_emscripten.c.ok: | setup-library

# Compiles the public header without other headers, as C and as C++; also with gcc if it is installed.
HEADER_WARNINGS := -fsyntax-only -Wall -Wextra -Wpedantic -Werror
header_check = $(1) -std=$(2) $(HEADER_WARNINGS) -x $(3) include/wick.h
GCC := $(shell command -v gcc)
GXX := $(shell command -v g++)

check: check-quick tidy ## checks format, lint and types, without changing files
# Checks that take seconds run before those that take minutes.
check-quick: setup-dev
	$(Q)$(if $(C_FILES),clang-format-$(LLVM) --dry-run -Werror $(C_FILES))
	$(Q)$(NODE) tools/build/check_folders.mjs
	$(Q)$(NODE) tools/build/check_callers.mjs
	$(Q)$(NODE) tools/build/check_formats.mjs
	$(Q)$(NODE) tools/build/check_js_folders.mjs
	$(Q)$(NODE) tools/build/check_commits.mjs
	$(Q)$(NODE) tools/build/layout.mjs --check
	$(Q)$(call header_check,$(NATIVE_CC),c17,c) -Wconversion
	$(Q)$(call header_check,$(NATIVE_CC),c++20,c++) -Wconversion
	$(Q)$(if $(GCC),$(call header_check,$(GCC),c17,c))
	$(Q)$(if $(GXX),$(call header_check,$(GXX),c++20,c++))
	$(Q)$(NODE) tools/build/check_text.mjs
	$(Q)$(NODE) tools/build/check_docs.mjs
	$(Q)$(NPX)biome ci --error-on-warnings .
	$(Q)$(NPX)tsc --project tsconfig.json

layout: ## generates files from web/layout.mjs and include/options.mjs
	$(Q)$(NODE) tools/build/layout.mjs

format: setup-dev ## formats the sources
	$(Q)$(if $(C_FILES),clang-format-$(LLVM) -i $(C_FILES))
	$(Q)$(NPX)biome check --write .

# ---- other targets ----
.PHONY: setup demo site release fleet bench-peers bench-browsers bench-curves bench-spread bench-wide bench-images sizes clean distclean help
setup: setup-all ## installs everything that building and testing need (make does it automatically)

site: all ## all example pages as one folder for any static host: build/site
	$(Q)$(NODE) examples/site/build.mjs

demo: all ## builds, serves the demo page with SmolLM2-135M and prints its URL
	@tools/setup.sh smollm2 || echo "demo: the page will offer only its built-in model"
	$(Q)$(NODE) examples/chat/serve.mjs

release: setup-dev dist ## packs both npm packages into build/release and tries them; publishes nothing (REPOSITORY=https://...)
	$(Q)REPOSITORY='$(REPOSITORY)' $(NODE) tools/build/release.mjs

fleet: setup-edge dist edge ## runs 1 to 4 instances behind HAProxy: requests/s, prefix hits, and a killed instance
	$(Q)$(NODE) tools/bench/fleet.mjs $(if $(KIND),--kind $(KIND))
	$(Q)$(RUN_TESTS) tests/edge/fleet.test.mjs

# MODELS=shape:type,... selects the models to compare.
bench-peers: setup-bench native dist ## compares Wick with wllama and native llama.cpp (QUICK=1: minutes)
	$(Q)$(NODE) tools/bench/peers.mjs $(if $(MODELS),--models '$(MODELS)')

bench-browsers: setup-bench native dist ## measures Wick in Chromium, Firefox and WebKitGTK, with plain and relaxed SIMD
	$(Q)$(NODE) tools/bench/browsers.mjs

bench-curves: native dist ## measures cost by context length and model size, for docs/benchmarks.md
	$(Q)$(NODE) tools/bench/curves.mjs

bench-spread: setup-bench build/bench/spread-simd128.wasm build/bench/spread-relaxed.wasm ## measures weights split over several memories on a page without isolation
	$(Q)$(NODE) tools/bench/spread.mjs

bench-wide: native dist ## checks the results of a 5 GB model in Node and Chromium and measures loading and time per token
	$(Q)$(NODE) tools/bench/wide.mjs

bench-images: setup-bench native dist ## compares a question about an image with wllama and native llama.cpp
	@tools/setup.sh images
	$(Q)$(NODE) tools/bench/images.mjs

bench-embeddings: setup-bench native dist ## compares embeddings with transformers.js in the same Chromium
	@tools/setup.sh embed
	$(Q)$(NODE) tools/embed/models.mjs
	$(Q)$(NODE) tools/bench/embeddings.mjs

sizes: ## prints the raw and gzipped sizes of the built files
	@$(NODE) tools/build/sizes.mjs

clean: ## removes the built files
	rm -rf build dist

distclean: clean ## also removes the installed toolchain and packages
	rm -rf .toolchain node_modules

help: ## prints this list
	@grep -hE '^[a-z-]+:.*## ' Makefile library/library.mk component/component.mk | sed -E 's/:.*## /\t/' | expand -t 16

# Compilers and flags, each defined once. The Makefile combines them; docs/build.md gives reasons.

CHAIN := .toolchain
LLVM := 19

ifneq ($(WASI_SDK_PATH),)
  WASM_CC := $(WASI_SDK_PATH)/bin/clang
  WASM_AR := $(WASI_SDK_PATH)/bin/llvm-ar
  WASM_STRIP := $(WASI_SDK_PATH)/bin/llvm-strip
  WASI_SYSROOT := $(WASI_SDK_PATH)/share/wasi-sysroot
  WASI_TRIPLE := wasm32-wasip1
  LLVM_NM := $(WASI_SDK_PATH)/bin/llvm-nm
  LLVM_OBJCOPY := $(WASI_SDK_PATH)/bin/llvm-objcopy
  NATIVE_CC := $(firstword $(shell command -v clang-$(LLVM) clang cc))
  WASM_OPT := $(shell command -v wasm-opt)
  WASM_SPLIT := $(shell command -v wasm-split)
else
  WASM_CC := clang-$(LLVM)
  WASM_AR := llvm-ar-$(LLVM)
  WASM_STRIP := llvm-strip-$(LLVM)
  WASI_SYSROOT := $(CHAIN)/wasi/usr
  WASI_TRIPLE := wasm32-wasi
  LLVM_NM := llvm-nm-$(LLVM)
  LLVM_OBJCOPY := llvm-objcopy-$(LLVM)
  NATIVE_CC := clang-$(LLVM)
  WASM_OPT := $(CHAIN)/bin/wasm-opt
  WASM_SPLIT := $(CHAIN)/bin/wasm-split
endif
# An emsdk installed by the user has priority.
EMSCRIPTEN := $(if $(EMSDK),$(EMSDK)/upstream/emscripten,$(CHAIN)/emscripten/usr/share/emscripten)
EMCC := $(EMSCRIPTEN)/emcc

# ---- all C ----
WARNINGS := -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Werror
# No contraction: a product and a sum must round the same on every host and in every kernel.
# No errno: sqrt and similar functions are then single instructions.
C_FLAGS := -std=c17 -ffp-contract=off -fno-math-errno -fvisibility=hidden -Iinclude -Isrc $(WARNINGS)
RELEASE := -O3 -DNDEBUG
CHECKED := -O1 -g
# $(call in,FOLDER,NAMES): sources of a folder, without their suffix
in = $(addprefix $(1)/,$(2))
# Optimization of module sources: a source is in one of the two lists, or in neither and built with -O3;
# make stops when a source is in both or a name has no source (docs/build.md).
# For code that runs once per load or request, a small module, which loads and compiles quickly, matters more than speed.
SHORTEST_FLAGS := -Oz
SHORTEST_SOURCES := src/bench/% src/cli/% src/format/% src/lab/% src/metrics/% src/model/families/% src/platform/% src/quantize/% \
    src/reply/% src/store/% src/template/% src/tensor/% \
  $(call in,src/media,audio_kinds audio_open cost formats kinds layers layout measure metadata open plan plan_audio prompt \
    text_model vision_open weights) \
  $(call in,src/api,adapters chat constraint conversation directory draft embed extras info_json kinds load media media_prompt metrics \
    pages_json parts state stats_json tables tokens value_json version) \
  $(call in,src/base,decimal extras json options salt split_name status text) \
  $(call in,src/grammar,dfa document exponents finish formats free gbnf grammar numbers prefixes program regex \
    machine mask schema schema_arguments schema_cases schema_combine schema_items schema_keywords schema_members \
    schema_properties schema_refs schema_scalars schema_tasks schema_unique schema_values shelf spell trie work) \
  $(call in,src/kernels,answers attention blocks elementwise grid_points recurrent) \
  $(call in,src/kv,open page pool prefix prefix_entries sequence state statistics) \
  $(call in,src/load,directories loader ranges) \
  $(call in,src/model,adapter adapter_set arena binder family head keys measure media tables weights whole_attention) \
  $(call in,src/model/blocks,latent_attention laurel layer_inputs padded_heads predictor relative_attention rwkv \
    side_by_side) \
  $(call in,src/sample,create distribution dry pattern settings stop) \
  $(call in,src/schedule,admission draft embedding healing parts predict request session session_record \
    scheduler speculation swap thought) \
  $(call in,src/text,roles special special_index unicode vocabulary) \
  $(call in,src/thread,choice)
# Code that runs once per step or token: with -Oz, decoding takes 2% longer.
SHORT_FLAGS := -Os
SHORT_SOURCES := $(call in,src/api,engine) \
  $(call in,src/base,memory) \
  $(call in,src/grammar,said) \
  $(call in,src/kernels,fewbits floats_scalar iq4 kv_channels lowbits nibbles) \
  $(call in,src/kv,write) \
  $(call in,src/media,encode project qformer resample sound) \
  $(call in,src/model,adapter_product forward paged_attention pass rope segments) \
  $(call in,src/model/blocks,altup attention delta_net dense experts none short_conv ssm) \
  $(call in,src/sample,penalty rng sampler truncate) \
  $(call in,src/schedule,events jump pass) \
  $(call in,src/text,detokenize spm tokenizer wpm) \
  $(call in,web,exports extras_web)

# ---- native ----
# Only helper threads and the command-line program differ from the other hosts.
NATIVE_FLAGS := -D_POSIX_C_SOURCE=200809L -DWICK_THREADS=1 -pthread
NATIVE_LINK := -pthread -lm
# SIMDe maps WebAssembly's intrinsics to those of the processor. Functions that are not called are
# discarded, because each type has a matrix product for every kind of dot product.
SIMDE_FLAGS := -DWICK_SIMDE=1
NATIVE_RELEASE := $(RELEASE) -ffunction-sections -fdata-sections
NATIVE_RELEASE_LINK := -Wl,--gc-sections
# The sanitizer builds also have the dot products of relaxed SIMD, and trap if a result depends on the CPU.
CHECKED_FLAGS := -DWICK_CHECKED_DOTS=1
# Processor levels for which the kernels are also compiled; kernels.c detects the level.
ifeq ($(shell uname -m),x86_64)
  LEVELS := avx2 avxvnni
  LEVELS_FLAGS := -DWICK_LEVELS=1
endif
avx2_FLAGS := -march=x86-64-v3
avxvnni_FLAGS := -march=x86-64-v3 -mavxvnni
ASAN_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
COVERAGE_FLAGS := -fprofile-instr-generate -fcoverage-mapping
TSAN_FLAGS := -fsanitize=thread
FUZZ_FLAGS := $(ASAN_FLAGS) -fsanitize=fuzzer-no-link

# ---- ARM64, by emulation (tools/setup.sh arm) ----
# SIMDe consists of headers that are the same for every processor and not in the ARM64 tree.
ARM_CC := $(NATIVE_CC) --target=aarch64-linux-gnu --sysroot=$(CHAIN)/arm/root -idirafter /usr/include
ARM_LINK := -fuse-ld=lld $(NATIVE_LINK)

# ---- WebAssembly ----
# Every host that supports 128-bit SIMD supports these; relaxed SIMD and threads are detected at run time.
# WICK_ONE_KERNELS: modules contain only one kernel table, because kernels cannot be selected by name.
WASM_FLAGS := -DWICK_ONE_KERNELS=1 -msimd128 -mnontrapping-fptoint -msign-ext -mmutable-globals
RELAXED_FLAGS := -mrelaxed-simd
# The stack is at the start of memory, so that an overflow traps instead of overwriting data.
WASM_STACK_BYTES := 262144
WASM_LINK := -Wl,--stack-first -Wl,-z,stack-size=$(WASM_STACK_BYTES)

WASI_TARGET := --target=$(WASI_TRIPLE) --sysroot=$(WASI_SYSROOT)
WASI_FLAGS := $(WASI_TARGET) $(WASM_FLAGS) -DWICK_THREADS=0
WASI_LINK := $(WASI_TARGET) $(WASM_LINK)
# wick.wasm is linked without EXTRAS_SOURCES: calls to these become traps, their addresses 0, and code that only they
# use is dropped. src/api/extras.c rejects everything that would call them. wick-full.wasm, linked from the same
# objects, shows that nothing else is missing.
WASI_SMALL_LINK := -Wl,--unresolved-symbols=ignore-all

# The compiler of the web build: clang, or Emscripten's without its C library and JavaScript (make web COMPILER=emcc).
COMPILER := clang
ifeq ($(COMPILER),clang)
  WEB_CC := $(WASM_CC)
  WEB_TARGET := --target=wasm32-unknown-unknown
  WEB := web
  DIST := dist
else ifeq ($(COMPILER),emcc)
  WEB_CC := $(EMCC)
  WEB := web-emcc
  DIST := build/dist-emcc
else
  $(error COMPILER must be clang or emcc, not $(COMPILER))
endif
# The only C library is web/libc. No -ffreestanding: it would turn small memcpys into calls.
WEB_FLAGS := $(WEB_TARGET) -DWICK_EXTRAS_APART=1 -nostdlibinc -isystem web/libc $(WASM_FLAGS)
# Copies and fills call web/libc/string.c, which explains why; only this file uses the bulk memory instructions.
STRING_FLAGS := -fno-builtin -mbulk-memory
# Otherwise clang combines malloc and memset in wasi/malloc.c into a calloc.
MALLOC_FLAGS := -Oz -fno-builtin
WEB_SINGLE_FLAGS := -DWICK_THREADS=0
WEB_THREADS_FLAGS := -DWICK_THREADS=1 -matomics
# Relocations are for tools/build/part_data.mjs. JavaScript creates the memory: WEB_MEMORY_INITIAL_BYTES at first, at most 4 GiB.
WEB_MEMORY_INITIAL_BYTES := 1048576
WEB_LINK := $(WEB_TARGET) -nostdlib $(WASM_LINK) -Wl,--no-entry -Wl,--export=__stack_pointer -Wl,--export=__heap_base -Wl,--emit-relocs
ifeq ($(COMPILER),emcc)
  # emcc needs linker options as settings. With -O0 it keeps relocations and does not run wasm-opt. Functions imported
  # from JavaScript are undefined symbols to it.
  WEB_LINK += -O0 -sSTACK_SIZE=$(WASM_STACK_BYTES) -sWASM_BIGINT -sERROR_ON_UNDEFINED_SYMBOLS=0 -sIMPORTED_MEMORY \
    -sINITIAL_MEMORY=$(WEB_MEMORY_INITIAL_BYTES) -sALLOW_MEMORY_GROWTH -sMAXIMUM_MEMORY=4GB
else
  WEB_LINK += -Wl,--import-memory -Wl,--initial-memory=$(WEB_MEMORY_INITIAL_BYTES) -Wl,--max-memory=4294967296
endif
WEB_THREADS_LINK := -Wl,--shared-memory

# The web build for models that need more than 4 GiB: 64-bit addresses (memory64), with threads. It is a single module,
# because 400 KB do not matter next to the download of such a model.
WIDE_TARGET := --target=wasm64-unknown-unknown
WIDE_FLAGS := $(WIDE_TARGET) -DWICK_EXTRAS_APART=1 -nostdlibinc -isystem web/libc $(WASM_FLAGS)
WIDE_LINK := $(WIDE_TARGET) -nostdlib $(WASM_LINK) -Wl,--no-entry -Wl,--export=__stack_pointer -Wl,--export=__heap_base \
  -Wl,--import-memory -Wl,--initial-memory=$(WEB_MEMORY_INITIAL_BYTES) -Wl,--max-memory=17179869184

# Only these passes: wasm-opt's default passes reorder the kernels and make them slower.
WASM_OPT_FLAGS := --low-memory-unused --optimize-added-constants-propagate --rse --vacuum --dae-optimizing \
  --enable-simd --enable-relaxed-simd --enable-threads --enable-bulk-memory \
  --enable-nontrapping-float-to-int --enable-sign-ext --enable-mutable-globals --enable-reference-types \
  --strip-debug --strip-producers --strip-target-features
WASM_OPT_WIDE_FLAGS := $(WASM_OPT_FLAGS) --enable-memory64
# The grammar module has no kernels. After -Oz, the other passes make it larger.
WASM_OPT_GRAMMAR_FLAGS := -Oz --converge $(filter-out --rse --vacuum --dae-optimizing,$(WASM_OPT_FLAGS))

# Separate modules of the web builds (tools/build/split.mjs). This one is loaded when the first
# request has a grammar or tools. Functions that the first module calls without such a request do
# not belong here.
GRAMMAR_SOURCES := $(call in,src/grammar,dfa exponents finish formats gbnf grammar machine mask numbers program regex \
    schema schema_arguments schema_cases schema_combine schema_items schema_keywords schema_members \
    schema_properties schema_refs schema_scalars schema_tasks schema_unique schema_values spell trie) \
  $(call in,src/reply,hold hold_calls hold_channels hold_slices)

# This one is loaded with models that need it, and before a state is saved or loaded: src/api/extras.c lists these
# models, and tools/build/check_extras.mjs checks the list when the small WASI program is linked. Code that other
# models run does not belong here.
EXTRAS_SOURCES := $(call in,src/kernels,attention_channels_simd attention_codes_simd fewbits fewbits_simd fp4 fp4_simd grid_points grids iq4 \
    iq4_simd kv_channels kv_codec kv_quant lowbits lowbits_simd nvfp4 recurrent recurrent_simd ternary) \
  $(call in,src/model/blocks,altup delta_net expert_adapters experts latent_attention laurel layer_inputs predictor \
    relative_attention rwkv short_conv side_by_side ssm) \
  $(call in,src/model,convolution tables whole_attention) \
  $(call in,src/api,kinds tables) \
  $(call in,src/model/families,alibi apertus bert deepseek2 dots1 falcon_h1 gemma3n gemma4 glm gpt2 gpt_oss jamba \
    lfm2 mamba modern_bert nemotron_h parallel plamo2 qwen35 qwen_moe rwkv7 t5) \
  $(call in,src/text,charsmap rwkv ugm wpm) \
  src/kv/state \
  $(call in,src/schedule,predict session_record) \
  src/store/record

# This one is loaded with the first mmproj file: encoders of images and audio.
MEDIA_SOURCES := $(call in,src/api,media media_prompt) \
  $(call in,src/media,audio_kinds audio_open conformer cost encode kinds layers layout measure metadata open patches plan \
    plan_audio project prompt qformer resample rows sound stem text_model vision_open weights)

# ---- the C library, which users link (docs/c-library.md) ----
# Neither clang nor emcc may run wasm-opt on the kernels: it would reorder them.
LIBRARY_WASI_LINK := -O0 $(WASM_LINK)
LIBRARY_EMSCRIPTEN_LINK := -O1 -sSTACK_SIZE=$(WASM_STACK_BYTES) -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=4GB
# A page's main thread cannot wait for a worker to start, so helper threads use existing workers.
EMSCRIPTEN_THREADS_FLAGS := -DWICK_THREADS=1 -pthread
EMSCRIPTEN_TIDY_FLAGS := --target=wasm32-unknown-emscripten --sysroot=$(EMSCRIPTEN)/cache/sysroot \
  $(EMSCRIPTEN_THREADS_FLAGS) -matomics -mbulk-memory
LIBRARY_EMSCRIPTEN_THREADS_LINK := -pthread -sPTHREAD_POOL_SIZE=4 -Wno-pthreads-mem-growth

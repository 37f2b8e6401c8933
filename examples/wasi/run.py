"""Runs Wick's WASI module under wasmtime (pip install wasmtime):

python run.py wick.wasm model.gguf "Once upon a time"

The module can access only the model's folder.
"""

import os
import sys

import wasmtime

if len(sys.argv) != 4:
    sys.exit(__doc__)
module_path, model_path, prompt = sys.argv[1:]
folder, name = os.path.split(os.path.abspath(model_path))

wasi = wasmtime.WasiConfig()
wasi.argv = ["wick", "run", f"/models/{name}", "-p", prompt, "-n", "64"]
wasi.preopen_dir(folder, "/models")
wasi.inherit_stdout()
wasi.inherit_stderr()

engine = wasmtime.Engine()
store = wasmtime.Store(engine)
store.set_wasi(wasi)
linker = wasmtime.Linker(engine)
linker.define_wasi()
instance = linker.instantiate(store, wasmtime.Module.from_file(engine, module_path))
try:
    instance.exports(store)["_start"](store)
except wasmtime.ExitTrap as end:
    sys.exit(end.code)

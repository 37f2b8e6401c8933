# Runs native llama.cpp with its image library: each line of JSON on standard input is a call, and each line on standard
# output is a result (native_images.mjs).

import base64
import json
import sys
import time

import xllamacpp

server = None


def load(path, mmproj, threads, context):
    global server
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.mmproj.path = mmproj
    params.mmproj_use_gpu = False
    params.n_gpu_layers = 0
    params.n_ctx = params.n_batch = params.n_ubatch = context
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(params)
    return {"kernels": xllamacpp.get_system_info()}


def see(path, text):
    with open(path, "rb") as file:
        url = "data:image/x-portable-pixmap;base64," + base64.b64encode(file.read()).decode()
    parts = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": text}]
    messages = [{"role": "user", "content": parts}]
    start = time.perf_counter()
    answer = server.handle_chat_completions(
        {"messages": messages, "max_tokens": 1, "temperature": 0, "cache_prompt": False}
    )
    ms = (time.perf_counter() - start) * 1000
    if "usage" not in answer:
        raise RuntimeError(str(answer)[:300])
    return {"ms": ms, "promptTokens": answer["usage"]["prompt_tokens"]}


for line in sys.stdin:
    call = json.loads(line)
    try:
        value = {"load": load, "see": see}[call["method"]](**call["argument"])
        print(json.dumps({"id": call["id"], "value": value}), flush=True)
    except Exception as error:
        print(json.dumps({"id": call["id"], "error": str(error)}), flush=True)

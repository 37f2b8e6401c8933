"""Computes logits with llama.cpp's library: python3 llama_logits.py LIBRARIES.

Reads lines with four fields separated by tabs: PATH, token ids separated by commas, OUT, and the index of the first token
whose logits are written. Writes little-endian float32 [tokens, vocab] to OUT, like `wick logits`, and prints "ok", or "no"
with the reason. The process ends if llama.cpp aborts, or takes longer than SECONDS.

The KV cache is F32, and flash attention is disabled; llama.h (llama_context_params) defines the offsets of these settings.
"""

import ctypes
import os
import signal
import struct
import sys

from llama_library import library

SECONDS = 240
CONTEXT_TOKENS = 1024
AT_CONTEXT, AT_THREADS, AT_FLASH, AT_TYPES = 0, 28, 52, 104
ERROR_LEVEL = 3


class Settings(ctypes.Structure):
    """Larger than in any version; the bytes after the last member are not read."""

    _fields_ = [("bytes", ctypes.c_byte * 512)]


class Batch(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int32)] + [
        (name, ctypes.c_void_p) for name in ("token", "embd", "pos", "n_seq", "seq", "logits")
    ]


def open_llama(folder):
    library(folder, "libggml-base.")
    ggml = library(folder, "libggml.")
    ggml.ggml_backend_load.argtypes = [ctypes.c_char_p]
    ggml.ggml_backend_load.restype = ctypes.c_void_p
    backend = os.path.join(folder, f"libggml-cpu-{os.environ.get('LLAMA_CPU', 'x64')}.so")
    if not ggml.ggml_backend_load(backend.encode()):
        sys.exit(f"{backend} was not loaded")
    llama = library(folder, "libllama.")
    pointer, count = ctypes.c_void_p, ctypes.c_int32
    for name, result, arguments in [
        ("llama_model_default_params", Settings, []),
        ("llama_context_default_params", Settings, []),
        ("llama_model_load_from_file", pointer, [ctypes.c_char_p, Settings]),
        ("llama_init_from_model", pointer, [pointer, Settings]),
        ("llama_batch_get_one", Batch, [pointer, count]),
        ("llama_decode", count, [pointer, Batch]),
        ("llama_get_logits_ith", pointer, [pointer, count]),
        ("llama_model_get_vocab", pointer, [pointer]),
        ("llama_vocab_n_tokens", count, [pointer]),
        ("llama_free", None, [pointer]),
        ("llama_model_free", None, [pointer]),
    ]:
        getattr(llama, name).restype = result
        getattr(llama, name).argtypes = arguments
    return llama


LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


def context_settings(llama):
    settings = bytearray(bytes(llama.llama_context_default_params()))
    struct.pack_into("<III", settings, AT_CONTEXT, *[CONTEXT_TOKENS] * 3)
    struct.pack_into("<ii", settings, AT_THREADS, 1, 1)
    struct.pack_into("<i", settings, AT_FLASH, 0)
    struct.pack_into("<ii", settings, AT_TYPES, 0, 0)
    return Settings.from_buffer_copy(bytes(settings))


def write_logits(llama, model, context, tokens, out, first):
    vocab = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))
    with open(out, "wb") as file:
        for index, token in enumerate(tokens):
            one = (ctypes.c_int32 * 1)(token)
            failure = llama.llama_decode(context, llama.llama_batch_get_one(one, 1))
            if failure:
                return f"no: llama_decode returned {failure}"
            if index < first:
                continue
            file.write(ctypes.string_at(llama.llama_get_logits_ith(context, -1), 4 * vocab))
    return "ok"


def answer(llama, errors, path, tokens, out, first):
    errors.clear()
    model = llama.llama_model_load_from_file(path.encode(), llama.llama_model_default_params())
    context = model and llama.llama_init_from_model(model, context_settings(llama))
    if not context:
        if model:
            llama.llama_model_free(model)
        return "no: " + " ".join(errors).replace("\n", " ")[-300:]
    result = write_logits(llama, model, context, tokens, out, first)
    llama.llama_free(context)
    llama.llama_model_free(model)
    return result


def main(folder):
    llama = open_llama(folder)
    errors = []
    log = LOG(lambda level, text, _: errors.append(text.decode(errors="replace")) if level >= ERROR_LEVEL else None)
    llama.llama_log_set(log, None)
    for line in sys.stdin:
        signal.alarm(SECONDS)
        path, tokens, out, first = line.rstrip("\n").split("\t")
        ids = [int(token) for token in tokens.split(",")]
        print(answer(llama, errors, path, ids, out, int(first)), flush=True)


main(sys.argv[1])

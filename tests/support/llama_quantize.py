"""Quantizes a GGUF file with llama.cpp's library: python3 llama_quantize.py LIBRARIES IN OUT FILE_TYPE.

The settings structure (llama_model_quantize_params in llama.h) starts with the number of threads and
the file type; the other members keep their defaults.
"""

import ctypes
import sys

from llama_library import library


class Settings(ctypes.Structure):
    _fields_ = [
        ("threads", ctypes.c_int32),
        ("file_type", ctypes.c_int32),
        ("rest", ctypes.c_byte * 120),
    ]


def main(folder, source, target, file_type):
    library(folder, "libggml-base.")
    library(folder, "libggml.")
    llama = library(folder, "libllama.")
    llama.llama_model_quantize_default_params.restype = Settings
    llama.llama_model_quantize.argtypes = [
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.POINTER(Settings),
    ]
    llama.llama_model_quantize.restype = ctypes.c_uint32
    settings = llama.llama_model_quantize_default_params()
    settings.threads = 1
    settings.file_type = int(file_type)
    return llama.llama_model_quantize(source.encode(), target.encode(), ctypes.byref(settings))


sys.exit(main(*sys.argv[1:]))

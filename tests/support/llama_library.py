"""Opens the shared libraries of llama.cpp, for the other scripts in this folder."""

import ctypes
import os


def library(folder, start):
    names = [name for name in os.listdir(folder) if name.startswith(start) and ".so" in name]
    return ctypes.CDLL(os.path.join(folder, min(names, key=len)), mode=ctypes.RTLD_GLOBAL)

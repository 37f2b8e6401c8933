"""The C library from Python, by ctypes alone: python3 wick.py LIBWICK.SO MODEL.gguf PROMPT [TOKENS]

A structure has the fields that are used here and room for the others, so it fits every later minor version.
"""

import ctypes
import sys
from ctypes import POINTER, byref, c_char, c_char_p, c_int32, c_size_t, c_uint16, c_uint32, c_uint64, c_uint8, c_void_p

ROOM = 1024  # bytes of the fields that are not named here
OK, IDLE, DONE = 0, 0, 3
FINISH_ERROR = 4


class Error(ctypes.Structure):
    _fields_ = [
        ("status", c_uint32),
        ("subject", c_uint32),
        ("offset_bytes", c_uint64),
        ("numbers", c_uint64 * 3),
        ("message", c_char * 256),
    ]


class Config(ctypes.Structure):
    _fields_ = [("memory_bytes_max", c_uint64), ("threads", c_uint32), ("others", c_uint8 * ROOM)]


class Request(ctypes.Structure):
    _fields_ = [
        ("text", c_char_p),
        ("text_bytes", c_size_t),
        ("tokenize_flags", c_uint32),
        ("tokens", c_void_p),
        ("token_count", c_size_t),
        ("priority", c_int32),
        ("passes_waited", c_uint32),
        ("completions", c_uint32),
        ("healing", ctypes.c_bool),
        ("no_speculation", ctypes.c_bool),
        ("always_speculates", ctypes.c_bool),
        ("session", c_uint32),
        ("salt", c_char_p),
        ("salt_bytes", c_size_t),
        ("max_tokens", c_uint32),
        ("others", c_uint8 * ROOM),
    ]


class Event(ctypes.Structure):
    _fields_ = [
        ("size_bytes", c_uint32),
        ("request", c_uint32),
        ("kind", c_uint32),
        ("token", c_int32),
        ("logprob", ctypes.c_float),
        ("top_count", c_uint32),
        ("text_bytes", c_uint32),
        ("finish", c_uint32),
        ("status", c_uint16),
        ("subject", c_uint16),
    ]


def open_library(path):
    library = ctypes.CDLL(path)
    for name, result, arguments in [
        ("wick_version", c_uint32, []),
        ("wick_config_default", None, [POINTER(Config)]),
        ("wick_request_default", None, [POINTER(Request)]),
        ("wick_engine_create", c_uint32, [POINTER(Config), POINTER(c_void_p), POINTER(Error)]),
        ("wick_engine_destroy", None, [c_void_p]),
        ("wick_load_file", c_uint32, [c_void_p, c_char_p, POINTER(Error)]),
        ("wick_request_submit", c_uint32, [c_void_p, POINTER(Request), POINTER(c_uint32), POINTER(Error)]),
        ("wick_step", c_uint32, [c_void_p, c_uint64]),
        ("wick_events_take", c_void_p, [c_void_p, POINTER(c_size_t)]),
        ("wick_event_next", POINTER(Event), [c_void_p, c_size_t, POINTER(Event)]),
        ("wick_event_text", c_void_p, [POINTER(Event)]),
    ]:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Engine:
    def __init__(self, library, path, threads=1):
        self.library, self.engine, self.error = library, c_void_p(), Error()
        config = Config()
        library.wick_config_default(byref(config))
        config.threads = threads
        self.check(library.wick_engine_create(byref(config), byref(self.engine), byref(self.error)))
        try:
            self.check(library.wick_load_file(self.engine, path.encode(), byref(self.error)))
        except RuntimeError:
            self.close()
            raise

    def check(self, status):
        if status != OK:
            raise RuntimeError(self.error.message.decode())

    def close(self):
        self.library.wick_engine_destroy(self.engine)
        self.engine = c_void_p()

    def events(self):
        size = c_size_t()
        taken = self.library.wick_events_take(self.engine, byref(size))
        event = self.library.wick_event_next(taken, size, None)
        while event:
            yield event
            event = self.library.wick_event_next(taken, size, event)

    def generate(self, prompt, max_tokens):
        """The pieces of the text that follows a prompt, as bytes."""
        request, text = Request(), prompt.encode()
        self.library.wick_request_default(byref(request))
        request.text, request.text_bytes, request.max_tokens = text, len(text), max_tokens
        number = c_uint32()
        self.check(self.library.wick_request_submit(self.engine, byref(request), byref(number), byref(self.error)))
        has_more = True
        while has_more:
            has_more = self.library.wick_step(self.engine, 10000) != IDLE
            for event in self.events():
                piece = ctypes.string_at(self.library.wick_event_text(event), event.contents.text_bytes)
                if event.contents.kind == DONE and event.contents.finish == FINISH_ERROR:
                    raise RuntimeError(piece.decode())
                yield piece


if __name__ == "__main__":
    engine = Engine(open_library(sys.argv[1]), sys.argv[2])
    for piece in engine.generate(sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else 64):
        sys.stdout.buffer.write(piece)
        sys.stdout.flush()
    print()
    engine.close()

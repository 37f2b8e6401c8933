"""The C library from Python, with only ctypes: python3 wick.py LIBWICK.SO MODEL.gguf PROMPT [TOKENS]

    engine = wick.Engine(wick.open_library("libwick.so"), "model.gguf", threads=2)
    text = b"".join(engine.chat([{"role": "user", "content": "Hello"}], 64)).decode()
    vectors = engine.embed(["a fox", "a crow"])

Each structure declares the fields that are used here and reserves space for the others.
"""

import collections
import ctypes
import json
import sys
import weakref
from ctypes import POINTER, byref, c_bool, c_char, c_char_p, c_float, c_int32, c_int64, c_size_t
from ctypes import c_uint16, c_uint32, c_uint64, c_uint8, c_void_p

ROOM = 1024  # bytes for the fields that are not declared here
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
        ("tokens", POINTER(c_int32)),
        ("token_count", c_size_t),
        ("priority", c_int32),
        ("passes_waited", c_uint32),
        ("completions", c_uint32),
        ("healing", c_bool),
        ("no_speculation", c_bool),
        ("always_speculates", c_bool),
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
        ("logprob", c_float),
        ("top_count", c_uint32),
        ("text_bytes", c_uint32),
        ("finish", c_uint16),
        ("stop", c_uint16),
        ("status", c_uint16),
        ("subject", c_uint16),
    ]


class Chat(ctypes.Structure):
    _fields_ = [("json", c_char_p), ("json_bytes", c_size_t), ("others", c_uint8 * ROOM)]


class EmbedText(ctypes.Structure):
    _fields_ = [
        ("text", c_char_p),
        ("text_bytes", c_size_t),
        ("document", c_char_p),
        ("document_bytes", c_size_t),
        ("tokens", POINTER(c_int32)),
        ("token_count", c_size_t),
    ]


class EmbedRequest(ctypes.Structure):
    _fields_ = [
        ("texts", POINTER(EmbedText)),
        ("text_count", c_uint32),
        ("pooling", c_uint32),
        ("dimensions", c_uint32),
        ("normalizes", c_bool),
        ("others", c_uint8 * ROOM),
    ]


class Vectors(ctypes.Structure):
    _fields_ = [
        ("values", POINTER(c_float)),
        ("rows", c_uint32),
        ("width", c_uint32),
        ("others", c_uint8 * ROOM),
    ]


class WickError(RuntimeError):
    """A failed call: `status` is a name such as WICK_E_IO, `subject` the setting to change, or ""."""

    def __init__(self, message, status, subject):
        super().__init__(message)
        self.status, self.subject = status, subject


def open_library(path):
    library = ctypes.CDLL(path)
    for name, result, arguments in [
        ("wick_version", c_uint32, []),
        ("wick_status_name", c_char_p, [c_uint32]),
        ("wick_subject_name", c_char_p, [c_uint32]),
        ("wick_config_default", None, [POINTER(Config)]),
        ("wick_request_default", None, [POINTER(Request)]),
        ("wick_engine_create", c_uint32, [POINTER(Config), POINTER(c_void_p), POINTER(Error)]),
        ("wick_engine_destroy", None, [c_void_p]),
        ("wick_load_file", c_uint32, [c_void_p, c_char_p, POINTER(Error)]),
        ("wick_request_submit", c_uint32, [c_void_p, POINTER(Request), POINTER(c_uint32), POINTER(Error)]),
        ("wick_request_cancel", c_uint32, [c_void_p, c_uint32]),
        ("wick_step", c_uint32, [c_void_p, c_uint64]),
        ("wick_events_take", c_void_p, [c_void_p, POINTER(c_size_t)]),
        ("wick_event_next", POINTER(Event), [c_void_p, c_size_t, POINTER(Event)]),
        ("wick_event_text", c_void_p, [POINTER(Event)]),
        ("wick_chat_default", None, [POINTER(Chat)]),
        (
            "wick_chat_tokenize",
            c_uint32,
            [c_void_p, POINTER(Chat), POINTER(POINTER(c_int32)), POINTER(c_size_t), POINTER(Error)],
        ),
        ("wick_embed_default", None, [POINTER(EmbedRequest)]),
        ("wick_embed", c_uint32, [c_void_p, POINTER(EmbedRequest), POINTER(Error)]),
        ("wick_embed_step", c_uint32, [c_void_p, c_uint64, POINTER(c_uint32), POINTER(Error)]),
        ("wick_embed_get", c_bool, [c_void_p, c_uint32, POINTER(Vectors)]),
        ("wick_embed_end", None, [c_void_p]),
    ]:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Closed:
    """Replaces the library, because a call with a destroyed engine would crash."""

    def __getattr__(self, name):
        raise ValueError("the engine is closed")


class Answer:
    """The pieces of generated text, as bytes. Several can be read alternately; closing or dropping one cancels it."""

    def __init__(self, engine, number):
        self.engine, self.number = engine, number
        self.events, self.is_done = collections.deque(), False
        engine.answers[number] = self

    def __iter__(self):
        return self

    def __next__(self):
        while not self.events and not self.is_done:
            self.engine.step()
        if self.is_done:
            raise StopIteration
        piece, self.is_done, failure = self.events.popleft()
        if failure:
            raise failure
        return piece

    def close(self):
        if not self.is_done and self.engine.engine:
            self.engine.library.wick_request_cancel(self.engine.engine, self.number)
        self.is_done = True

    def __del__(self):
        self.close()


class Engine:
    def __init__(self, library, path, threads=1):
        self.library, self.engine, self.error = library, c_void_p(), Error()
        self.answers = weakref.WeakValueDictionary()
        config = Config()
        library.wick_config_default(byref(config))
        config.threads = threads
        self.check(library.wick_engine_create(byref(config), byref(self.engine), byref(self.error)))
        try:
            self.check(library.wick_load_file(self.engine, path.encode(), byref(self.error)))
        except WickError:
            self.close()
            raise

    def check(self, status):
        if status != OK:
            raise self.failure(self.error.message, status, self.error.subject)

    def failure(self, message, status, subject):
        names = self.library.wick_status_name(status), self.library.wick_subject_name(subject)
        return WickError(message.decode(), *[name.decode() for name in names])

    def close(self):
        if self.engine:
            self.library.wick_engine_destroy(self.engine)
        self.library, self.engine = Closed(), None

    def events(self):
        size = c_size_t()
        taken = self.library.wick_events_take(self.engine, byref(size))
        event = self.library.wick_event_next(taken, size, None)
        while event:
            yield event
            event = self.library.wick_event_next(taken, size, event)

    def generate(self, prompt, max_tokens):
        """Yields the text that follows a prompt in pieces, as bytes."""
        text = prompt.encode()
        request = self.new_request(max_tokens)
        request.text, request.text_bytes = text, len(text)
        return self.run(request)

    def chat(self, messages, max_tokens):
        """Yields the answer to a conversation in pieces, as bytes; messages have the format of OpenAI's API."""
        text = json.dumps({"messages": messages}).encode()
        chat = Chat()
        self.library.wick_chat_default(byref(chat))
        chat.json, chat.json_bytes = text, len(text)
        request = self.new_request(max_tokens)
        tokens, count = POINTER(c_int32)(), c_size_t()
        tokenize = self.library.wick_chat_tokenize
        self.check(tokenize(self.engine, byref(chat), byref(tokens), byref(count), byref(self.error)))
        request.tokens, request.token_count = tokens, count
        return self.run(request)

    def new_request(self, max_tokens):
        request = Request()
        self.library.wick_request_default(byref(request))
        request.max_tokens = max_tokens
        return request

    def run(self, request):
        number = c_uint32()
        self.check(self.library.wick_request_submit(self.engine, byref(request), byref(number), byref(self.error)))
        return Answer(self, number.value)

    def step(self):
        """Computes for a few milliseconds and passes the events to their requests."""
        self.library.wick_step(self.engine, 10000)
        for event in self.events():
            one, failure = event.contents, None
            piece = ctypes.string_at(self.library.wick_event_text(event), one.text_bytes)
            if one.kind == DONE and one.finish == FINISH_ERROR:
                failure = self.failure(piece, one.status, one.subject)
            if one.request in self.answers:
                self.answers[one.request].events.append((piece, one.kind == DONE, failure))

    def embed(self, texts):
        """Returns a normalized vector for each text."""
        encoded = [text.encode() for text in texts]
        given = (EmbedText * len(texts))(*[EmbedText(text, len(text)) for text in encoded])
        request = EmbedRequest()
        self.library.wick_embed_default(byref(request))
        request.texts, request.text_count, request.normalizes = given, len(texts), True
        self.check(self.library.wick_embed(self.engine, byref(request), byref(self.error)))
        try:
            result = c_uint32(1)
            while result.value != IDLE:
                self.check(self.library.wick_embed_step(self.engine, 10000, byref(result), byref(self.error)))
            return [self.vector(index) for index in range(len(texts))]
        finally:
            self.library.wick_embed_end(self.engine)

    def vector(self, index):
        vectors = Vectors()
        self.library.wick_embed_get(self.engine, index, byref(vectors))
        return vectors.values[: vectors.width]


if __name__ == "__main__":
    engine = Engine(open_library(sys.argv[1]), sys.argv[2])
    for piece in engine.generate(sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else 64):
        sys.stdout.buffer.write(piece)
        sys.stdout.flush()
    print()
    engine.close()

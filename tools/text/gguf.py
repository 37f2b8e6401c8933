"""Reads the metadata of a little-endian GGUF file (gguf.md in ggml's docs)."""
import struct

FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, form):
        value = struct.unpack_from("<" + form, self.data, self.at)[0]
        self.at += struct.calcsize("<" + form)
        return value

    def string(self):
        size = self.number("Q")
        self.at += size
        return self.data[self.at - size : self.at]

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind != ARRAY:
            return self.number(FORMATS[kind])
        item, count = self.number("I"), self.number("Q")
        if item in (STRING, ARRAY):
            return [self.value(item) for _ in range(count)]
        form = "<%d%s" % (count, FORMATS[item])
        values = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return values


def read_metadata(path):
    with open(path, "rb") as file:
        reader = Reader(file.read())
    assert reader.data[:4] == b"GGUF", path
    reader.at = 16
    count = reader.number("Q")
    metadata = {}
    for _ in range(count):
        key = reader.string().decode()
        metadata[key] = reader.value(reader.number("I"))
    return metadata

"""Splits a GGUF file into several, as llama-gguf-split does. Standard library only."""

import os
import struct

ALIGNMENT = 32
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes of a value, by its type
STRING, ARRAY = 8, 9


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def read(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values[0] if len(values) == 1 else values

    def skip_value(self, kind):
        if kind == STRING:
            length = self.read("Q")
            self.at += length
        elif kind == ARRAY:
            element, count = self.read("IQ")
            for _ in range(count):
                self.skip_value(element)
        else:
            self.at += SIZES[kind]

    def read_name(self):
        length = self.read("Q")
        self.at += length
        return self.data[self.at - length:self.at]


def padded(data):
    return data + bytes(-len(data) % ALIGNMENT)


def with_length(name):
    return struct.pack("<Q", len(name)) + name


def split_keys(number, count, tensors):
    return b"".join([with_length(b"split.no"), struct.pack("<IH", 2, number), with_length(b"split.count"),
                     struct.pack("<IH", 2, count), with_length(b"split.tensors.count"), struct.pack("<Ii", 5, tensors)])


def split(path, folder, name, count):
    """Writes the model at `path` as `count` files FOLDER/NAME-00001-of-0000N.gguf and returns their paths."""
    with open(path, "rb") as file:
        reader = Reader(file.read())
    _, version, n_tensors, n_keys = reader.read("4sIQQ")
    begin = reader.at
    for _ in range(n_keys):
        reader.read_name()
        reader.skip_value(reader.read("I"))
    keys = reader.data[begin:reader.at]
    tensors = []
    for _ in range(n_tensors):
        tensor, dims = reader.read_name(), reader.read("I")
        shape = [reader.read("Q") for _ in range(dims)]
        tensors.append((tensor, shape, *reader.read("IQ")))
    data = reader.data[(reader.at + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT:]
    ends = sorted([offset for *_, offset in tensors] + [len(data)])
    paths = []
    for number in range(count):
        headers, values, mine = b"", b"", tensors[number * n_tensors // count:(number + 1) * n_tensors // count]
        for tensor, shape, kind, offset in mine:
            headers += with_length(tensor) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
            headers += struct.pack("<IQ", kind, len(values))
            values = padded(values + data[offset:next(end for end in ends if end > offset)])
        own = (keys if number == 0 else b"") + split_keys(number, count, n_tensors)
        head = struct.pack("<4sIQQ", b"GGUF", version, len(mine), 3 + (n_keys if number == 0 else 0))
        paths.append(os.path.join(folder, f"{name}-{number + 1:05}-of-{count:05}.gguf"))
        with open(paths[-1], "wb") as file:
            file.write(padded(head + own + headers) + values)
    return paths

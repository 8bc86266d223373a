#!/usr/bin/env python3
"""Small PyTorch .bin files, good and bad, written by Python's own pickle without torch.

Stub classes stand in for torch's, so that the pickles hold the names torch.save writes. Writes
tests/golden/pytorch/*.bin; see tests/models/checkpoint/pytorch_test.cpp for what each must do.
"""

import collections
import io
import os
import pathlib
import pickle
import struct
import sys
import types
import zipfile

OUT = pathlib.Path(__file__).resolve().parent.parent.parent / "tests/golden/pytorch"


def module(name, **members):
    result = types.ModuleType(name)
    for key, member in members.items():
        member.__module__, member.__qualname__ = name, key
        setattr(result, key, member)
    sys.modules[name] = result
    return result


def function(name):
    def call(*_):
        raise RuntimeError("never called")
    call.__name__ = name
    return call


STORAGES = {"FloatStorage": ("f", 4), "HalfStorage": ("e", 2), "BFloat16Storage": ("H", 2),
            "LongStorage": ("q", 8), "QInt8Storage": ("b", 1)}
torch = module("torch", **{name: type(name, (), {}) for name in STORAGES})
utils = module("torch._utils", **{n: function(n) for n in (
    "_rebuild_tensor_v2", "_rebuild_parameter", "_rebuild_qtensor")})


class storage:
    def __init__(self, key, kind, values):
        self.key, self.kind, self.values = key, kind, values

    def bytes(self):
        return struct.pack(f"<{len(self.values)}{STORAGES[self.kind][0]}", *self.values)


class tensor:
    def __init__(self, store, shape, offset=0, strides=None, rebuild="_rebuild_tensor_v2"):
        self.store, self.shape, self.offset, self.rebuild = store, shape, offset, rebuild
        self.strides = strides
        if strides is None:
            self.strides, step = [], 1
            for extent in reversed(shape):
                self.strides.insert(0, step)
                step *= extent

    def __reduce__(self):
        return getattr(utils, self.rebuild), (self.store, self.offset, tuple(self.shape),
                                              tuple(self.strides), False, collections.OrderedDict())


class parameter:
    def __init__(self, data):
        self.data = data

    def __reduce__(self):
        return utils._rebuild_parameter, (self.data, True, collections.OrderedDict())


class call:
    """An object that is pickled as a call of `target`."""
    def __init__(self, target, *arguments):
        self.target, self.arguments = target, arguments

    def __reduce__(self):
        return self.target, self.arguments


def pickled(state, protocol, stores):
    class pickler(pickle.Pickler):
        def persistent_id(self, thing):
            if not isinstance(thing, storage):
                return None
            stores[thing.key] = thing
            return ("storage", getattr(torch, thing.kind), thing.key, "cpu", len(thing.values))
    out = io.BytesIO()
    pickler(out, protocol).dump(state)
    return out.getvalue()


def write(name, state, protocol=2, method=zipfile.ZIP_STORED, edit=lambda entries: None,
          folder="archive"):
    stores = {}
    entries = {"data.pkl": pickled(state, protocol, stores)}
    entries |= {f"data/{key}": store.bytes() for key, store in stores.items()}
    entries["version"] = b"3\n"
    edit(entries)
    with zipfile.ZipFile(OUT / name, "w", method) as archive:
        for entry, content in entries.items():
            archive.writestr(zipfile.ZipInfo(f"{folder}/{entry}"), content, method)


OUT.mkdir(exist_ok=True)
floats = storage("0", "FloatStorage", [1, 2, 3, 4, 5, 6])
halves = storage("1", "HalfStorage", [0.5, -2, 65504, 0])
brains = storage("2", "BFloat16Storage", [0x3f80, 0xc020, 0, 0x4000])
longs = storage("3", "LongStorage", [1, -1, 1 << 40])


def state_dict():
    state = collections.OrderedDict(
        matrix=tensor(floats, [2, 3]), tied=tensor(floats, [2, 3]),
        view=tensor(floats, [2], offset=4), halves=tensor(halves, [4]),
        brains=tensor(brains, [2, 1, 2], strides=[2, 77, 1]), longs=tensor(longs, [3]),
        scalar=tensor(floats, [], offset=2))
    state._metadata = collections.OrderedDict([("", {"version": 1, "scale": 0.5})])
    return state


write("good_protocol2.bin", state_dict())
write("good_protocol4.bin", dict(state_dict()), protocol=4, folder="pytorch_model")
write("parameters.bin", {"matrix": parameter(tensor(floats, [2, 3]))})
write("many.bin", {f"layer.{i}.weight": tensor(floats, [6]) for i in range(300)})
write("transposed.bin", {"matrix": tensor(floats, [3, 2], strides=[1, 3])})
write("repeated_rows.bin", {"matrix": tensor(floats, [1000000, 6], strides=[0, 1])})
write("past_storage.bin", {"matrix": tensor(floats, [2, 3], offset=1)})
write("negative_offset.bin", {"matrix": tensor(floats, [2, 3], offset=-1)})
write("huge_shape.bin", {"matrix": tensor(floats, [1 << 40, 1 << 40])})
write("short_storage.bin", {"matrix": tensor(floats, [2, 3])},
      edit=lambda e: e.update({"data/0": b"\0" * 23}))
write("missing_storage.bin", {"matrix": tensor(floats, [2, 3])}, edit=lambda e: e.pop("data/0"))
write("big_endian.bin", {"matrix": tensor(floats, [2, 3])},
      edit=lambda e: e.update({"byteorder": b"big"}))
write("no_pickle.bin", {"matrix": tensor(floats, [2, 3])}, edit=lambda e: e.pop("data.pkl"))
write("deflated.bin", {"matrix": tensor(floats, [2, 3])}, method=zipfile.ZIP_DEFLATED)
write("calls_system.bin", {"matrix": tensor(floats, [2, 3]), "x": call(os.system, "echo harm")})
write("calls_eval.bin", {"x": call(eval, "1")}, protocol=4)
write("quantised.bin", {"x": tensor(floats, [2, 3], rebuild="_rebuild_qtensor")})
write("unknown_storage.bin", {"x": tensor(storage("0", "QInt8Storage", [1]), [1])})
write("nested.bin", {"model": {"matrix": tensor(floats, [2, 3])}})
write("number.bin", {"matrix": tensor(floats, [2, 3]), "epoch": 3})
write("list.bin", [tensor(floats, [2, 3])])
(OUT / "legacy.bin").write_bytes(pickle.dumps(0x1950a86a20f9469cfc6c, 2) + pickle.dumps(1001, 2))
print(f"{len(list(OUT.iterdir()))} files, {sum(f.stat().st_size for f in OUT.iterdir())} bytes")

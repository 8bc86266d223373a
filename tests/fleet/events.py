"""A subscriber that decodes KV events by msgspec with vLLM's own structs (vllm/distributed/kv_events.py), and keeps
what the events say about a worker's blocks."""

import time
from typing import Any

import msgspec
import zmq


class EventBatch(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    ts: float
    events: list[Any]
    data_parallel_rank: int | None = None


def structs(array: bool):
    """vLLM's structs of events: as maps, and as arrays, which vLLM wrote before June 2026."""
    options = {"array_like": array, "omit_defaults": True, "gc": False, "tag": True, "forbid_unknown_fields": True}

    class BlockStored(msgspec.Struct, **options):
        block_hashes: list[int]
        parent_block_hash: int | None
        token_ids: list[int]
        block_size: int
        lora_id: int | None
        medium: str | None
        lora_name: str | None

    class BlockRemoved(msgspec.Struct, **options):
        block_hashes: list[int]
        medium: str | None

    class AllBlocksCleared(msgspec.Struct, **options):
        pass

    class KVEventBatch(EventBatch):
        events: list[BlockStored | BlockRemoved | AllBlocksCleared]

    return msgspec.msgpack.Decoder(KVEventBatch)


class Subscriber:
    def __init__(self, endpoint: str, topic: str = "", array: bool = False):
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.SUB)
        self.socket.setsockopt_string(zmq.SUBSCRIBE, topic)
        self.socket.connect(endpoint)
        self.decoder = structs(array)
        self.numbers, self.blocks, self.media = [], {}, {}
        self.cleared = 0

    def take(self, seconds: float = 0.5):
        """Applies the events that come, until none has come for `seconds`."""
        while self.socket.poll(int(seconds * 1000)):
            topic, number, payload = self.socket.recv_multipart()
            self.topic = topic.decode()
            self.numbers.append(int.from_bytes(number, "big"))
            batch = self.decoder.decode(payload)
            assert batch.data_parallel_rank == 0
            assert abs(batch.ts - time.time()) < 60
            for event in batch.events:
                self.apply(event)
        return self

    def apply(self, event):
        kind = type(event).__name__
        if kind == "AllBlocksCleared":
            self.cleared += 1
            self.media = {}
        elif kind == "BlockStored":
            [name] = event.block_hashes
            assert len(event.token_ids) == event.block_size
            parent = event.parent_block_hash
            assert parent is None or parent in self.media, "a parent comes first"
            before = () if parent is None else self.blocks[parent]
            self.blocks[name] = (*before, *event.token_ids)
            self.media.setdefault(name, set()).add(event.medium)
        else:
            [name] = event.block_hashes
            self.media[name].remove(event.medium)
            if not self.media[name]:
                del self.media[name]

    def prefixes(self, medium: str = "GPU") -> set:
        return {self.blocks[name] for name, media in self.media.items() if medium in media}

    def stop(self):
        self.context.destroy(0)

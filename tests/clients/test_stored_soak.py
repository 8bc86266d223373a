"""Many stored responses of every protocol, made, read, left, deleted and displaced: the folder stays within its bound and
the memory where it was. TWILL_SOAK_MINUTES=30 makes it half an hour."""

import json
import os
import random
import threading
import time

from websockets.sync.client import connect

from conftest import Daemon

LONG = bool(os.environ.get("TWILL_LONG"))
SECONDS = 60 * float(os.environ.get("TWILL_SOAK_MINUTES") or (3 if LONG else 0.15))
MAX_FOLDER = 2 * 2**20
JOURNAL = 2**20  # what the journal may take beside the bound until it is rewritten
ROUTES = {"/v1/responses": ({"input": "Once"}, "max_output_tokens"),
          "/v1/chat/completions": ({"messages": [{"role": "user", "content": "Once"}]}, "max_tokens"),
          "/v1/completions": ({"prompt": "Once"}, "max_tokens")}


class Clients:
    def __init__(self, daemon):
        self.daemon, self.over = daemon, threading.Event()
        self.made, self.faults, self.lock = 0, [], threading.Lock()

    def run(self, seed):
        dice = random.Random(seed)
        kept = []
        while not self.over.is_set():
            try:
                self.one(dice, kept)
                del kept[:-20]
            except Exception as error:
                self.faults.append(repr(error))
                return
            time.sleep(dice.uniform(0, 0.05))

    def one(self, dice, kept):
        what = dice.random()
        if what < 0.15 and kept:
            path = kept.pop(dice.randrange(len(kept)))
            assert self.daemon.request("DELETE", path)[0] in (200, 404)
        elif what < 0.35 and kept:
            path = dice.choice(kept)
            status = self.daemon.request("GET", path + dice.choice(("", "?stream=true&starting_after=3")))[0]
            assert status in (200, 404), status  # 404: others have displaced it
        elif what < 0.5:
            self.leave_a_stream(dice)
        else:
            path = dice.choice(list(ROUTES))
            fields, limit = ROUTES[path]
            body = {**fields, limit: dice.randrange(1, 120), "store": True, "seed": dice.randrange(99)}
            if path != "/v1/responses":
                body["n"] = dice.randrange(1, 4)
            status, reply = self.daemon.post(path, body)
            assert status == 200, reply
            kept.append(f"{path}/{reply['id']}")
            with self.lock:
                self.made += 1

    def leave_a_stream(self, dice):
        """A stream over /v1/stream that is left in its middle, and then resumed or not."""
        with connect(self.daemon.ws + "/v1/stream", compression=None) as to:
            to.send(json.dumps({"op": "submit", "id": 1, "prompt": "Once", "max_tokens": 200, "store": True, "credit": 40}))
            frame = json.loads(to.recv(timeout=60))
            assert "error" not in frame, frame
        if dice.random() < 0.5:
            return
        with connect(self.daemon.ws + "/v1/stream", compression=None) as to:
            to.send(json.dumps({"op": "resume", "id": 1, "stored": frame["stored"], "after": frame["seq"]}))
            while not frame.get("done"):
                frame = json.loads(to.recv(timeout=60))


def bytes_in(folder) -> int:
    total = 0
    for name in os.listdir(folder):
        try:
            total += os.stat(folder / name).st_size
        except FileNotFoundError:
            pass  # the file was replaced or removed meanwhile
    return total


def test_the_folder_and_the_memory_stay_where_they_are(tmp_path):
    folder = tmp_path / "responses"
    daemon = Daemon("kv.memory=16MiB", f"responses.folder={folder}", f"responses.max_folder={MAX_FOLDER}",
                    "responses.grace=500ms", "log.level=warn", model="dummy:null?step-us=500")
    clients = Clients(daemon)
    threads = [threading.Thread(target=clients.run, args=(i,)) for i in range(6)]
    try:
        for one in threads:
            one.start()
        memory, folders = [], []
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and not clients.faults:
            time.sleep(min(10, SECONDS / 20))
            memory.append(daemon.memory_bytes())
            folders.append(bytes_in(folder))
        clients.over.set()
        for one in threads:
            one.join()
        assert not clients.faults, clients.faults
        assert daemon.process.poll() is None, daemon.text_of_log()
        mebibyte = 2**20
        print(f"{clients.made} stored, folder at most {max(folders) / mebibyte:.1f} MiB, memory MiB:",
              " ".join(f"{one / mebibyte:.0f}" for one in memory[::max(1, len(memory) // 20)]))
        assert clients.made > 3 * SECONDS
        assert max(folders) <= MAX_FOLDER + JOURNAL
        if SECONDS >= 60:  # in a short run the memory still grows to its bounds
            early = max(memory[len(memory) // 4:len(memory) // 2])
            assert max(memory[len(memory) // 2:]) <= early * 1.05 + 2 * mebibyte
        assert "no file yet" not in daemon.text_of_log() and "takes nothing" not in daemon.text_of_log()
        daemon.wait_metric("twill_kv_blocks_used", 0)
    finally:
        clients.over.set()
        daemon.stop()

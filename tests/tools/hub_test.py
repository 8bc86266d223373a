#!/usr/bin/env python3
"""Fetches models from a server that speaks the hub's routes, with the faults that networks and hubs have."""

import contextlib
import errno
import hashlib
import json
import os
import pty
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
import unittest
import urllib.error
import urllib.request

import hub_server
import split_gguf
from hub_server import Repo, times
from programs import BIN, SOURCE, Daemon, run, scratch

GOLDEN = os.path.join(SOURCE, "tests/golden")
CERTIFICATES = os.path.join(SOURCE, "tests/clients/tls")
BIG = 8 << 20  # large, compared with headers


def files_of(name):
    """The files of a golden model as a repository has them, with further files that do not belong to the model."""
    root = os.path.join(GOLDEN, name)
    files = {"README.md": b"# A model\n", ".gitattributes": b"* text\n", "onnx/model.onnx": b"x" * 5000}
    for folder, _, names in os.walk(root):
        for one in names:
            with open(os.path.join(folder, one), "rb") as file:
                files[os.path.relpath(os.path.join(folder, one), root)] = file.read()
    return files


with open(os.path.join(GOLDEN, "llama3-style-tied-bf16/model.gguf"), "rb") as gguf:
    SMALL = gguf.read()
LARGE = SMALL + random.Random(1).randbytes(BIG)


def without_tensor(content, part):
    """A safetensors file without the tensors whose names contain `part`."""
    length, = struct.unpack("<Q", content[:8])
    header, data = json.loads(content[8:8 + length]), content[8 + length:]
    kept, bytes_kept = {}, b""
    for name, tensor in header.items():
        if name != "__metadata__" and part not in name:
            values = data[slice(*tensor["data_offsets"])]
            kept[name] = {**tensor, "data_offsets": [len(bytes_kept), len(bytes_kept) + len(values)]}
            bytes_kept += values
    text = json.dumps(kept).encode()
    return struct.pack("<Q", len(text)) + text + bytes_kept


class HubTest(unittest.TestCase):
    certificate = None

    def setUp(self):
        self.hub = hub_server.Hub(self.certificate)
        self.addCleanup(self.hub.close)
        self.scratch = scratch()
        self.addCleanup(self.scratch.cleanup)
        self.home = os.path.join(self.scratch.name, "hf")
        self.cache = os.path.join(self.home, "hub")
        self.env = {"HF_ENDPOINT": self.hub.url, "HF_HOME": self.home, "HOME": self.scratch.name,
                    "TWILL_MODELS": os.path.join(self.scratch.name, "models")}
        for name in ("HF_TOKEN", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HTTP_PROXY", "http_proxy", "HTTPS_PROXY",
                     "https_proxy", "ALL_PROXY", "all_proxy", "SSL_CERT_FILE"):
            self.env[name] = ""
        self.hub.repos["org/tiny"] = Repo({"m-Q8_0.gguf": LARGE})

    def twill(self, *arguments, status=0, **env):
        done = run("twill", *arguments, env={**self.env, **env})
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def pull(self, source, status=0, **env):
        return self.twill("models", "pull", source, status=status, **env)

    def refusal(self, source, *words, **env):
        said = self.pull(source, status=1, **env).stderr
        for word in words:
            self.assertIn(word, said)
        return said

    def preload(self, text):
        """A library for LD_PRELOAD whose functions take the place of the system's."""
        library, source = (os.path.join(self.scratch.name, "preload." + ending) for ending in ("so", "c"))
        with open(source, "w") as file:
            file.write("#define _GNU_SOURCE\n" + text)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        return library

    def start_pull(self, source, **env):
        return subprocess.Popen([os.path.join(BIN, "twill"), "models", "pull", source], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **self.env, **env})

    def blobs(self, name="org/tiny"):
        folder = os.path.join(self.cache, "models--" + name.replace("/", "--"), "blobs")
        return {one: os.path.getsize(os.path.join(folder, one)) for one in os.listdir(folder)}

    def bytes_of(self, path):
        with open(path, "rb") as file:
            return file.read()

    def check_tiny(self, done):
        self.assertEqual(self.bytes_of(done.stdout.strip()), LARGE)
        self.assertEqual(list(self.blobs()), [hashlib.sha256(LARGE).hexdigest()])


class Cache(HubTest):
    def test_models_of_every_kind_are_fetched_as_twill_reads_them_and_nothing_else(self):
        # Shards with SentencePiece, GPTQ, AWQ, one tied file, and PyTorch's format.
        for name in ("baichuan2-13b-tiny-bf16", "llama-tiny-gptq", "mistral-tiny-awq", "llama3-style-tied-bf16",
                     "opt-350m-style-fp16"):
            with self.subTest(name):
                self.hub.repos["org/" + name] = repo = Repo(files_of(name))
                done = self.pull("org/" + name)
                path = done.stdout.strip()
                self.assertEqual(path, os.path.join(self.cache, f"models--org--{name}/snapshots", repo.branches["main"]))
                self.assertIn(f"serve it with `twilld --model hf:org/{name}`", done.stderr)
                fetched = {os.path.relpath(os.path.join(folder, one), path)
                           for folder, _, files in os.walk(path) for one in files}
                for one in fetched:
                    self.assertEqual(self.bytes_of(os.path.join(path, one)), repo.files[one])
                    self.assertTrue(os.readlink(os.path.join(path, one)).startswith("../../blobs/"))
                for needless in ("README.md", "onnx/model.onnx", "golden.json", "golden.safetensors", "model.gguf"):
                    self.assertNotIn(needless, fetched)
                self.assertEqual(run("twill", "inspect", path).returncode, 0)
                self.hub.forget()
                self.assertEqual(self.pull("hf:org/" + name).stdout.strip(), path)
                self.assertEqual(self.hub.paths("store"), [])
                self.assertEqual(len(self.hub.paths("hub")), 1)  # only the list of files was requested

    def test_the_cache_has_the_layout_of_huggingface_hub(self):
        done = self.pull("hf:org/tiny")
        commit = self.hub.repos["org/tiny"].branches["main"]
        root = os.path.join(self.cache, "models--org--tiny")
        self.assertEqual(self.bytes_of(os.path.join(root, "refs/main")), commit.encode())
        self.assertEqual(done.stdout.strip(), os.path.join(root, "snapshots", commit, "m-Q8_0.gguf"))
        self.check_tiny(done)
        self.assertEqual(sorted(os.listdir(root)), ["blobs", "refs", "snapshots"])  # no temporary folder is left

    def test_files_of_other_programs_are_used(self):
        commit = self.hub.repos["org/tiny"].branches["main"]
        blob = hashlib.sha256(LARGE).hexdigest()
        root = os.path.join(self.cache, "models--org--tiny")
        os.makedirs(os.path.join(root, "blobs"))
        with open(os.path.join(root, "blobs", blob), "wb") as file:
            file.write(LARGE)
        self.check_tiny(self.pull("org/tiny"))
        self.assertEqual(self.hub.paths("store"), [])
        shutil.rmtree(os.path.join(root, "refs"))
        os.remove(os.path.join(root, "snapshots", commit, "m-Q8_0.gguf"))
        os.symlink("../../blobs/" + blob, os.path.join(root, "snapshots", commit, "m-Q8_0.gguf"))
        self.hub.forget()
        self.check_tiny(self.pull("org/tiny"))
        self.assertEqual(self.hub.paths("store"), [])

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_cache_that_is_whole_need_not_be_writable(self):
        path = self.pull("org/tiny").stdout.strip()
        shutil.rmtree(os.path.join(self.cache, ".locks"))
        for folder, _, _ in os.walk(self.home):
            os.chmod(folder, 0o555)
        try:
            self.assertEqual(self.pull("org/tiny").stdout.strip(), path)
        finally:
            for folder, _, _ in os.walk(self.home):
                os.chmod(folder, 0o755)

    def test_a_new_commit_fetches_what_changed(self):
        repo = self.hub.repos["org/two"] = Repo(files_of("llama-tiny-fp16"))
        first = self.pull("org/two").stdout.strip()
        repo.files["generation_config.json"] = b'{"temperature": 0.5}'
        old = repo.branches["main"]
        repo.commit("main")
        self.hub.forget()
        second = self.pull("org/two").stdout.strip()
        self.assertNotEqual(first, second)
        self.assertEqual(self.hub.paths("store"), [])  # all weights are in the cache already
        self.assertEqual(self.bytes_of(os.path.join(second, "generation_config.json")), b'{"temperature": 0.5}')
        repo.branches["v1"] = old
        for revision in ("v1", old):
            self.assertEqual(self.pull(f"org/two@{revision}").stdout.strip(), first)
        self.refusal("org/two@v9", 'there is no revision "v9"', "/org/two/tree/main")

    def test_without_a_network_the_cache_serves(self):
        path = self.pull("org/tiny").stdout.strip()
        self.hub.forget()
        done = self.pull("org/tiny", HF_HUB_OFFLINE="1")
        self.assertEqual(done.stdout.strip(), path)
        self.assertEqual(self.hub.paths("hub"), [])
        self.refusal("org/other", "hf:org/other is not in", "HF_HUB_OFFLINE forbids", HF_HUB_OFFLINE="1")
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
            self.hub.faults.append(times(99, "hub", "/api/", (503, {"Retry-After": "600"})))
            self.assertIn("the model of the cache is used", self.pull("org/tiny").stderr)
            self.assertIn("try again later", self.refusal("org/other", "status 503"))
            begin = time.monotonic()
            self.assertEqual(self.pull("org/tiny", HF_ENDPOINT=nobody).stdout.strip(), path)
            self.assertLess(time.monotonic() - begin, 20)  # one try; eight would take half a minute
            self.assertEqual(self.twill("inspect", "hf:org/tiny", HF_ENDPOINT=nobody).returncode, 0)


    def test_models_of_the_cache_are_listed_and_removed(self):
        self.pull("org/tiny")
        os.makedirs(os.path.join(self.cache, "models--other--broken/blobs"))
        listed = self.twill("models", "--url", "http://127.0.0.1:1", status=1).stdout
        self.assertIn(f"of Hugging Face's hub in {self.cache}\n  hf:org/tiny ", listed)
        self.assertNotIn("broken", listed)
        outside = os.path.join(self.scratch.name, "models--x--y")
        os.makedirs(os.path.join(outside, "blobs"))
        for name in ("hf:../x", "hf:org/other", "hf:org/tiny:Q8_0", "hf:org/tiny@v1", "../models--x--y"):
            self.twill("models", "rm", name, status=1)
        self.twill("models", "rm", "org/tiny")
        self.assertTrue(os.path.exists(outside))
        self.assertEqual(sorted(os.listdir(self.cache)), [".locks", "models--other--broken"])
        self.assertIn("there is no model", self.twill("models", "rm", "hf:org/tiny", status=1).stderr)

    def test_a_terminal_shows_a_bar(self):
        reader, writer = pty.openpty()
        pull = subprocess.Popen([os.path.join(BIN, "twill"), "models", "pull", "org/tiny"], stdout=subprocess.DEVNULL,
                                stderr=writer, env={**os.environ, **self.env, "TERM": "xterm"})
        os.close(writer)
        shown = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while data := os.read(reader, 65536):
                shown += data
        os.close(reader)
        self.assertEqual(pull.wait(20), 0)
        self.assertIn(b"fetching hf:org/tiny: 8.", shown)
        self.assertIn(b"\r[" + b"#" * 30 + b"] 100 %  8.", shown)


class Judgement(HubTest):
    def test_a_model_that_cannot_be_served_costs_no_weights(self):
        files = files_of("llama-tiny-fp16")
        weights = next(name for name in files if name.startswith("model") and name.endswith(".safetensors"))
        config = json.loads(files["config.json"])
        strange = json.dumps({**config, "architectures": ["MambaForCausalLM"]}).encode()
        padded = without_tensor(files[weights], "layers.1.mlp.up_proj")
        for fault, changed, words in (
                ("family", {"config.json": strange}, "MambaForCausalLM"),
                ("tensor", {weights: padded}, "up_proj"),
                ("tokenizer", {"tokenizer.json": b"{}", "tokenizer.model": b"x"}, "tokenizer"),
                ("headers", {weights: struct.pack("<Q", 1 << 40) + files[weights][8:]}, "header"),
                ("gguf", None, "general.architecture")):
            with self.subTest(fault):
                name = "org/" + fault
                if changed is None:
                    self.hub.repos[name] = Repo({"m.gguf": LARGE.replace(b"llama", b"mamba", 1)})
                else:
                    self.hub.repos[name] = Repo({**files, **changed})
                self.hub.forget()
                said = self.refusal(name, f"hf:{name} cannot be served, so its weights were not fetched", words)
                self.assertNotIn(self.cache, said)  # the message names the model by its reference, not by the folder with its headers
                blobs = self.blobs(name)
                self.assertFalse([blob for blob, size in blobs.items() if size > 1 << 20], blobs)
                self.assertFalse([blob for blob in blobs if blob.endswith(".incomplete")])

    def test_headers_alone_are_fetched_to_inspect(self):
        said = self.twill("inspect", "hf:org/tiny").stdout
        for words in ("model hf:org/tiny", "GGUF v3", "llama", "twilld would serve this model", "at 512 tokens"):
            self.assertIn(words, said)
        whole = self.twill("inspect", self.pull("org/tiny").stdout.strip()).stdout

        def facts(text):  # leaves out how much memory is free, which changes all the time
            return [line for line in text.splitlines() if not re.match("model |  (host )?memory ", line)]

        self.assertEqual(facts(said), facts(whole))
        self.hub.forget()
        self.twill("inspect", "hf:org/tiny")
        self.assertEqual(len(self.hub.paths("hub")), 1)  # the listing

    def test_long_headers_come_in_as_many_pieces_as_they_need(self):
        # A vocabulary that does not fit into the first pieces: 30,000 more keys, 3 MB.
        count, = struct.unpack("<Q", SMALL[16:24])
        pairs = b"".join(struct.pack("<Q", 90) + b"k%089d" % i + struct.pack("<IB", 0, 1) for i in range(30000))
        long = SMALL[:16] + struct.pack("<Q", count + 30000) + pairs + SMALL[24:]
        # The data must stay aligned.
        pad = -len(pairs) % 32
        if pad:
            value = b"x" * ((pad - 8 - 1 - 4 - 8) % 32)
            pairs += struct.pack("<Q", 1) + b"p" + struct.pack("<IQ", 8, len(value)) + value
            long = SMALL[:16] + struct.pack("<Q", count + 30001) + pairs + SMALL[24:]
        self.hub.repos["org/long"] = Repo({"m.gguf": long + bytes(BIG)})
        self.assertIn("twilld would serve this model", self.twill("inspect", "hf:org/long").stdout)
        ranges = [headers.get("Range") for where, _, headers in self.hub.requests if where == "store"]
        self.assertGreater(len(ranges), 1)
        self.assertEqual(self.bytes_of(self.pull("org/long").stdout.strip()), long + bytes(BIG))

    def test_one_gguf_of_several_and_one_in_parts(self):
        small = {f"m-{label}.gguf": SMALL for label in ("Q4_0", "Q8_0", "BF16")}
        self.hub.repos["org/several"] = Repo({**small, "mmproj-F16.gguf": b"GGUF" + bytes(100)})
        said = self.refusal("org/several", "name one of the 3 models in GGUF", "m-Q8_0.gguf,")
        self.assertNotIn("mmproj", said)
        self.assertTrue(self.pull("org/several:q8_0").stdout.strip().endswith("/m-Q8_0.gguf"))
        self.assertTrue(self.pull("org/several:m-BF16.gguf").stdout.strip().endswith("/m-BF16.gguf"))
        # `twill inspect` reads the file that would be fetched, even if the cache holds another one.
        self.hub.repos["org/both"] = Repo({"m-Q8_0.gguf": SMALL, "m-Q4_K_M.gguf": LARGE})
        self.pull("org/both:q8_0")
        self.hub.forget()
        self.twill("inspect", "hf:org/both")
        self.assertTrue(any("m-Q4_K_M.gguf" in path for path in self.hub.paths("hub")), self.hub.paths("hub"))
        path = os.path.join(self.scratch.name, "tiny.gguf")
        with open(path, "wb") as file:
            file.write(SMALL)
        parts = {}
        for part in split_gguf.split(path, self.scratch.name, "tiny", 3):
            parts["q/" + os.path.basename(part)] = self.bytes_of(part)
        self.hub.repos["org/parts"] = Repo(parts)
        first = self.pull("org/parts").stdout.strip()
        self.assertTrue(first.endswith("/q/tiny-00001-of-00003.gguf"))
        self.assertEqual(len(os.listdir(os.path.dirname(first))), 3)
        self.twill("inspect", first)

    def test_addresses_of_the_hub_are_ids(self):
        for source in (f"{self.hub.url}/org/tiny", f"{self.hub.url}/org/tiny/blob/main/m-Q8_0.gguf",
                       f"{self.hub.url}/org/tiny/resolve/main/m-Q8_0.gguf?download=true", "hf.co/org/tiny:Q8_0"):
            self.check_tiny(self.pull(source))
        right = hashlib.sha256(LARGE).hexdigest()
        self.twill("models", "pull", "org/tiny", "--sha256", right.upper())
        self.assertIn("must have the SHA-256", self.twill("models", "pull", "org/tiny", "--sha256", "0" * 64,
                                                          status=1).stderr)


class Faults(HubTest):
    def test_a_connection_that_is_cut_again_and_again_goes_on_where_it_was(self):
        self.hub.faults.append(times(5, "store", "m-Q8_0", 1 << 20))
        self.check_tiny(self.pull("org/tiny"))
        begins = [int(re.search(r"bytes=(\d+)-", headers["Range"])[1]) for where, _, headers in self.hub.requests
                  if where == "store" and "Range" in headers]
        self.assertGreater(len(set(begins)), 3)
        self.assertLess(max(begins), len(LARGE))

    def test_an_interrupted_download_is_resumed(self):
        stop = threading.Event()

        def slowly(handler, body):
            handler.wfile.write(body[:3 << 20])
            handler.wfile.flush()
            stop.wait(20)

        self.hub.faults.append(lambda where, path, begin: slowly if where == "store" and not stop.is_set() and
                               "m-Q8_0" in path and self.hub.paths("store")[1:] else None)
        pull = self.start_pull("org/tiny")
        blob = hashlib.sha256(LARGE).hexdigest() + ".incomplete"
        while pull.poll() is None and not (os.path.exists(os.path.join(self.cache, "models--org--tiny/blobs", blob)) and
                                           self.blobs().get(blob, 0) >= 3 << 20):
            time.sleep(0.01)
        pull.send_signal(signal.SIGINT)
        said = pull.communicate(timeout=20)[1]
        self.assertEqual(pull.returncode, 130, said)
        self.assertIn("the same command goes on from here", said)
        self.assertGreaterEqual(self.blobs()[blob], 3 << 20)
        stop.set()
        self.hub.forget()
        done = self.pull("org/tiny")
        self.assertIn("behind 3.00 MiB of an earlier try", done.stderr)
        self.check_tiny(done)
        self.assertIn(f"bytes={3 << 20}-{len(LARGE) - 1}", [h.get("Range") for w, _, h in self.hub.requests if w == "store"])

    def test_what_an_earlier_try_left_damaged_is_fetched_anew(self):
        folder = os.path.join(self.cache, "models--org--tiny/blobs")
        os.makedirs(folder)
        for left in (b"x" * 100000, LARGE + b"more", LARGE[:-1] + b"?"):
            with open(os.path.join(folder, hashlib.sha256(LARGE).hexdigest() + ".incomplete"), "wb") as file:
                file.write(left)
            self.check_tiny(self.pull("org/tiny"))
            shutil.rmtree(os.path.join(self.cache, "models--org--tiny/snapshots"))
            os.remove(os.path.join(folder, hashlib.sha256(LARGE).hexdigest()))

    def test_a_file_with_another_hash_is_not_kept(self):
        wrong = LARGE[:-1] + bytes([LARGE[-1] ^ 1])
        self.hub.faults.append(lambda where, path, _: wrong if where == "store" else None)
        self.refusal("org/tiny", "m-Q8_0.gguf must have the hash " + hashlib.sha256(LARGE).hexdigest(), "was not kept")
        self.assertEqual(self.blobs(), {})
        self.hub.faults.clear()
        files = files_of("llama-tiny-fp16")
        self.hub.repos["org/folder"] = Repo(files)
        self.hub.faults.append(lambda where, path, _: b"{}" + files["config.json"][2:] if path == "config.json" else None)
        self.refusal("org/folder", "config.json must have the hash")

    def test_a_hash_that_the_user_names_is_compared_before_the_weights_come(self):
        right = hashlib.sha256(LARGE).hexdigest()
        said = self.twill("models", "pull", "org/tiny", "--sha256", "0" * 64, status=1).stderr
        self.assertIn(f"org/tiny must have the SHA-256 {'0' * 64}, the hub's has {right}", said)
        self.assertEqual(self.hub.paths("store"), [])
        self.check_tiny(self.twill("models", "pull", "org/tiny", "--sha256", right.upper()))
        self.twill("models", "pull", "org/tiny", "--sha256", "0" * 64, status=1, HF_HUB_OFFLINE="1")
        self.hub.repos["org/folder"] = Repo(files_of("llama-tiny-fp16"))
        said = self.twill("models", "pull", "org/folder", "--sha256", right, status=1).stderr
        self.assertIn("`--sha256` must come with one file", said)

    def test_a_server_without_ranges_serves_too(self):
        self.hub.faults += [times(2, "store", "m-Q8_0", 2 << 20), lambda where, path, begin: "whole" if begin else None]
        self.check_tiny(self.pull("org/tiny"))

    def test_a_range_of_another_file_is_refused(self):
        def shorter(where, path, begin):
            return (206, {"Content-Range": f"bytes {begin}-{begin}/99"}) if where == "store" else None

        self.hub.faults.append(shorter)
        self.refusal("org/tiny", f"must have {len(LARGE)} bytes")

    def test_a_busy_hub_is_asked_again(self):
        self.hub.faults += [times(1, "hub", "/api/", (429, {"Retry-After": "1"})), times(1, "store", "", (503, {})),
                            times(1, "hub", "/resolve/", (500, {})), times(1, "store", "", (403, {}))]
        begin = time.monotonic()
        done = self.pull("org/tiny")
        self.check_tiny(done)
        self.assertIn("status 429: too many requests, HF_TOKEN raises the limit; trying again in 1 s", done.stderr)
        self.assertGreater(time.monotonic() - begin, 1)

    def test_endless_redirects_and_strange_ones_end(self):
        for target, words in ((self.hub.url + "/again", "redirects more than 10 times"), ("ftp://x/", "not followed"),
                              ("file:///etc/passwd", "not followed"), ("", "not followed")):
            self.hub.faults = [lambda where, path, _, target=target: (302, {"Location": target})]
            self.refusal("org/tiny", words)

    def test_a_hostile_list_of_files_is_refused(self):
        def names(*paths):
            def listing(repo, commit):
                siblings = [{"rfilename": path, "size": 5, "blobId": "a" * 40} for path in paths]
                return json.dumps({"sha": commit, "siblings": siblings}).encode()
            return listing

        outside = os.path.join(self.scratch.name, "config.json")
        for listing in (names("../config.json"), names(outside), names("a/../../x"), names("config.json\n"),
                        lambda *_: b'{"sha": "../../../x", "siblings": []}', lambda *_: b"[" * 100000,
                        lambda *_: b'{"siblings": 5}', lambda *_: b"<html>", lambda *_: b""):
            self.hub.listing = listing
            self.refusal("org/tiny", "the hub's answer is not understood")
        self.hub.listing = names("config.json", "model.safetensors",
                                 *(f"additional_chat_templates/{i}.jinja" for i in range(300)))
        self.refusal("org/tiny", "must be at most 200 files, got 301")
        self.hub.listing = lambda *_: b" " * (33 << 20)
        self.refusal("org/tiny", "is longer than")
        self.assertFalse(os.path.exists(outside))
        self.assertEqual([name for name in os.listdir(self.scratch.name) if name != "hf"], [])

    def test_a_disk_without_room_is_told_before_anything_comes(self):
        def huge(repo, commit):
            lfs = {"sha256": "b" * 64, "size": 40 << 40}
            return json.dumps({"sha": commit, "siblings": [{"rfilename": "m.gguf", "lfs": lfs}]}).encode()

        self.hub.listing = huge
        self.refusal("org/tiny", "of free space, but hf:org/tiny takes 40.0 TiB more", "set HF_HOME")
        self.assertEqual(self.hub.paths("store"), [])

    def test_a_disk_that_fills_keeps_what_came(self):
        library = self.preload("#include <dlfcn.h>\n#include <errno.h>\n#include <unistd.h>\n"
                               "ssize_t pwrite64(int fd, const void *p, size_t n, off_t at) {\n"
                               "  static ssize_t (*real)(int, const void *, size_t, off_t);\n"
                               '  if (!real) real = dlsym(RTLD_NEXT, "pwrite64");\n'
                               f"  if (at >= {4 << 20}) return errno = ENOSPC, -1;\n  return real(fd, p, n, at);\n}}\n"
                               "ssize_t pwrite(int fd, const void *p, size_t n, off_t at) { return pwrite64(fd, p, n, at); }\n")
        self.refusal("org/tiny", "is full: free some room", "goes on from there", LD_PRELOAD=library)
        done = self.pull("org/tiny")
        self.assertIn("of an earlier try", done.stderr)
        self.check_tiny(done)

    def test_a_model_that_is_here_needs_no_room(self):
        self.pull("org/tiny")
        library = self.preload("#include <string.h>\n#include <sys/statvfs.h>\n"
                               "int statvfs64(const char *p, struct statvfs64 *s) { memset(s, 0, sizeof *s); return 0; }\n"
                               "int statvfs(const char *p, struct statvfs *s) { memset(s, 0, sizeof *s); return 0; }\n")
        self.check_tiny(self.pull("org/tiny", LD_PRELOAD=library))
        shutil.rmtree(self.cache)
        self.refusal("org/tiny", "has 0 B of free space", LD_PRELOAD=library)

    def test_a_cache_that_cannot_be_written_says_what_to_set(self):
        path = os.path.join(self.scratch.name, "file")
        with open(path, "w"):
            pass
        self.refusal("org/tiny", "cannot write to", "set HF_HOME", HF_HOME=path)

    def test_two_pulls_at_once_make_one_good_file(self):
        # On this slow file system, a link that is removed and made again is missing for a long time.
        slow = self.preload("#include <dlfcn.h>\n#include <unistd.h>\n"
                            "int symlink(const char *to, const char *at) {\n"
                            "  int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, \"symlink\");\n"
                            "  usleep(200000);\n  return real(to, at);\n}\n")
        pulls = [self.start_pull("org/tiny", LD_PRELOAD=slow) for _ in range(4)]
        for pull in pulls:
            out, said = pull.communicate(timeout=60)
            self.assertEqual(pull.returncode, 0, said)
            self.assertEqual(self.bytes_of(out.strip()), LARGE)
        self.assertEqual(list(self.blobs()), [hashlib.sha256(LARGE).hexdigest()])


class Access(HubTest):
    def test_the_token_reaches_the_hub_alone(self):
        self.hub.repos["org/private"] = Repo({"m.gguf": LARGE}, private=True)
        self.pull("org/private", HF_TOKEN="hf_right")
        seen = [(where, headers.get("Authorization")) for where, _, headers in self.hub.requests]
        self.assertIn(("hub", "Bearer hf_right"), seen)
        self.assertEqual({given for where, given in seen if where == "store"}, {None})
        os.makedirs(self.home, exist_ok=True)
        shutil.rmtree(self.cache)
        with open(os.path.join(self.home, "token"), "w") as file:
            file.write("hf_right\n")
        self.pull("org/private")

    def test_what_may_not_be_read_says_what_to_do(self):
        self.hub.repos["org/gated"] = Repo(files_of("llama-tiny-fp16"), gated=True)
        self.hub.repos["org/private"] = Repo({"m.gguf": SMALL}, private=True)
        page = self.hub.url + "/org/gated"
        self.refusal("org/gated", 'the model is gated (status 401, "GatedRepo")', f"accept its licence on {page}", "set HF_TOKEN")
        self.refusal("org/gated", "the model is gated (status 403", "of the account that accepted it", HF_TOKEN="hf_no")
        self.pull("org/gated", HF_TOKEN="hf_right")
        self.refusal("org/private", "no such model, or it is private (status 401", "set HF_TOKEN")
        self.refusal("org/nothing", "no such model, or it is private", "/org/nothing")
        self.refusal("org/nothing", "the token that was sent (HF_TOKEN", HF_TOKEN="hf_x")
        self.assertNotIn("hf_x", self.pull("org/nothing", status=1, HF_TOKEN="hf_x").stderr)

    def test_a_hub_that_redirects_to_another_is_no_store(self):
        for status, said in ((401, "no such model, or it is private (status 401"), (404, "no such model"),
                             (403, "access is denied (status 403")):
            self.hub.faults = [lambda where, path, _: (302, {"Location": self.hub.store_url + "/elsewhere"})
                               if where == "hub" else None]
            with self.subTest(status), self.store_answers(status):
                self.refusal("org/tiny", said)

    def test_the_signature_of_a_store_is_not_shown(self):
        self.hub.faults.append(lambda where, path, _: (302, {"Location": "ftp://store/x?signature=secret"})
                               if where == "store" else None)
        self.assertNotIn("secret", self.refusal("org/tiny", "redirects to an address that is not followed: ftp://store/x"))
        self.hub.faults[:] = [times(99, "store", "", (503, {"Retry-After": "600"}))]
        self.assertNotIn("secret", self.refusal("org/tiny", "answers with status 503"))

    def test_variables_of_the_hub_do_not_matter_to_paths(self):
        path = os.path.join(GOLDEN, "llama3-style-tied-bf16/model.gguf")
        wrong = {"HF_ENDPOINT": "no address", "HF_TOKEN": "two words", "HTTP_PROXY": "socks5://x:1"}
        self.twill("inspect", path, **wrong)
        self.refusal("org/tiny", "HF_ENDPOINT must be an http or https address", **wrong)

    @contextlib.contextmanager
    def store_answers(self, status):
        before = self.hub.answer_store
        self.hub.answer_store = lambda handler: self.hub.reply(handler, status)
        yield
        self.hub.answer_store = before

    def test_a_model_that_moved_is_found(self):
        self.hub.moved["old/name"] = "org/tiny"
        self.assertIn("models--old--name", self.pull("old/name").stdout)

    def test_a_proxy_is_used_where_the_variables_say_so(self):
        with proxy() as (address, asked):
            self.check_tiny(self.pull("org/tiny", HTTP_PROXY=address))
            self.assertIn(b"GET " + self.hub.url.encode() + b"/api/models/org/tiny", asked[0])
            asked.clear()
            shutil.rmtree(self.cache)
            self.pull("org/tiny", HTTP_PROXY=address, NO_PROXY="localhost,127.0.0.1")
            self.assertEqual(asked, [])


@contextlib.contextmanager
def proxy():
    """An HTTP proxy with tunnels: yields its address, and a list of the first bytes of all requests."""
    listener = socket.create_server(("127.0.0.1", 0))
    asked = []

    def carry(source, to):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)

    def serve(client):  # closes the client when it is done
        head = b""
        while b"\r\n\r\n" not in head:
            data = client.recv(65536)
            if not data:
                return client.close()
            head += data
        asked.append(head)
        verb, target = head.split()[:2]
        place = target.decode() if verb == b"CONNECT" else target.decode().split("/")[2]
        host, _, port = place.rpartition(":")
        server = socket.create_connection((host, int(port)))
        if verb == b"CONNECT":
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            server.sendall(head)
        threading.Thread(target=carry, args=(client, server), daemon=True).start()
        carry(server, client)
        client.close()
        server.close()

    def accept():
        while True:
            try:
                client, _ = listener.accept()
            except OSError as error:
                assert error.errno in (errno.EBADF, errno.EINVAL)
                return
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


class OverTls(HubTest):
    certificate = (os.path.join(CERTIFICATES, "first.pem"), os.path.join(CERTIFICATES, "first.key"))

    def test_certificates_are_checked(self):
        self.refusal("org/tiny", "is not trusted", "SSL_CERT_FILE", SSL_CERT_FILE="/dev/null")
        trusted = os.path.join(CERTIFICATES, "first.pem")
        other = os.path.join(CERTIFICATES, "second.pem")
        self.refusal("org/tiny", "is not trusted", SSL_CERT_FILE=other)
        self.check_tiny(self.pull("org/tiny", SSL_CERT_FILE=trusted))
        shutil.rmtree(self.cache)
        with proxy() as (address, asked):
            self.check_tiny(self.pull("org/tiny", SSL_CERT_FILE=trusted, HTTPS_PROXY=address))
            self.assertTrue(asked[0].startswith(b"CONNECT localhost:"))

    def test_no_redirect_leaves_tls(self):
        self.hub.faults.append(lambda where, path, _: (302, {"Location": "http://127.0.0.1:1/x"}))
        self.refusal("org/tiny", "not followed", SSL_CERT_FILE=os.path.join(CERTIFICATES, "first.pem"))


class Serving(HubTest):
    def daemon(self, *arguments, **env):
        before = dict(os.environ)
        os.environ.update({**self.env, **env})
        try:
            return Daemon(*arguments)
        finally:
            os.environ.clear()
            os.environ.update(before)

    def twilld_fails(self, *arguments, **env):
        done = run("twilld", "--listen", "127.0.0.1:0", *arguments, env={**self.env, **env})
        self.assertEqual(done.returncode, 1, done.stderr)
        return done.stderr

    def test_a_daemon_fetches_its_model_and_starts_again_without_the_hub(self):
        self.hub.repos["org/llama"] = Repo(files_of("llama-tiny-fp16"))
        for _ in range(2):
            with self.daemon("--model", "hf:org/llama") as daemon:
                daemon.ready()
                self.assertIn("model llama ", "\n".join(daemon.lines))
            self.hub.faults.append(times(99, "hub", "", (503, {"Retry-After": "600"})))

    def test_models_of_the_hub_in_a_configuration(self):
        self.hub.repos["org/llama"] = Repo(files_of("llama-tiny-fp16"))
        path = os.path.join(self.scratch.name, "twilld.toml")
        with open(path, "w") as file:
            file.write('[models.a]\npath = "hf:org/llama"\n[models.b]\npath = "hf:org/tiny:Q8_0"\n')
        checked = run("twilld", "--check-config", path, env=self.env)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertNotIn(hashlib.sha256(LARGE).hexdigest(), self.blobs())  # only headers were fetched
        with self.daemon("--config", path) as daemon:
            daemon.wait_for("the model b is here")
            url = daemon.ready()
            for model in ("a", "b"):
                self.assertEqual(self.ask(url, "/v1/completions", {"model": model, "prompt": "x", "max_tokens": 1})[0], 200)
        self.hub.forget()
        self.check_tiny(self.pull("org/tiny"))
        self.assertEqual(self.hub.paths("store"), [])
        with open(path, "w") as file:
            file.write('[model]\npath = "hf:org/nothing"\n')
        checked = run("twilld", "--check-config", path, env=self.env)
        self.assertIn("`model.path` cannot be served: hf:org/nothing: there is no such model", checked.stderr)
        self.assertIn("there is no such model", self.twilld_fails("--config", path))

    def test_what_looks_like_an_id_is_answered_with_the_command(self):
        for given in ("org/tiny", f"{self.hub.url}/org/tiny", "hf.co/org/tiny"):
            said = self.twilld_fails("--model", given)
            self.assertIn("`twilld --model hf:org/tiny` fetches and serves it", said)
            self.assertIn("`twill models pull hf:org/tiny`", said)
        self.assertIn("hf:org/tiny:Q8_0", self.twill("inspect", "org/tiny:Q8_0", status=1).stderr)
        self.assertIn("`twill models pull https://example.org/m.gguf`",
                      self.twilld_fails("--model", "https://example.org/m.gguf"))
        self.assertIn("must be named as hf:ORG/NAME", self.twilld_fails("--model", "hf:org/tiny/x"))
        self.assertIn("`twill models pull hf:org/tiny` fetches it",
                      self.twill("tokenize", "a", "--model", "hf:org/tiny", status=1).stderr)
        self.assertEqual(self.hub.paths("hub"), [])

    def test_a_tilde_is_the_home(self):
        shutil.copytree(os.path.join(GOLDEN, "llama-tiny-fp16"), os.path.join(self.scratch.name, "m/llama"))
        os.makedirs(os.path.join(self.scratch.name, "m/one"))
        with open(os.path.join(self.scratch.name, "m/one/m.gguf"), "wb") as file:
            file.write(SMALL)
        path = os.path.join(self.scratch.name, "twilld.toml")
        with open(path, "w") as file:
            file.write('[model]\npath = "~/m/one"\n')
        with self.daemon("--model=~/m/llama") as daemon:
            daemon.ready()
        with self.daemon("--config", path) as daemon:
            daemon.ready()
        for command in (("inspect", "~/m/one"), ("tokenize", "a", "--model", "~/m/llama"),
                        ("models", "pull", "~/m/one/m.gguf")):
            self.twill(*command)
        shutil.copy(os.path.join(self.scratch.name, "m/one/m.gguf"), os.path.join(self.scratch.name, "m/one/n.gguf"))
        said = self.twilld_fails("--model", "~/m/one")
        self.assertIn("got 2 in GGUF; name one of them: m.gguf, n.gguf", said)

    def test_the_service_manager_gives_time_while_bytes_come(self):
        place = os.path.join(self.scratch.name, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(place)
            manager.settimeout(20)
            with self.daemon("--model", "hf:org/tiny", NOTIFY_SOCKET=place):
                messages = [manager.recv(4096).decode()]
                while "READY=1" not in messages[-1]:
                    messages.append(manager.recv(4096).decode())
        fetching = [one for one in messages if re.search(r"% of 8\.\d+ MiB\nEXTEND_TIMEOUT_USEC=\d+", one)]
        self.assertTrue(fetching, messages)

    def test_the_service_manager_gives_time_while_the_hub_is_silent(self):
        place = os.path.join(self.scratch.name, "notify")
        answer = threading.Event()
        self.addCleanup(answer.set)
        self.hub.faults.append(lambda where, path, _: answer.wait(20) and None)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(place)
            manager.settimeout(20)
            with self.daemon("--model", "hf:org/tiny", NOTIFY_SOCKET=place):
                for _ in range(2):
                    self.assertRegex(manager.recv(4096).decode(), r"^EXTEND_TIMEOUT_USEC=\d+$")

    @contextlib.contextmanager
    def slow_store(self, before=None):
        """The weights come as soon as the event that this yields is set; the hub answers for the repository `before`
        once they are asked for."""
        come = threading.Event()

        def slowly(handler, body):
            handler.wfile.write(body[:1 << 20])
            handler.wfile.flush()
            come.wait(20)
            handler.wfile.write(body[1 << 20:])

        def fault(where, path, _):
            while before and f"/api/models/{before}/" in path and not self.hub.paths("store")[1:]:
                time.sleep(0.01)
            return slowly if where == "store" and self.hub.paths("store")[1:] else None

        self.hub.faults.append(fault)
        try:
            yield come
        finally:
            come.set()

    def wait_for_weights(self, daemon):
        daemon.wait_for("fetching hf:org/tiny: 8")
        while not self.hub.paths("store")[1:]:
            time.sleep(0.01)

    def ask(self, url, route, body=None):
        asked = urllib.request.Request(url + route, None if body is None else json.dumps(body).encode(),
                                       {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(asked, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def test_a_daemon_that_fetches_can_be_stopped(self):
        with self.slow_store(), self.daemon("--model", "hf:org/tiny") as daemon:
            self.wait_for_weights(daemon)
            daemon.signal(signal.SIGTERM)
            self.assertEqual(daemon.ends_with(), 0)
            daemon.wait_for("the next start goes on from there")

    def test_a_daemon_that_fetches_answers_meanwhile(self):
        body = {"prompt": "Hello", "max_tokens": 2}
        with self.slow_store() as come, self.daemon("--model", "hf:org/tiny") as daemon:
            url = daemon.wait_for(r"listening on (http://\S+),").group(1)
            self.wait_for_weights(daemon)
            self.assertEqual(self.ask(url, "/health")[0], 200)
            for route, sent in (("/ready", None), ("/v1/completions", body)):
                status, said = self.ask(url, route, sent)
                self.assertEqual(status, 503)
                self.assertIn("loading the model", said)
            come.set()
            daemon.ready()
            self.assertEqual(self.ask(url, "/v1/completions", body)[0], 200)

    def test_a_model_that_is_fetched_holds_up_no_other(self):
        here = os.path.join(GOLDEN, "llama-tiny-fp16")
        with self.slow_store() as come, \
                self.daemon("--set", "models.far.path=hf:org/tiny", "--set", "models.far.pin=true",
                            "--set", f"models.here.path={here}", "--set", "models.none.path=hf:org/none") as daemon:
            url = daemon.ready()
            self.wait_for_weights(daemon)
            body = {"model": "here", "prompt": "Hello", "max_tokens": 2}
            self.assertEqual(self.ask(url, "/v1/completions", body)[0], 200)
            status, said = self.ask(url, "/v1/completions", {**body, "model": "far"})
            self.assertEqual(status, 503)
            self.assertIn("the model far cannot be served yet: it is being fetched; ask again later", said)
            self.assertEqual(self.ask(url, "/ready")[0], 200)
            come.set()
            end = time.monotonic() + 20
            while (answer := self.ask(url, "/v1/completions", {**body, "model": "far"}))[0] != 200:
                self.assertLess(time.monotonic(), end, answer)
                time.sleep(0.02)
            daemon.wait_for("the model none cannot be served: hf:org/none: there is no such model")
            self.assertIn("there is no such model", self.ask(url, "/v1/completions", {**body, "model": "none"})[1])
            daemon.signal(signal.SIGTERM)
            self.assertEqual(daemon.ends_with(), 0)

    def test_one_model_is_fetched_after_another(self):
        other = Repo(files_of("llama-tiny-fp16"))
        self.hub.repos["org/llama"] = other
        weights = "/" + hashlib.sha256(other.files["model.safetensors"]).hexdigest()
        with self.slow_store(before="org/llama") as come, \
                self.daemon("--set", "models.far.path=hf:org/tiny", "--set", "models.other.path=hf:org/llama") as daemon:
            self.wait_for_weights(daemon)
            time.sleep(0.3)
            self.assertEqual(len({path.partition("?")[0] for path in self.hub.paths("store")}), 1)
            come.set()
            daemon.wait_for("the model far is here")
            daemon.wait_for("the model other is here")
            self.assertTrue(any(path.startswith(weights) for path in self.hub.paths("store")))

    def test_a_model_that_is_here_waits_for_no_download(self):
        self.hub.repos["org/llama"] = Repo(files_of("llama-tiny-fp16"))
        self.pull("org/llama")
        self.hub.forget()
        with self.slow_store(before="org/llama"), self.daemon("--set", "models.far.path=hf:org/tiny",
                                            "--set", "models.near.path=hf:org/llama") as daemon:
            url = daemon.ready()
            body = {"model": "near", "prompt": "Hello", "max_tokens": 2}
            self.assertEqual(self.ask(url, "/v1/completions", body)[0], 200)
            self.assertIn("far (which is being fetched)", "\n".join(daemon.lines))
            daemon.signal(signal.SIGTERM)
            self.assertEqual(daemon.ends_with(), 0)
            self.assertNotIn(" error ", "\n".join(daemon.lines))

    def test_a_download_that_flows_can_be_stopped(self):
        def trickle(handler, body):
            for at in range(0, len(body), 8192):
                handler.wfile.write(body[at:at + 8192])
                handler.wfile.flush()
                time.sleep(0.02)

        self.hub.faults.append(lambda where, path, begin: trickle if where == "store" and
                               self.hub.paths("store")[1:] else None)
        with self.daemon("--model", "hf:org/tiny") as daemon:
            self.wait_for_weights(daemon)
            daemon.signal(signal.SIGTERM)
            self.assertEqual(daemon.ends_with(5), 0)

    def test_a_start_that_fails_otherwise_does_not_wait_for_a_download(self):
        with self.slow_store(), self.daemon("--model", "hf:org/tiny", "--set", "server.tls_certificate=/none",
                                            "--set", "server.tls_key=/none") as daemon:
            self.assertEqual(daemon.ends_with(5), 1)

    def test_a_daemon_of_fetched_models_alone_ends_where_none_comes(self):
        with self.daemon("--set", "models.a.path=hf:org/none", "--set", "models.b.path=hf:org/nothing") as daemon:
            self.assertEqual(daemon.ends_with(), 1)
            daemon.wait_for("cannot serve a, b: .*there is no such model.*there is no such model")


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""A server that speaks the routes of Hugging Face's hub which a download needs, and a store of large files, which has
an address of its own as at the hub. A test can order faults: cuts, statuses, wrong bytes, answers that ignore a range."""

import contextlib
import hashlib
import http.server
import json
import re
import ssl
import threading
import urllib.parse


def git_id(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


class Repo:
    """One repository. `files` are path -> content; files that are large, or whose names end as those of weights, are in Git LFS."""

    def __init__(self, files, gated=False, private=False, token="hf_right"):
        self.files = dict(files)
        self.gated = gated
        self.private = private
        self.token = token
        self.branches = {}
        self.commits = {}
        self.commit("main")

    def commit(self, branch):
        listing = "".join(f"{p} {sha256(c)}\n" for p, c in sorted(self.files.items()))
        name = hashlib.sha1(listing.encode()).hexdigest()
        self.commits[name] = dict(self.files)
        self.branches[branch] = name
        return name

    @staticmethod
    def is_lfs(path):
        return path.endswith((".gguf", ".safetensors", ".bin", "tokenizer.json"))


class Hub:
    """The hub and its store, each on a port of its own. `requests` are (server, path, headers)."""

    def __init__(self, certificate=None):
        self.repos = {}
        self.moved = {}  # old id -> new id
        self.requests = []
        self.faults = []  # functions of (server, path, begin) that return None or a fault: see _fault
        self.listing = None  # replaces the true list of files
        self.lock = threading.Lock()
        self.hub = self._serve("hub")
        self.store = self._serve("store")
        scheme = "http"
        if certificate is not None:
            scheme = "https"
            for server in (self.hub, self.store):
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(*certificate)
                server.socket = context.wrap_socket(server.socket, server_side=True)
        self.url = f"{scheme}://localhost:{self.hub.server_port}"
        self.store_url = f"{scheme}://127.0.0.1:{self.store.server_port}"
        for server in (self.hub, self.store):
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()

    def _serve(self, name):
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.answer()

            def do_GET(self):
                self.answer()

            def answer(self):
                if self.path.startswith("http"):  # a request through a proxy has a whole URL
                    self.path = "/" + self.path.split("/", 3)[3]
                with hub.lock:
                    hub.requests.append((name, self.path, dict(self.headers)))
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    (hub.answer if name == "hub" else hub.answer_store)(self)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):  # the client refused the certificate, or closed the connection
                pass

        return Server(("127.0.0.1", 0), Handler)

    def close(self):
        for server in (self.hub, self.store):
            server.shutdown()
            server.server_close()

    def paths(self, server):
        with self.lock:
            return [path for where, path, _ in self.requests if where == server]

    def forget(self):
        with self.lock:
            self.requests.clear()

    # Answers

    @staticmethod
    def reply(handler, status, body=b"", **fields):
        handler.send_response(status)
        for name, value in fields.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body)

    def refuse(self, handler, status, code):
        self.reply(handler, status, json.dumps({"error": code}).encode(), X_Error_Code=code, X_Error_Message=code)

    def answer(self, handler):
        if self._fault("hub", handler, handler.path, b""):
            return
        path = urllib.parse.unquote(urllib.parse.urlsplit(handler.path).path)
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(revision|tree)/(.+?))?", path):
            return self.answer_api(handler, found[1], found[2], found[3] or "main")
        if found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            return self.answer_file(handler, *found.groups())
        self.refuse(handler, 404, "EntryNotFound")

    def allowed(self, handler, name, repo):
        """Whether the client may read the repository. If not, the request is answered with the refusal."""
        if repo is None:
            self.refuse(handler, 401, "RepoNotFound")
            return False
        given = handler.headers.get("Authorization")
        if (repo.gated or repo.private) and given != f"Bearer {repo.token}":
            if repo.private:
                self.refuse(handler, 401, "RepoNotFound")
            else:
                self.refuse(handler, 401 if given is None else 403, "GatedRepo")
            return False
        return True

    def answer_api(self, handler, name, what, revision):
        if name in self.moved:
            return self.reply(handler, 307, Location=handler.path.replace(name, self.moved[name]))
        repo = self.repos.get(name)
        listed_openly = repo is not None and repo.gated and what != "tree"  # the hub lists gated models to everybody
        if not listed_openly and not self.allowed(handler, name, repo):
            return None
        commit = repo.branches.get(revision, revision)
        if commit not in repo.commits:
            return self.refuse(handler, 404, "RevisionNotFound")
        if self.listing is not None:
            body = self.listing(repo, commit)
        else:
            body = json.dumps(self.info(name, repo, commit) if what != "tree" else self.tree(repo, commit)).encode()
        return self.reply(handler, 200, body, Content_Type="application/json", X_Repo_Commit=commit)

    @staticmethod
    def info(name, repo, commit):
        siblings = []
        for path, content in repo.commits[commit].items():
            entry = {"rfilename": path, "size": len(content), "blobId": git_id(content)}
            if repo.is_lfs(path):
                entry["lfs"] = {"sha256": sha256(content), "size": len(content), "pointerSize": 130}
            siblings.append(entry)
        return {"id": name, "modelId": name, "sha": commit, "private": False, "gated": repo.gated, "siblings": siblings,
                "tags": [], "downloads": 0, "likes": 0}

    @staticmethod
    def tree(repo, commit):
        entries = []
        for path, content in repo.commits[commit].items():
            entry = {"type": "file", "path": path, "size": len(content), "oid": git_id(content)}
            if repo.is_lfs(path):
                entry["lfs"] = {"oid": sha256(content), "size": len(content), "pointerSize": 130}
            entries.append(entry)
        return entries

    def answer_file(self, handler, name, revision, path):
        if name in self.moved:
            return self.reply(handler, 307, Location=handler.path.replace(name, self.moved[name]))
        repo = self.repos.get(name)
        if not self.allowed(handler, name, repo):
            return None
        commit = repo.branches.get(revision, revision)
        if path not in repo.commits.get(commit, {}):
            return self.refuse(handler, 404, "EntryNotFound")
        content = repo.commits[commit][path]
        if not repo.is_lfs(path):
            return self.send(handler, "hub", path, content, ETag=f'"{git_id(content)}"', X_Repo_Commit=commit)
        return self.reply(handler, 302, Location=f"{self.store_url}/{sha256(content)}?signature=secret",
                          X_Linked_Etag=f'"{sha256(content)}"', X_Linked_Size=str(len(content)), X_Repo_Commit=commit)

    def answer_store(self, handler):
        wanted = handler.path[1:].partition("?")[0]
        for repo in self.repos.values():
            for files in repo.commits.values():
                for path, content in files.items():
                    if sha256(content) == wanted:
                        return self.send(handler, "store", path, content, ETag=f'"{wanted}"')
        return self.reply(handler, 404)

    def send(self, handler, server, path, content, **fields):
        """Sends the content, or the requested range of it, unless a fault was ordered."""
        begin, end, status = 0, len(content), 200
        if found := re.fullmatch(r"bytes=(\d+)-(\d*)", handler.headers.get("Range", "")):
            begin = int(found[1])
            end = min(len(content), int(found[2] or len(content)) + 1) if found[2] else len(content)
            status = 206
            fields["Content_Range"] = f"bytes {begin}-{end - 1}/{len(content)}"
            if begin >= len(content):
                return self.reply(handler, 416)
        fault = self._fault(server, handler, path, content, begin)
        if fault is True:
            return None
        if fault == "whole":
            begin, end, status = 0, len(content), 200
            fields.pop("Content_Range", None)
        handler.send_response(status)
        for name, value in fields.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Accept-Ranges", "bytes")
        handler.send_header("Content-Length", str(end - begin))
        handler.end_headers()
        if handler.command == "HEAD":
            return None
        body = content[begin:end]
        if isinstance(fault, bytes):
            body = fault[begin:end]
        if isinstance(fault, int):
            handler.wfile.write(body[:fault])
            handler.wfile.flush()
            handler.close_connection = True
            handler.connection.close()
            return None
        if callable(fault):
            return fault(handler, body)
        handler.wfile.write(body)
        return None

    def _fault(self, server, handler, path, content, begin=0):
        """Calls the ordered faults. A number cuts the connection after so many bytes; bytes replace the content;
        "whole" ignores the range; a tuple (status, fields) is an answer; a function writes the body."""
        for fault in list(self.faults):
            what = fault(server, path, begin)
            if what is None:
                continue
            if isinstance(what, tuple):
                self.reply(handler, what[0], b"", **what[1])
                return True
            return what
        return None


def times(count, server, part, what):
    """A fault for the first `count` requests to that server whose path contains `part`."""
    left = [count]

    def fault(where, path, _):
        if where != server or part not in path or left[0] == 0:
            return None
        left[0] -= 1
        return what

    return fault

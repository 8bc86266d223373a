#!/usr/bin/env python3
"""Starts the command of the installed unit as its user, as systemd would: with a NOTIFY_SOCKET, credentials, and once
by systemd-socket-activate. Chats, reloads, and stops it. Run by tools/package/check inside the root."""

import os
import pwd
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.request

UNIT = "/usr/lib/systemd/system/twilld.service"
CREDENTIALS = "/run/twill-credentials"
PORT = 18080  # of the passed socket


def unit_command():
    with open(UNIT) as file:
        line = re.search(r"^ExecStart=(.*)$", file.read(), re.MULTILINE).group(1)
    return shlex.split(line.replace("%d", CREDENTIALS))


running = []


def check(condition, what):
    if not condition:
        for process in running:
            process.kill()
        sys.exit(f"check_service: failed: {what}")
    print(f"check_service: ok: {what}", flush=True)


class Service:
    """The running command; with `port`, one that its first client there starts."""

    def __init__(self, port=None):
        user = pwd.getpwnam("twill")
        os.makedirs(CREDENTIALS, exist_ok=True)
        with open(f"{CREDENTIALS}/keys.toml", "w") as file:
            file.write('[server]\napi_keys = ["a-key"]\n')
        os.chmod(f"{CREDENTIALS}/keys.toml", 0o400)
        os.chown(f"{CREDENTIALS}/keys.toml", user.pw_uid, user.pw_gid)
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = "/run/twill-notify"
        if os.path.exists(path):
            os.unlink(path)
        self.notify.bind(path)
        os.chmod(path, 0o777)
        self.notify.settimeout(60)
        env = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "XDG_CACHE_HOME": "/var/cache", "NOTIFY_SOCKET": path,
               "WATCHDOG_USEC": "2000000", "CREDENTIALS_DIRECTORY": CREDENTIALS}
        command = unit_command()
        if port is not None:
            handed = [f"--setenv={name}={value}" for name, value in env.items()]
            command = ["systemd-socket-activate", f"--listen=127.0.0.1:{port}", *handed, *command]
        self.process = subprocess.Popen(command, env=env, user=user.pw_uid, group=user.pw_gid, extra_groups=[])
        running.append(self.process)

    def wait_for(self, word):
        while True:
            try:
                text = self.notify.recv(4096).decode()
            except TimeoutError:
                check(False, f"the service manager must hear {word} within a minute")
            if word in text:
                return text

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.wait_for("STOPPING=1")
        check(self.process.wait(60) == 0, "SIGTERM ends the daemon with status 0 after STOPPING=1")
        self.notify.close()


def chat(url):
    done = subprocess.run(["twill", "chat", "--url", url, "--api-key", "a-key", "--temperature", "0", "--max-tokens",
                           "12", "--prompt", "Name a colour."], capture_output=True, text=True, timeout=60)
    check(done.returncode == 0 and len(done.stdout.strip()) > 2, f"a chat answers {done.stdout.strip()!r}{done.stderr}")


def main():
    service = Service()
    service.wait_for("READY=1")
    check(True, "READY=1 arrives")
    with urllib.request.urlopen("http://127.0.0.1:8080/ready", timeout=20) as answer:
        check(answer.status == 200, "/ready has status 200")
    chat("http://127.0.0.1:8080")
    # Structured output needs the helper process in libexec.
    request = urllib.request.Request(
        "http://127.0.0.1:8080/v1/chat/completions",
        b'{"messages":[{"role":"user","content":"yes or no?"}],"max_tokens":8,"guided_choice":["yes","no"]}',
        {"Content-Type": "application/json", "Authorization": "Bearer a-key"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read().decode()
        check('"content":"yes"' in text or '"content":"no"' in text, "a choice is one of the two")
    service.wait_for("WATCHDOG=1")
    service.process.send_signal(signal.SIGHUP)
    service.wait_for("RELOADING=1")
    service.wait_for("READY=1")
    check(True, "SIGHUP is told as RELOADING=1, then READY=1")
    service.stop()

    service = Service(PORT)
    deadline = time.monotonic() + 10
    while True:
        try:
            first = socket.create_connection(("127.0.0.1", PORT))
            break
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                check(False, "systemd-socket-activate must listen within ten seconds")
            time.sleep(0.1)
    chat(f"http://127.0.0.1:{PORT}")
    first.close()
    service.wait_for("READY=1")
    check(True, "a first client of the passed socket starts the daemon, and is answered")
    service.stop()


if __name__ == "__main__":
    main()

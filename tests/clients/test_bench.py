"""twill-bench against a daemon behind TLS and keys: over https and wss, with keys from every source, and its messages when refused."""

import os
import subprocess

import pytest
from conftest import BIN
from test_listeners import TLS, install, with_tls

BACKENDS = ("openai", "openai-chat", "twill-stream", "responses-ws")
MODEL = "dummy:null"


def bench(url, *flags, env=None, command="serve"):
    clean = {name: value for name, value in os.environ.items() if name not in ("TWILL_API_KEY", "OPENAI_API_KEY")}
    return subprocess.run([BIN / "twill-bench", command, "--base-url", url, "--no-progress", *flags], capture_output=True, text=True,
                          timeout=60, env={**clean, **(env or {})})


def serve(url, *flags, env=None):
    return bench(url, "--num-prompts", "4", "--max-concurrency", "2", "--random-input-len", "8", "--random-output-len", "4", *flags, env=env)


def succeeded(done):
    return done.returncode == 0 and "Successful requests:                     4" in done.stdout


def test_bench_speaks_tls_and_checks_certificates(start_daemon, tmp_path):
    install(tmp_path, "first")
    daemon = start_daemon(*with_tls(tmp_path), "server.listen=0.0.0.0:0", model=MODEL)
    trusted = ("--cacert", str(TLS / "first.pem"))
    for backend in BACKENDS:
        for url in (f"https://localhost:{daemon.port}", f"wss://127.0.0.1:{daemon.port}/"):
            done = serve(url, "--backend", backend, *trusted)
            assert succeeded(done), (backend, url, done.stderr)
    done = serve(f"https://localhost:{daemon.port}", "--backend", "twill-stream", "--connections", "2", *trusted)
    assert succeeded(done), done.stderr
    done = serve(f"https://localhost:{daemon.port}", "--no-keep-alive", "--no-stream", *trusted)
    assert succeeded(done), done.stderr
    # SSL_CERT_FILE, OpenSSL's own variable, replaces the system's certificate authorities.
    done = serve(f"https://localhost:{daemon.port}", env={"SSL_CERT_FILE": str(TLS / "first.pem")})
    assert succeeded(done), done.stderr
    # The authority is not trusted; the trusted certificate is another one; the certificate is for another name.
    for url, flags in ((f"https://localhost:{daemon.port}", ()), (f"https://localhost:{daemon.port}", ("--cacert", str(TLS / "second.pem"))),
                       (f"https://127.0.0.2:{daemon.port}", trusted)):
        for backend in ("openai", "twill-stream"):
            done = serve(url, "--backend", backend, *flags)
            assert done.returncode == 1 and done.stdout == "", done.stdout
            assert "certificate is not trusted" in done.stderr and "--cacert" in done.stderr, done.stderr
    done = serve(f"https://localhost:{daemon.port}", "--cacert", str(TLS / "first.key"))
    assert done.returncode == 1 and "`--cacert` must be a PEM file with certificates" in done.stderr, done.stderr
    # TLS to a port without TLS, and plain HTTP to a port with TLS.
    plain = start_daemon(model=MODEL)
    for url in (f"https://127.0.0.1:{plain.port}", f"http://127.0.0.1:{daemon.port}"):
        done = serve(url, *trusted)
        assert done.returncode == 1 and "cannot reach" in done.stderr, done.stderr


@pytest.mark.parametrize("backend", BACKENDS)
def test_bench_takes_keys_from_the_environment_and_says_what_to_do_without(start_daemon, backend):
    daemon = start_daemon("server.api_keys=['sk-right']", model=MODEL)
    right, wrong = "sk-right", "sk-wrong"
    for flags, env in ((("--api-key", right), {}), ((), {"TWILL_API_KEY": right}), ((), {"OPENAI_API_KEY": right}),
                       ((), {"TWILL_API_KEY": right, "OPENAI_API_KEY": wrong}), (("--api-key", right), {"TWILL_API_KEY": wrong}),
                       (("--header", f"authorization=Bearer {right}"), {"TWILL_API_KEY": wrong})):
        done = serve(daemon.url, "--backend", backend, *flags, env=env)
        assert succeeded(done), (flags, env, done.stderr)
    for flags, env, why in (((), {}, "it wants a key, and none was sent"), ((), {"TWILL_API_KEY": ""}, "it wants a key, and none was sent"),
                            ((), {"OPENAI_API_KEY": wrong}, "it does not know the key that was sent"),
                            (("--model", "null"), {}, "it wants a key, and none was sent"),
                            (("--ready-check-timeout-sec", "30"), {}, "it wants a key, and none was sent")):
        done = serve(daemon.url, "--backend", backend, *flags, env=env)
        assert done.returncode == 1 and done.stdout == "", done.stdout
        for words in (daemon.url, "status 401", why, "set TWILL_API_KEY or OPENAI_API_KEY, or give --api-key KEY"):
            assert words in done.stderr, done.stderr
        assert wrong not in done.stderr and len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_a_key_that_no_header_can_carry_is_refused_before_anything_is_sent():
    for key in ("sk-a\r\nX-Evil: 1", "sk-a\n", "two words"):
        done = serve("http://127.0.0.1:9", env={"TWILL_API_KEY": key})
        assert done.returncode == 1 and "the API key must be one word without line ends" in done.stderr, done.stderr


def test_sweeps_take_keys_and_https_too(start_daemon, tmp_path):
    install(tmp_path, "first")
    daemon = start_daemon(*with_tls(tmp_path), "server.api_keys=['sk-right']", model=MODEL)
    url, folder = f"https://localhost:{daemon.port}", tmp_path / "sweep"
    flags = ("--input-lens", "8", "--output-lens", "4", "--latency-prompts", "1", "--throughput-prompts", "4", "--output-dir", str(folder),
             "--cacert", str(TLS / "first.pem"))
    refused = bench(url, *flags, command="sweep")
    assert refused.returncode == 1 and "status 401" in refused.stderr and not (folder / "sweep.html").exists(), refused.stderr
    done = bench(url, *flags, command="sweep", env={"TWILL_API_KEY": "sk-right"})
    assert done.returncode == 0, done.stderr
    assert "sk-right" not in "".join(file.read_text() for file in folder.iterdir() if file.suffix != ".png")

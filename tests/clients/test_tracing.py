"""Traces: OpenTelemetry's own decoder reads what twilld sends, and requests do not suffer when the collector is gone."""

import http.server
import json
import threading
import time

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from websockets.sync.client import connect

TINY = "dummy:opt-125m?layers=1&vocab=1000"
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Collector:
    """A collector that takes OTLP over HTTP, and keeps the spans."""

    def __init__(self):
        self.spans, self.resources, self.heads = [], [], []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
                for resource in body.resource_spans:
                    outer.resources.append(plain(resource.resource.attributes))
                    for scope in resource.scope_spans:
                        assert scope.scope.name == "twill"
                        outer.spans += scope.spans
                outer.heads.append((self.path, dict(self.headers)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def wait_for(self, n: int):
        """Waits for n spans of kind SERVER, and returns them in the order of their ends."""
        deadline = time.monotonic() + 20
        while len(roots := [span for span in self.spans if span.kind == Span.SPAN_KIND_SERVER]) < n:
            assert time.monotonic() < deadline, roots
            time.sleep(0.02)
        return sorted(roots, key=lambda span: span.end_time_unix_nano)

    def children(self, of):
        found = [span for span in self.spans if span.parent_span_id == of.span_id]
        return sorted(found, key=lambda span: span.start_time_unix_nano)


def plain(attributes):
    def value(of):
        kind = of.WhichOneof("value")
        return [value(one) for one in of.array_value.values] if kind == "array_value" else getattr(of, kind)

    return {one.key: value(one.value) for one in attributes}


@pytest.fixture
def collector():
    made = Collector()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_a_decoder_reads_the_traces_of_http_and_websocket(start_daemon, collector):
    daemon = start_daemon(f"tracing.endpoint={collector.url}", "tracing.service=team", "model.name=tiny",
                          'tracing.headers=["X-Team: a b"]', model=TINY)
    begin = time.time_ns()
    body = {"prompt": "Once upon a time", "max_tokens": 6, "ignore_eos": True, "seed": 5, "top_p": 0.5}
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "X-Request-Id": "mine"}
    assert daemon.post("/v1/completions", body, headers=headers)[0] == 200
    with connect(daemon.ws + "/v1/stream", compression=None) as socket:
        socket.send(json.dumps({"op": "submit", "id": "ü", "prompt": "Once", "max_tokens": 2, "ignore_eos": True}))
        while not json.loads(socket.recv(timeout=20)).get("done"):
            pass
    assert daemon.post("/v1/completions", {**body, "max_tokens": 100000})[0] == 400
    first, *others = collector.wait_for(3)
    # The span of a WebSocket request ends after its last message, so the span of a quick refusal may be exported before it.
    second, refused = sorted(others, key=lambda span: span.status.code == Status.STATUS_CODE_ERROR)

    assert collector.heads[0][0] == "/v1/traces"
    assert collector.heads[0][1]["Content-Type"] == "application/x-protobuf"
    assert collector.heads[0][1]["X-Team"] == "a b"
    assert collector.resources[0]["service.name"] == "team"
    assert (first.trace_id.hex(), first.parent_span_id.hex()) == (TRACE, PARENT)
    assert first.name == "text_completion tiny"
    assert begin < first.start_time_unix_nano < first.end_time_unix_nano < time.time_ns()
    told = plain(first.attributes)
    assert told.items() >= {"gen_ai.operation.name": "text_completion", "gen_ai.request.model": "tiny",
                            "gen_ai.request.id": "mine", "gen_ai.request.max_tokens": 6, "gen_ai.request.seed": 5,
                            "gen_ai.request.top_p": 0.5, "gen_ai.usage.output_tokens": 6,
                            "gen_ai.response.finish_reasons": ["length"]}.items(), told
    assert told["gen_ai.usage.input_tokens"] > 0
    assert "Once" not in str(collector.spans)
    parts = collector.children(first)
    assert [part.name for part in parts] == ["queue", "prefill", "decode"]
    assert parts[0].start_time_unix_nano == first.start_time_unix_nano
    for left, right in zip(parts, parts[1:]):
        assert left.end_time_unix_nano == right.start_time_unix_nano
    assert parts[2].end_time_unix_nano <= first.end_time_unix_nano
    assert told["gen_ai.latency.time_in_model_decode"] == pytest.approx(
        (parts[2].end_time_unix_nano - parts[2].start_time_unix_nano) / 1e9, abs=1e-6)

    assert second.trace_id.hex() != TRACE and not second.parent_span_id
    assert plain(second.attributes)["gen_ai.request.id"].endswith('/"ü"')
    assert refused.status.code == Status.STATUS_CODE_ERROR
    assert plain(refused.attributes)["error.type"] == "context_length_exceeded"
    assert len({span.span_id for span in collector.spans}) == len(collector.spans)
    assert daemon.metric("twill_trace_spans_sent_total") == len(collector.spans)
    assert daemon.metric("twill_trace_spans_dropped_total") == 0


def test_the_callers_flag_and_the_share_decide_what_is_traced(start_daemon, collector):
    daemon = start_daemon(f"tracing.endpoint={collector.url}/v1/traces", "tracing.sample=0", model=TINY)
    body = {"prompt": "Once", "max_tokens": 1}
    for headers in ({}, {"traceparent": f"00-{TRACE}-{PARENT}-00"}, {"traceparent": "x" * 5000},
                    {"traceparent": f"00-{TRACE}-{PARENT}-01"}):
        assert daemon.post("/v1/completions", body, headers=headers)[0] == 200
    assert [span.trace_id.hex() for span in collector.wait_for(1)] == [TRACE]
    assert collector.heads[0][0] == "/v1/traces"


def test_a_collector_that_is_gone_costs_spans_alone(start_daemon, collector):
    collector.server.shutdown()
    collector.server.server_close()
    daemon = start_daemon(f"tracing.endpoint={collector.url}", model=TINY)
    for _ in range(20):
        assert daemon.post("/v1/completions", {"prompt": "Once", "max_tokens": 1})[0] == 200
    deadline = time.monotonic() + 20
    while "`tracing.endpoint` does not answer" not in daemon.text_of_log():
        assert time.monotonic() < deadline, daemon.text_of_log()
        time.sleep(0.05)
    assert daemon.metric("twill_trace_spans_sent_total") == 0
    begin = time.monotonic()
    daemon.process.terminate()
    assert daemon.process.wait(20) == 0
    assert time.monotonic() - begin < 10

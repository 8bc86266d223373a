"""What one worker keeps (stored responses, files, batches) is found through HAProxy and any router."""

import http.client
import json
import time


def exchange(example, method: str, path: str, body=None, status: int = 200, **headers):
    connection = http.client.HTTPSConnection("localhost", example.port, timeout=60, context=example.trust)
    try:
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body)
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        reply = connection.getresponse()
        text = reply.read()
        assert reply.status == status, (path, reply.status, text)
        return text
    finally:
        connection.close()


def ask(example, method: str, path: str, body=None, **headers):
    return json.loads(exchange(example, method, path, body, **headers))


def name_in(id: str) -> str:
    return id.replace("_", "-", 1).split("-", 1)[1].split(".")[0]


def test_each_request_reaches_the_worker_that_keeps_what_it_names(fleet, tmp_path):
    example = fleet.example(f"batches.folder={tmp_path}/NAME", "kv.memory=64MiB", model="")
    for number, name in enumerate(example.workers):
        first = ask(example, "POST", "/v1/responses", {"input": f"Say {number} hellos.", "max_output_tokens": 4},
                    X_Twill_Server=name)
        assert name_in(first["id"]) == name
        second = ask(example, "POST", "/v1/responses", {"input": "And again.", "max_output_tokens": 4,
                                                       "previous_response_id": first["id"]})
        assert name_in(second["id"]) == name_in(first["id"])
        for one in (first, second):
            assert ask(example, "GET", f"/v1/responses/{one['id']}")["id"] == one["id"]
        assert ask(example, "DELETE", f"/v1/responses/{first['id']}")["deleted"] is True
        chat = {"messages": [{"role": "user", "content": f"Name {number} colours."}], "max_tokens": 6, "stream": True, "store": True}
        whole = exchange(example, "POST", "/v1/chat/completions", chat)
        after = whole.split(b"id: ")[1].split(b"\n")[0].decode()
        rest = exchange(example, "POST", "/v1/chat/completions", chat, Last_Event_ID=after)
        assert whole.endswith(rest) and b"[DONE]" in rest

    for path in ("metrics", "metrics/", "%6detrics", "load", "get_load", "kv_event_sources", "server_info", "get_model_info"):
        exchange(example, "GET", f"/{path}", status=404)
    exchange(example, "GET", "/v1/responses/resp_w9.0123456789abcdef01234567", status=404)
    exchange(example, "GET", "/v1/models", status=404, X_Twill_Server="w9")
    exchange(example, "GET", "/v1/models", Host="llm.example.com")
    exchange(example, "GET", "/v1/models", status=421, Host="other.example.com")
    page = {"Origin": "https://llm.example.com", "Host": "llm.example.com"}
    for path in ("/v1/completions", "/v1/completions/"):
        exchange(example, "POST", path, {"prompt": "Hi", "max_tokens": 1}, **page)
    exchange(example, "POST", "/v1/completions", {"prompt": "Hi"}, status=403, Origin="https://evil.example.com")

    boundary = b"--x\r\nContent-Disposition: form-data; name=\"%s\"%s\r\n\r\n%s\r\n"
    line = {"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"model": "assistant", "prompt": "Hi", "max_tokens": 2}}
    form = boundary % (b"purpose", b"", b"batch") + boundary % (b"file", b"; filename=\"in.jsonl\"", json.dumps(line).encode()) + b"--x--\r\n"
    for _ in range(6):
        file = ask(example, "POST", "/v1/files", form, Content_Type="multipart/form-data; boundary=x")
        batch = ask(example, "POST", "/v1/batches", {"input_file_id": file["id"], "endpoint": "/v1/completions", "completion_window": "24h"})
        deadline = time.monotonic() + 60
        while batch["status"] not in ("completed", "failed"):
            assert time.monotonic() < deadline, batch
            time.sleep(0.1)
            batch = ask(example, "GET", f"/v1/batches/{batch['id']}")
        assert batch["status"] == "completed", batch
        output = exchange(example, "GET", f"/v1/files/{batch['output_file_id']}/content")
        assert json.loads(output)["response"]["status_code"] == 200
        listed = ask(example, "GET", "/v1/files", X_Twill_Server=name_in(file["id"]))
        assert file["id"] in {one["id"] for one in listed["data"]}

    last = example.workers[name_in(file["id"])]
    last.kill()
    for path, header in ((f"/v1/files/{file['id']}", {}), ("/v1/files", {"X_Twill_Server": name_in(file["id"])})):
        exchange(example, "GET", path, status=503, **header)  # not 404, since it will be there again
    last.begin()
    example.wait_until_up(name_in(file["id"]))
    exchange(example, "GET", "/v1/files", X_Twill_Server=name_in(file["id"]))

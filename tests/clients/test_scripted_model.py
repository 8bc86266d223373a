"""`twill-synth scripted` writes a model whose output is known, so that twilld's handling of the output can be tested exactly."""

PIECES = ["Hel", "lo", " wor", "ld", ", ", "lo", " caf", "\u00e9", " \U0001f600", "<think>", "[TOOL_CALLS]", "\n", "."]


def test_it_answers_every_prompt_with_its_pieces(start_daemon, scripted_model):
    daemon = start_daemon(model=scripted_model(PIECES, control=["[TOOL_CALLS]"], added=["<think>"]))
    expected = "".join(piece for piece in PIECES if piece != "[TOOL_CALLS]")  # control tokens have no text
    for prompt in ("", "a", "What is that?", "Hello world" * 20):
        for temperature in (0, 1):
            status, reply = daemon.post("/v1/completions", {"prompt": prompt or "x", "temperature": temperature})
            assert status == 200, reply
            choice = reply["choices"][0]
            assert (choice["text"], choice["finish_reason"]) == (expected, "stop")
            assert reply["usage"]["completion_tokens"] == len(PIECES) + 1  # 1: the token that ends the turn
    _, cut = daemon.post("/v1/completions", {"prompt": "x", "stop": [", lo"]})
    assert cut["choices"][0]["text"] == "Hello world"

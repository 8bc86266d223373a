"""What routers in front of several daemons ask of one: ids of requests."""

TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


def post(daemon, path: str, body: dict):
    status, reply = daemon.post(path, body)
    assert status == 200, reply
    return reply


def test_rendered_ids_are_those_of_the_prompt(daemon):
    chats = [
        {"messages": [{"role": "user", "content": "Grüße, 世界!"}]},
        {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]},
        {"messages": [{"role": "user", "content": "hi"}], "tools": TOOLS, "tool_choice": "auto"},
        {"messages": [{"role": "user", "content": "hi"}], "add_generation_prompt": False},
    ]
    for body in chats:
        body |= {"max_tokens": 1, "return_token_ids": True}
        rendered = post(daemon, "/v1/chat/completions/render", body)
        asked = post(daemon, "/v1/chat/completions", body)
        assert rendered["token_ids"] == asked["prompt_token_ids"]
        assert rendered["model"] == asked["model"]
    for prompt in ["Once upon a time", [1, 2, 3], ["a", "b c"], [[4, 5], [6]]]:
        body = {"prompt": prompt, "max_tokens": 1, "return_token_ids": True}
        rendered = post(daemon, "/v1/completions/render", body)
        asked = post(daemon, "/v1/completions", body)
        assert [one["token_ids"] for one in rendered] == [one["prompt_token_ids"] for one in asked["choices"]]

"""For each route that generates: a base request, and for each honoured field a value that changes the answer.

The test of a field compares a request with the field and one without it. A field is `(what both requests have beside the
base, the value, what both lack)`; the last may be missing. `a.b` is the member b of a; LIMIT is the route's own name for
the most tokens of the output. A value may be a function of the daemon.
"""

from typing import Any, NamedTuple


class Refused(NamedTuple):
    """A value that is refused, if no accepted value shows that the field is read. The error names the field, or `named`."""
    value: Any
    named: str = ""


ASK = [{"role": "user", "content": "Name three colours."}]
OTHER = [{"role": "user", "content": "Count to ten."}]
BEGUN = ASK + [{"role": "assistant", "content": "Red, green"}]
TEXT = "The capital of France is"
GREEDY = {"temperature": 0}
COMPLETION = {"prompt": TEXT, "n_predict": 24, "temperature": 0, "seed": 1}
PARAMETERS = {"inputs": TEXT, "parameters": {"max_new_tokens": 24}}
SCORE = {"text_1": "a colour", "text_2": ["red is a colour", "the sea is deep"]}
RANK = {"query": "a colour", "documents": ["red is a colour", "the sea is deep"]}
BASES = {
    "/v1/chat/completions": {"messages": ASK, "max_tokens": 24, **GREEDY},
    "/v1/completions": {"prompt": TEXT, "max_tokens": 24, **GREEDY},
    "/v1/responses": {"input": "Name three colours.", "max_output_tokens": 24, **GREEDY},
    "/v1/messages": {"messages": ASK, "max_tokens": 24, **GREEDY},
    "/api/chat": {"messages": ASK, "stream": False, "options": {"num_predict": 24, **GREEDY}},
    "/api/generate": {"prompt": TEXT, "stream": False, "options": {"num_predict": 24, **GREEDY}},
    "/completion": COMPLETION, "/completions": COMPLETION,
    "/": PARAMETERS, "/generate": PARAMETERS, "/generate_stream": PARAMETERS,
    "/v1/embeddings": {"input": "red is a colour"},
    "/api/embed": {"input": "red is a colour"}, "/api/embeddings": {"prompt": "red is a colour"},
    "/v1/score": SCORE, "/score": SCORE,
    "/v1/rerank": RANK, "/v2/rerank": RANK, "/rerank": RANK,
}
# Routes whose bodies have documented fields, but which generate no tokens and no vectors.
GENERATE_NOTHING = {
    "/tokenize", "/v1/tokenize", "/detokenize", "/v1/detokenize", "/apply-template", "/v1/messages/count_tokens",
    "/v1/chat/completions/render", "/v1/completions/render", "/v1/batches", "/api/show", "/api/pull",
}
# Routes whose answers repeat fields of the request. A repeated field does not show that the field is honoured, except for
# fields that have no other effect (ONLY_REPEATED).
REPEATING = {"/v1/responses", "/completion", "/completions"}
ONLY_REPEATED = {"metadata", "user", "reasoning"}
LIMITS = {
    "/v1/responses": "max_output_tokens", "/completion": "n_predict", "/completions": "n_predict",
    "/api/chat": "options.num_predict", "/api/generate": "options.num_predict",
    "/": "parameters.max_new_tokens", "/generate": "parameters.max_new_tokens",
    "/generate_stream": "parameters.max_new_tokens",
}


def limit_of(path):
    return LIMITS.get(path, "max_tokens")


def tokens_of(daemon, text):
    return daemon.post("/tokenize", {"prompt": text, "add_special_tokens": False})[1]["tokens"]


def id_of_a_response(daemon):
    return daemon.post("/v1/responses", BASES["/v1/responses"])[1]["id"]


def turns(words):
    return [{"role": ("user", "assistant")[i % 2], "content": "word " * 10} for i in range(words // 10 | 1)]


def longer(path, words):
    """A field whose test has an input of about so many words."""
    for name in ("prompt", "input", "text_1", "query"):
        if name in BASES[path]:
            return {name: "word " * words}
    return {"messages": turns(words)}


def within(parent, table):
    """The table with each field as a member of `parent`."""
    def inside(fields):
        return {name if name == "LIMIT" else f"{parent}.{name}": value for name, value in fields.items()}
    return inside({name: (inside(extra), *rest) for name, (extra, *rest) in table.items()})


FUNCTION = {"name": "paint", "parameters": {
    "type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}, "required": ["colour"]}}
TOOL = {"type": "function", "function": FUNCTION}
FLAT_TOOL = {"type": "function", **FUNCTION}
MESSAGE_TOOL = {"name": "paint", "input_schema": FUNCTION["parameters"]}
MANY_WORDS = "word " * 400  # more words than the model's context holds
NO_ROOM = Refused(False, "context limit")
YES_NO = {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}
COUNT = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
DRAWN = {"temperature": 1.5, "seed": 5}

MODEL = {"model": ({}, Refused("none of that name"))}
SAMPLERS = {"top_k": (DRAWN, 1), "top_p": (DRAWN, 0.01)}
PENALTIES = {"repeat_penalty": (DRAWN, 0.2), "presence_penalty": (DRAWN, -2.0), "frequency_penalty": (DRAWN, -2.0)}
PLAIN = {
    "temperature": (DRAWN, 0), **SAMPLERS, "min_p": (DRAWN, 1.0), **PENALTIES, "seed": (DRAWN, 6), "stop": ({}, "e"),
}
SAMPLING = {
    **PLAIN,
    "repetition_penalty": (DRAWN, 0.2),
    "logit_bias": ({}, {"28": 100}),
    "min_tokens": ({"stop_token_ids": [28], "logit_bias": {"28": 100}}, 2),
    "ignore_eos": ({"logit_bias": {"2": 100}}, True),
    "stop_token_ids": ({"logit_bias": {"28": 100}}, [28]),
    "include_stop_str_in_output": ({"stop": "e"}, True),
    "skip_special_tokens": ({"logit_bias": {"2": 100}, "ignore_eos": True}, False),
    "bad_words": ({"logit_bias": lambda daemon: {tokens_of(daemon, "e")[0]: 100}}, ["e"]),
    "allowed_token_ids": ({}, [28, 29]),
    "best_of": ({}, Refused(2)), "modalities": ({}, Refused(["audio"])),
}
OTHER_LIMITS = {name: ({}, 3, "LIMIT") for name in ("n_predict", "num_predict", "max_new_tokens")}
FORMS = {
    "response_format.type": ({}, "json_object"),
    "response_format.json_schema": (
        {**DRAWN, "LIMIT": 100, "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": YES_NO}}},
        {"name": "a", "schema": COUNT}),
    **within("structured_outputs", {
        "json": ({}, YES_NO), "regex": ({}, "[0-9]{3}"), "choice": ({}, ["maybe"]), "grammar": ({}, 'root ::= "maybe"'),
        "json_object": ({}, True)}),
    "structured_outputs.disable_additional_properties": (
        {**DRAWN, "LIMIT": 100, "structured_outputs.json": YES_NO}, False),
    "guided_json": ({}, YES_NO), "guided_regex": ({}, "[0-9]{3}"), "guided_choice": ({}, ["maybe", "never"]),
    "guided_grammar": ({}, 'root ::= "maybe"'), "guided_json_object": ({}, True),
    "grammar": ({}, 'root ::= "maybe"'), "json_schema": ({}, YES_NO),
}
STREAM = {"stream": ({}, True)}
TEMPLATE = {
    "chat_template": ({}, Refused("none of that name")), "chat_template_kwargs": ({}, {"enable_thinking": False}),
}
PROMPT_OF_CHAT = {"messages": ({}, OTHER), **TEMPLATE}
CHAT_LOGPROBS = {"logprobs": ({}, True), "top_logprobs": ({"logprobs": True}, 2)}

OPENAI = {
    **MODEL, **SAMPLING, **OTHER_LIMITS, **FORMS, **STREAM,
    "n": (DRAWN, 2), "max_tokens": ({}, 3), "max_completion_tokens": ({}, 3, "LIMIT"),
    "prompt_logprobs": ({}, 1), "truncate_prompt_tokens": ({}, 3), "return_token_ids": ({}, True),
    "stream_options.include_usage": ({"stream": True}, True),
    "stream_options.continuous_usage_stats": ({"stream": True, "stream_options.include_usage": True}, True),
}
CHAT = {
    **OPENAI, **PROMPT_OF_CHAT, **CHAT_LOGPROBS,
    "tools": ({}, [TOOL]), "tool_choice": ({"tools": [TOOL]}, "required"),
    "functions": ({}, [FUNCTION]), "function_call": ({"functions": [FUNCTION]}, {"name": "paint"}),
    "add_generation_prompt": ({}, False), "continue_final_message": ({"messages": BEGUN}, True),
    "return_tokens_as_token_ids": ({"logprobs": True}, True),
}
COMPLETIONS = {
    **OPENAI, "prompt": ({}, "Once upon a time"), "echo": ({}, True), "logprobs": ({}, 1),
    "add_special_tokens": ({}, False), "return_tokens_as_token_ids": ({"logprobs": 1}, True),
}
RESPONSES = {
    **MODEL, **SAMPLING, **OTHER_LIMITS, **FORMS, **STREAM,
    "input": ({}, "Count to ten."), "instructions": ({}, "Answer in French."), "max_output_tokens": ({}, 3),
    "tools": ({}, [FLAT_TOOL]), "tool_choice": ({"tools": [FLAT_TOOL]}, "required"),
    "text.format": ({}, {"type": "json_schema", "name": "a", "schema": YES_NO}),
    "include": ({}, ["message.output_text.logprobs"]),
    "top_logprobs": ({"include": ["message.output_text.logprobs"]}, 2),
    "previous_response_id": ({}, id_of_a_response), "background": ({}, True),
    "metadata": ({}, {"a": "b"}), "user": ({}, "somebody"), "reasoning": ({}, {"effort": "low"}),
    "truncation": ({"input": turns(400), "truncation": "auto"}, Refused("disabled", "context limit")),
    "n": ({}, Refused(2)),
}
MESSAGES = {
    **MODEL, **SAMPLING, **FORMS, **STREAM, **PROMPT_OF_CHAT,
    "system": ({}, "Answer in French."), "max_tokens": ({}, 3), "stop_sequences": ({}, ["e"]),
    "tools": ({}, [MESSAGE_TOOL]), "tool_choice": ({"tools": [MESSAGE_TOOL]}, {"type": "any"}),
    "thinking": ({}, {"type": "disabled"}),
    "output_config.format": ({}, {"type": "json_schema", "schema": YES_NO}),
    "output_format": ({}, {"type": "json_schema", "schema": YES_NO}),
    "context_management.edits": ({}, [{"type": "clear_tool_uses_20250919"}]),
    "n": ({}, Refused(2)),
}
OLLAMA = {
    **MODEL, **CHAT_LOGPROBS, **STREAM, "format": ({}, "json"), "think": ({}, False),
    **within("options", {**PLAIN, "num_predict": ({}, 3),
                         "repeat_last_n": ({"repeat_penalty": 0.2, **DRAWN}, 0)}),
}
OLLAMA_CHAT = {
    **OLLAMA, "messages": ({}, OTHER), "truncate": ({"messages": turns(400)}, NO_ROOM),
    "tools": ({}, [TOOL]), "tool_choice": ({"tools": [TOOL]}, "required"),
}
OLLAMA_GENERATE = {
    **OLLAMA, "prompt": ({}, "Once upon a time"), "system": ({}, "Answer in French."), "raw": ({}, True),
    "context": ({}, [28, 29]), "truncate": ({"prompt": MANY_WORDS}, NO_ROOM),
}
LLAMACPP = {
    **MODEL, **PLAIN, **FORMS, **STREAM,
    "prompt": ({}, "Once upon a time"), "n_predict": ({}, 3), "max_tokens": ({}, 3, "LIMIT"),
    "max_completion_tokens": ({}, 3, "LIMIT"), "n_cmpl": ({}, 2), "n": ({}, 2),
    "n_probs": ({}, 1), "logprobs": ({}, 1), "post_sampling_probs": ({"n_probs": 1}, Refused(True)),
    "return_tokens": ({}, True), "timings_per_token": ({"stream": True}, True), "response_fields": ({}, ["content"]),
    "repeat_last_n": ({"repeat_penalty": 0.2, **DRAWN}, 0), "samplers": ({}, ["top_k"]),
    "ignore_eos": SAMPLING["ignore_eos"], "logit_bias": SAMPLING["logit_bias"],
}
TGI_DRAWN = {"do_sample": True, **DRAWN}
TGI = {
    **MODEL, "inputs": ({}, "Once upon a time"),
    **within("parameters", {
        "do_sample": ({"seed": 5}, True), "temperature": (TGI_DRAWN, 0.01), "seed": (TGI_DRAWN, 6),
        "top_k": (TGI_DRAWN, 1), "top_p": (TGI_DRAWN, 0.01),
        "repetition_penalty": (TGI_DRAWN, 0.2), "frequency_penalty": (TGI_DRAWN, -2.0),
        "max_new_tokens": ({}, 3), "stop": ({}, "e"), "truncate": ({}, 3), "return_full_text": ({}, True),
        "details": ({}, True), "decoder_input_details": ({}, True), "top_n_tokens": ({"details": True}, 2),
        "best_of": ({"top_k": 1, "details": True}, 2),
        "grammar": ({}, {"type": "regex", "value": "[0-9]{3}"})}),
}
# A stream has one output, and what is read is not in it.
TGI_STREAM = {**TGI, **within("parameters", {
    "decoder_input_details": ({}, Refused(True)), "best_of": ({"top_k": 1}, Refused(2))})}
POOLED = {
    **MODEL, "pooling": ({}, "mean"), "add_special_tokens": ({"pooling": "mean"}, False), "truncate_prompt_tokens": ({}, 1),
    "dimensions": ({}, Refused(3)), "stream": ({}, Refused(True)),
}
EMBEDDINGS = {
    **POOLED, "input": ({}, "the sea"), "messages": ({"messages": ASK}, OTHER, "input"),
    **{name: ({"messages": ASK}, value, "input") for name, (_, value) in TEMPLATE.items()},
    "add_generation_prompt": ({"messages": ASK}, True, "input"),
    "continue_final_message": ({"messages": BEGUN}, True, "input"),
    "encoding_format": ({}, "base64"), "normalize": ({}, False), "use_activation": ({}, False),
}
OLLAMA_EMBED = {**POOLED, "input": ({}, "the sea"), "truncate": ({"input": MANY_WORDS}, NO_ROOM)}
OLLAMA_EMBEDDINGS = {**POOLED, "prompt": ({}, "the sea"), "truncate": ({"prompt": MANY_WORDS}, NO_ROOM)}
SCORES = {**POOLED, "text_1": ({}, "water"), "text_2": ({}, ["water"])}
RANKS = {
    **POOLED, "query": ({}, "water"), "documents": ({}, ["water", "blue"]), "top_n": ({}, 1),
    "return_documents": ({}, False), "max_tokens_per_doc": ({}, 1),
}
SHOWN = {
    "/v1/chat/completions": CHAT, "/v1/completions": COMPLETIONS, "/v1/responses": RESPONSES, "/v1/messages": MESSAGES,
    "/api/chat": OLLAMA_CHAT, "/api/generate": OLLAMA_GENERATE, "/completion": LLAMACPP, "/completions": LLAMACPP,
    "/": {**TGI, **STREAM}, "/generate": TGI, "/generate_stream": TGI_STREAM,
    "/v1/embeddings": EMBEDDINGS, "/api/embed": OLLAMA_EMBED, "/api/embeddings": OLLAMA_EMBEDDINGS,
    "/v1/score": SCORES, "/score": SCORES,
    "/v1/rerank": RANKS, "/v2/rerank": RANKS, "/rerank": RANKS,
}

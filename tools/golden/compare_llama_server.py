#!/usr/bin/env python3
"""Compares a twilld with llama.cpp's server, token by token, on prompts of random ids.

Both serve the same GGUF file, with F32 weights if the figures are to be close; start them with
    llama-server -m FILE --port 9301 -ctk f32 -ctv f32 -fa off
    twilld --model FILE --listen 127.0.0.1:9302 --set model.compute=f32 --set kv.type=f32
then: compare_llama_server.py http://127.0.0.1:9301 http://127.0.0.1:9302 --vocab 1000
Prints the largest difference of the five log-probabilities per token up to the first different token of each prompt;
exits with 1 if a token differs.
"""
import argparse
import json
import random
import sys
import urllib.request


def post(url, body):
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as reply:
        return json.load(reply)


def from_llama(url, ids, n, top):
    reply = post(url + "/completion", {"prompt": ids, "n_predict": n, "temperature": 0,
                                       "n_probs": top, "cache_prompt": False, "ignore_eos": True,
                                       "return_tokens": True})
    # llama.cpp's server leaves out the probabilities of tokens that end within a character.
    given = iter(reply["completion_probabilities"])
    entry = next(given, None)
    for token in reply["tokens"]:
        best, logs = token, []
        if entry is not None and entry["id"] == token:
            best = entry["top_logprobs"][0]["id"]
            logs = [entry["logprob"]] + [t["logprob"] for t in entry["top_logprobs"]]
            entry = next(given, None)
        yield token, best, logs


def from_twill(url, ids, n, top):
    reply = post(url + "/v1/completions", {"prompt": ids, "max_tokens": n, "temperature": 0,
                                           "logprobs": top, "return_token_ids": True,
                                           "ignore_eos": True})
    choice = reply["choices"][0]
    logs = choice["logprobs"]
    for token, log, most in zip(choice["token_ids"], logs["token_logprobs"], logs["top_logprobs"]):
        yield token, [log] + sorted(most.values(), reverse=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("llama")
    parser.add_argument("twill")
    parser.add_argument("--vocab", type=int, required=True)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--top", type=int, default=5, help="log-probabilities per token")
    parser.add_argument("--prompt-lens", default="1,5,40,200,400")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    random.seed(args.seed)
    worst, equal, total, n_logs = 0.0, 0, 0, 0
    for length in map(int, args.prompt_lens.split(",")):
        ids = [random.randrange(args.vocab // 4, args.vocab) for _ in range(length)]
        theirs = from_llama(args.llama, ids, args.tokens, args.top)
        ours = from_twill(args.twill, ids, args.tokens, args.top)
        for (a, best, logs_a), (b, logs_b) in zip(theirs, ours):
            if a != b and b == best:
                break  # an end id: with ignore_eos llama.cpp takes the next best token instead
            total += 1
            if a != b:
                print(f"prompt of {length}: token {b}, llama.cpp has {a}")
                break
            equal += 1
            # twill lists tokens by their texts, so there are fewer where two tokens have the same text.
            if len(logs_a) == len(logs_b):
                n_logs += len(logs_a)
                worst = max([worst] + [abs(x - y) for x, y in zip(logs_a, logs_b)])
    print(f"{equal} of {total} tokens equal, {n_logs} log-probabilities within {worst:.1e}")
    return 0 if equal == total else 1


if __name__ == "__main__":
    sys.exit(main())

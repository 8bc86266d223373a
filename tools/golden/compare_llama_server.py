#!/usr/bin/env python3
"""Compares a twilld with llama.cpp's server, token by token, on prompts of random ids.

Both serve the same GGUF file, with F32 weights if the figures are to be close; start them with
    llama-server -m FILE --port 9301 -ctk f32 -ctv f32 -fa off
    twilld --model FILE --listen 127.0.0.1:9302 --set model.compute=f32 --set kv.type=f32
then: compare_llama_server.py http://127.0.0.1:9301 http://127.0.0.1:9302 --vocab 1000
Prints the largest difference of log-probabilities up to the first different token of each prompt;
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


def from_llama(url, ids, n):
    reply = post(url + "/completion", {"prompt": ids, "n_predict": n, "temperature": 0, "n_probs": 1,
                                       "cache_prompt": False, "ignore_eos": True,
                                       "return_tokens": True})
    # It leaves out the probabilities of tokens that end within a character.
    logs = {i: t["logprob"] for i, t in enumerate(reply["completion_probabilities"])}
    whole = len(logs) == len(reply["tokens"])
    return [(t, logs[i] if whole else None) for i, t in enumerate(reply["tokens"])]


def from_twill(url, ids, n):
    reply = post(url + "/v1/completions", {"prompt": ids, "max_tokens": n, "temperature": 0,
                                           "logprobs": 1, "return_token_ids": True,
                                           "ignore_eos": True})
    choice = reply["choices"][0]
    return list(zip(choice["token_ids"], choice["logprobs"]["token_logprobs"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("llama")
    parser.add_argument("twill")
    parser.add_argument("--vocab", type=int, required=True)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--prompt-lens", default="1,5,40,200,400")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    random.seed(args.seed)
    worst, equal, total = 0.0, 0, 0
    for length in map(int, args.prompt_lens.split(",")):
        ids = [random.randrange(args.vocab // 4, args.vocab) for _ in range(length)]
        total += args.tokens
        for (a, log_a), (b, log_b) in zip(from_llama(args.llama, ids, args.tokens),
                                          from_twill(args.twill, ids, args.tokens)):
            if a != b:
                print(f"prompt of {length}: token {b}, llama.cpp has {a}")
                break
            equal += 1
            worst = max(worst, abs(log_a - log_b) if log_a is not None else 0)
    print(f"{equal} of {total} tokens equal, log-probabilities within {worst:.1e}")
    return 0 if equal == total else 1


if __name__ == "__main__":
    sys.exit(main())

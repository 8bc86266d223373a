#!/usr/bin/env python3
"""Measures how far an OpenVINO model is from its f32 original, with the figures of `twill-bench accuracy`.

    accuracy.py HF_FOLDER OPENVINO_FOLDER...

HF_FOLDER holds the f32 model that the other models were converted from; transformers reads it. The tokens are those of
the golden text (tests/golden/smollm2/perplexity.json). Each OpenVINO model runs as OpenVINO GenAI would run it, with
its own precision and its own groups of activations.
"""
import json
import os
import sys

GOLDEN = os.path.join(os.path.dirname(__file__), "../../../tests/golden/smollm2/perplexity.json")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    import numpy
    import openvino
    import torch
    from transformers import AutoModelForCausalLM

    with open(GOLDEN) as file:
        ids = json.load(file)["ids"]
    n = len(ids)

    def perplexity(logs):
        return float(torch.exp(-logs[torch.arange(n - 1), torch.tensor(ids[1:])].mean()))

    original = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32)
    with torch.no_grad():
        exact = torch.log_softmax(original(torch.tensor([ids])).logits[0], -1)
    print("f32: perplexity %.4f" % perplexity(exact))

    inputs = {"input_ids": numpy.array([ids]), "attention_mask": numpy.ones((1, n), numpy.int64),
              "position_ids": numpy.arange(n)[None], "beam_idx": numpy.zeros(1, numpy.int32)}
    for folder in sys.argv[2:]:
        model = openvino.Core().compile_model(folder + "/openvino_model.xml", "CPU")
        wanted = {name for port in model.inputs for name in port.names}
        request = model.create_infer_request()
        out = request.infer({k: v for k, v in inputs.items() if k in wanted})
        logs = torch.log_softmax(torch.tensor(next(iter(out.values()))[0]), -1)
        kl = (exact.exp() * (exact - logs)).sum(-1)
        same = (exact.argmax(-1) == logs.argmax(-1)).float().mean()
        print("%s: same argmax %.2f %%, mean KL %.2e (%.1e), perplexity %.4f (%+.2f %%)" % (
            folder, 100 * same, kl.mean(), kl.max(), perplexity(logs),
            100 * (perplexity(logs) / perplexity(exact) - 1)), flush=True)


if __name__ == "__main__":
    main()

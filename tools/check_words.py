#!/usr/bin/env python3
"""Words that the tree has given up: none may come back as an identifier or as a file name.

check_words.py [ROOT]: prints each use with the word that takes its place, and exits with 1 if there is any.
Comments and texts may use a word in its plain English sense; identifiers and file names may not.
tests/tools/check_words_test.py shows that a use is found.
"""

import pathlib
import re
import sys

TOPS = ("config", "gpu", "models", "actors", "net", "tools", "tests")
SUFFIXES = {".hpp", ".cpp", ".cuh", ".cu"}

# word -> what the field calls it. A word stands for whole identifiers, and for file names without suffix or _test.
RETIRED = {
    "mixed_pace": "prefill_budget",
    "square_walk": "schedule_executor",
    "square_rounds": "schedule_executor",
    "block_run": "offload_job",
    "block_batch": "micro_batch_state",
    "block_walk": "schedule_executor",
    "fused_run": "continuous_run",
    "row_table": "embedding_cache",
    "row_reader": "embedding_reader",
    "weight_homes": "weight_placement",
    "kv_homes": "kv_backing",
    "kv_record": "kv_block_layout",
    "integer_terms": "int16_quant_params",
    "second_digit_from": "residual_from",
    "int8_panel": "int8_pack",
    "int8_panels": "int8_gemm",
    "int8_panel_rows": "int8_microkernel",
    "attention_walk": "paged_kv_view",
    "attention_rows": "online_softmax",
    "attention_tiles": "attention_matmul",
    "eight_bit": "w8a8_weights",
    "compressed": "int4_weights",
    "enters": "prefix_inserts",
    "n_idle": "n_evictable",
    "may_pass": "is_transient",
    "anyhow": "page_hint::any",
    "packed_sizes": "memory_estimate",
    "block_memory": "memory_estimate",
    "block_needs": "memory_estimate",
    "memory_needs": "memory_estimate",
    "scheduler_picture": "scheduler_snapshot",
    "life": "generation",
    "let_go": "release, or unhold",
    "told": "callback, or the name of what was received",
    "tell_end": "report_end",
    "door": "listener_kind, or the thing's own name",
    "offloader_door": "the thing's own name",
    "bell": "notifier",
    "order_bell": "notifier",
    "ticket": "fetch_id, or slot",
    "tickets": "fetch_ids",
    "cargo": "payload",
    "step_cargo": "step_payload",
    "clerk": "worker",
    "obey": "apply_orders",
    "crowd": "load_batcher",
    "parking": "wait_queue",
    "outlet": "sender",
    "teacher": "forced_decoder",
    "most_beyond": "most_tier_keys",
    "n_tied": "n_pinned_by_child",
    "stuck": "no_allowed_token, or blocked",
    "silence": "suppress_annotations",
    "rig": "fixture",
    "chat_rig": "chat_fixture",
    "engine_bench": "engine_fixture",
    "batch_bench": "batch_fixture",
    "dialect_bench": "dialect_fixture",
    "scheduler_rig": "scheduler_fixture",
    "session_rig": "session_fixture",
}
# Words retired in one folder and its tests; in other folders they have another meaning and are allowed.
RETIRED_IN = {
    "actors": {
        "picture": "snapshot",
        "epoch": "generation",
        "take_left": "take_departed",
        "beyond": "tier_keys",
    },
    "gpu": {
        "portable_forms": "portable_implementations",
        "host_form": "host_implementation",
        "cuda_form": "cuda_implementation",
    },
}
# Words retired as file names only. As identifiers they are plain English or belong to Kokkos.
RETIRED_FILES = {
    "team": "thread_pool",
    "copies": "copy_stream",
    "limits": "peak_rates",
    "slots": "sequence_states",
    "int8_rows": "int8_gemv",
}
# A member that says which kind of thing a struct holds is called `kind`, not `what`.
KIND_CALLED_WHAT = re.compile(r"^\s*(?:\w+::)*\w*(?:kind|phase|state|operation) what\b\s*[=;]")
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|//.*|\b[A-Za-z_]\w*\b')


def retired_in(name: str):
    """All words that the file `name`, a path from the root, must not use, with their replacements."""
    folder = name.removeprefix("tests/").partition("/")[0]
    return {**RETIRED, **RETIRED_IN.get(folder, {})}


def uses_in(line: str, retired=RETIRED):
    """The retired words among a line's identifiers; an included path counts by its file name."""
    for token in TOKEN.findall(line):
        if token.startswith("//"):
            return
        if token.startswith('"'):
            if re.match(r"\s*#\s*include", line):
                yield from (w for w in [pathlib.PurePosixPath(token.strip('"')).stem] if w in retired)
        elif token in retired:
            yield token
        elif token.rstrip("_") in retired:
            yield token.rstrip("_")


def uses(root: pathlib.Path):
    for top in TOPS:
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            name = str(path.relative_to(root))
            stem = path.stem.removesuffix("_test")
            retired = retired_in(name)
            if instead := RETIRED.get(stem) or RETIRED_FILES.get(stem):
                yield f"{name}: the file's name says {stem}; say {instead}"
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                for word in uses_in(line, retired):
                    yield f"{name}:{number}: `{word}` was given up; say {retired[word]}"
                if KIND_CALLED_WHAT.match(line):
                    yield f"{name}:{number}: a member that says which kind it is is called `what`; say kind"


def main() -> int:
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    found = list(uses(root))
    count = len(RETIRED) + len(RETIRED_FILES) + sum(map(len, RETIRED_IN.values()))
    print("\n".join(found) if found else f"words: none of the {count} that were given up is in use")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

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
}
# Words that are plain English or Kokkos's own as identifiers, and given up as names of files.
RETIRED_FILES = {
    "team": "thread_pool",
    "copies": "copy_stream",
    "limits": "peak_rates",
    "slots": "sequence_states",
    "int8_rows": "int8_gemv",
}
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|//.*|\b[A-Za-z_]\w*\b')


def uses_in(line: str):
    """The retired words among a line's identifiers; an included path counts by its file name."""
    for token in TOKEN.findall(line):
        if token.startswith("//"):
            return
        if token.startswith('"'):
            if re.match(r"\s*#\s*include", line):
                yield from (w for w in [pathlib.PurePosixPath(token.strip('"')).stem] if w in RETIRED)
        elif token.rstrip("_") in RETIRED:
            yield token.rstrip("_")


def uses(root: pathlib.Path):
    for top in TOPS:
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            name = str(path.relative_to(root))
            stem = path.stem.removesuffix("_test")
            if instead := RETIRED.get(stem) or RETIRED_FILES.get(stem):
                yield f"{name}: the file's name says {stem}; say {instead}"
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                for word in uses_in(line):
                    yield f"{name}:{number}: `{word}` was given up; say {RETIRED[word]}"


def main() -> int:
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    found = list(uses(root))
    count = len(RETIRED) + len(RETIRED_FILES)
    print("\n".join(found) if found else f"words: none of the {count} that were given up is in use")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""A short run of soak.py, whose docstring describes it; with --long a run of three minutes."""

import os

from soak import allowed_growth, memory_grew, soak

LONG = bool(os.environ.get("TWILL_LONG"))


def test_nothing_is_lost_doubled_or_leaked_while_everything_happens_at_once():
    if LONG:
        counts = soak(os.environ["TWILL_BIN"], minutes=3)
    else:
        counts = soak(os.environ["TWILL_BIN"], minutes=0.25, clients=10, rate=2.0, fault_every=4, rest_every=3)
    assert counts["streamed"] > 20 and counts["whole"] > 5
    assert counts["tokens compared"] > 1000
    assert counts["malformed"] + counts["broken heads"] > 0


def test_a_leak_is_told_from_the_warming_up_of_a_short_run():
    mebibyte = 2**20
    warming = [round(mib * mebibyte) for mib in (32.91, 33.59, 33.65, 33.84, 33.94)]
    assert memory_grew(warming) <= allowed_growth(0.25, warming)
    assert memory_grew(warming) > allowed_growth(30, warming)
    leaking = [(33 + 5 * i) * mebibyte for i in range(6)]
    assert memory_grew(leaking) > allowed_growth(0.25, leaking)

"""A short run of soak.py, which says what it does; with --long three minutes of it."""

import os

from soak import soak

LONG = bool(os.environ.get("TWILL_LONG"))


def test_nothing_is_lost_doubled_or_leaked_while_everything_happens_at_once():
    if LONG:
        counts = soak(os.environ["TWILL_BIN"], minutes=3)
    else:
        counts = soak(os.environ["TWILL_BIN"], minutes=0.25, clients=10, rate=2.0, fault_every=4, rest_every=3)
    assert counts["streamed"] > 20 and counts["whole"] > 5
    assert counts["tokens compared"] > 1000
    assert counts["malformed"] + counts["broken heads"] > 0

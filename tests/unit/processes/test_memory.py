"""Collections of garbage are rare during a build, and as before after it."""

from __future__ import annotations

import gc

from aotc.processes.memory import COLLECTION_THRESHOLD, rare_collections


def test_thresholds_hold_again_after_the_last_build() -> None:
    before = gc.get_threshold()
    with rare_collections():
        with rare_collections():
            assert gc.get_threshold() == (COLLECTION_THRESHOLD, *before[1:])
        assert gc.get_threshold() == (COLLECTION_THRESHOLD, *before[1:])
    assert gc.get_threshold() == before


def test_a_caller_who_never_collects_is_left_alone() -> None:
    before = gc.get_threshold()
    gc.set_threshold(0)
    try:
        with rare_collections():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)

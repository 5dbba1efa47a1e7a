"""Names like one that is not known."""

from __future__ import annotations

from collections.abc import Iterable


def near_names(word: str, known: Iterable[str], *, most: int, cutoff: float = 0.6) -> list[str]:
    """At most `most` of `known`, the most similar first; `cutoff` is difflib's ratio."""
    import difflib  # for errors alone

    return difflib.get_close_matches(word, list(known), n=most, cutoff=cutoff)

"""What generated programs may have, beside what all have."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Features:
    """What programs may have."""

    # gpu.shuffle and gpu.ballot
    shuffles: bool = True
    block_reductions: bool = True
    warp_reductions: bool = True
    subgroup_ids: bool = True

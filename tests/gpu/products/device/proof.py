"""Launches a kernel that is wrong, for compute-sanitizer to say so."""

from __future__ import annotations

import torch
from entry import Entry

NAME = "proof_sm_90a"

if __name__ == "__main__":
    Entry(NAME, None, is_strided=False)(torch.zeros(100, device="cuda"))
    torch.cuda.synchronize()

"""Writes waves.pt2: a program that adds two waves, of any length."""

from __future__ import annotations

import torch

from waves import square, triangle


class Waves(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return triangle(x / 4, 2.0) + square(x, 3.0)


if __name__ == "__main__":
    length = {0: torch.export.Dim("length")}
    program = torch.export.export(Waves(), (torch.arange(8.0),), dynamic_shapes=(length,))
    torch.export.save(program, "waves.pt2")

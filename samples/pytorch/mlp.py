"""A small network, trained by PyTorch; what aotc makes of it needs neither PyTorch nor Python.

python samples/pytorch/mlp.py      writes mlp.pt2, and compares a library of it with PyTorch
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import torch
from torch import nn

import aotc
import aotc.torch


def train() -> nn.Module:
    """A network that has learned the sine of -pi to pi."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    x = torch.linspace(-math.pi, math.pi, 256)[:, None]
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(500):
        loss = (net(x) - x.sin()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net.eval()


def main() -> None:
    net = train()
    x = torch.linspace(-3, 3, 100)[:, None]
    rows = ({0: torch.export.Dim("rows")},)  # as many as there are, in each call
    program = torch.export.export(net, (x,), dynamic_shapes=rows)
    torch.export.save(program, "mlp.pt2")
    with tempfile.TemporaryDirectory() as folder:
        built = aotc.torch.build(
            program, (), name="mlp", emit="shared", out=Path(folder) / "mlp.so"
        )
        y = aotc.load(built).mlp(x.numpy())
    difference = abs(net(x).detach().numpy() - y).max()
    print("as PyTorch" if difference < 1e-5 else f"other than PyTorch, by {difference}")


if __name__ == "__main__":
    main()

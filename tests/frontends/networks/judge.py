"""A network → right, refused, or what is wrong: built by aotc, and run on the CPU device.

Each in a process of its own, which may crash or hang. It is right where it is about as near to
PyTorch in f64 as PyTorch in f32 is.
"""

from __future__ import annotations

import functools
import os
import pickle
import re
import select
import signal
import tempfile
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from frontends.networks.generate import Network, dynamic_shapes, inputs_of, made
from frontends.support import call

import aotc
import aotc.torch

SECONDS = 240
# Sums are added in other orders: so many times eager's own error, and so much of the results' size.
_FACTOR, _LEAST = 16, 2e-6


@dataclass(frozen=True)
class Verdict:
    """`kind` is "right" (`message` says what sm_75 lacks, if it does), "refused", "export"
    (torch.export refused it), "wrong", "error", "crash" or "hang"."""

    network: Network
    kind: str
    message: str = ""

    @property
    def is_fault(self) -> bool:
        return self.kind not in ("right", "refused", "export")

    @property
    def signature(self) -> tuple[str, str]:
        """What two failures for one reason have in common: no numbers or names."""
        line = self.message.splitlines()[0] if self.message else ""
        return self.kind, re.sub(r"'[^']*'|\S*\d\S*", "", line)


def judge(network: Network) -> Verdict:
    """The verdict, from a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        try:
            kind, message = _judge(network)
        except BaseException as error:
            kind, message = "error", f"{type(error).__name__}: {error}"
        os.write(writer, pickle.dumps((kind, message[:4000])))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        is_done, _, _ = select.select([pipe], [], [], SECONDS)
        if not is_done:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return Verdict(network, "hang", f"not done after {SECONDS} s")
        data = pipe.read()
    _, status = os.waitpid(child, 0)
    if not data:
        return Verdict(network, "crash", f"ended by signal {os.waitstatus_to_exitcode(status)}")
    return Verdict(network, *pickle.loads(data))


def _judge(network: Network) -> tuple[str, str]:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    module, shape, _ = made(network)
    inputs = list(inputs_of(network, shape))
    try:
        shapes = dynamic_shapes(network)
        program = torch.export.export(
            module, inputs[0], dynamic_shapes=shapes and shapes[: len(inputs[0])]
        )
    except Exception as error:
        return "export", f"{type(error).__name__}: {error}"
    with tempfile.TemporaryDirectory() as folder:
        try:
            artifact, lacking = _built(program, folder, network)
        except aotc.InputError as error:
            return "refused", str(error)
        errors: list[tuple[float, float, float]] = []  # ours, eager's and the results' size
        for given in inputs:
            with torch.no_grad():
                eager = module(*given)
                wide = [one.double() if one.is_floating_point() else one for one in given]
                exact = module.double()(*wide).numpy()
                module.float()
            (got,) = call(artifact, "net", [one.numpy() for one in given], [eager.numpy()])
            if got.shape != exact.shape:
                return "wrong", f"the shape is {got.shape}, not {exact.shape}"
            ours, theirs = (
                float(np.abs(one.astype(np.float64) - exact).max(initial=0))
                for one in (got, eager.numpy())
            )
            errors.append((ours, theirs, float(np.abs(exact).max(initial=0))))
        # Differences of equal numbers happen to be exact in eager for some inputs alone.
        allowed = _FACTOR * max(theirs for _, theirs, _ in errors)
        for ours, theirs, size in errors:
            if not ours <= allowed + _LEAST * size:
                return "wrong", f"an error where eager's is less: {ours:.1e}, {theirs:.1e}"
    return "right", lacking


def _built(program: Any, folder: str, network: Network) -> tuple[aotc.Artifact, str]:
    """The artifact, and what sm_75 lacks where that is why it is for another chip.

    In turns built from a program and from a file; for the chip with the fewest kernels to choose
    from, which is the fastest build, and now and then for all that are built for when none is
    named.
    """
    kind = network.seed // 3
    if kind % 2:
        path = f"{folder}/net.pt2"
        torch.export.save(program, path)
        build = functools.partial(aotc.build, path)
    else:
        build = functools.partial(aotc.torch.build, program, (), name="net")
    options: dict[str, Any] = {"emit": "shared", "out": f"{folder}/"}
    if kind % 8 == 1:
        return build(**options), ""
    options["optimization"] = 1
    try:
        return build(chips="sm_75", **options), ""
    except aotc.InputError as error:
        if "which sm_75 lacks" not in str(error):
            raise
        return build(chips="sm_80", **options), str(error)


def shrink(verdict: Verdict, seconds: float, candidates: Any) -> Verdict:
    """The smallest network that fails likewise, of what `candidates(network)` gives, in about this
    time."""
    end = time.monotonic() + seconds
    best, tried = verdict, set()
    while True:
        for network in candidates(best.network):
            if network in tried:
                continue
            tried.add(network)
            if time.monotonic() > end:
                return best
            found = judge(network)
            if found.signature == verdict.signature:
                best = found
                break
        else:
            return best

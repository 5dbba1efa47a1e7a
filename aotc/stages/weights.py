"""The stage that writes large constants to a file beside the artifact."""

from __future__ import annotations

from aotc.artifacts import WEIGHTS
from aotc.building.build import Build
from aotc.building.results import HostModule, Outlined, TakenWeights
from aotc.delivery import weights_from_artifact
from aotc.errors import InputError
from aotc.host.weights import LEAST, take_weights, write_weights


def take(build: Build, outlined: Outlined, host: HostModule) -> TakenWeights:
    r = build.request
    assert r.weights is not None
    managed = [one.value.name for one in outlined.held if one.symbol in outlined.managed_globals]
    if managed:
        raise InputError(
            f"--replaceable: {', '.join(managed)} of {r.source} cannot be replaced: host code "
            "gives kernels its address in a way that takes managed memory."
        )
    constants = take_weights(host.module.operation, [one.symbol for one in outlined.held])
    if not constants:
        raise InputError(
            f"Nothing for --weights {r.weights}: {r.source} has no constants of {LEAST} bytes or "
            "more outside of kernels."
        )
    file = f"{build.stem}.weights"
    weights = write_weights(constants, build.folder / file, weights_from_artifact(r), outlined.held)
    return TakenWeights(weights, files=(build.file(WEIGHTS, file),))

"""The stage that puts large constants into a file beside the artifact."""

from __future__ import annotations

from aotc.artifacts import WEIGHTS
from aotc.building.build import Build
from aotc.building.results import HostModule, TakenWeights
from aotc.delivery import weights_from_artifact
from aotc.errors import InputError
from aotc.host.weights import LEAST, take_weights, write_weights


def take(build: Build, host: HostModule) -> TakenWeights:
    r = build.request
    assert r.weights is not None
    constants = take_weights(host.module.operation)
    if not constants:
        raise InputError(
            f"Nothing for --weights {r.weights}: {r.source} has no constants of {LEAST} bytes or "
            "more outside of kernels."
        )
    file = f"{build.stem}.weights"
    weights = write_weights(constants, build.folder / file, weights_from_artifact(r))
    return TakenWeights(weights, files=(build.file(WEIGHTS, file),))

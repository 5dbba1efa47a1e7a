"""What works on this machine, derived from the checks; and the check of its C library."""

from __future__ import annotations

import os
from collections.abc import Mapping

from aotc.health import Check, Status
from aotc.request import HostTarget, version_numbers
from aotc.target import TARGETS

_Sections = Mapping[str, tuple[Check, ...]]


def check_libc() -> Check:
    """Checks whether programs for the default target run on this machine."""
    about = "programs and libraries run on it"
    target = HostTarget.native()
    try:
        found = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except ValueError:  # another C library
        found = ""
    name, _, version = found.partition(" ")
    if name != "glibc":
        mend = f"--target {target.architecture}-linux-musl"
        return Check("libc", Status.ABSENT, "not glibc", about=about, mend=mend)
    assert target.version is not None
    if version_numbers(version) < version_numbers(target.version):
        mend = f"--target {target.architecture}-linux-{target.library}.{version}"
        problem = f"{found}: programs for {target.triple}, the default, do not run here"
        return Check("libc", Status.ABSENT, problem, about=about, mend=mend)
    return Check("libc", Status.OK, f"{found}; the default target is {target.triple}", about=about)


def find_abilities(sections: _Sections) -> tuple[Check, ...]:
    """One check per purpose that users have, derived from the checks of `sections`."""
    checks = {check.name: check for section in sections.values() for check in section}
    trial = checks.get("build")
    failed = [check for check in checks.values() if check.status is Status.FAILED]
    builds = trial is not None and trial.status is Status.OK
    reason = ", ".join(check.name for check in failed)
    mend = next((check.mend for check in failed if check.mend), "")
    building = Check(
        "build",
        Status.OK if builds else Status.FAILED,
        "executables, libraries, objects; also for other hosts" if builds else f"no: {reason}",
        mend=mend,
    )
    libc = checks["libc"]
    running = Check("run", libc.status, _yes_or(libc), mend=libc.mend)
    formats = tuple(
        Check(f"input: {check.name}", check.status, check.found, mend=check.mend)
        for check in sections.get("front ends", ())
    )
    of_targets = (check for target in TARGETS for check in target.find_abilities(checks))
    return (building, running, *of_targets, *formats)


def _yes_or(check: Check) -> str:
    return "kernels on the CPU" if check.status is Status.OK else check.found

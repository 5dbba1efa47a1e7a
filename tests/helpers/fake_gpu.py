"""A CUDA driver that pretends, and images that it loads: for tests of what aotc makes."""

from __future__ import annotations

import os
from pathlib import Path

from helpers.command import REPOSITORY
from helpers.zig import ZIG_CACHE

from aotc.request import HostTarget
from aotc.toolchain import Runner, Toolchain

FAKE_SOURCES = REPOSITORY / "runtime_c" / "tests"


def build_fake_driver(folder: Path) -> Path:
    """Puts a libcuda.so.1 into `folder` that has one GPU, of the chip sm_90; the folder."""
    toolchain = Toolchain(os.environ)
    Runner(os.environ).run(
        [
            *toolchain.zig_cc.command,
            *("-target", HostTarget.native().triple, "-std=c11", "-D_GNU_SOURCE"),
            *(
                "-shared",
                "-fPIC",
                "-fno-sanitize=all",
                f"-isystem{toolchain.tool('cuda-include').path}",
            ),
            *(str(source) for source in sorted((FAKE_SOURCES / "fake_driver").glob("*.c"))),
            "-lpthread",
            *("-o", str(folder / "libcuda.so.1")),
        ],
        making="the fake driver",
        env=ZIG_CACHE,
    )
    return folder


def fake_fatbinary(folder: Path, *kernels: str, chip: str = "90") -> Path:
    """A fatbinary for `--fatbinary`: its images hold `kernels` for sm_`chip`, for that driver."""
    place = folder / "fatbinary"
    place.write_text(
        "#!/bin/sh\n"
        'case "$1" in\n'
        "--version) echo 'Cuda compilation tools, release 13.5, V13.5.37'; exit 0 ;;\n"
        "esac\n"
        'for word in "$@"; do\n'
        '  case "$word" in --create=*) file=${word#--create=} ;; esac\n'
        "done\n"
        f"printf '\\177FAKE chips={chip}, kernels={','.join(kernels)},' > \"$file\"\n"
    )
    place.chmod(0o755)
    return place

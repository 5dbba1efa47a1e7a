"""Occupancy, beside the calculator in CUDA's own headers (cuda_occupancy.h)."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest
from helpers.zig import ZIG_CACHE
from msgspec.structs import replace

from aotc.chips import LIMITS, REGISTERS
from aotc.inspect.occupancy import limits_of, occupancy
from aotc.request import KNOWN_CHIPS, Chip, HostTarget
from aotc.toolchain import Runner, Toolchain

# Reads: capability, warps, shared, block_shared, reserved, threads, registers, shared, barriers.
# Writes: blocks, and the limits as bits.
CALCULATOR = r"""
#include <stdio.h>
#include "cuda_occupancy.h"
int main(void) {
  int capability, warps, shared, block, reserved, threads, registers, used, barriers;
  while (scanf("%d %d %d %d %d %d %d %d %d", &capability, &warps, &shared, &block, &reserved,
               &threads, &registers, &used, &barriers) == 9) {
    cudaOccDeviceProp device = {0};
    device.computeMajor = capability / 10;
    device.computeMinor = capability % 10;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = warps * 32;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.warpSize = 32;
    device.sharedMemPerBlock = 49152;
    device.sharedMemPerMultiprocessor = shared;
    device.numSms = 1;
    device.sharedMemPerBlockOptin = block;
    device.reservedSharedMemPerBlock = reserved;
    cudaOccFuncAttributes kernel = {0};
    kernel.maxThreadsPerBlock = 1024;
    kernel.numRegs = registers;
    kernel.sharedSizeBytes = used;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.numBlockBarriers = barriers;
    cudaOccDeviceState state = {0};
    state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
    cudaOccResult result;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads, 0)) {
      printf("-1 0\n");
    } else {
      printf("%d %u\n", result.activeBlocksPerMultiprocessor, result.limitingFactors);
    }
  }
  return 0;
}
"""
_BITS = {"warps": 1, "registers": 2, "shared memory": 4, "blocks": 8, "barriers": 16}


@pytest.fixture(scope="module")
def calculator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("occupancy")
    (folder / "main.c").write_text(CALCULATOR)
    toolchain = Toolchain(os.environ)
    command = [
        *toolchain.zig_cc.command,
        *("-target", HostTarget.native().triple, f"-isystem{toolchain.tool('cuda-include').path}"),
        *("-fno-sanitize=all", "main.c", "-o", "main"),
    ]
    Runner(os.environ).run(command, making="the calculator", cwd=folder, env=ZIG_CACHE)
    return folder / "main"


@pytest.mark.parametrize("capability", LIMITS)
def test_blocks_are_those_of_the_calculator(calculator: Path, capability: int) -> None:
    limits = LIMITS[capability]
    chance = random.Random(capability)
    # Barriers alone limit the first.
    cases = [(32, 0, 0, 16)] + [
        (
            chance.choice((32, 64, 96, 128, 256, 512, 1024, chance.randint(1, 1024))),
            chance.choice((0, 8, 16, 32, 64, 128, 168, 255, chance.randint(1, 255))),
            chance.choice((0, 1024, chance.randint(0, 49152), chance.randint(0, limits.shared))),
            chance.choice((0, 1, 1, 2, 16)),
        )
        for _ in range(2000)
    ]
    given = "".join(
        f"{capability} {limits.warps} {limits.shared} {limits.block_shared} "
        f"{limits.reserved_shared} {threads} {registers} {shared} {barriers}\n"
        for threads, registers, shared, barriers in cases
    )
    done = subprocess.run([calculator], input=given, text=True, capture_output=True, check=True)
    answers = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(answers) == len(cases)
    # Releases before 13.5 take those of 10.3 for twice as many.
    if capability == 103 and answers[0][0] == 4:
        limits = replace(limits, barriers=2)
    for case, (blocks, factors) in zip(cases, answers, strict=True):
        threads, registers, shared, barriers = case
        found = occupancy(
            limits, threads=threads, registers=registers, shared_bytes=shared, barriers=barriers
        )
        assert found.blocks == blocks, case
        # Where barriers are fewer than all else, the calculator names the next ones, too.
        known = sum(_BITS[name] for name in found.limits)
        assert known == factors or ("barriers" in found.limits and known & factors == known), case
        assert found.warps == blocks * -(-threads // 32)


def test_every_chip_has_limits() -> None:
    for name in KNOWN_CHIPS:
        assert limits_of(Chip(name)).warps * 32 * 32 <= REGISTERS

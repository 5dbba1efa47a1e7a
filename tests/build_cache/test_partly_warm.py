"""Builds of which a cache has a part: what is translated and what tools run then comes in another
order than in a cold build."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from helpers.command import SAMPLES, aotc_command, process_environment

# Between a pipe and the start of the tool that will have its end, nothing may be forked: the fork
# would keep the end open, and whoever waits for the tool would wait for ever.
WIDER_WINDOW = """
import subprocess, time
start = subprocess._fork_exec
def slow(*arguments):
    time.sleep(0.3)
    return start(*arguments)
subprocess._fork_exec = slow
"""


def test_a_tool_may_start_slowly(tmp_path: Path) -> None:
    """A build ends, whatever else begins while a thread starts a tool."""
    (tmp_path / "sitecustomize.py").write_text(WIDER_WINDOW)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = process_environment({"PYTHONPATH": path, "AOTC_CACHE": str(tmp_path / "cache")})
    for chip in ("sm_80", "sm_86", "sm_89"):
        command = aotc_command("build", SAMPLES / "saxpy.mlir", "--chip", chip)
        done = subprocess.run(
            [*command, "-o", tmp_path / "saxpy"],
            env=environment,
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr

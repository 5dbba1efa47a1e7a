"""samples/llm: a C++ program that generates tokens, against PyTorch."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from consumers.support import STRICT, find_gcc, zig_compiler
from helpers.command import SAMPLES, Outcome

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

LLM = SAMPLES / "llm"
COUNT = 12


def _model() -> Any:
    spec = importlib.util.spec_from_file_location("llm_model", LLM / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _likeliest(model: Any, prompt: list[int]) -> list[int]:
    """The tokens that PyTorch finds, one after the other, in caches that begin with zeros."""
    for layer in model.layers:
        layer.attention.keys.zero_()
        layer.attention.values.zero_()
    tokens = list(prompt)
    with torch.no_grad():
        for at in range(len(prompt) + COUNT - 1):
            logits = model(torch.tensor([tokens[at]]), torch.tensor([at]))
            if at + 1 == len(tokens):
                tokens.append(int(logits.argmax()))
    return tokens[len(prompt) :]


@pytest.mark.parametrize("bits", [16, 4])
def test_the_program_generates_what_pytorch_does(
    bits: int, aotc: Callable[..., Outcome], tmp_path: Path
) -> None:
    """Two sequences at once, each of which has what it has alone; and tokens that are drawn, the
    same ones for the same seed."""
    module = _model()
    model = module.make(module.SIZES["small"], bits)
    module.export(model, tmp_path)
    weights = tmp_path / "lib" / "llm.weights"
    words = ("--emit", "shared", "--chip", "sm_90a", "--weights", weights, "-o", f"{tmp_path}/")
    aotc("build", tmp_path / "llm.pt2", *words).succeeded()
    compiler = find_gcc() or zig_compiler(tmp_path / "compilers")
    folder = tmp_path / "lib"
    includes = (f"-I{tmp_path}", f"-I{tmp_path / 'include'}")
    linked = (f"-L{folder}", "-lllm", f"-Wl,-rpath,{folder}")
    strict = ("-std=c++17", *STRICT)
    program = compiler.program(tmp_path, LLM / "main.cpp", *strict, *includes, *linked)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "AOTC_DEVICE": "cpu"}
        command = [program, "--count", str(COUNT), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    prompts = [[1, 2, 3], [40, 41]]
    expected = [_likeliest(model, prompt) for prompt in prompts]
    done = run(*(",".join(map(str, prompt)) for prompt in prompts))
    lines = done.stdout.splitlines()
    assert [[int(one) for one in line.split(",")] for line in lines] == expected, done.stderr
    assert "tokens/s" in done.stderr

    drawn = [run("--temperature", "5", "--seed", seed, "1,2,3").stdout for seed in ("7", "7", "8")]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(drawn[0].split(",")) == COUNT

    refused = run("1,96")
    assert (refused.returncode, refused.stderr) == (
        1,
        "llm: '96' is no token: they are numbers from 0 to 95\n",
    )

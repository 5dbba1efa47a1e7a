"""The model bundle: it builds, travels without its weights, and tells right from wrong."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from frontends import bundle  # noqa: E402
from frontends.weights import ENDING, cut, put_back  # noqa: E402

from bench.models.gpu import catalogue  # noqa: E402


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bundle") / "models"
    options = ["--size", "small", "--dtype", "f16", "--cpu-kernels"]
    assert bundle.main([str(out), "mlp", *options]) == 0
    return out.with_name("models.tar.xz")


@pytest.fixture
def unpacked(archive: Path, tmp_path: Path) -> Path:
    # (tarfile's safe extraction is not in every Python 3.11.)
    shutil.unpack_archive(archive, tmp_path / "models")
    # What `run` calls.
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return tmp_path / "models"


def _run(folder: Path, *arguments: str) -> tuple[int, str]:
    command = [folder / "run", "--device", "cpu", "--no-compile", "--seconds", "0", *arguments]
    path = f"{folder.parent}:/usr/bin:/bin"
    done = subprocess.run(
        command, env={"PATH": path}, cwd="/", capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_it_runs(unpacked: Path) -> None:
    rows_file = unpacked.parent / "rows.json"
    code, text = _run(unpacked, "--json", str(rows_file))
    assert code == 0, text
    assert "4 right, and 0 functions of JAX, 0 complaints" in text
    rows: list[dict[str, Any]] = json.loads(rows_file.read_text())
    assert [(row["batch"], row["dynamic"]) for row in rows] == [
        *((1, False), (8, False), (3, True), (8, True))
    ]
    assert all(0 < row["ours"]["error"] < 1e-2 and row["eager"]["us"] > 0 for row in rows)
    assert _run(unpacked, "lenet")[0] == 1  # nothing that ran is no success


def test_another_model_is_wrong(unpacked: Path) -> None:
    models = unpacked / "models.py"
    models.write_text(models.read_text().replace("torch.softmax(", "torch.log_softmax("))
    code, text = _run(unpacked)
    assert code == 1
    assert "mlp-f16, batch 8: ours is wrong, or failed" in text
    assert "0 right" in text


def test_another_library_is_refused(unpacked: Path) -> None:
    library = next((unpacked / "lib" / "mlp-f16-8" / "lib").glob(f"*{ENDING}"))
    library.write_bytes(library.read_bytes()[:-1] + b"?")
    code, text = _run(unpacked)
    assert code == 1
    assert "is not what was built" in text


def test_caches_are_not_in_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library's state begins with zeros; where it is measured, no two heads have the same."""

    class Attention(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.out = torch.nn.Linear(8, 8)
            self.register_buffer("keys", torch.zeros(2, 3, 5, 8))

    case = catalogue.models.Case(Attention(), lambda batch, _: {"x": torch.ones(batch, 8)})
    monkeypatch.setitem(catalogue.MODELS, "attention", lambda _: case)
    built, _ = catalogue.made("attention", 2, "f32", "cpu", fills_caches=False)
    assert not built.keys.any()
    weight = built.out.weight.clone()
    module, _ = catalogue.made("attention", 2, "f32", "cpu")
    assert torch.equal(module.out.weight, weight)
    assert len({tuple(head.flatten().tolist()) for head in module.keys.flatten(0, 1)}) == 6
    assert 0.3 < module.keys.std() < 0.4  # 1 / sqrt(8)


def test_weights_are_cut_and_put_back(tmp_path: Path) -> None:
    """As they are, or with dimensions in another order, or with the rows of several as one; not
    where the bytes are others, or are zeros, which may be anyone's."""
    layers = torch.nn.Linear(70, 40), torch.nn.Linear(70, 40), torch.nn.Linear(70, 24)
    module = torch.nn.Sequential(torch.nn.Conv2d(8, 16, 3), *layers)
    module.register_buffer("cache", torch.zeros(64, 64))
    kernel, matrix, *rest = (layer.weight.detach() for layer in module)
    joined = torch.cat([one.T for one in rest], -1).numpy().tobytes()
    last_first = kernel.permute(3, 0, 2, 1).contiguous().numpy().tobytes()
    other = bytearray(matrix.numpy().tobytes())
    other[-1] ^= 1
    parts = [
        b"start" * 25,
        matrix.T.contiguous().numpy().tobytes(),
        last_first,
        joined,
        bytes(other),
        bytes(module.cache.nbytes),
    ]
    content = b"".join(part.ljust(-(-len(part) // 64) * 64, b"\0") for part in parts)
    library = tmp_path / "lib.so"
    library.write_bytes(content)
    cuts = cut(library, module)
    names = [["1.weight"], ["0.weight"], ["2.weight", "3.weight"]]
    assert [one for _, one, _ in cuts["cuts"]] == names
    left = tmp_path / f"lib.so{ENDING}"
    assert left.stat().st_size == len(content) - sum(map(len, parts[1:4]))
    put_back(library, json.loads(json.dumps(cuts)), module)
    assert library.read_bytes() == content
    shutil.move(left, tmp_path / "kept")
    put_back(library, cuts, module)  # it is there already

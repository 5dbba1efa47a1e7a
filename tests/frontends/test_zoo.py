"""Models as people write them, unmodified: as near to PyTorch in f64 as eager PyTorch is.

Those of PyTorch alone; `make models` has those of torchvision, timm, transformers and diffusers.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

import frontends.zoo.judge as under_test  # noqa: E402
from frontends.zoo.catalogue import MODELS, VARIANTS, load  # noqa: E402
from frontends.zoo.judge import Verdict, judge  # noqa: E402
from frontends.zoo.table import write_table  # noqa: E402

load()
SMALL = (
    *("dlrm", "lstm_tagger", "gru_tagger", "wavenet", "pointnet", "graph_convolution", "nerf"),
    *("unet", "autoencoder", "dcgan", "transformer", "experts"),
)
ANY_SIZE = ("dlrm", "nerf", "experts")


@pytest.mark.parametrize("name", SMALL)
def test_models(name: str, tmp_path: Path) -> None:
    verdict = judge(MODELS[name], tmp_path, seconds=0)
    assert verdict.kind == "right", verdict


@pytest.mark.parametrize("name", ANY_SIZE)
def test_models_of_any_size(name: str, tmp_path: Path) -> None:
    verdict = judge(MODELS[name], tmp_path, VARIANTS["any"])
    assert verdict.kind == "right", verdict


@pytest.mark.parametrize(("name", "variant"), [("lstm_tagger", "onnx"), ("pointnet", "onnx_any")])
def test_models_of_onnx(name: str, variant: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    verdict = judge(MODELS[name], tmp_path, VARIANTS[variant], seconds=0)
    assert verdict.kind == "right", verdict


def test_a_wrong_result_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict that cannot fail is none."""
    right = under_test.call

    def wrong(*words: Any) -> Any:
        return [array * 1.001 for array in right(*words)]

    monkeypatch.setattr(under_test, "call", wrong)
    assert judge(MODELS["nerf"], tmp_path).kind == "wrong"


def test_the_table(tmp_path: Path) -> None:
    """One row for each model, and why those that are not right are not; what is around it stays."""
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- made by make models: begin -->\nold\n<!-- end -->\nafter\n")
    right = {"name": "a", "variant": "one", **under_test.as_dict(Verdict("right", error=1e-7))}
    any_size = {"name": "a", "variant": "any", **under_test.as_dict(Verdict("export", "no guard"))}
    refused = Verdict("refused", "/home/me/model.py:3: error: no 'x'\nmore")
    other = {"name": "b", "variant": "one", **under_test.as_dict(refused)}
    onnx = {"name": "c", "variant": "onnx", **under_test.as_dict(Verdict("wrong", "its error"))}
    write_table(page, ["a", "b", "c"], [right, any_size, other, onnx])
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("<!-- end -->\nafter\n")
    assert "From torch.export: 1 of 2 are right; with any batch and length, 0 of 1." in text
    assert "From files of ONNX: 0 of 1 are right; with any batch and length, 0 of 0." in text
    assert "| c | wrong |" in text
    assert "| a | right | 1.0e-07 |  | not exported |" in text
    assert "| b | refused |  |  | not run |" in text
    assert "- `b`: model.py:3: error: no 'x'\n" in text
    assert not re.search("old|/home", text)

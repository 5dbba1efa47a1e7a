"""A .pt2 file that would run code when PyTorch loads it is refused, by the name of what would."""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import aotc

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

CHIP = "sm_90"


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        y = self.layer(x)
        return torch.cat([y, y[1:] * 2])


class Touches:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with a symbolic size."""
    path = tmp_path_factory.mktemp("saved") / "net.pt2"
    dynamic = ({0: torch.export.Dim("batch", min=3, max=64)},)
    torch.export.save(torch.export.export(Net(), (torch.ones(5, 4),), dynamic_shapes=dynamic), path)
    return path


def _changed(saved: Path, out: Path, change: Callable[[str, bytes], tuple[str, bytes]]) -> Path:
    """A copy in whose records `change` has been: from name and content to both."""
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(*change(name, old.read(name)))
    return out


def _refused(path: Path, marker: Path) -> str:
    with pytest.raises(aotc.InputError) as raised:
        aotc.build(path, out=path.parent / "out", emit="mlir", chips=CHIP)
    assert not marker.exists()
    return str(raised.value)


def _runs_in_pytorch(path: Path, marker: Path) -> bool:
    """Whether PyTorch itself runs the code: else the case would show nothing."""
    with contextlib.suppress(Exception):
        torch.export.load(path).run_decompositions()
    ran = marker.exists()
    marker.unlink(missing_ok=True)
    return ran


def test_what_pytorch_saves_is_loaded(saved: Path, tmp_path: Path) -> None:
    path = _changed(saved, tmp_path / "net.pt2", lambda *record: record)
    aotc.build(path, out=tmp_path / "x.mlir", emit="mlir", chips=CHIP)


def _pickled(thing: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(thing, buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("folder", ["sample_inputs", "Sample_Inputs", "weights", "constants"])
def test_pickles(folder: str, saved: Path, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    content = _pickled({"x": Touches(marker)})

    def change(name: str, old: bytes) -> tuple[str, bytes]:
        if folder.lower() == "sample_inputs" and name.endswith("sample_inputs/model.pt"):
            return name.replace("sample_inputs", folder), content
        config = f"data/{folder}/model_{folder}_config.json"
        if name.endswith(config):
            name = name.replace(config, f"data/{folder}/model.pt")
            return name, content
        return name, old

    path = _changed(saved, tmp_path / "net.pt2", change)
    assert _runs_in_pytorch(path, marker)
    assert "has more than tensors and plain values" in _refused(path, marker)


def test_pickled_weights(saved: Path, tmp_path: Path) -> None:
    marker = tmp_path / "marker"

    def change(name: str, old: bytes) -> tuple[str, bytes]:
        if name.endswith("model_weights_config.json"):
            config = json.loads(old)
            config["config"]["layer.weight"]["use_pickle"] = True
            return name, json.dumps(config).encode()
        if name.endswith("weights/weight_0"):
            return name, _pickled(Touches(marker))
        return name, old

    path = _changed(saved, tmp_path / "net.pt2", change)
    assert _runs_in_pytorch(path, marker)
    assert "weight_0 has more than tensors" in _refused(path, marker)


def test_an_object_of_a_class(saved: Path, tmp_path: Path) -> None:
    marker = tmp_path / "marker"

    def change(name: str, old: bytes) -> tuple[str, bytes]:
        if name.endswith("model_constants_config.json"):
            payload = {"path_name": "opaque_obj_0", "use_pickle": True, "is_param": False}
            return name, json.dumps({"config": {"o": {**payload, "tensor_meta": None}}}).encode()
        return name, old

    path = _changed(saved, tmp_path / "net.pt2", change)
    with zipfile.ZipFile(path, "a") as archive:
        root = archive.namelist()[0].split("/")[0]
        archive.writestr(f"{root}/data/constants/opaque_obj_0", pickle.dumps(Touches(marker)))
    assert _runs_in_pytorch(path, marker)
    assert "'o' is an object of a class of its own" in _refused(path, marker)


def test_compiled_code(saved: Path, tmp_path: Path) -> None:
    path = _changed(saved, tmp_path / "net.pt2", lambda *record: record)
    with zipfile.ZipFile(path, "a") as archive:
        root = archive.namelist()[0].split("/")[0]
        archive.writestr(f"{root}/data/aotinductor/model/model.so", b"")
    assert "data/aotinductor/model/model.so: compiled code" in _refused(path, tmp_path / "marker")


def _edited(document: Any, edit: Callable[[str, Any], Any], key: str = "") -> Any:
    if isinstance(document, dict):
        return {edit("", inner): _edited(value, edit, inner) for inner, value in document.items()}
    if isinstance(document, list):
        return [_edited(value, edit, key) for value in document]
    return edit(key, document)


@pytest.mark.parametrize("what", ["size", "name", "operator", "guard", "base"])
def test_texts_of_the_program(what: str, saved: Path, tmp_path: Path) -> None:
    """What PyTorch compiles as Python; of operators it refuses some itself."""
    marker = tmp_path / "marker"
    code = f"__import__('pathlib').Path({str(marker)!r}).touch()"

    def edit(key: str, value: Any) -> Any:
        if what == "size" and key == "expr_str":
            return f"{code} or s0"
        if what == "name" and value == "x":
            return f"x={code}"
        if what == "operator" and key == "target" and "linear" in value:
            return "torch.os.system"
        return value

    def change(name: str, old: bytes) -> tuple[str, bytes]:
        if not name.endswith("models/model.json"):
            return name, old
        document = _edited(json.loads(old), edit)
        if what == "guard":
            document["guards_code"] = [f"{code} is None"]
        if what == "base":
            document["guards_code"] = [f"{code} is None or L['x']._base is None"]
        return name, json.dumps(document).encode()

    path = _changed(saved, tmp_path / "net.pt2", change)
    assert _runs_in_pytorch(path, marker) == (what != "operator")
    if what == "base":
        # It says nothing of arguments, and is left out.
        aotc.build(path, out=tmp_path / "out", emit="mlir", chips=CHIP)
        assert not marker.exists()
        return
    if what == "guard":
        # It is read by a parser of its own, which knows conditions on sizes alone.
        expected = "A condition on sizes cannot be checked"
    elif what == "operator":
        expected = "torch.export cannot load"
    else:
        expected = f"model.json: the {what} "
    assert expected in _refused(path, marker)


# An argument that is no value of the program.
_UNKNOWN = b'{"as_tensor": {"name": "q"}}, "kind"'


@pytest.mark.parametrize(
    ("record", "old", "new", "said"),
    [
        ("model.json", b'{"as_tensor": {"name": "x"}}, "kind"', _UNKNOWN, "KeyError: 'q'"),
        ("model.json", b"graph_module", b"graph_\x91odule", "'utf-8' codec can't decode"),
        ("model_weights_config.json", b'"config"', b'"confit"', "config"),
    ],
)
def test_a_damaged_record(
    record: str,
    old: bytes,
    new: bytes,
    said: str,
    saved: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """It is the file's fault, and the message has PyTorch's reason, which that logs with a
    traceback."""

    def change(name: str, content: bytes) -> tuple[str, bytes]:
        return name, content.replace(old, new) if name.endswith(record) else content

    path = _changed(saved, tmp_path / "net.pt2", change)
    refused = _refused(path, tmp_path / "marker")
    assert refused.startswith(f"torch.export cannot load '{path}': ")
    assert said in refused
    assert len(refused.splitlines()) < 10
    assert capfd.readouterr() == ("", "")

"""What is mutated, by name: each category makes the case of a seed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from helpers.command import SAMPLES, aotc_command, process_environment

from fuzz import corpus
from fuzz.archive import mutate_archive
from fuzz.array_file import mutate_array
from fuzz.bytecode import mutate_bytecode
from fuzz.case import Case
from fuzz.mlir_text import mutate_mlir
from fuzz.mutators import mutate_bytes
from fuzz.onnx_model import mutate_model
from fuzz.project_file import mutate_project
from fuzz.screening import MODEL, MODULE, Screen

# Most defects are in what all artifacts need. Tools take most of the time of the later ones.
_LOWERED = ("host-mlir", "host-mlir", "host-ll", "cpu-mlir", "device-mlir", "device-ll")
_KINDS = (*_LOWERED * 4, "mlir", "mlir", "manifest", "header", "ptx", "ptx", "cubin", "obj", "exe")
_MODEL_KINDS = ("mlir", "host-mlir", "host-mlir", "host-ll", "obj")


@dataclass(frozen=True)
class Shared:
    """What the cases of a run have in common: a folder for trees, who knows valid modules, and the
    modules that are mutated."""

    folder: Path
    screen: Screen
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Category:
    """`make(shared, name, random)` gives a case.

    `needs` are the packages without which there is none. `share` is how many of the inputs are
    of this category.
    """

    name: str
    make: Callable[[Shared, str, Random], Case]
    share: int
    needs: tuple[str, ...] = ()

    @property
    def is_available(self) -> bool:
        return all(importlib.util.find_spec(package) for package in self.needs)


def case_of(category: Category, seed: int, number: int, shared: Shared) -> Case:
    """The case with this number: the same for the same seed."""
    random = Random(f"{seed} {category.name} {number}")
    return category.make(shared, f"{category.name}-{seed}-{number}", random)


def _build(
    name: str, target: str, content: bytes, original: bytes, kinds: tuple[str, ...], random: Random
) -> Case:
    kind = random.choice(kinds)
    level = random.choice(((), (), (), ("-O0",), ("-g",), ("-O1",)))
    arguments = ("build", target, "--emit", kind, "--chip", "sm_90", "--no-cache", *level)
    return Case(name, target, content, original, (*arguments, "-o", "output"), ("output",))


def _mlir(shared: Shared, name: str, random: Random) -> Case:
    texts = shared.texts
    text = random.choice((random.choice(texts), random.choice(corpus.sample_texts())))

    def mutate(old: bytes) -> bytes:
        changed = mutate_mlir(old.decode(errors="surrogateescape"), texts, random)
        return changed.encode(errors="surrogateescape")

    original = text.encode()
    changed = _mutated(original, mutate, shared.screen, random)
    return _build(name, "input.mlir", changed, original, _KINDS, random)


def _mutated(
    original: bytes,
    mutate: Callable[[bytes], bytes],
    screen: Screen,
    random: Random,
    kind: bytes = MODULE,
) -> bytes:
    """In one step, whatever comes of it; or in several, between which it stays valid."""
    steps = random.choice((0, 0, 0, 1, 1, 1, 2, 2, 3, 5))
    if steps == 0:
        return mutate(original)
    changed = original
    for _ in range(steps):
        changed = screen.valid(changed, mutate, kind)
    return changed


def _bytecode(shared: Shared, name: str, random: Random) -> Case:
    code = random.choice(corpus.bytecodes())
    changed = _mutated(code, lambda old: mutate_bytecode(old, random), shared.screen, random)
    return _build(name, "input.mlirbc", changed, code, _KINDS, random)


def _onnx(shared: Shared, name: str, random: Random) -> Case:
    models = corpus.onnx_models()
    model = random.choice(models)

    def mutate(old: bytes) -> bytes:
        return mutate_model(old, models, random)

    changed = _mutated(model, mutate, shared.screen, random, MODEL)
    case = _build(name, "model.onnx", changed, model, _MODEL_KINDS, random)
    return replace(case, modules=("onnx", "torch_mlir.extras.onnx_importer"))


def _torch(shared: Shared, name: str, random: Random) -> Case:
    program = random.choice(corpus.torch_programs())
    changed = mutate_archive(program, random)
    case = _build(name, "model.pt2", changed, program, _MODEL_KINDS, random)
    return replace(case, modules=("torch.export", "torch_mlir.fx"))


def _array(shared: Shared, name: str, random: Random) -> Case:
    tree = shared.folder / "program"
    if not tree.exists():
        _make(tree, corpus.PROGRAM, "--emit", "exe", "-o", "double", "--no-cache")
    array = random.choice(corpus.arrays())
    use = random.choice(("--x", "--x", "--expect"))
    source = "a.npy" if use == "--x" else "y=a.npy"
    more = () if use == "--x" else ("--dim", "x=3x4", "--dim", "y=3x4")
    told = random.choice(((), ("--print", "x"), ("--print", "x", "--json"), ("--out", "x=x.npy")))
    # The result has as many rows as the argument only where that has its usual shape.
    rows = ("--dim", "y=3x4") if use == "--x" else ()
    command = ("./double", use, source, *rows, *more, *told)
    changed = mutate_array(array, random)
    return Case(name, "a.npy", changed, array, command, tree=tree, compares=use == "--expect")


def _project(shared: Shared, name: str, random: Random) -> Case:
    text = random.choice(corpus.PROJECTS)
    command = ("build", "--no-cache", "-j1")
    changed = mutate_project(text, random)
    files = {"module.mlir": corpus.PROGRAM.encode()}
    return Case(name, "aotc.toml", changed, text.encode(), command, files=files)


def _cache(shared: Shared, name: str, random: Random) -> Case:
    """A file of a warm cache, for what was built with it or for another module; the output is what
    it is without."""
    kind = random.choice(("exe", "exe", "fatbin", "obj", "shared"))
    module = random.choice(("saxpy", "vector_add"))
    tree, whole = shared.folder / f"cached-{kind}", shared.folder / f"whole-{kind}-{module}"
    options = ("--emit", kind, "--chip", "sm_90", "--cache", "cache", "-o", "output")
    texts = {one: (SAMPLES / f"{one}.mlir").read_text() for one in ("saxpy", module)}
    if not tree.exists():
        _make(tree, texts["saxpy"], *options)
        (tree / "output").unlink()
    if not whole.exists():
        _make(whole, texts[module], *options)
    expected = {"output": (whole / "output").read_bytes()}
    file = random.choice(sorted(path for path in (tree / "cache").rglob("*") if path.is_file()))
    content, target = file.read_bytes(), str(file.relative_to(tree))
    changed = random.choice((mutate_bytes(content, random), mutate_bytes(content, random), b""))
    command = ("build", "module.mlir", *options)
    files = {"module.mlir": texts[module].encode()}
    return Case(
        name, target, changed, content, command, ("output",), files, tree=tree, expected=expected
    )


def _make(tree: Path, text: str, *options: str) -> None:
    """A folder in which a module was built."""
    tree.mkdir(parents=True)
    (tree / "module.mlir").write_text(text)
    command = aotc_command("build", "module.mlir", *options)
    environment = {key: value for key, value in os.environ.items() if key != "AOTC_CACHE"}
    subprocess.run(command, cwd=tree, env={**environment, **process_environment()}, check=True)


CATEGORIES = (
    Category("mlir", _mlir, 30),
    Category("bytecode", _bytecode, 30),
    Category("onnx", _onnx, 15, ("onnx",)),
    Category("pt2", _torch, 5, ("torch",)),
    Category("npy", _array, 8),
    Category("toml", _project, 7),
    Category("cache", _cache, 5),
)

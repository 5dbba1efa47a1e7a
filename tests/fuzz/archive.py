"""Changes of .pt2 files: of their JSON, their other members, or the archive's bytes."""

from __future__ import annotations

import io
import json
import zipfile
from random import Random
from typing import Any

from fuzz.mutators import mutate_bytes, number, several

_TEXTS = ("", "x", "x_1", "é", "long" * 2000, "../x", "s0", "s0*s1", "-1", "9" * 30, "s0 - 5")
_TARGETS = (
    *("torch.ops.aten.add.Tensor", "torch.ops.aten.view.default", "torch.ops.aten.mm.default"),
    *("torch.ops.aten.nothing.default", "_operator.mul", "os.system", "torch.ops.aten.cat.default"),
    *(
        "torch.ops.aten.slice.Tensor",
        "torch.ops.aten.sort.default",
        "torch.ops.aten.sum.dim_IntList",
    ),
)


def mutate_archive(data: bytes, random: Random) -> bytes:
    """`data`, a zip file, with some changes."""
    if random.random() < 0.2:
        return mutate_bytes(data, random)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    if random.random() < 0.75:
        texts = [name for name in members if name.endswith(".json")]
        programs = [name for name in texts if name.endswith("models/model.json")]
        name = random.choice([*texts, *programs * 6])
        tree = several(
            json.loads(members[name]), (_change_leaf, _change_leaf, _change_tree), random
        )
        members[name] = json.dumps(tree).encode()
    else:
        members = _change_members(members, random)
    return archive_of(members)


def archive_of(members: dict[str, bytes]) -> bytes:
    """A zip file of these members, as PyTorch writes it: nothing is compressed."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return file.getvalue()


def _change_members(members: dict[str, bytes], random: Random) -> dict[str, bytes]:
    """A member is changed, left out, called otherwise, or another's content."""
    name, other = random.choice(list(members)), random.choice(list(members))
    how = random.randrange(4)
    if how == 0:
        return {**members, name: mutate_bytes(members[name], random)}
    if how == 1:
        return {key: value for key, value in members.items() if key != name}
    if how == 2:
        return {key if key != name else f"{key}x": value for key, value in members.items()}
    return {**members, name: members[other]}


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Each container of the tree, with each of its keys."""
    keys = (
        list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else []
    )
    found: list[tuple[Any, Any]] = []
    for key in keys:
        found += [(tree, key), *_places(tree[key])]
    return found


def _change_leaf(tree: Any, random: Random) -> Any:
    places = [(one, key) for one, key in _places(tree) if not isinstance(one[key], dict | list)]
    if not places:
        return tree
    container, key = random.choice(places)
    old = container[key]
    if isinstance(old, bool) or old is None:
        new: Any = random.choice((True, False, None, 1, "x"))
    elif isinstance(old, int):
        new = random.choice((old + 1, old - 1, -old, number(random), number(random), "x", None))
    elif isinstance(old, str) and old.startswith("torch.ops"):
        new = random.choice(_TARGETS)
    else:
        texts = [one[k] for one, k in places if isinstance(one[k], str)]
        new = random.choice((*texts, *_TEXTS, 1, None))
    container[key] = new
    return tree


def _change_tree(tree: Any, random: Random) -> Any:
    """A part is left out, comes twice, or is another's."""
    places = _places(tree)
    if not places:
        return tree
    container, key = random.choice(places)
    how = random.randrange(3)
    if how == 0:
        del container[key]
    elif how == 1 and isinstance(container, list):
        container.insert(key, json.loads(json.dumps(container[key])))
    else:
        other, other_key = random.choice(places)
        container[key] = json.loads(json.dumps(other[other_key]))
    return tree

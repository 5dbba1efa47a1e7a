"""Changes of .npy files: of the header's values, of its length, or of bytes."""

from __future__ import annotations

from random import Random

from fuzz.mutators import mutate_bytes, number

_MAGIC = b"\x93NUMPY"
_TYPES = (
    *("<f4", ">f4", "<f8", "<f2", "|u1", "<i8", "|b1", "<c8", "<U3", "|O", "|V4", "<f16", "=f4"),
    *("", "f", "<f0", "<f99999999999", "<M8[ns]", "\\x00", "<f4" * 400),
)
_VALUES = ("False", "True", "None", "1", "'x'", "[]", "(", "Fals")


def mutate_array(data: bytes, random: Random) -> bytes:
    """`data`, a .npy file, with some changes."""
    if random.random() < 0.4:
        return mutate_bytes(data, random)
    version = data[6]
    width = 2 if version == 1 else 4
    body = data[8 + width + int.from_bytes(data[8 : 8 + width], "little") :]
    shape = [
        random.choice((3, 4, 0, number(random))) for _ in range(random.choice((2, 2, 0, 1, 40)))
    ]
    shape = random.choice(([3, 4], shape))
    fields = {
        "descr": f"'{random.choice(('<f4', '<f4', random.choice(_TYPES)))}'",
        "fortran_order": random.choice(("False", random.choice(_VALUES))),
        "shape": f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})",
    }
    items = list(fields.items())
    if random.random() < 0.2:
        random.shuffle(items)
    if random.random() < 0.15:
        items.pop(random.randrange(len(items)))
    if random.random() < 0.15:
        items.append(("more" * random.choice((1, 20000)), "1"))
    text = "{" + ", ".join(f"'{key}': {value}" for key, value in items) + ", }"
    header = text.encode() + b" " * random.choice((0, 20, 100)) + b"\n"
    length = len(header) if random.random() < 0.8 else number(random)
    version = version if random.random() < 0.8 else random.randrange(256)
    size = length % (1 << (8 * width))
    file = _MAGIC + bytes([version, 0]) + size.to_bytes(width, "little") + header + body
    return file if random.random() < 0.8 else mutate_bytes(file, random)

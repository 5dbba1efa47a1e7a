"""What is built and held against f64: an entry, and what a check is to know of it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Program(Struct, frozen=True):
    """`text`: a module with the entry `name`, whose last argument is the result. `about`: what
    `device/check.py` reads of it; its `kind` says which of the device's modules computes what must
    come out. `chip`, `options`: what it is built for, as in `cases.Case`.
    """

    name: str
    text: str
    about: dict[str, Any]
    chip: str = "sm_90a"
    options: tuple[str, ...] = ()

    @property
    def described(self) -> dict[str, Any]:
        return {"name": self.name, "options": self.options, "chip": self.chip, **self.about}

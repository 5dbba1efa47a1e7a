"""What a library and its C functions are called."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from aotc.emit.c_text import c_identifier, c_name
from aotc.errors import InputError
from aotc.manifest import Entry

# Functions of the library itself.
_OWN = ("status", "last_error", "clear_error", "set_device", "set_error_hook", "free", "unload")


def own_functions(name: str, prefix: str) -> dict[str, str]:
    """By what they do: matmul_last_error, or, with the prefix one_, one_last_error."""
    start = prefix or f"{c_identifier(name)}_"
    return {function: f"{start}{function}" for function in _OWN}


def name_functions(entries: Iterable[Entry], name: str, prefix: str) -> tuple[Entry, ...]:
    """The entries with their C functions' names. Raises InputError where two have one name."""
    owners = dict.fromkeys(own_functions(name, prefix).values(), "the library itself")
    named = []
    for entry in entries:
        call = c_name(f"{prefix}{entry.name}")
        functions = {
            "call": call,
            **({"async": f"{call}_async"} if entry.why_not_async is None else {}),
            "memref": f"{call}_memref",
            "c_interface": f"_mlir_ciface_{prefix}{entry.name}",
        }
        for function in functions.values():
            if function in owners:
                raise InputError(
                    f"Two C functions would be called '{function}': one of entry "
                    f"'{entry.name}', one of {owners[function]}.",
                    hint="Rename the entry, or leave it out with --entry.",
                )
            owners[function] = f"entry '{entry.name}'"
        named.append(replace(entry, functions=functions))
    return tuple(named)

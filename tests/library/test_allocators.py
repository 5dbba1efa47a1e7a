"""Memory of other packages for the calls of a library, with a library that only asks for it."""

from __future__ import annotations

from typing import Any

import pytest

from aotc.library.allocators import Allocators


class Owner:
    """What keeps memory of a package."""

    def __init__(self, log: list[str]) -> None:
        self._log = log

    def __del__(self) -> None:
        self._log.append("dropped")


class Package:
    """Memory at addresses that are multiples of 256; no more than `most`."""

    def __init__(self, most: int = 9) -> None:
        self.most = most
        self.log: list[str] = []

    def allocate(self, size: int, stream: int | None) -> tuple[int, Any]:
        self.log.append(f"{size} bytes on {stream}")
        if self.most == 0:
            raise MemoryError
        self.most -= 1
        return 256 * (9 - self.most), Owner(self.log)


class Library:
    """The functions that `set_allocator` of a library was given last."""

    def __init__(self) -> None:
        self.functions: tuple[Any, Any] = (None, None)
        self.allocators = Allocators(self._set)

    def _set(self, allocate: Any, release: Any, data: Any) -> None:
        self.functions = (allocate, release)

    def allocate(self, size: int) -> int | None:
        found: int | None = self.functions[0](size, 0, 7, None)
        return found

    def free(self, address: int) -> None:
        self.functions[1](address, 16, 0, 7, None)


@pytest.mark.parametrize("stream", [None, 5])
def test_memory_goes_back_when_no_kernel_uses_it(stream: int | None) -> None:
    """Memory that a call frees is dropped at once if the call works on the package's stream, else
    when the call is done."""
    library, package = Library(), Package()
    with library.allocators.given(package, stream):
        address = library.allocate(16)
        assert address == 256
        library.free(address)
        assert ("dropped" in package.log) == (stream is not None)
    assert package.log == [f"16 bytes on {stream}", "dropped"]
    assert not library.functions[0]


def test_a_result_is_kept_by_whoever_takes_it() -> None:
    library, package = Library(), Package()
    with library.allocators.given(package, None):
        address = library.allocate(16)
        functions = library.functions
    freed = []

    def free(freed_address: int) -> None:
        freed.append(freed_address)
        functions[1](freed_address, 16, 0, None, None)

    owner = library.allocators.take(address, free)
    assert (type(owner), freed, package.log[1:]) == (Owner, [256], [])
    assert library.allocators.take(address, free) is None
    del owner
    assert package.log[1:] == ["dropped"]


def test_no_memory_is_a_null_pointer() -> None:
    library = Library()
    with library.allocators.given(Package(most=0), None):
        assert library.allocate(16) is None

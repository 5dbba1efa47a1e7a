"""The names of a library and its C functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from aotc.emit.c_text import c_identifier, c_name
from aotc.errors import InputError
from aotc.input.entries import RUNTIME_PREFIXES
from aotc.manifest import RESULT_SHAPES, WORKSPACE, Entry, Manifest, Weights

# Functions that the runtime calls. An entry of such a name would be called in their place.
CALLED = frozenset(
    """
    bcmp calloc clock_gettime close dlerror dlopen dlsym dprintf fclose flock fopen free fstat
    ftruncate getdelim getenv getline getpid madvise malloc malloc_usable_size memchr memcmp memcpy
    memmove memset mmap munmap open posix_memalign pread pthread_atfork pthread_attr_destroy
    pthread_attr_init pthread_attr_setguardsize pthread_attr_setstacksize pthread_cond_broadcast
    pthread_cond_init pthread_cond_signal pthread_cond_wait pthread_create pthread_join
    pthread_mutex_destroy pthread_mutex_init pthread_mutex_lock pthread_mutex_trylock
    pthread_mutex_unlock pthread_once pthread_self pthread_sigmask pwrite realloc rename
    sched_getaffinity sched_yield sigfillset siglongjmp sigsetjmp snprintf sscanf stat strcmp strdup
    strerror strlen strncmp strrchr strstr strtol strtoull syscall sysconf unlink vsnprintf
    """.split()
)

# Names that systems call.
_CALLED_BY_SYSTEMS = {
    "main": "programs begin with one",
    "_start": "programs begin with one",
    "_init": "a library that is loaded begins with one",
    "_fini": "a library that is unloaded ends with one",
}


def is_taken(name: str) -> bool:
    """Whether a library must not have a function of this name."""
    return name in CALLED or name in _CALLED_BY_SYSTEMS


_PREFIX_HINT = "Rename it, or put something in front of all names: --prefix my_."

# Functions of the library itself, of its weights file, of replaceable weights, and of its state.
_OWN = (
    *("status", "last_error", "clear_error", "set_device", "set_error_hook", "free", "free_async"),
    *("copy", "set_allocator", "set_workspace", "unload"),
)
_OF_WEIGHTS_FILE = ("set_weights_budget",)
_OF_WEIGHTS = ("set_weight", "read_weight", "restore_weight")
_OF_STATE = ("create", "free", "reset", "copy", "read", "write", "truncate", "save", "load")


def own_functions(
    name: str, prefix: str, *, has_state: bool, weights: Weights | None
) -> dict[str, str]:
    """What a function does → its name: matmul_last_error, or, with the prefix one_,
    one_last_error."""
    of_state = [f"state_{function}" for function in _OF_STATE] if has_state else []
    of_weights = (
        *(_OF_WEIGHTS_FILE if weights is not None else ()),
        *(_OF_WEIGHTS if weights is not None and weights.replaceable else ()),
    )
    functions = (*_OWN, *of_state, *of_weights)
    return {function: _own_name(name, prefix, function) for function in functions}


def state_type(name: str, prefix: str) -> str:
    """The C type of a library's state."""
    return _own_name(name, prefix, "state")


def _own_name(name: str, prefix: str, word: str) -> str:
    return f"{prefix or f'{c_identifier(name)}_'}{word}"


def name_functions(
    entries: Iterable[Entry], prefix: str, state: str, sized: Collection[str]
) -> tuple[Entry, ...]:
    """The entries with the names of their C functions. `state` is the C type of the state, `sized`
    are the entries that have a function for the sizes of their results."""
    named = []
    for entry in entries:
        name = c_identifier(f"{prefix}{entry.name}")
        functions = {
            "call": c_name(name),
            **({"async": f"{name}_async"} if entry.why_not_async is None else {}),
            "memref": f"{name}_memref",
            "c_interface": f"_mlir_ciface_{prefix}{entry.name}",
            **({RESULT_SHAPES: f"{name}_result_shapes"} if entry.name in sized else {}),
            **({WORKSPACE: f"{name}_workspace_size"} if entry.workspace_bytes != 0 else {}),
        }
        takes_state = len(entry.given) < len(entry.arguments)
        named.append(replace(entry, functions=functions, state=state if takes_state else None))
    return tuple(named)


def exported_functions(manifest: Manifest) -> list[str]:
    """The functions that a library exports.

    Raises InputError if two functions have the same name, or one has a reserved name.
    """
    owners: dict[str, str] = {}
    _take(owners, manifest.functions.values(), "the library itself")
    for entry in manifest.entries:
        _take(owners, entry.functions.values(), f"entry '{entry.name}'")
    return list(owners)


def _take(owners: dict[str, str], functions: Iterable[str], owner: str) -> None:
    for function in functions:
        if function in owners:
            raise InputError(
                f"Two C functions would be called '{function}': one of {owner}, one of "
                f"{owners[function]}.",
                hint="Rename the entry, or leave it out with --entry.",
            )
        if function in CALLED:
            raise InputError(
                f"The C function of {owner} would be called like one of the C library that "
                f"libraries of aotc call themselves: '{function}'.",
                hint=_PREFIX_HINT,
            )
        if function in _CALLED_BY_SYSTEMS:
            raise InputError(
                f"A library's function cannot be called '{function}': "
                f"{_CALLED_BY_SYSTEMS[function]}.",
                hint=_PREFIX_HINT,
            )
        for kept in RUNTIME_PREFIXES:
            if function.startswith(kept):
                raise InputError(
                    f"A library's functions cannot begin with '{kept}', as '{function}' does.",
                    hint=_PREFIX_HINT,
                )
        owners[function] = owner

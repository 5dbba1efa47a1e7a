"""Runs the C tests of the runtime: against a fake driver, an old one, and none.

With its sources they are checked for undefined behaviour, those with threads for data races.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from runtime.support import (
    HOST_TARGET,
    SANITIZE_FLAGS,
    SOURCES,
    STRICT_FLAGS,
    TESTS,
    UTILITIES,
    compile_c,
    include_flags,
    program_environment,
    runner,
    toolchain,
)

from aotc.errors import ToolError
from aotc.toolchain import runtime_library

# Which libcuda.so.1 each program finds.
PROGRAMS = {
    "cuda_constants": "new",
    "cuda_contexts": "new",
    "cuda_devices": "new",
    "cuda_entry_graphs": "new",
    "cuda_entry_life": "new",
    "cuda_entry_memory": "new",
    "cuda_entry_pointers": "new",
    "cuda_entry_refusals": "new",
    "cuda_entry_results": "new",
    "cuda_entry_state": "new",
    "cuda_entry_streams": "new",
    "cuda_entry_trace": "new",
    "cuda_launches": "new",
    "cuda_memory": "new",
    "cuda_weights": "new",
    "cuda_weights_budget": "new",
    "cuda_weights_memory": "new",
    "old_driver": "old",
    "no_driver": "none",
    "cpu_blocks": "none",
    "cpu_constants": "none",
    "cpu_functions": "none",
    "cpu_kernels": "none",
    "cpu_launches": "none",
    "cpu_steps": "none",
    "cpu_streams": "none",
    "cpu_stress": "none",
    "programs": "none",
    "async": "none",
    "async_process": "none",
}
WITH_ENTRIES = (
    *(program for program in PROGRAMS if "entry" in program),
    *("cuda_weights_budget", "old_driver"),
)
# What ThreadSanitizer looks at. It does not know processes that fork while they have threads.
CONCURRENT = (
    "cpu_blocks",
    "cpu_steps",
    "cpu_streams",
    "cpu_stress",
    "async",
    "cuda_entry_graphs",
    "cuda_weights_budget",
)
WITH_CPU_MODULE = tuple(program for program in PROGRAMS if program.startswith("cpu_"))
WITH_TASKS = ("async", "async_process")
WITH_UTILITIES = ("programs", *WITH_TASKS)
THREAD_SANITIZER_FLAGS = ("-fsanitize=thread",)


def _sources_of(program: str) -> list[Path]:
    names = ["check.c", f"test_{program}.c"]
    if PROGRAMS[program] != "none":
        names.append("scenario.c")
    if program in WITH_ENTRIES:
        names.append("entries.c")
    if program in WITH_CPU_MODULE:
        names.append("cpu_module.c")
    if program in WITH_TASKS:
        names.append("async_task.c")
    return [
        *(TESTS / name for name in names),
        *(UTILITIES if program in WITH_UTILITIES else []),
    ]


def _build_static(program: str, output: Path) -> list[Path]:
    """Links the runtime's objects in, checked for undefined behaviour."""
    _build_with_sources(program, output, SANITIZE_FLAGS)
    return []


def _build_with_sources(program: str, output: Path, sanitizer: Sequence[str]) -> None:
    flags = [*STRICT_FLAGS, *sanitizer, *include_flags()]
    sources = [*SOURCES, *_sources_of(program)]
    compile_c([*flags, *sources, "-pthread", "-ldl", "-lm", "-o", output], making=output.name)


def _build_shared(program: str, output: Path) -> list[Path]:
    """Links against libmlir_cuda_runtime.so, as aotc builds it."""
    library = runtime_library(toolchain(), runner(), HOST_TARGET, kind="shared")
    flags = [*STRICT_FLAGS, *include_flags()]
    compile_c(
        [*flags, *_sources_of(program), library, "-pthread", "-ldl", "-lm", "-o", output],
        making=output.name,
    )
    return [library.parent]


@pytest.mark.parametrize("build", [_build_static, _build_shared], ids=["static", "shared"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_program(
    program: str, build: Callable[[str, Path], list[Path]], drivers: Path, tmp_path: Path
) -> None:
    """Every test of the program passes: none is left out, none crashes, none hangs."""
    executable = tmp_path / f"test_{program}"
    libraries = [drivers / PROGRAMS[program], *build(program, executable)]
    _check_run(program, executable, program_environment(*libraries))


def _check_run(program: str, executable: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [executable],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    listed = re.findall(r"CHECK_TEST\((\w+)\)", (TESTS / f"test_{program}.c").read_text())
    assert listed
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stdout.splitlines()[-1] == f"{len(listed)} passed, 0 failed"


def test_program_with_another_driver(drivers: Path, tmp_path: Path) -> None:
    """A driver that is not CUDA's runs programs: what the runtime wants of one is in driver.h."""
    executable = tmp_path / "test_other_driver"
    sources = [*SOURCES, *(TESTS / name for name in ("check.c", "test_other_driver.c"))]
    flags = [*STRICT_FLAGS, *SANITIZE_FLAGS, *include_flags()]
    compile_c([*flags, *sources, "-pthread", "-ldl", "-lm", "-o", executable], making="the program")
    _check_run("other_driver", executable, program_environment(drivers / "none"))


@pytest.fixture(scope="session")
def thread_sanitizer(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skips where a program with a data race does not get its report."""
    folder = tmp_path_factory.mktemp("thread_sanitizer")
    source, executable = folder / "race.c", folder / "race"
    source.write_text(
        """
        #include <pthread.h>
        #include <stddef.h>
        static int shared;
        static void *add(void *unused) { (void)unused; ++shared; return NULL; }
        int main(void) {
          pthread_t thread;
          if (pthread_create(&thread, NULL, add, NULL) != 0) { return 1; }
          ++shared;
          return pthread_join(thread, NULL);
        }
        """
    )
    flags = [*STRICT_FLAGS, *THREAD_SANITIZER_FLAGS]
    try:
        compile_c([*flags, source, "-pthread", "-o", executable], making="race")
    except ToolError as error:
        pytest.skip(f"zig cc does not link ThreadSanitizer here: {error}")
    done = subprocess.run([executable], capture_output=True, text=True, check=False)
    if "WARNING: ThreadSanitizer: data race" not in done.stderr:
        pytest.skip(f"ThreadSanitizer does not run here: {done.stderr.strip()[:200]}")


@pytest.mark.exhaustive
@pytest.mark.usefixtures("thread_sanitizer")
@pytest.mark.parametrize("program", CONCURRENT)
def test_program_has_no_races(program: str, drivers: Path, tmp_path: Path) -> None:
    """The same tests under ThreadSanitizer: a data race ends one with an exit code of its own."""
    executable = tmp_path / f"test_{program}"
    _build_with_sources(program, executable, THREAD_SANITIZER_FLAGS)
    # As malloc does without it.
    options = {"TSAN_OPTIONS": "allocator_may_return_null=1"}
    _check_run(program, executable, program_environment(drivers / PROGRAMS[program], **options))


_IS_X86 = platform.machine() == "x86_64"
# What valgrind looks at: not all, as it is slow.
LEAK_TESTS = {
    "cuda_entry_pointers": (
        "host_pointers_are_copied",
        "host_code_gets_managed_memory",
        "many_arguments",
    ),
    "cuda_entry_refusals": ("bad_arguments_are_refused",),
    "cuda_entry_results": (
        "results_are_the_callers",
        "unwanted_results_are_freed",
        "results_of_a_failed_call_are_zero",
        "out_of_memory_empties_the_pool",
        "every_call_fails_unknown",
        "every_call_of_unload_fails",
    ),
    "cuda_entry_life": (
        "child_of_a_cuda_process_is_told",
        "unload_gives_everything_back",
        "unload_chooses_anew",
    ),
}
_VALGRIND = (
    *("valgrind", "-q", "--error-exitcode=9", "--leak-check=full"),
    *("--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"),
)


@pytest.mark.exhaustive
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="there is no valgrind")
@pytest.mark.parametrize("program", LEAK_TESTS)
def test_program_loses_no_memory(program: str, drivers: Path, tmp_path: Path) -> None:
    """Calls that fail anywhere, and aotc_unload, leave nothing behind and read nothing freed."""
    executable = tmp_path / f"test_{program}"
    # Old instructions alone: valgrind need not know the processor's newest.
    _build_with_sources(program, executable, ("-mcpu=x86_64",) if _IS_X86 else ())
    done = subprocess.run(
        [*_VALGRIND, executable, *LEAK_TESTS[program]],
        env=program_environment(drivers / PROGRAMS[program]),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stdout.splitlines()[-1] == f"{len(LEAK_TESTS[program])} passed, 0 failed"


def test_library_can_be_closed(drivers: Path, tmp_path: Path) -> None:
    """dlclose ends the CPU device's threads and the fork handlers with their code.

    aotc_unload before it ends the threads, and gives back all that the GPU holds.
    """
    executable = tmp_path / "test_unload"
    library = runtime_library(toolchain(), runner(), HOST_TARGET, kind="shared")
    sources = [TESTS / name for name in ("check.c", "test_unload.c")]
    compile_c(
        [*STRICT_FLAGS, *include_flags(), *sources, "-pthread", "-ldl", "-o", executable],
        making="test_unload",
    )
    done = subprocess.run(
        [executable, library],
        env=program_environment(drivers / "new"),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stdout.splitlines()[-1] == "4 passed, 0 failed"


def test_a_failing_test_fails_its_program(drivers: Path, tmp_path: Path) -> None:
    """A crash, a failed check, an early exit, an overflow are failures; the next test runs."""
    source = tmp_path / "test_failing.c"
    source.write_text(
        """
        #include <limits.h>
        #include <stdlib.h>
        #include "check.h"
        static void crashes(void) { abort(); }
        static void is_wrong(void) { CHECK_INT(1, 2); }
        static void ends_early(void) { exit(3); }
        static void overflows(void) { volatile int most = INT_MAX; most = most + 1; }
        static void is_right(void) { CHECK_INT(1, 1); }
        int main(int argc, char **argv) {
          static const check_test tests[] = {CHECK_TEST(crashes), CHECK_TEST(is_wrong),
                                             CHECK_TEST(ends_early), CHECK_TEST(overflows),
                                             CHECK_TEST(is_right)};
          return check_main(argc, argv, tests, 5);
        }
        """
    )
    executable = tmp_path / "test_failing"
    compile_c(
        [
            *(*STRICT_FLAGS, *SANITIZE_FLAGS, *include_flags()),
            *(TESTS / "check.c", source, "-o", executable),
        ],
        making="test_failing",
    )
    done = subprocess.run([executable], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "FAILED crashes",
        "FAILED is_wrong",
        "FAILED ends_early",
        "FAILED overflows",
        "passed is_right",
        "1 passed, 4 failed",
    ]
    assert "2 is 2, expected 1" in done.stderr

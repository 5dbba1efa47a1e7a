"""The cache, aotc's data folders, and the runtime and harness that are built on first use."""

from __future__ import annotations

import ctypes
import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NoReturn

import pytest

from aotc import cache_folder as cache_module
from aotc.cache_folder import cache_root, make_once, zig_cache
from aotc.errors import InternalError, ToolError
from aotc.host.link import Linker
from aotc.request import HostTarget
from aotc.toolchain import (
    RecordingRunner,
    Runner,
    Toolchain,
    data_dir,
    harness_objects,
    runtime_library,
)
from aotc.toolchain.runtime import SYSTEM_LIBRARIES, prepare_links

TARGET = "x86_64-linux-gnu.2.28"
DAMAGES = ("flipped", "cut", "emptied", "removed", "a folder")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    # zig's own cache is the machine's: making libc's stubs anew takes seconds.
    return {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": "/nowhere"}


@pytest.fixture
def runner(environment: dict[str, str]) -> Runner:
    """What zig makes for links in the user's cache, aotc's own in the test's folder."""
    shared = prepare_links(Toolchain(os.environ), Runner(os.environ), TARGET)

    class SharedZigCache(Runner):
        def run(self, command, **options):  # type: ignore[no-untyped-def]
            return super().run(command, **{**options, "env": shared})

    return SharedZigCache(environment)


@pytest.fixture
def toolchain(environment: dict[str, str]) -> Toolchain:
    return Toolchain(environment)


@pytest.fixture
def runtime_source(tmp_path: Path) -> Path:
    """A runtime in small: one public function, one hidden one, one header."""
    source = tmp_path / "sources" / "runtime_c"
    (source / "include").mkdir(parents=True)
    (source / "src").mkdir()
    (source / "include" / "small.h").write_text(
        "#ifdef AOTC_RUNTIME_HIDDEN\n"
        '#define API __attribute__((visibility("hidden")))\n'
        "#else\n"
        '#define API __attribute__((visibility("default")))\n'
        "#endif\n"
        "API int small_public(void);\n"
        "int small_private(void);\n"
    )
    (source / "src" / "one.c").write_text(
        '#include <cuda.h>\n#include <pthread.h>\n#include "small.h"\n'
        '_Static_assert(CUDA_VERSION >= 13000, "the package\'s header");\n'
        "int small_public(void) { return small_private() + (int)sizeof(CUdeviceptr); }\n"
    )
    (source / "src" / "two.c").write_text(
        '#include "small.h"\n#include <assert.h>\n#include <stdio.h>\n'
        "int small_private(void) { return printf(__FILE__) + __LINE__; }\n"
    )
    return source


def dynamic_exports(file: Path) -> set[str]:
    """The functions that a shared library exports, by asking the loader."""
    library = ctypes.CDLL(str(file))
    names = ("small_public", "small_private")
    return {name for name in names if hasattr(library, name)}


def test_the_static_runtime_is_built_once_and_kept(
    toolchain: Toolchain, runner: Runner, runtime_source: Path
) -> None:
    first = runtime_library(toolchain, runner, TARGET, kind="static", source=runtime_source)
    assert first.name == "libmlir_cuda_runtime.a"
    assert first.read_bytes().startswith(b"!<arch>\n")
    recording = RecordingRunner()
    again = runtime_library(toolchain, recording, TARGET, kind="static", source=runtime_source)
    assert again == first
    assert recording.commands == []
    assert {path.name for path in first.parent.iterdir()} == {first.name, ".hashes"}


def test_the_shared_runtime_exports_its_api_alone(
    toolchain: Toolchain, runner: Runner, runtime_source: Path
) -> None:
    library = runtime_library(toolchain, runner, TARGET, kind="shared", source=runtime_source)
    assert library.name == "libmlir_cuda_runtime.so"
    assert b"\0libmlir_cuda_runtime.so\0" in library.read_bytes()  # the soname
    assert dynamic_exports(library) == {"small_public"}


@pytest.mark.exhaustive
def test_the_static_runtime_is_hidden_in_what_it_is_linked_into(
    toolchain: Toolchain, runner: Runner, runtime_source: Path, tmp_path: Path
) -> None:
    archive = runtime_library(toolchain, runner, TARGET, kind="static", source=runtime_source)
    command = [*toolchain.zig_cc.command, "-target", TARGET, "-shared", "-o", "x.so"]
    command += ["-Wl,--whole-archive", str(archive), "-Wl,--no-whole-archive"]
    command += [f"-l{library}" for library in SYSTEM_LIBRARIES]
    runner.run(command, making="x.so", cwd=tmp_path)
    assert dynamic_exports(tmp_path / "x.so") == set()


def test_no_path_and_no_sanitizer_gets_into_the_runtime(
    toolchain: Toolchain, runner: Runner, runtime_source: Path
) -> None:
    archive = runtime_library(toolchain, runner, TARGET, kind="static", source=runtime_source)
    content = archive.read_bytes()
    assert str(runtime_source.parent).encode() not in content
    assert b"ubsan" not in content
    assert b"\0two.c\0" in content or b"\0./two.c\0" in content  # __FILE__


def test_the_same_sources_elsewhere_give_the_same_bytes(
    toolchain: Toolchain, runner: Runner, runtime_source: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "elsewhere" / "deeper"
    moved.parent.mkdir()
    first = runtime_library(toolchain, runner, TARGET, kind="static", source=runtime_source)
    content = first.read_bytes()
    runtime_source.rename(moved)
    other = {"XDG_CACHE_HOME": str(tmp_path / "another cache")}
    second = runtime_library(Toolchain(other), runner, TARGET, kind="static", source=moved)
    assert second != first
    assert second.parent.parent.name == first.parent.parent.name
    assert second.read_bytes() == content


def test_a_changed_source_or_header_is_built_anew(
    toolchain: Toolchain, runner: Runner, runtime_source: Path
) -> None:
    places = [runtime_library(toolchain, runner, TARGET, kind="static", source=runtime_source)]
    for name in ("src/one.c", "include/small.h"):
        file = runtime_source / name
        file.write_text(file.read_text() + "// changed\n")
        places.append(
            runtime_library(toolchain, runner, TARGET, kind="static", source=runtime_source)
        )
    assert len(set(places)) == 3


def test_a_failed_build_leaves_nothing_and_says_what_failed(
    toolchain: Toolchain, runner: Runner, runtime_source: Path, environment: dict[str, str]
) -> None:
    (runtime_source / "src" / "two.c").write_text("int x = ;\n")
    with pytest.raises(
        ToolError, match=r"^zig cc could not make two\.o for x86_64-linux"
    ) as caught:
        runtime_library(toolchain, runner, TARGET, kind="static", source=runtime_source)
    assert "expected expression" in caught.value.stderr
    left = [path for path in (cache_root(environment) / "runtime").rglob("*") if path.is_file()]
    assert left == []


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", ["libmlir_cuda_runtime.a", ".hashes"])
def test_a_damaged_runtime_is_made_again(
    toolchain: Toolchain, runner: Runner, runtime_source: Path, name: str, how: str
) -> None:
    """Whatever became of a file of the entry, it is noticed before use, told, and made again."""
    told: list[str] = []
    runner.tell_made_again = lambda step, why: told.append(f"{step}: {why}")  # type: ignore[method-assign]
    library = runtime_library(toolchain, runner, TARGET, kind="static", source=runtime_source)
    content = library.read_bytes()
    assert told == []
    damage(library.with_name(name), how)
    again = runtime_library(toolchain, runner, TARGET, kind="static", source=runtime_source)
    assert again == library
    assert again.read_bytes() == content
    reason = "not there" if how in ("removed", "a folder") else "damaged: its hash was wrong"
    assert told == [f"libmlir_cuda_runtime.a for {TARGET}: {name} is {reason}"]
    assert {path.name for path in library.parent.parent.iterdir()} == {library.parent.name}


def test_missing_sources_are_our_failure(
    toolchain: Toolchain, runner: Runner, tmp_path: Path
) -> None:
    with pytest.raises(InternalError, match="aotc's own sources are missing"):
        runtime_library(toolchain, runner, TARGET, kind="static", source=tmp_path)


@pytest.fixture
def harness_source(tmp_path: Path, runtime_source: Path) -> Path:
    source = tmp_path / "sources" / "harness"
    source.mkdir()
    (source / "harness.h").write_text('#include "small.h"\n')
    for name in ("main", "options"):
        (source / f"{name}.c").write_text(f'#include "harness.h"\nint harness_{name} = 1;\n')
    (source / "program_main.c").write_text("int harness_program = 1;\n")
    return source


def test_the_harness_is_all_but_the_main_for_programs(
    toolchain: Toolchain, runner: Runner, harness_source: Path, runtime_source: Path
) -> None:
    def objects(runner: Runner, *, program_main: bool) -> list[Path]:
        return harness_objects(
            toolchain,
            runner,
            TARGET,
            program_main=program_main,
            source=harness_source,
            runtime_source=runtime_source,
        )

    made = objects(runner, program_main=False)
    assert [path.name for path in made] == ["main.o", "options.o"]
    assert all(path.read_bytes().startswith(b"\x7fELF") for path in made)
    recording = RecordingRunner()
    assert [path.name for path in objects(recording, program_main=True)] == ["program_main.o"]
    assert recording.commands == []


def test_aotcs_own_runtime_builds_for_both_architectures(
    runner: Runner, toolchain: Toolchain
) -> None:
    for target in (TARGET, "aarch64-linux-gnu.2.28"):
        archive = runtime_library(toolchain, runner, target, kind="static")
        assert archive.stat().st_size > 1000


def test_the_cache_is_where_the_user_says(tmp_path: Path) -> None:
    xdg = {"XDG_CACHE_HOME": str(tmp_path / "xdg"), "HOME": str(tmp_path / "home")}
    assert cache_root(xdg) == tmp_path / "xdg" / "aotc"
    assert cache_root({"HOME": str(tmp_path / "home")}) == tmp_path / "home" / ".cache" / "aotc"
    relative = {"XDG_CACHE_HOME": "relative", "HOME": str(tmp_path)}
    assert cache_root(relative) == tmp_path / ".cache" / "aotc"


def test_without_a_writable_home_the_cache_is_temporary_private_and_the_same_again(
    tmp_path: Path,
) -> None:
    cache_module._temporary_cache.cache_clear()
    # No folder can be made below a file, not even by root.
    (tmp_path / "home").write_text("")
    environment = {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path)}
    place = cache_root(environment)
    assert place == tmp_path / f"aotc-cache-{os.getuid()}"
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    cache_module._temporary_cache.cache_clear()
    assert cache_root(environment) == place


def test_a_temporary_cache_that_others_can_write_is_not_taken(tmp_path: Path) -> None:
    cache_module._temporary_cache.cache_clear()
    planted = tmp_path / f"aotc-cache-{os.getuid()}"
    planted.mkdir()
    planted.chmod(0o777)
    place = cache_root({"TMPDIR": str(tmp_path)})
    assert place != planted
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    cache_module._temporary_cache.cache_clear()
    link = tmp_path / "elsewhere"
    link.mkdir()
    planted.rmdir()
    planted.symlink_to(link)
    assert cache_root({"TMPDIR": str(tmp_path)}) != planted


def test_no_place_for_a_cache_is_an_error(tmp_path: Path) -> None:
    cache_module._temporary_cache.cache_clear()
    with pytest.raises(ToolError, match="No folder for caches can be written"):
        cache_root({"TMPDIR": str(tmp_path / "none")})


def test_two_makers_at_once_leave_one_whole_entry(tmp_path: Path) -> None:
    """The other process, which heard of no lock, finishes while we are still making."""
    place = tmp_path / "cache" / "entry"

    def make_theirs(draft: Path) -> None:
        (draft / "file").write_text("theirs")

    def make_ours(draft: Path) -> None:
        (draft / "file").write_text("ours")
        make_once(tmp_path / "entry", make_theirs, expected=["file"]).rename(place)

    assert make_once(place, make_ours, expected=["file"]) == place
    assert (place / "file").read_text() == "theirs"
    assert [path.name for path in place.parent.iterdir()] == ["entry"]


def test_of_processes_that_need_an_entry_one_makes_it(tmp_path: Path) -> None:
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from aotc.cache_folder import make_once\n"
        "place = Path(sys.argv[1])\n"
        "def make(draft):\n"
        "    with open(sys.argv[2], 'a') as made: made.write('made\\n')\n"
        "    for name in ('a', 'b'):\n"
        "        (draft / name).write_text('whole')\n"
        "        time.sleep(0.2)\n"
        "make_once(place, make, expected=['a', 'b'])\n"
        "assert (place / 'a').read_text() == (place / 'b').read_text() == 'whole'\n"
    )
    place = tmp_path / "cache" / "entry"
    words = [sys.executable, "-c", program, str(place), str(tmp_path / "made")]
    running = [subprocess.Popen(words) for _ in range(3)]
    assert [process.wait(timeout=60) for process in running] == [0, 0, 0]
    assert (tmp_path / "made").read_text() == "made\n"
    assert sorted(path.name for path in place.parent.rglob("*")) == [".hashes", "a", "b", "entry"]


def damage(file: Path, how: str) -> None:
    content = bytearray(file.read_bytes())
    if how == "flipped":
        content[len(content) // 2] ^= 1
    file.unlink()
    if how == "a folder":
        file.mkdir()
    elif how != "removed":
        kept = {"flipped": len(content), "cut": len(content) - 1, "emptied": 0}[how]
        file.write_bytes(content[:kept])


@pytest.mark.parametrize("how", DAMAGES)
def test_each_file_of_an_entry_is_checked(tmp_path: Path, how: str) -> None:
    """Those that nobody names, in folders of it, too."""
    place = tmp_path / "cache" / "entry"

    def make(draft: Path) -> None:
        (draft / "inner").mkdir()
        for name in ("named", "inner/other", "with space"):
            (draft / name).write_text(f"what {name} has")

    make_once(place, make, expected=["named"])
    files = [path for path in place.rglob("*") if path.is_file()]
    assert len(files) == 4
    for file in files:
        told: list[str] = []
        damage(file, how)
        make_once(place, make, expected=["named"], tell=told.append)
        assert (place / "named").read_text() == "what named has"
        assert (place / "inner" / "other").read_text() == "what inner/other has"
        assert len(told) == 1
        make_once(place, _forbidden, expected=["named"])


def _forbidden(draft: Path) -> None:
    raise AssertionError("it was made again")


@pytest.mark.parametrize("name", ["cache/inner", "cache/inner/entry"])
def test_a_file_where_a_folder_of_the_cache_belongs(tmp_path: Path, name: str) -> None:
    place = tmp_path / "cache" / "inner" / "entry"
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("in the way")
    make_once(place, lambda draft: (draft / "file").touch(), expected=["file"])
    assert (place / "file").is_file()


def test_a_file_where_the_cache_itself_belongs(tmp_path: Path) -> None:
    """It may be anybody's: it stays, and is named."""
    (tmp_path / "cache").write_text("in the way")
    with pytest.raises(ToolError, match="cache"):
        make_once(tmp_path / "cache" / "inner" / "entry", _forbidden, expected=["file"])
    assert (tmp_path / "cache").read_text() == "in the way"


def test_a_maker_that_fails_leaves_nothing(tmp_path: Path) -> None:
    place = tmp_path / "cache" / "entry"

    def make(draft: Path) -> None:
        (draft / "file").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_once(place, make, expected=["file"])
    assert list(place.parent.iterdir()) == []


def test_a_maker_that_forgets_a_file_is_a_bug(tmp_path: Path) -> None:
    with pytest.raises(InternalError, match="left out one of: a, b"):
        make_once(tmp_path / "entry", lambda draft: None, expected=["a", "b"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["runtime_c", "templates"])
def test_the_data_folders_are_beside_a_checkout_or_inside_a_wheel(
    name: str, tmp_path: Path
) -> None:
    package = tmp_path / "site" / "aotc"
    beside = tmp_path / "site" / name
    inside = package / "_data" / name
    package.mkdir(parents=True)
    with pytest.raises(InternalError, match=f"aotc's own files '{name}' are missing"):
        data_dir(name, package=package)
    beside.mkdir()
    assert data_dir(name, package=package) == beside
    inside.mkdir(parents=True)
    assert data_dir(name, package=package) == inside
    assert data_dir(name).name == name


def test_of_links_at_once_one_makes_what_zig_adds(
    environment: dict[str, str], toolchain: Toolchain
) -> None:
    """zig would make start-up code and stubs in each of the first links."""
    made: list[str] = []

    class Slow(RecordingRunner):
        def run(self, command, *, making, cwd, env, **options):  # type: ignore[no-untyped-def]
            time.sleep(0.2)
            made.append(making)
            (Path(env["ZIG_GLOBAL_CACHE_DIR"]) / "Scrt1.o").write_text("start-up code")
            (cwd / "z").mkdir()

    runner = Slow()
    seen = []

    def link() -> None:
        place = Path(prepare_links(toolchain, runner, TARGET)["ZIG_GLOBAL_CACHE_DIR"])
        assert {path.name for path in place.iterdir()} == {"Scrt1.o", ".hashes"}
        seen.append(len(made))

    threads = [threading.Thread(target=link) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1, 1, 1, 1]
    prepare_links(toolchain, runner, TARGET, debug=True)
    prepare_links(toolchain, runner, "aarch64-linux-gnu.2.28")
    assert len(made) == 3


def test_a_link_is_prepared(toolchain: Toolchain, tmp_path: Path) -> None:
    class Preparing(RecordingRunner):
        def run(self, command, *, prepare=None, **options):  # type: ignore[no-untyped-def]
            if prepare is not None:
                prepare()
            return super().run(command, **options)

    runner = Preparing(_refuse)
    linker = Linker(toolchain, runner, tmp_path, HostTarget.parse(TARGET), debug=False)
    with pytest.raises(ToolError, match="refused"):
        linker.link_executable([], tmp_path / "runtime.a", tmp_path / "utilities.a", "program")
    assert runner.made == [f"zig's part of programs for {TARGET}"]


def _refuse(command: tuple[str, ...]) -> NoReturn:
    raise ToolError("refused")


def test_each_installation_of_zig_has_a_cache_of_its_own(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """Two that share one wait for each other's locks."""
    programs = [tmp_path / name / "zig" for name in ("one", "other")]
    for program in programs:
        program.parent.mkdir()
        program.write_text("#!/bin/sh")
    places = [zig_cache(environment, str(program)) for program in programs]
    assert places[0] != places[1]
    programs[0].write_text("#!/bin/sh # installed again")
    assert zig_cache(environment, str(programs[0])) != places[0]


def test_a_compiler_finds_nothing_in_zigs_cache(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """zig does not check what it kept: each command has an empty cache, gone when it ends."""
    program = tmp_path / "zig"
    program.write_text(
        '#!/bin/sh\nls -A "$ZIG_GLOBAL_CACHE_DIR" | wc -l\necho "$ZIG_LOCAL_CACHE_DIR"'
    )
    program.chmod(0o755)
    runner, folder = Runner(environment), tmp_path / "work"
    folder.mkdir()
    said = [
        runner.run([str(program), "cc"], making="nothing", cwd=folder).stdout.split()
        for _ in range(2)
    ]
    assert [files for files, _ in said] == ["0", "0"]
    places = [Path(place) for _, place in said]
    assert [place.parent for place in places] == [folder, folder]
    assert places[0] != places[1]
    assert list(folder.iterdir()) == []

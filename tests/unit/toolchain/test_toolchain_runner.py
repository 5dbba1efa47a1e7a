"""Running tools: failures say everything, nothing leaks in, nothing is left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from aotc.errors import ToolError
from aotc.toolchain import Completed, RecordingRunner, Runner, Toolchain
from aotc.toolchain.runner import StoppedError, tool_environment

SHELL = "/bin/sh"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}


def shell(text: str) -> list[str]:
    return [SHELL, "-c", text]


def test_a_command_that_succeeds_gives_what_it_said(environment: dict[str, str]) -> None:
    done = Runner(environment).run(shell("echo out; echo err >&2"), making="nothing")
    assert done == Completed((SHELL, "-c", "echo out; echo err >&2"), "out\n", "err\n")


def test_input_is_fed_and_the_folder_is_the_one_asked_for(
    environment: dict[str, str], tmp_path: Path
) -> None:
    done = Runner(environment).run(shell("cat; pwd"), making="nothing", input=b"in\n", cwd=tmp_path)
    assert done.stdout == f"in\n{tmp_path.resolve()}\n"


def test_input_larger_than_a_pipe_and_output_do_not_deadlock(environment: dict[str, str]) -> None:
    big = b"x" * 4_000_000
    done = Runner(environment).run(["/bin/cat"], making="nothing", input=big)
    assert done.stdout == big.decode()


def test_a_failure_says_everything(environment: dict[str, str]) -> None:
    command = shell("echo 'bad  thing' >&2; exit 7")
    with pytest.raises(ToolError) as caught:
        Runner(environment).run(command, making="k.sm_90a.cubin")
    error = caught.value
    assert str(error) == "sh could not make k.sm_90a.cubin: exit code 7"
    assert error.stderr == "bad  thing\n"
    assert error.command == tuple(command)
    assert error.hint == "keep the intermediates with --save-temps DIR"


def test_a_failure_told_on_stdout_is_kept(environment: dict[str, str]) -> None:
    with pytest.raises(ToolError) as caught:
        Runner(environment).run(shell("echo complaint; exit 1"), making="x")
    assert caught.value.stderr == "complaint\n"


def test_a_tool_killed_by_a_signal_says_which(environment: dict[str, str]) -> None:
    with pytest.raises(ToolError) as caught:
        Runner(environment).run(shell("kill -SEGV $$"), making="x")
    assert str(caught.value) == "sh could not make x: killed by SIGSEGV"


def test_a_tool_that_cannot_start_is_a_tool_error(
    environment: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(ToolError, match=r"ptxas cannot be started to make x: .*No such file"):
        Runner(environment).run([str(tmp_path / "ptxas")], making="x")


def test_tools_of_zig_are_called_by_their_own_name(
    environment: dict[str, str], tmp_path: Path
) -> None:
    toolchain = Toolchain(environment)
    with pytest.raises(ToolError, match=r"^zig clang could not make x: exit code 1$"):
        Runner(environment).run([*toolchain.clang.command, "/nowhere.ll"], making="x")


def test_the_observer_sees_every_command_quoted_before_it_runs(
    environment: dict[str, str], tmp_path: Path
) -> None:
    seen: list[str] = []
    mark = tmp_path / "a mark"

    def observe(line: str) -> None:
        assert not mark.exists()
        seen.append(line)

    Runner(environment, observer=observe).run(["/usr/bin/touch", str(mark)], making="x")
    assert seen == [f"/usr/bin/touch '{mark}'"]
    assert mark.exists()


def test_nothing_of_the_users_environment_reaches_a_tool(environment: dict[str, str]) -> None:
    """Same input, same bytes: include paths, flags and locales stay out."""
    environment |= {
        "CPATH": "/evil",
        "C_INCLUDE_PATH": "/evil",
        "LIBRARY_PATH": "/evil",
        "LD_LIBRARY_PATH": "/evil",
        "CFLAGS": "-DEVIL",
        "NVCC_APPEND_FLAGS": "-DEVIL",
        "ZIG_LIB_DIR": "/evil",
        "LANG": "tr_TR.UTF-8",
        "LC_ALL": "tr_TR.UTF-8",
        "SOURCE_DATE_EPOCH": "12345",
        "PATH": "/evil",
    }
    done = Runner(environment).run(["/usr/bin/env"], making="nothing")
    names = {line.partition("=")[0] for line in done.stdout.splitlines()}
    assert names == {
        "LC_ALL",
        "PATH",
        "SOURCE_DATE_EPOCH",
        "TZ",
    }
    assert "evil" not in done.stdout.lower()
    assert "LC_ALL=C\n" in done.stdout
    assert "SOURCE_DATE_EPOCH=0\n" in done.stdout


def test_the_caller_can_add_to_the_environment(environment: dict[str, str]) -> None:
    done = Runner(environment).run(["/usr/bin/env"], making="x", env={"MORE": "1"})
    assert "MORE=1\n" in done.stdout
    assert "LC_ALL=C\n" in done.stdout


def test_the_folder_for_temporary_files_is_the_users(
    environment: dict[str, str], tmp_path: Path
) -> None:
    environment["TMPDIR"] = str(tmp_path)
    assert tool_environment(environment)["TMPDIR"] == str(tmp_path)


def test_zig_compiles_without_a_home(tmp_path: Path) -> None:
    """zig alone fails with «unable to resolve zig cache directory»."""
    environment = {"TMPDIR": str(tmp_path)}
    toolchain = Toolchain(environment)
    (tmp_path / "x.c").write_text("int x = 3;\n")
    command = [*toolchain.zig_cc.command, "-target", "x86_64-linux-gnu.2.28", "-c", "x.c"]
    Runner(environment).run([*command, "-o", "x.o"], making="x.o", cwd=tmp_path)
    assert (tmp_path / "x.o").read_bytes().startswith(b"\x7fELF")


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_for(place: Path) -> int:
    """The process id that a tool wrote to `place`."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if place.exists() and place.read_text().endswith("\n"):
            return int(place.read_text())
        time.sleep(0.01)
    raise AssertionError(f"nothing wrote {place}")


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if not alive(pid):
            return True
        time.sleep(0.01)
    return False


# A tool with a child of its own, as zig has; it says the child's process id.
FAMILY = "sleep 300 & echo $! > {place}; wait"


def test_an_interrupted_build_leaves_no_tool_running(tmp_path: Path) -> None:
    """Ctrl-C in the one thread that waits for the tool."""
    place = tmp_path / "pid"
    program = (
        "import sys\n"
        "from aotc.toolchain import Runner\n"
        "try:\n"
        f"    runner = Runner({{'HOME': {str(tmp_path)!r}}})\n"
        "    runner.run(['/bin/sh', '-c', sys.argv[1]], making='x')\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(130)\n"
    )
    command = [sys.executable, "-c", program, FAMILY.format(place=place)]
    with subprocess.Popen(command) as process:
        try:
            child = wait_for(place)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=20) == 130
        finally:
            process.kill()
    assert gone(child)


def test_an_interrupted_parallel_build_leaves_no_tool_running(tmp_path: Path) -> None:
    """Ctrl-C in the main thread while other threads wait for their tools."""
    program = (
        "import sys\n"
        "from functools import partial\n"
        "from aotc.toolchain import Runner\n"
        f"runner = Runner({{'HOME': {str(tmp_path)!r}}})\n"
        "run = lambda text: runner.run(['/bin/sh', '-c', text], making='x')\n"
        "try:\n"
        "    runner.in_parallel([partial(run, text) for text in sys.argv[1:]], jobs=2)\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(130)\n"
    )
    places = [tmp_path / "first", tmp_path / "second"]
    never = tmp_path / "never"
    texts = [FAMILY.format(place=place) for place in places] + [f"touch {never}"]
    with subprocess.Popen([sys.executable, "-c", program, *texts]) as process:
        try:
            children = [wait_for(place) for place in places]
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=20) == 130
        finally:
            process.kill()
    assert [gone(child) for child in children] == [True, True]
    assert not never.exists()


def test_parallel_tasks_give_their_results_in_order(environment: dict[str, str]) -> None:
    runner = Runner(environment)
    tasks = [
        partial(runner.run, shell(f"sleep {delay}; echo {delay}"), making="x")
        for delay in ("0.2", "0.1", "0")
    ]
    assert [done.stdout for done in runner.in_parallel(tasks, jobs=3)] == ["0.2\n", "0.1\n", "0\n"]
    assert runner.in_parallel([]) == []


def test_it_says_how_many_of_the_parallel_tasks_are_done(environment: dict[str, str]) -> None:
    runner, seen = Runner(environment), []
    tasks = [lambda: seen.append(runner.counts())] * 3
    assert runner.counts() is None
    runner.in_parallel(tasks, jobs=1)
    assert seen == [(0, 3), (1, 3), (2, 3)]
    assert runner.counts() is None


def test_the_first_failure_stops_the_other_tools(
    environment: dict[str, str], tmp_path: Path
) -> None:
    place = tmp_path / "pid"
    runner = Runner(environment)
    # It fails only when the other one runs.
    failing = f"while ! [ -s {place} ]; do sleep 0.01; done; echo no >&2; exit 9"
    tasks = [
        partial(runner.run, shell(FAMILY.format(place=place)), making="long"),
        partial(runner.run, shell(failing), making="short"),
    ]
    with pytest.raises(ToolError, match=r"^sh could not make short: exit code 9$"):
        runner.in_parallel(tasks, jobs=2)
    assert gone(wait_for(place))
    # Whoever handles the failure may go on.
    assert runner.run(shell("echo on"), making="x").stdout == "on\n"


def test_an_exception_in_a_task_stops_the_tools_too(
    environment: dict[str, str], tmp_path: Path
) -> None:
    place = tmp_path / "pid"
    runner = Runner(environment)

    def fail() -> Completed:
        wait_for(place)
        raise RuntimeError("mine")

    tasks = [partial(runner.run, shell(FAMILY.format(place=place)), making="long"), fail]
    with pytest.raises(RuntimeError, match="mine"):
        runner.in_parallel(tasks, jobs=2)
    assert gone(wait_for(place))


def test_a_stopped_runner_starts_nothing(environment: dict[str, str], tmp_path: Path) -> None:
    place = tmp_path / "pid"
    runner = Runner(environment)
    failures: list[BaseException] = []

    def run() -> None:
        try:
            runner.run(shell(FAMILY.format(place=place)), making="long")
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    child = wait_for(place)
    runner.stop()
    thread.join(timeout=20)
    assert not thread.is_alive()
    assert [type(failure) for failure in failures] == [StoppedError]
    assert gone(child)
    with pytest.raises(StoppedError):
        runner.run(shell("true"), making="x")


def test_the_recording_runner_runs_nothing(tmp_path: Path) -> None:
    runner = RecordingRunner()
    runner.run(["/usr/bin/touch", str(tmp_path / "made")], making="made")
    assert runner.commands == [("/usr/bin/touch", str(tmp_path / "made"))]
    assert runner.made == ["made"]
    assert not (tmp_path / "made").exists()


def test_the_recording_runner_answers_as_told() -> None:
    runner = RecordingRunner(lambda command: Completed(command, stdout="hello"))
    assert runner.run(["x"], making="y") == Completed(("x",), "hello")

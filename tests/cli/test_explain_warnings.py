"""`aotc explain`, and `aotc completion`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from helpers.command import Outcome, own_process

from aotc.warnings import WARNINGS, explanations

Aotc = Callable[..., Outcome]


def test_every_warning_is_explained(aotc: Aotc) -> None:
    assert list(explanations()) == list(WARNINGS)
    assert all(one.meaning and "|" not in one.solution for one in explanations().values())
    listed = aotc("explain").succeeded().stdout.splitlines()
    assert [line.split()[0] for line in listed] == list(WARNINGS)


@pytest.mark.parametrize("word", ["host-only", "-Whost-only", "[-Werror=host-only]"])
def test_a_name_may_stand_as_messages_print_it(aotc: Aotc, word: str) -> None:
    shown = aotc("explain", "--", word).succeeded().stdout
    assert shown.startswith("host-only (warning by default)")
    assert "What to do: emit its loops with" in shown


def test_an_unknown_name_has_suggestions(aotc: Aotc) -> None:
    done = aotc("explain", "host-onyl")
    assert done.code == 2
    assert "Unknown warning 'host-onyl'. Did you mean host-only or host-pointer?" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_are_of_aotc(aotc: Aotc, shell: str) -> None:
    assert "_AOTC_COMPLETE" in aotc("completion", shell).succeeded().stdout


def test_commands_and_values_are_completed() -> None:
    def completed(*words: str) -> list[str]:
        environment = {
            "_AOTC_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(words),
            "COMP_CWORD": str(len(words) - 1),
        }
        shown = own_process([], env=environment).stdout
        return [line.partition(",")[2] for line in shown.splitlines()]

    assert completed("aotc", "comp") == ["completion"]
    assert "--emit" in completed("aotc", "build", "--em")
    assert completed("aotc", "completion", "z") == ["zsh"]
    assert completed("aotc", "build", "--emit", "sh") == ["shared"]
    assert completed("aotc", "build", "--emit", "ptx,stat") == ["ptx,static"]
    assert completed("aotc", "build", "--chip", "sm_9") == ["sm_90"]


def test_bash_reads_it(aotc: Aotc) -> None:
    script = aotc("completion", "bash").succeeded().stdout
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)

"""`aotc completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from aotc.errors import EXIT_OK, ToolError

_SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print the shell script that completes aotc's commands, options and their values.

    \b
    bash:  eval "$(aotc completion bash)"                           in ~/.bashrc
    zsh:   eval "$(aotc completion zsh)"                            in ~/.zshrc
    fish:  aotc completion fish > ~/.config/fish/completions/aotc.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    try:
        text = kind(context.find_root().command, {}, "aotc", "_AOTC_COMPLETE").source()
    except RuntimeError as error:  # raised for versions of bash that are too old
        raise ToolError(str(error)) from error
    click.echo(text)
    return EXIT_OK

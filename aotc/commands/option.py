"""`option`: like click's, for the options of all commands; an empty value means no value."""

from __future__ import annotations

import functools
from typing import Any

import click


class _Option(click.Option):
    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        texts = value if isinstance(value, list | tuple) else (value,)
        if "" in texts and value != self.default:
            raise click.BadParameter("it is empty.", ctx, self)
        return super().type_cast_value(ctx, value)


option = functools.partial(click.option, cls=_Option)

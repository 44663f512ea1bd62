"""What every command of many commands needs: a group that loads them late, and an end without a reader."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """
    A group whose commands are imported when they are used: the help of the whole needs none of them.

    Args:
        table: Each command's name, the module that has it under this name, and its short help; in the order in which a
            person meets them.
    """

    def __init__(self, *args: Any, table: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in their order."""
        return [*self._table, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in self._table:
            return super().get_command(ctx, cmd_name)
        command = getattr(import_module(self._table[cmd_name][0]), cmd_name)
        assert isinstance(command, click.Command)  # noqa: S101 - a fault of ours, not a user's
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was typed; name the nearest one where there is none."""
        if args and not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None:
            from difflib import get_close_matches  # noqa: PLC0415 - only a mistyped command needs it

            near = get_close_matches(args[0], self._table, n=1)
            if near:
                raise click.UsageError(f"there is no command {args[0]!r}; did you mean {near[0]}?", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, short_help) for name, (_, short_help) in self._table.items()])


def let_go_of_stdout() -> None:
    """Write what is still to come to nowhere: standard output takes no more, and would fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

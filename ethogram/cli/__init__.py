"""The ``ethogram`` command: look at events and runs without any producer. Each command is one library call."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import NoReturn

import click

from ethogram.errors import EthogramError

COMMANDS: dict[str, tuple[str, str]] = {
    "runs": ("ethogram.cli.runs", "Show runs as a tree: outcome, duration, use."),
    "show": ("ethogram.cli.runs", "Show the events of one run."),
    "follow": ("ethogram.cli.runs", "Show the events of one run as they are written."),
    "view": ("ethogram.cli.view", "Write runs as a page for a browser."),
    "export": ("ethogram.cli.export", "Write runs in a format of other tools."),
    "verify": ("ethogram.cli.checking", "Prove directories of runs."),
    "validate": ("ethogram.cli.checking", "Check events, each for itself."),
    "canonicalise": ("ethogram.cli.checking", "Print events in canonical form."),
}
"""Each command with its module and its short help: a module is imported only when its command is used."""

_INTERRUPTED = 130


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used: the help of the whole needs none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the commands in the order in which a person meets them."""
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        command = getattr(import_module(COMMANDS[cmd_name][0]), cmd_name)
        assert isinstance(command, click.Command)  # noqa: S101 - a fault of ours, not a user's
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was typed; name the nearest one where there is none."""
        if args and not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None:
            from difflib import get_close_matches  # noqa: PLC0415 - only a mistyped command needs it

            near = get_close_matches(args[0], COMMANDS, n=1)
            if near:
                raise click.UsageError(f"there is no command {args[0]!r}; did you mean {near[0]}?", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, short_help) for name, (_, short_help) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="vinaya-bridge", message="%(prog)s %(version)s")
def cli() -> None:
    """
    Look at ethogram events and runs, and prove them.

    DIR is a directory of runs, or one that has them in "runs". "sqlite:FILE" and "jsonl:FILE" stand for files
    that sinks wrote.
    """


def main() -> NoReturn:
    """Run the command; no fault reaches a person as a traceback."""
    try:
        result = cli.main(prog_name="ethogram", standalone_mode=False)
    except EthogramError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(_INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as fault:  # a file or standard output that cannot take more
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # else the rest would fail again at exit
        place = "" if fault.filename is None else f"{fault.filename}: "
        click.echo(f"Error: {place}{os.strerror(fault.errno or 0)}", err=True)
        sys.exit(1)
    sys.exit(result if isinstance(result, int) else 0)

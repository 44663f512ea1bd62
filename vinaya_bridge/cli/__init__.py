"""The ``vinaya-bridge`` command: each command parses its options and makes one library call."""

from __future__ import annotations

import errno
import os
import sys
from typing import NoReturn

import click

from ethogram.shell import LazyGroup, let_go_of_stdout
from vinaya_bridge.errors import (
    COMMAND_LINE,
    INTERNAL_FAULT,
    TRACEBACK_VARIABLE,
    BridgeError,
    ConfigurationError,
    InputError,
    SinkError,
)

COMMANDS: dict[str, tuple[str, str]] = {
    "convert": ("vinaya_bridge.cli.convert", "Convert log directories into runs."),
    "tail": ("vinaya_bridge.cli.tail", "Follow logs that are being written."),
    "check": ("vinaya_bridge.cli.check", "Say what is wrong with the lines of log files."),
    "verify": ("vinaya_bridge.cli.verify", "Prove that an output is whole."),
    "restore": ("vinaya_bridge.cli.restore", "Give the log back from an output that keeps it whole."),
    "replay": ("vinaya_bridge.cli.replay", "Read kept lines again, and add what can be read now."),
    "report": ("vinaya_bridge.cli.report", "Say what became of the lines of an output."),
    "usage": ("vinaya_bridge.cli.usage", "Add up token use by the Log's own rules."),
    "status": ("vinaya_bridge.cli.status", "Say which loops run, are done, or went quiet."),
    "mapping": ("vinaya_bridge.cli.mapping", "Check, show, compare and test mappings."),
    "explain": ("vinaya_bridge.cli.explain", "Explain a code, a line or an event."),
}
"""Each command with its module and its short help: a module is imported only when its command is used."""

EXIT_CODES: tuple[tuple[type[BridgeError], int], ...] = (
    (InputError, 1),
    (ConfigurationError, 2),
    (SinkError, 3),
)
_INTERRUPTED = 130
_INTERNAL = 70
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class Commands(LazyGroup):
    """The commands; whoever reads their output may be gone at any moment."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; where whoever read its output is gone, end quietly (click would exit with 1)."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            let_go_of_stdout()
            ctx.exit(0)


@click.group(cls=Commands, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="vinaya-bridge", message="%(prog)s %(version)s")
def cli() -> None:
    """
    Read the Vinaya Log and emit ethogram events.

    Every line is accounted for: converted, or counted and kept with the reason. Start with

      vinaya-bridge convert LOGS -o OUT
    """


def _as_fault(error: click.UsageError) -> ConfigurationError:
    """What click says of a command line, in the form of every other fault."""
    from vinaya_bridge.cli.words import printable  # noqa: PLC0415 - the help of the whole needs nothing

    path = "vinaya-bridge" if error.ctx is None else error.ctx.command_path
    message = printable(error.format_message()).removesuffix(".")
    return ConfigurationError(
        COMMAND_LINE, f"{message[:1].lower()}{message[1:]}", place=path, remedy=f"{path} --help"
    )


def _as_full_stdout(fault: OSError) -> SinkError:
    """What is to be said where the file that standard output goes to cannot take more."""
    from vinaya_bridge.output import OUTPUT_UNWRITABLE  # noqa: PLC0415

    let_go_of_stdout()
    return SinkError(
        OUTPUT_UNWRITABLE,
        f"cannot be written: {os.strerror(fault.errno or 0)}",
        place="standard output",
        remedy="make room, then run the same command again",
    )


def _end(error: BridgeError) -> NoReturn:
    """Tell of a fault, and end with its exit code."""
    click.echo(str(error), err=True)
    click.echo(f"  more: vinaya-bridge explain {error.code.id}", err=True)
    sys.exit(next((code for kind, code in EXIT_CODES if isinstance(error, kind)), 1))


def main() -> NoReturn:
    """Run the command; no fault reaches a person as a traceback."""
    try:
        result = cli.main(prog_name="vinaya-bridge", standalone_mode=False)
    except BridgeError as error:
        _end(error)
    except click.UsageError as error:
        _end(_as_fault(error))
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("\nstopped; the same command goes on where this one was", err=True)
        sys.exit(_INTERRUPTED)
    except Exception as fault:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        if isinstance(fault, OSError) and fault.filename is None and fault.errno in _FULL:
            _end(_as_full_stdout(fault))
        name = type(fault).__name__
        click.echo(
            f"{INTERNAL_FAULT.id} a fault of this tool ({name}); what was written stays whole", err=True
        )
        click.echo(
            f"  try: the same command with {TRACEBACK_VARIABLE}=1, and report what it prints", err=True
        )
        sys.exit(_INTERNAL)
    sys.exit(result if isinstance(result, int) else 0)

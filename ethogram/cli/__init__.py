"""The ``ethogram`` command: look at events and runs without any producer. Each command is one library call."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import click

from ethogram.errors import EthogramError
from ethogram.shell import LazyGroup, let_go_of_stdout

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


@click.group(cls=LazyGroup, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
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
        let_go_of_stdout()
        sys.exit(0)
    except OSError as fault:  # a file or standard output that cannot take more
        let_go_of_stdout()
        place = "" if fault.filename is None else f"{fault.filename}: "
        click.echo(f"Error: {place}{os.strerror(fault.errno or 0)}", err=True)
        sys.exit(1)
    sys.exit(result if isinstance(result, int) else 0)

"""The command line: `presage COMMAND`. A command is a module of this folder with a function of its name."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

import presage
from presage.errors import PresageError, reason

__all__ = ["COMMANDS", "app", "main", "run"]

COMMANDS = ("discover", "models", "card", "domains", "simulate", "train", "release", "bench", "baselines", "serve")
"""Modules of this folder, in the order of the help text."""

# The base class of all errors about command-line arguments; typer exports no name for it.
_CommandLineError: type[Exception] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)


def _show_version(asked: bool) -> None:
    if asked:
        print(f"presage {presage.__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Causal discovery from a table of measurements: the probability of every edge, in one forward pass."""


def _build() -> typer.Typer:
    """The application with every command of `COMMANDS`."""
    app = typer.Typer(
        name="presage",
        callback=_root,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name in COMMANDS:
        command = getattr(importlib.import_module(f"presage.cli.{name}"), name)
        if isinstance(command, typer.Typer):  # a group of commands
            app.add_typer(command, name=name)
        else:
            app.command()(command)
    return app


app = _build()


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code: 0, or 2 with one sentence on stderr when the input is at fault.

    The exit code is 1 if the reader of the output went away. Other exceptions are bugs and pass through.
    """
    command = typer.main.get_command(app)
    try:
        given = list(arguments) or ["--help"]
        code = command.main(given, prog_name="presage", standalone_mode=False, obj=given)  # for reports
        if sys.stdout is not None:
            sys.stdout.flush()  # raises if the disk of the output is full
    except PresageError as error:
        return _fail(str(error))
    except MemoryError:
        return _fail("there is too little memory for this; use fewer rows or variables, or a machine with more memory")
    except OSError as error:
        if (code := _output_error(error)) is None:
            raise
        return code
    except _CommandLineError as error:
        return _fail(error.format_message())  # type: ignore[attr-defined]  # click's
    except typer.Abort:
        return 130
    return code if isinstance(code, int) else 0


def _output_error(error: OSError) -> int | None:
    """The exit code if stdout cannot be written; None if the error has another reason.

    Nothing more is written to stdout then, neither by us nor by Python's own flush at exit.
    """
    broken, full = isinstance(error, BrokenPipeError), error.errno in (errno.ENOSPC, errno.EIO, errno.EBADF)
    if error.filename is not None or not (broken or full):
        return None
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1 if broken else _fail(f"cannot write the output: {reason(error)}")


def _fail(message: str) -> int:
    with contextlib.suppress(OSError, ValueError):  # stderr may be closed or full, too
        print(f"presage: {' '.join(message.split())}", file=sys.stderr)
    return 2


def _escape_unprintable() -> None:
    """Print characters that a terminal cannot show (ASCII locales, lone surrogates) as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def main() -> None:
    """The entry point of the `presage` command."""
    _escape_unprintable()
    sys.exit(run(sys.argv[1:]))

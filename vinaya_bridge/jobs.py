"""Jobs: work for several processes, of this machine or of a cluster, and its results in order."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any, TypeVar

from vinaya_bridge.errors import BridgeError, Code, ConfigurationError, SinkError
from vinaya_bridge.workers import WORKER_LOST

BAD_EXECUTOR = Code(
    "VB238",
    "the executor cannot be used",
    "--executor names a cluster as dask:ADDRESS, where the address is that of a Dask scheduler, tcp://host:8786 say. "
    "It needs the extra: pip install 'vinaya-bridge[dask]'. Either the name is of another form, the extra is not "
    "installed, or no scheduler answered. Nothing was read.",
)
CODES = (BAD_EXECUTOR,)

WORTH_IT_BYTES = 24 << 20
"""The size of input from which on several processes are quicker than one."""

_LOOK_SECONDS = 0.2

ANSWER_WITHIN = "10s"
"""How long a scheduler has for its answer."""

_T = TypeVar("_T")
_R = TypeVar("_R")


def default_jobs() -> int:
    """
    Return how many processes to use where nobody has said it: as many as there are processors.

    One alone where a fork would not be safe, or not allowed: beside other threads, and in a daemon of multiprocessing.
    """
    if not _can_fork() or multiprocessing.current_process().daemon:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _can_fork() -> bool:
    return threading.active_count() == 1 and "fork" in multiprocessing.get_all_start_methods()


def processes(jobs: int, *, lock: int) -> ProcessPoolExecutor:
    """
    Start a pool of processes that end when this one does, however it ends.

    Args:
        jobs: How many.

        lock: A descriptor that they must not keep open.
    """
    # Forking is quickest, and unsafe only where other threads hold locks.
    method, inherited = ("fork", lock) if _can_fork() else ("spawn", None)
    return ProcessPoolExecutor(
        jobs,
        multiprocessing.get_context(method),
        initializer=_begin,
        initargs=(os.getpid(), inherited),
    )


def _begin(parent: int, lock: int | None) -> None:
    """Let go of what a fork has copied, and watch the parent: nobody else would tell of its death."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted too, and stops the pool
    if lock is not None:
        os.close(lock)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)


def in_order(executor: Executor, work: Callable[[_T], _R], tasks: Iterable[_T]) -> Iterator[_R]:
    """
    Hand out tasks all at once, and give their results in the order of the tasks.

    Args:
        executor: Does the work.

        work: A function of a module, so that another process finds it.

        tasks: What each call gets.

    Yields:
        What it returned.

    Raises:
        SinkError: Work was lost; what is not yet begun is cancelled.
    """
    waiting: list[Future[_R] | None] = []
    try:
        waiting += [executor.submit(work, task) for task in tasks]
        for number, future in enumerate(waiting):
            assert future is not None  # noqa: S101 - each is taken once
            yield future.result()
            waiting[number] = None  # a result can be large
    except BridgeError:
        raise
    except Exception as error:
        raise SinkError(
            WORKER_LOST,
            f"it failed with {type(error).__name__}",
            remedy="run the same command again; where memory is short, with fewer jobs",
        ) from error
    finally:
        for future in waiting:
            if future is not None:
                future.cancel()


def executor_named(name: str) -> AbstractContextManager[Executor]:
    """
    Reach the executor that a command names.

    Args:
        name: ``dask:ADDRESS``.

    Returns:
        The executor; leaving it as a context lets go of the cluster and stops nothing.

    Raises:
        ConfigurationError: There is none of that name, or it cannot be reached.
    """
    kind, colon, address = name.partition(":")
    if kind != "dask" or not colon or not address:
        raise _bad_executor(
            "expected dask:ADDRESS", "give the address of a scheduler, as dask:tcp://host:8786"
        )
    try:
        distributed = import_module("distributed")  # an extra, and slow to load
    except ImportError:
        raise _bad_executor(
            "the package distributed is not installed", "run: pip install 'vinaya-bridge[dask]'"
        ) from None
    try:
        client = distributed.Client(address, timeout=ANSWER_WITHIN, set_as_default=False)
    except (OSError, ValueError):
        raise _bad_executor(
            "no scheduler answered", "start one with `dask scheduler`, and give the address that it prints"
        ) from None
    return _DaskExecutor(client)


class _DaskExecutor(AbstractContextManager[Executor]):
    """The standard executor that a Dask client offers, and the client with it."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __enter__(self) -> Executor:
        # Not pure: else equal calls would be run once, and a folder of theirs be taken over twice.
        executor: Executor = self._client.get_executor(pure=False)
        return executor

    def __exit__(self, *_: object) -> None:
        self._client.close()


def _bad_executor(message: str, remedy: str) -> ConfigurationError:
    return ConfigurationError(BAD_EXECUTOR, message, place="--executor", remedy=remedy)

"""Several processes give, byte for byte, what one gives."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import Any

import pytest
from attrs import evolve

from tests.convert.outputs import content
from tests.support.corpus import write_corpus
from vinaya_bridge import collecting, convert, jobs, workers
from vinaya_bridge.convert import ConvertOptions
from vinaya_bridge.errors import ConfigurationError, SinkError
from vinaya_bridge.extents import cut, tasks_of, whole_files
from vinaya_bridge.files import discover
from vinaya_bridge.lines import LineReader
from vinaya_bridge.verify import verify

NOW = "2031-02-03T04:05:06.789Z"
ALONE = ConvertOptions(clock=lambda: NOW, jobs=1)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut files into parts of a few lines, and never think an input too small for several processes."""
    monkeypatch.setattr(convert, "WORTH_IT_BYTES", 1)
    monkeypatch.setattr(collecting, "extent_bytes_for", lambda _total_bytes, _jobs: 50_000)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("stamp", ["wall", "source"])
@pytest.mark.parametrize("origin", ["ids", "full"])
def test_the_output_is_that_of_one_process_byte_for_byte(
    log: Path, tmp_path: Path, stamp: Any, origin: Any
) -> None:
    one = evolve(ALONE, stamp=stamp, origin=origin)
    convert.convert([log], tmp_path / "one", one)
    convert.convert([log], tmp_path / "two", evolve(one, jobs=2))
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert verify(tmp_path / "two", [log]).findings == []


@pytest.mark.usefixtures("small_parts")
def test_what_an_output_holds_already_is_not_repeated_by_several_processes(log: Path, tmp_path: Path) -> None:
    for number, options in enumerate((ALONE, evolve(ALONE, jobs=2))):
        out = tmp_path / f"{number}"
        convert.convert([log / "1.ndjson"], out, options)
        convert.convert([log], out, options)
        rmtree(out / "state")
    assert content(tmp_path / "0") == content(tmp_path / "1")


def test_any_executor_does_the_work(log: Path, tmp_path: Path) -> None:
    convert.convert([log], tmp_path / "one", ALONE)
    with ThreadPoolExecutor(2) as threads:
        convert.convert([log], tmp_path / "two", ALONE, executor=threads)
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_nothing_of_the_work_is_left_behind(log: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as threads:
        convert.convert([log], tmp_path / "out", ALONE, executor=threads)
    assert sorted(path.name for path in (tmp_path / "out" / "state").iterdir()) == ["lock"]


class Elsewhere(Executor):
    """Runs work at once, after something has happened to the files."""

    def __init__(self, before: Callable[[Any], None]) -> None:
        self._before = before

    def submit(self, work: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            self._before(args[0])
            future.set_result(work(*args, **kwargs))
        except BaseException as error:
            future.set_exception(pickle.loads(pickle.dumps(error)))  # noqa: S301
        return future


def test_a_worker_that_does_not_see_the_output_says_so(log: Path, tmp_path: Path) -> None:
    def hide(task: workers.GatherTask) -> None:
        (task.workplace.folder / workers.MARK_NAME).unlink(missing_ok=True)

    with pytest.raises(SinkError) as raised:
        convert.convert([log], tmp_path / "out", ALONE, executor=Elsewhere(hide))
    assert raised.value.code == workers.NOT_SHARED
    assert raised.value.place == str(tmp_path / "out" / "state" / "work")
    assert raised.value.remedy


def test_a_worker_that_does_not_see_an_input_says_so(log: Path, tmp_path: Path) -> None:
    def hide(_task: workers.GatherTask) -> None:
        (log / "1.ndjson").unlink(missing_ok=True)

    with pytest.raises(SinkError) as raised:
        convert.convert([log], tmp_path / "out", ALONE, executor=Elsewhere(hide))
    assert raised.value.code == workers.NOT_SHARED
    assert raised.value.place == "1.ndjson"


def test_work_that_is_done_twice_is_taken_over_once(log: Path, tmp_path: Path) -> None:
    def do_it_before(task: Any) -> None:
        (workers.place if isinstance(task, workers.PlaceTask) else workers.gather)(task)

    convert.convert([log], tmp_path / "one", ALONE)
    convert.convert([log], tmp_path / "two", ALONE, executor=Elsewhere(do_it_before))
    assert content(tmp_path / "one") == content(tmp_path / "two")


def die(_task: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed_is_an_error_with_a_remedy_and_the_same_call_goes_on(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert.convert([log], tmp_path / "one", ALONE)
    with monkeypatch.context() as patched, ProcessPoolExecutor(1) as pool:
        patched.setattr(convert, "place", die)
        with pytest.raises(SinkError) as raised:
            convert.convert([log], tmp_path / "two", ALONE, executor=pool)
    assert raised.value.code == workers.WORKER_LOST
    assert raised.value.remedy
    assert not (tmp_path / "two" / "runs").exists()
    convert.convert([log], tmp_path / "two", ALONE)
    one, two = content(tmp_path / "one"), content(tmp_path / "two")
    assert one.pop("report.json") != two.pop("report.json")  # two calls have read the log
    assert one == two


def test_beside_other_threads_nothing_is_forked_unasked() -> None:
    alone = jobs.default_jobs()
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert jobs.default_jobs() == 1
    finally:
        stop.set()
        thread.join()
    assert jobs.default_jobs() == alone >= 1


@pytest.mark.usefixtures("small_parts")
def test_beside_other_threads_processes_are_started_anew_and_give_the_same(log: Path, tmp_path: Path) -> None:
    convert.convert([log], tmp_path / "one", ALONE)
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        convert.convert([log], tmp_path / "two", evolve(ALONE, jobs=2))
    finally:
        stop.set()
        thread.join()
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_a_file_cut_anywhere_has_the_lines_of_the_whole(tmp_path: Path) -> None:
    write_corpus(tmp_path / "1.ndjson", 300, random=Random(4))
    (whole,) = whole_files(discover([tmp_path]).files)
    expected = [line.raw for line in LineReader(whole.file)]
    for extent_bytes in (1, 1000, 1100, 40_000, 10**9):
        parts = cut([whole], extent_bytes)
        lines = [
            line
            for part in parts
            for line in LineReader(part.file, digest=False, start=part.start, end=part.end)
        ]
        assert [line.raw for line in lines] == expected
        assert sum(part.size_bytes for part in parts) == whole.size_bytes
        data = whole.file.path.read_bytes()
        assert all(data[line.offset : line.offset + len(line.raw)] == line.raw for line in lines)


def test_a_compressed_file_is_never_cut(log: Path) -> None:
    (log / "9.ndjson.gz").write_bytes(b"\x1f\x8b" + b"\n" * 1000)
    assert [part.is_whole for part in cut(whole_files(discover([log / "9.ndjson.gz"]).files), 10)] == [True]


def test_tasks_hold_every_extent_once_and_in_order(log: Path) -> None:
    parts = cut(whole_files(discover([log]).files), 50_000)
    tasks = tasks_of(parts, 100_000)
    assert [index for task in tasks for index in task] == list(range(len(parts)))
    assert len(tasks) < len(parts)


@pytest.mark.parametrize("name", ["", "dask", "dask:", "ray:auto"])
def test_an_executor_of_another_name_is_refused_with_a_remedy(name: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        jobs.executor_named(name)
    assert raised.value.code is jobs.BAD_EXECUTOR
    assert raised.value.remedy


# ---------------------------------------------------------------------------------------------- Dask


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).resolve().parents[2],
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A Dask scheduler and two workers, each a process: the address and the workers."""
    pytest.importorskip("distributed", reason="the extra [dask] is not installed")
    told = tmp_path / "scheduler.json"
    own = ("--scheduler-file", str(told))
    with started("distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", *own):
        worker = (
            "distributed.cli.dask_worker",
            *own,
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
            "--local-directory",
            str(tmp_path),
        )
        with started(*worker) as one, started(*worker) as two:
            yield str(told), [one, two]


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_same_bytes_though_a_worker_is_killed(
    log: Path, tmp_path: Path, cluster: tuple[str, list[subprocess.Popen[bytes]]]
) -> None:
    distributed = pytest.importorskip("distributed")
    file, processes = cluster
    deadline = time.monotonic() + 60
    while not Path(file).exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    convert.convert([log], tmp_path / "one", ALONE)
    with distributed.Client(scheduler_file=file, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        address = client.scheduler.address

    def kill_one(done_bytes: int, total_bytes: int) -> None:
        if 0 < done_bytes < total_bytes:
            processes[0].kill()

    with jobs.executor_named(f"dask:{address}") as executor:
        convert.convert([log], tmp_path / "two", ALONE, progress=kill_one, executor=executor)
    assert processes[0].poll() is not None
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_a_scheduler_that_does_not_answer_is_refused_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="the extra [dask] is not installed")
    monkeypatch.setattr(jobs, "ANSWER_WITHIN", "200ms")
    with pytest.raises(ConfigurationError) as raised:
        jobs.executor_named("dask:tcp://127.0.0.1:9")
    assert raised.value.code is jobs.BAD_EXECUTOR
    assert raised.value.remedy

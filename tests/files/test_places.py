"""Nothing is written among logs, and standard input is read like any other file."""

from __future__ import annotations

import io
import stat
from pathlib import Path

import pytest

from vinaya_bridge.errors import ConfigurationError, InputError
from vinaya_bridge.files import OUTPUT_IN_INPUT, SPOOL_FAILED, discover
from vinaya_bridge.lines import read_lines
from vinaya_bridge.places import check_output_not_inside_inputs, spool_stdin


@pytest.mark.parametrize(
    ("out", "inputs"),
    [
        ("logs", ["logs"]),
        ("logs/out", ["logs"]),
        ("logs/a/b/out", ["other", "logs"]),
        ("alias/out", ["logs"]),
        ("other/../logs/out", ["logs"]),
        ("logs/out", ["alias"]),
        ("logs/7.ndjson", ["logs/7.ndjson"]),
        ("later/out", ["later"]),
        ("out", ["out/kept/refused.ndjson"]),
        ("out", ["out/runs"]),
        ("out", ["out/kept"]),
    ],
)
def test_an_output_among_the_inputs_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str, inputs: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for directory in ("logs/a", "other", "out/kept", "out/runs"):
        Path(directory).mkdir(parents=True)
    Path("logs/7.ndjson").touch()
    Path("alias").symlink_to("logs")
    with pytest.raises(ConfigurationError) as raised:
        check_output_not_inside_inputs(out, inputs)
    assert raised.value.code is OUTPUT_IN_INPUT
    assert raised.value.place == out
    assert raised.value.remedy


@pytest.mark.parametrize(
    ("out", "inputs"),
    [("out", ["logs"]), (".", ["logs"]), ("logs/out", ["logs/7.ndjson"]), ("logs-2", ["logs"]), ("out", [])],
)
def test_an_output_beside_the_inputs_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str, inputs: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("logs").mkdir()
    Path("logs/7.ndjson").touch()
    check_output_not_inside_inputs(out, inputs)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["7.ndjson", "logs"]


def test_standard_input_is_spooled_and_read_like_a_file(tmp_path: Path) -> None:
    path = spool_stdin(io.BytesIO(b"one\ntwo"), tmp_path)
    (file,) = discover([path]).files
    assert file.name == "stdin"
    assert [line.raw for line in read_lines(file)] == [b"one", b"two"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_standard_input_that_cannot_be_spooled_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        spool_stdin(io.BytesIO(b"one\n"), tmp_path / "absent")
    assert raised.value.code is SPOOL_FAILED

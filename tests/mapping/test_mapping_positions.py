"""Where the keys and values of a TOML document stand."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vinaya_bridge.mapping.findings import KeyPath
from vinaya_bridge.mapping.load import SHIPPED, shipped_mapping
from vinaya_bridge.mapping.positions import find_positions

DOCUMENT = '''format = 1
a.b . "c d" = "x"   # comment with = and [
[t]
list = [ 1, [2, 3], # [ not a list
  { k = "v", 'l m' = """multi
]line""" },
]
e = { f = { g = true }, h.i = 1979-05-27T07:32:00Z }
[[t.rows]]
n = 1
[[t.rows]]
n = 2
[t.rows.inner]
deep = \'\'\'it's
[x]\'\'\'
[[t.rows.more]]
z = "\\u0041\\"]"
"\\u0062" = -1.5e3
'''

PLACES: tuple[tuple[KeyPath, tuple[int, int], tuple[int, int] | None], ...] = (
    (("format",), (1, 1), (1, 10)),
    (("a",), (2, 1), None),
    (("a", "b"), (2, 3), None),
    (("a", "b", "c d"), (2, 7), (2, 15)),
    (("t",), (3, 2), None),
    (("t", "list"), (4, 1), (4, 8)),
    (("t", "list", 1, 0), (4, 14), (4, 14)),
    (("t", "list", 2, "k"), (5, 5), (5, 9)),
    (("t", "list", 2, "l m"), (5, 14), (5, 22)),
    (("t", "e", "f", "g"), (8, 13), (8, 17)),
    (("t", "e", "h", "i"), (8, 27), (8, 31)),
    (("t", "rows", 0, "n"), (10, 1), (10, 5)),
    (("t", "rows", 1), (11, 5), None),
    (("t", "rows", 1, "n"), (12, 1), (12, 5)),
    (("t", "rows", 1, "inner"), (13, 9), None),
    (("t", "rows", 1, "inner", "deep"), (14, 1), (14, 8)),
    (("t", "rows", 1, "more", 0, "z"), (17, 1), (17, 5)),
    (("t", "rows", 1, "more", 0, "b"), (18, 1), (18, 12)),
)


@pytest.mark.parametrize(("path", "key", "value"), PLACES, ids=str)
def test_each_key_and_value_is_found_where_it_stands(
    path: KeyPath, key: tuple[int, int], value: tuple[int, int] | None
) -> None:
    assert tomllib.loads(DOCUMENT)
    positions = find_positions(DOCUMENT)
    assert positions.key(path) == key
    if value is not None:
        assert positions.value(path) == value


def test_what_has_no_place_of_its_own_has_that_of_what_is_around_it() -> None:
    positions = find_positions(DOCUMENT)
    assert positions.key(("t", "list", "none", "there")) == (4, 8) or positions.key(
        ("t", "list", "none")
    ) == (4, 1)
    assert positions.key(("nowhere",)) == (1, 1)


def test_a_key_that_is_given_twice_is_found_at_its_second_place() -> None:
    assert find_positions("[a.b]\nc = 1\nc = 2\n").repeated == [(("a", "b", "c"), (3, 1))]
    assert find_positions("[a.b]\n[x]\n[a.b]\n").repeated == [(("a", "b"), (3, 4))]
    assert find_positions("[[a]]\nn = 1\n[[a]]\nn = 2\n[a.c]\n[[a]]\n[a.c]\n").repeated == []


@given(st.text(alphabet="ab.\"'[]{}=, \n\\#1", max_size=60))
def test_any_text_is_survived(text: str) -> None:
    assert find_positions(text).key(()) == (1, 1)


def paths_of(value: object, path: KeyPath = ()) -> Iterator[KeyPath]:
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from paths_of(inner, (*path, key))


@pytest.mark.parametrize("name", SHIPPED)
def test_every_path_of_a_shipped_table_has_a_place_where_its_key_stands(name: str) -> None:
    text = shipped_mapping(name).read_text(encoding="utf-8")
    lines = text.split("\n")
    positions = find_positions(text)
    seen = 0
    for path in paths_of(tomllib.loads(text)):
        if isinstance(path[-1], str):
            line, column = positions.key(path)
            assert lines[line - 1][column - 1 :].lstrip("\"'").startswith(path[-1])
            seen += 1
    assert seen > 500


@pytest.mark.parametrize(
    "text", ["a = [}", "a = [#", "a = [1}", "a = {b = ]}", "a = [[}]", 'a = "\\uZZZZ"', 'a = "\\UFFFFFFFF"']
)
def test_a_value_that_is_none_ends_the_search_for_places(text: str) -> None:
    assert ("a",) in find_positions(text).keys

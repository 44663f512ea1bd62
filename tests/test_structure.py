"""The shape of the source tree: one direction of imports, small modules, a sentence on everything public."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGES = ("ethogram", "vinaya_bridge")
MOST_LINES = 450


def modules(repository: Path) -> dict[str, Path]:
    """Every module of both packages by its dotted name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((repository / package).rglob("*.py")):
            parts = path.relative_to(repository).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports_of(name: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of this repository that a module imports, wherever in it the import stands."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports by a relative name"
            source = node.module or ""
            inside = [f"{source}.{alias.name}" for alias in node.names]
            named = [each if each in known else source for each in inside]
        else:
            continue
        yield from (each for each in named if each in known)


@pytest.fixture(scope="module")
def graph(repository: Path) -> dict[str, set[str]]:
    """Module to the modules that it imports."""
    known = modules(repository)
    return {name: set(imports_of(name, path, known)) for name, path in known.items()}


def test_ethogram_never_imports_vinaya_bridge(graph: dict[str, set[str]]) -> None:
    assert any(name.startswith("ethogram") for name in graph)
    guilty = {
        name: each
        for name, imported in graph.items()
        if name.split(".")[0] == "ethogram"
        for each in imported
        if each.split(".")[0] == "vinaya_bridge"
    }
    assert guilty == {}


def circles(graph: dict[str, set[str]]) -> list[str]:
    """Circles of imports, each as text, found by removing what imports nothing that is left."""
    left = {name: imported - {name} for name, imported in graph.items()}
    while free := [name for name, imported in left.items() if not imported & left.keys()]:
        for name in free:
            del left[name]
    return [
        f"{name} -> {', '.join(sorted(imported & left.keys()))}" for name, imported in sorted(left.items())
    ]


def test_no_imports_go_in_a_circle(graph: dict[str, set[str]]) -> None:
    # A package that re-exports from its own modules is not a circle unless one of them imports the package back.
    assert circles(graph) == []


def test_a_circle_of_imports_would_be_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["a -> b", "b -> c", "c -> b"]


def test_nothing_but_the_commands_imports_the_commands(graph: dict[str, set[str]]) -> None:
    def is_command(name: str) -> bool:
        return name.startswith("vinaya_bridge.cli") or name in {"ethogram.cli", "ethogram.__main__"}

    guilty = {
        name: sorted(filter(is_command, imported))
        for name, imported in graph.items()
        if not is_command(name) and not name.endswith(".__main__") and any(map(is_command, imported))
    }
    assert guilty == {}


def test_no_module_is_over_450_lines(repository: Path) -> None:
    sizes = {
        name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in modules(repository).items()
    }
    assert {name: size for name, size in sizes.items() if size > MOST_LINES} == {}


def public_definitions(path: Path) -> Iterator[tuple[str, ast.AST]]:
    """The module and its public classes and functions, with the public methods of public classes."""
    tree = parsed(path)
    yield "the module", tree
    waiting: list[tuple[str, ast.stmt]] = [("", node) for node in tree.body]
    while waiting:
        prefix, node = waiting.pop()
        if not isinstance(
            node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) or node.name.startswith("_"):
            continue
        yield f"{prefix}{node.name}", node
        if isinstance(node, ast.ClassDef):
            waiting += [(f"{node.name}.", inner) for inner in node.body]


def test_everything_public_has_a_docstring(repository: Path) -> None:
    bare = [
        f"{module}: {name}"
        for module, path in modules(repository).items()
        for name, node in public_definitions(path)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if not ast.get_docstring(node) and not is_overload(node) and path.read_bytes().strip()
    ]
    assert bare == []


def is_overload(node: ast.AST) -> bool:
    """A declaration of one signature among several; the function itself has the docstring."""
    decorators = getattr(node, "decorator_list", [])
    return any(isinstance(each, ast.Name) and each.id == "overload" for each in decorators)


def tracked_files(repository: Path) -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=repository, capture_output=True, check=False)
    if listing.returncode:
        pytest.skip("not a git checkout")
    return [repository / name for name in listing.stdout.decode().split("\0") if name]


def test_no_tracked_file_names_a_path_of_a_machine(repository: Path) -> None:
    # Put together from pieces, so that this file does not match itself.
    tops = b"|".join([b"work", b"farm", b"root", b"tmp", b"home", b"Users"])
    machine_path = re.compile(rb"(?<![A-Za-z0-9_.~*-])/(?:" + tops + rb")/")
    guilty = [
        str(path.relative_to(repository))
        for path in tracked_files(repository)
        if path.is_file() and machine_path.search(path.read_bytes())
    ]
    assert guilty == []


def test_test_files_have_names_of_their_own(repository: Path) -> None:
    names = [path.name for path in (repository / "tests").rglob("test_*.py")]
    assert len(names) == len(set(names))

"""The direction of imports, and that importing the package is cheap."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import ethogram


def _imports(module: Path) -> set[str]:
    """Every module that a file imports, inside functions and under TYPE_CHECKING too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_bytes())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module.name} has a relative import"
            found.add(node.module or "")
    return found


def _modules() -> list[Path]:
    return sorted(Path(ethogram.__file__).parent.rglob("*.py"))


def _name(module: Path) -> str:
    return ".".join(("ethogram", *module.relative_to(Path(ethogram.__file__).parent).with_suffix("").parts))


def test_ethogram_never_imports_a_producer() -> None:
    for module in _modules():
        assert not {name for name in _imports(module) if name.split(".")[0] == "vinaya_bridge"}, module.name


def test_the_modules_of_ethogram_import_each_other_in_one_direction() -> None:
    graph: dict[str, set[str]] = {}
    for module in _modules():
        name = _name(module)
        if module.stem == "__init__":
            continue
        # What only a type checker imports is no edge: it is not there when the program runs.
        tree = ast.parse(module.read_bytes())
        top = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module]
        graph[name] = {str(node.module) for node in top if str(node.module).startswith("ethogram.")}
    order = list(TopologicalSorter(graph).static_order())
    assert order.index("ethogram.errors") < order.index("ethogram.sink") < order.index("ethogram.rundir")


def test_every_public_name_is_there_and_has_a_docstring_or_is_data() -> None:
    assert set(dir(ethogram)) == set(ethogram.__all__)
    for name in ethogram.__all__:
        value = getattr(ethogram, name)
        assert value is not None
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, name


def test_a_name_that_is_not_public_is_no_attribute() -> None:
    assert not hasattr(ethogram, "secret_handshake")


def test_importing_the_package_loads_none_of_its_modules() -> None:
    script = "import sys, ethogram; print([n for n in sys.modules if n.startswith(('ethogram.', 'orjson'))])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

"""Who may import whom: dependencies point down, and some rooms have no torch. docs/design.md explains the table."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "litebert"

# A room (a sub-package, or a module at the top) -> the rooms it may import. The longest matching name wins.
STORIES = ("pretrain", "finetune", "evaluate")
MAY_IMPORT = {
    "core": ("core",),
    "text": ("core", "text"),
    "model": ("core", "model"),
    "interop.names": ("core", "model.config", "interop.names"),
    "data": ("core", "text", "data"),
    "tasks": ("core", "text", "data", "model", "tasks"),
    "checkpoint": ("core", "text", "model", "interop.names"),
    "train": ("core", "model", "data.batch", "tasks.task", "checkpoint", "train"),
    "interop": ("core", "text", "model", "data", "tasks", "checkpoint", "interop"),
    "infer": ("core", "text", "model", "data", "tasks", "checkpoint", "interop", "infer"),
    "export": ("core", "text", "model", "data", "tasks", "checkpoint", "interop", "infer", "export"),
    "recipe": ("core", "text", "data", "model", "tasks", "train"),
}
BELOW_STORIES = tuple(MAY_IMPORT)
MAY_IMPORT |= {story: (*BELOW_STORIES, story) for story in STORIES}
MAY_IMPORT |= {room: (*BELOW_STORIES, *STORIES, room) for room in ("study", "serve", "demo")}
MAY_IMPORT |= {room: ("",) for room in ("cli", "__main__", "__init__")}  # "" matches everything
# core.runtime is the one room of core that knows the device
NO_TORCH = ("core", "text", "data", "cli", "recipe", "model.config", "model.presets", "model.sharing", "model.cost")
TORCH_ALLOWED = ("core.runtime", "data.batch", "data.stream")


def iter_modules() -> list[tuple[str, Path]]:
    return [
        (".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"), path)
        for path in sorted(PACKAGE.rglob("*.py"))
    ]


def is_inside(module: str, room: str) -> bool:
    return room == "" or module == room or module.startswith(f"{room}.")


def imported_modules(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize(("module", "path"), iter_modules(), ids=lambda value: value if isinstance(value, str) else "")
def test_a_module_imports_only_the_rooms_below_it(module: str, path: Path) -> None:
    room = max((name for name in MAY_IMPORT if is_inside(module, name)), key=len, default=None)
    assert room is not None, f"{module} has no row in MAY_IMPORT: where does it live?"
    inside = {name for name, _ in iter_modules()}
    for name in imported_modules(ast.parse(path.read_text(encoding="utf-8"))):
        target = name.removeprefix("litebert.")
        if name == target or target not in inside:  # another library, or a name inside a module already listed
            continue
        rooms_of_others = {
            "core",
            "text",
            "model",
            "data",
            "tasks",
            "train",
            "interop",
            "infer",
            "cli",
            "study",
            "serve",
        }
        if target in rooms_of_others and "from" not in target:  # `from litebert.data import x` lists both; x decides
            continue
        assert any(is_inside(target, allowed) for allowed in MAY_IMPORT[room]), f"{module} must not import {target}"


@pytest.mark.parametrize(("module", "path"), iter_modules(), ids=lambda value: value if isinstance(value, str) else "")
def test_a_room_without_torch_does_not_name_it_at_module_level(module: str, path: Path) -> None:
    if not any(is_inside(module, room) for room in NO_TORCH) or any(is_inside(module, room) for room in TORCH_ALLOWED):
        return
    top_level = [
        node for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    for node in top_level:
        assert "torch" not in {name.split(".")[0] for name in imported_modules(ast.Module([node], []))}, module


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["models", "--help"]])
def test_help_answers_without_importing_torch(words: list[str]) -> None:
    code = (
        "import sys; sys.argv[1:] = {words!r}\n"
        "from litebert.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as stop: assert not stop.code, stop.code\n"
        "heavy = {{'torch', 'transformers', 'numba', 'pyarrow', 'matplotlib'}} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    ).format(words=words)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

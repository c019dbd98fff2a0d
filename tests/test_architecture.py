"""Who may import whom: dependencies point down, and some rooms have no torch. docs/design.md explains the table."""

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "litebert"

# A room (a sub-package, or a module at the top) -> the rooms it may import. The longest matching name wins.
STORIES = ("pretraining", "finetuning", "evaluation")
MAY_IMPORT = {
    "core": ("core",),
    "text": ("core", "text"),
    "model": ("core", "model"),
    "corpus": ("core", "text", "corpus"),
    "batches": ("core", "text", "corpus", "batches"),
    "batches.options": ("core",),
    "interop.names": ("core", "model.config", "interop.names"),
    "tasks": ("core", "text", "corpus", "batches", "model", "tasks"),
    "objectives": ("core", "batches", "model", "tasks.task", "pretraining.recipe", "objectives"),
    "objectives.registry": ("core", "objectives", "pretraining.recipe"),
    "interop.layout": ("core", "model", "interop.names"),
    "interop.google_names": ("core", "model.config", "interop.names"),
    "interop.tokenizer_files": ("core", "text"),
    "checkpoint": ("core", "text", "model", "interop.names", "interop.layout", "interop.tokenizer_files"),
    "training": ("core", "model", "batches.batch", "tasks.task", "checkpoint", "training"),
    "interop": ("core", "text", "model", "corpus", "tasks", "checkpoint", "interop"),
    "graph": ("core", "model", "graph"),
    "inference": ("core", "text", "model", "tasks", "checkpoint", "interop", "graph", "inference"),
    "search": ("core", "text", "corpus", "inference", "search"),
    "exporters": ("core", "text", "model", "tasks", "checkpoint", "interop", "graph", "inference", "exporters"),
    "evaluation.intrinsic": (
        *("core", "text", "model", "corpus", "batches", "tasks", "objectives", "evaluation.intrinsic"),
    ),
    "pretraining.recipe": ("core", "text", "batches", "model", "tasks", "objectives.registry", "training"),
    "finetuning.recipe": ("core", "text", "model", "tasks", "training"),
}
BELOW_STORIES = tuple(MAY_IMPORT)
MAY_IMPORT |= {story: (*BELOW_STORIES, story) for story in STORIES}
MAY_IMPORT["verify"] = (*BELOW_STORIES, "verify")
MAY_IMPORT["plan"] = (*BELOW_STORIES, "pretraining", "plan")
MAY_IMPORT["plots"] = ("core", "inference.exit_curve", "tasks.predictions", "plots")
MAY_IMPORT |= {room: (*BELOW_STORIES, *STORIES, room) for room in ("study", "server", "demo", "distillation")}
MAY_IMPORT["study"] += ("plan", "plots")
MAY_IMPORT["demo"] += ("plots",)
MAY_IMPORT |= dict.fromkeys(("api", "cli", "__main__", "__init__"), ("",))  # "" matches everything
# What answers at once: these load none of HEAVY, neither themselves nor through what they import
LIGHT = (
    *("__init__", "__main__", "api", "cli", "core", "text", "corpus", "plan"),
    *("pretraining.recipe", "finetuning.recipe", "objectives.registry", "training.options", "training.schedule"),
    *("batches.options", "batches.google", "model.config", "model.presets", "model.sharing", "model.cost"),
)
NOT_LIGHT = ("core.runtime", "core.compiled")  # what knows the device, and what compiles
HEAVY = {"torch", "numba", "transformers", "onnxruntime", "openvino", "safetensors", "pyarrow", "matplotlib"}


MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): ast.parse(
        path.read_text("utf-8")
    )
    for path in sorted(PACKAGE.rglob("*.py"))
}


def is_inside(module: str, *rooms: str) -> bool:
    return any(room == "" or module == room or module.startswith(f"{room}.") for room in rooms)


def imported_names(node: ast.AST) -> list[str]:
    """The full names that an import statement may load: `from a.b import c` is the module a.b.c or a name in a.b."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def our_module(name: str) -> str | None:
    """The module of ours (without the leading 'litebert.') that an imported name lives in; None for other libraries."""
    if name.split(".")[0] != "litebert":
        return None
    short = name.removeprefix("litebert").removeprefix(".")
    while short and short not in MODULES:
        short = short.rpartition(".")[0]
    return short or "__init__"


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_the_rooms_below_it(module: str) -> None:
    room = max((name for name in MAY_IMPORT if is_inside(module, name)), key=len, default=None)
    assert room is not None, f"{module} has no row in MAY_IMPORT: where does it live?"
    for node in ast.walk(MODULES[module]):
        for target in map(our_module, imported_names(node)):
            assert target is None or is_inside(target, *MAY_IMPORT[room]), f"{module} must not import {target}"


def iter_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported."""
    for node in body:
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            yield from iter_statements(node.body)
        if isinstance(node, ast.If | ast.Try | ast.With):
            yield from iter_statements(node.orelse if isinstance(node, ast.If) else node.body)


LOADS = {
    module: {name for node in iter_statements(tree.body) for name in imported_names(node)}
    for module, tree in MODULES.items()
}


def find_way(module: str, is_goal: Callable[[str], bool]) -> list[str]:
    """A chain of imports at module level from a module to a name that it loads; empty if there is none."""
    ways, seen = [[module]], {module}
    while ways:
        way = ways.pop(0)
        for name in sorted(LOADS[way[-1]]):
            if is_goal(name):
                return [*way, name]
            target = our_module(name)
            if target and target not in seen:
                seen.add(target)
                ways.append([*way, target])
    return []


@pytest.mark.parametrize("module", [m for m in MODULES if is_inside(m, *LIGHT) and not is_inside(m, *NOT_LIGHT)])
def test_a_light_module_loads_nothing_heavy_through_any_import(module: str) -> None:
    way = find_way(module, lambda name: name.split(".")[0] in HEAVY)
    assert not way, " -> ".join(way)


def test_one_reader_of_toml_refuses_whatever_is_in_it() -> None:
    importers = {
        module
        for module, tree in MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        and any(name.startswith("tomllib") for name in imported_names(node))
    }
    assert importers == {"core.options"}


def test_no_module_imports_itself_through_others() -> None:
    for module in MODULES:
        way = find_way(module, lambda name, module=module: our_module(name) == module)  # type: ignore[misc]
        assert not way, " -> ".join(way)


@pytest.mark.parametrize(
    "code", ["import litebert", "import litebert.pretraining.recipe", "import litebert.finetuning.recipe"]
)
def test_what_is_imported_first_is_imported_at_once(code: str) -> None:
    """No heavy library is loaded: on an idle machine each takes less than 0.4 seconds."""
    check = f"import sys; {code}; heavy = {HEAVY!r} & set(sys.modules); assert not heavy, heavy"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["models", "--help"], ["plan", "--help"]])
def test_help_answers_without_importing_torch(words: list[str]) -> None:
    code = (
        f"import sys; sys.argv[1:] = {words!r}\n"
        "from litebert.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as stop: assert not stop.code, stop.code\n"
        f"heavy = {HEAVY!r} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_two_test_files_have_the_same_name() -> None:
    """pytest imports them by name, without their folders."""
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert len(names) == len(set(names)), {name for name in names if names.count(name) > 1}

"""`litebert verify`: read every file in directories written by litebert and compare it with its recorded hash.

Each kind of directory has a root file with a checksum of itself and the hashes of the other files. Unlike opening a
corpus, this ignores earlier verifications, so it also finds bits that flipped on disk.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert import checkpoint
from litebert.core.errors import ConfigError, DataError, LitebertError
from litebert.core.options import read_toml_values
from litebert.core.runlog import METRICS_FILE, TIMING_FILE, check_log, read_log
from litebert.core.sealed import find_changed, is_sealed, read_sealed, stays_inside
from litebert.corpus import shards
from litebert.corpus.encode import read_part
from litebert.corpus.unfinished import read_plan, read_progress, read_sources
from litebert.finetuning.recipe import list_differences
from litebert.interop.opening import EXPORT_FILE, TRIALS_FILE
from litebert.pretraining.recipe import build_recipe, list_changes, with_paths
from litebert.search.index import INDEX_FILE, list_segments, read_index
from litebert.tasks.report import REPORT_FILE, read_report
from litebert.tasks.seen_texts import SEEN_FILE, find_seen_texts
from litebert.text.tokenizer import is_saved_tokenizer, load_tokenizer
from litebert.training.kept_checkpoints import CHECKPOINTS, RECIPE_FILE


@dataclass(frozen=True)
class Verified:
    """The result for one directory or one study report; it is verified if there are no problems."""

    kind: str
    path: Path
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def verify(path: Path) -> list[Verified]:
    """Verify every directory written by litebert at a path and below; each problem names its file."""
    if not path.is_dir():
        raise ConfigError(
            "missing-folder", f"{path} is not a directory; name a corpus, tokenizer, run, checkpoint, export or study"
        )
    found = list(_verify_all(path))
    if not found:
        raise DataError(
            "nothing-to-verify", f"{path} has no directory written by litebert, so there are no hashes to check"
        )
    return found


def _verify_all(folder: Path) -> Iterator[Verified]:
    for name, kind, check in _ROOTS:
        if (folder / name).is_file() and (kind != "run" or (folder / CHECKPOINTS).is_dir()):
            yield _verify_one(kind, folder, folder / name, check)
    for report in sorted(folder.glob("*-seed-*.json")):
        yield _verify_one("study report", report, report, _read_root)
    for inside in sorted(folder.iterdir()):
        if inside.is_dir() and not inside.is_symlink() and not inside.name.startswith("."):
            yield from _verify_all(inside)


def _verify_one(kind: str, path: Path, root: Path, check: Callable[[Path], list[str]]) -> Verified:
    try:
        if root.name == shards.MANIFEST and is_saved_tokenizer(path):
            kind, check = "tokenizer", _check_tokenizer
        problems = check(path)
        is_verifiable = root.suffix == ".toml" or is_sealed(root)
    except (LitebertError, OSError) as error:
        return Verified(kind, path, (str(error),))
    note = f"{root} was written by an earlier version and has no checksum: its own content cannot be verified"
    return Verified(kind, path, tuple(problems), () if is_verifiable else (note,))


def _check_corpus(folder: Path) -> list[str]:
    manifest = shards.read_manifest(folder)
    damages = [shards.find_damage(folder, record, manifest.tokenizer.vocab_size) for record in manifest.shards]
    problems = [damage for damage in damages if damage]
    read_sources(folder)
    if not load_tokenizer(folder / shards.TOKENIZER).has_fingerprint(manifest.tokenizer.fingerprint):
        problems.append(f"{folder / shards.TOKENIZER} is not the tokenizer that encoded this corpus")
    return problems


def _check_interrupted_build(unfinished: Path) -> list[str]:
    folder = unfinished.parent
    read_plan(folder)
    done = read_progress(folder)
    records = done.manifest.shards if done else ()
    damages = [shards.find_damage(folder, r, done.manifest.tokenizer.vocab_size) for r in records if done]
    problems = [damage for damage in damages if damage]
    for part in sorted(unfinished.glob("part-*.safetensors")):
        try:
            read_part(part)
        except DataError as error:
            problems.append(f"{error} (the next build encodes it again)")
    return problems


def _check_tokenizer(folder: Path) -> list[str]:
    load_tokenizer(folder)
    return []


def _check_checkpoint(folder: Path) -> list[str]:
    files = checkpoint.read_manifest(folder).files
    problems = find_changed(folder, {name: sha256 for name, sha256 in files.items() if name != checkpoint.CARD})
    if not problems:
        checkpoint.load_checkpoint(folder)  # also checks that the configuration can be built
    return problems


def _check_files(folder: Path, root: str) -> list[str]:
    facts = read_sealed(folder / root)
    files = facts.get("files")
    if not isinstance(files, dict):
        return [f'{folder / root} is corrupt: "files" is missing or has the wrong type']
    return find_changed(folder, files)


def _check_export(folder: Path) -> list[str]:
    return _check_files(folder, EXPORT_FILE)


def _check_web_export(folder: Path) -> list[str]:
    return _check_files(folder, "facts.json")


def _check_finished_run(folder: Path) -> list[str]:
    read_report(folder)
    if (folder / SEEN_FILE).is_file():
        find_seen_texts(folder)
    return _check_files(folder, REPORT_FILE) if "files" in read_sealed(folder / REPORT_FILE) else []


def _check_run(folder: Path) -> list[str]:
    """Check the logs and the recipe of a run; its checkpoints are verified separately."""
    for name in (METRICS_FILE, TIMING_FILE):
        if (folder / name).is_file():
            read_log(folder / name)
    begun = read_toml_values(folder / RECIPE_FILE, "recipe")
    saved = checkpoint.list_checkpoints(folder / CHECKPOINTS)
    if not saved:
        return []
    check_log(folder / METRICS_FILE, checkpoint.read_manifest(saved[-1]).begun_with.get("metrics", {}))
    last = read_toml_values(saved[-1] / checkpoint.RECIPE, "recipe")
    try:
        changes = _list_tuning_changes(folder, begun, last) if "job" in begun else _list_recipe_changes(begun, last)
    except ConfigError as error:
        return [f"{folder / RECIPE_FILE} is corrupt: {error}"]
    problem = f"{folder / RECIPE_FILE} is corrupt: it is not the recipe of {saved[-1]} ({'; '.join(changes[:3])})"
    return [problem] if changes else []


def _list_recipe_changes(begun: Mapping[str, Any], last: Mapping[str, Any]) -> list[str]:
    """How the recipe of a pre-training run differs from that of its last checkpoint; paths may."""
    recipes = [with_paths(build_recipe(values), lambda _: "") for values in (last, begun)]
    return list_changes(*recipes)


def _list_tuning_changes(folder: Path, begun: Mapping[str, Any], last: Mapping[str, Any]) -> list[str]:
    """The same for a fine-tuning run: its checkpoints contain the recipe, and its report the job, too."""
    recipe = {key: value for key, value in begun.items() if key != "job"}
    if not (folder / REPORT_FILE).is_file():
        return list_differences(last, recipe)
    values = read_report(folder).get("values", {})
    return list_differences(last, recipe) + list_differences(
        {"job": values.get("job", {})},
        # runs of version 0.1 did not record all of it
        {"job": {**values.get("job", {}), **begun["job"]}},
    )


def _check_trials(folder: Path) -> list[str]:
    best = read_sealed(folder / TRIALS_FILE).get("best_run")
    is_there = isinstance(best, str) and stays_inside(best) and (folder / best).is_dir()
    return [] if is_there else [f"{folder / TRIALS_FILE} is corrupt: its best run is missing"]


def _check_demo(folder: Path) -> list[str]:
    """Check a demo's own records; its corpus and its run are verified separately."""
    for name in ("demo.json", "evaluation.json", "times.json"):
        if (folder / name).is_file():
            read_sealed(folder / name)
    return []


def _check_search_index(folder: Path) -> list[str]:
    return [problem for segment in list_segments(folder, read_index(folder)) for problem in segment.find_damage()]


def _read_root(path: Path) -> list[str]:
    read_sealed(path)
    return []


_ROOTS: tuple[tuple[str, str, Callable[[Path], list[str]]], ...] = (
    (shards.MANIFEST, "corpus", _check_corpus),
    ("plan.json", "interrupted build", _check_interrupted_build),
    (checkpoint.MANIFEST, "checkpoint", _check_checkpoint),
    (EXPORT_FILE, "export", _check_export),
    ("facts.json", "web export", _check_web_export),
    (INDEX_FILE, "search index", _check_search_index),
    (REPORT_FILE, "finished run", _check_finished_run),
    (TRIALS_FILE, "summary of runs", _check_trials),
    ("demo.json", "demo", _check_demo),
    (RECIPE_FILE, "run", _check_run),
)

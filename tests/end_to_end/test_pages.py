"""Every block that a page shows is run, or a comment above it says why not.

`<!-- needs: ... -->`, `<!-- takes minutes -->` or `<!-- part of a program -->`.

READMEs and tutorials have tests of their own. The other pages are typed here from top to bottom, in a folder with
small stand-ins for the data and models it names, and trainings are cut short.
"""

import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from shown_code import HUB_NAME, ROOT, Block, make_readers_folder, read_blocks, run_command

DOCS = ROOT / "docs"
FOLLOWED = [page.name for page in DOCS.glob("tutorial*.md")]  # by their own tests
OUTPUT = ("results.md", "design.md")  # their blocks are commands of long ago, and a map
PAGES = [page for page in sorted([*DOCS.glob("*.md"), *DOCS.glob("zh/*.md")]) if page.name not in OUTPUT]
PAGES += [ROOT / "models/cpu-small-en/README.md", ROOT / "CONTRIBUTING.md"]
MARK = re.compile(
    r"needs: (GPU|network|a server|several machines|Slurm|Docker|finished arms)|takes (minutes|hours)|part of "
)
SHOWN_AS_IT_IS = ("text", "ini", "nginx", "json", "toml", "bibtex")  # nothing to run
PRETRAIN = ["train.steps=4", "schedule.warmup_steps=1", "stages=[]", "model.vocab_size=4000", "batch.sequences=8"]
FINETUNE = ["train.steps=4", "train.warmup_steps=1", "train.evaluations=1", "train.batch_size=8"]
# What a page shows -> what a test can afford
SMALLER = {
    r"--vocab-size (8000|30000)": "--vocab-size 4000",
    r"(pretrain|check) albert-base": r"\1 nano",
    r"(pretrain|check) RECIPE": r"\1 nano",
    r"--num-seeds [35]": "--num-seeds 2",
    r"--pairs \d+": "--pairs 64",
    r" --processes \d": "",
    r"train\.hours=\d+": "train.hours=0",  # by steps
    r"step-\d{8}": "step-00000004",
    r"layers([ =])6": r"layers\g<1>1",
    r"/srv/models/albert": "runs/sst-2",
    r"--text review --label stars": "--text text --label label",
    r"(--int8 --dev \S+)": r"\1 --max-drop 100",  # labels are random here: nothing was learned that rounding could keep
    r" \.\.\.( |$)": r"\1",
    r" \[--.*?\]": "",
}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", ROOT / "README.zh-CN.md"], ids=lambda page: page.name)
def test_every_block_can_be_run_or_says_why_not(page: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for block in read_blocks(page):
        if block.language in SHOWN_AS_IT_IS or block.language == "python" or MARK.match(block.mark):
            continue
        assert not block.mark, f"{block.mark}: not one of {MARK.pattern}"
        assert block.is_shell, f"{block.language}: run it, or list it among what is only shown"
        for line in block.lines:
            first, *rest = shlex.split(line)
            if first == "make":
                assert rest[0] in targets, line
            elif first == "pip":
                assert _known_extras(line), line
            else:
                assert first in ("litebert", "echo", "curl", "python", "."), line


def _known_extras(line: str) -> bool:
    extras = re.search(r"\[([\w,]+)\]", line)
    known = re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    return not extras or set(extras[1].split(",")) <= set(known)


# --- the slow part: typing them


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with text, a tokenizer, corpora, checkpoints and small files in the layouts of the public tasks."""
    folder = tmp_path_factory.mktemp("pages")
    make_readers_folder(folder)
    for name in ("books", "enwiki", "zh/texts"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copytree(folder / "my/texts", folder / name)
    (folder / "models").symlink_to(ROOT / "models")
    texts = [line.split(",")[0] for line in (folder / "reviews.csv").read_text("utf-8").splitlines()[1:]]
    (folder / "reviews.txt").write_text("\n".join(texts[:3]) + "\n", "utf-8")
    (folder / "texts.txt").symlink_to("reviews.txt")
    (folder / "token").write_text("a-token-of-thirty-two-characters")
    shutil.copy(ROOT / "models/cpu-small-en/spiece.model", folder / "albert-30k.model")
    _write_tasks(folder, texts)
    run_command("litebert tokenizer train my/texts --out tok --vocab-size 4000", folder)
    (folder / "corpora").mkdir()
    for corpus in ("corpus", "wiki", "openings", "corpora/main"):
        run_command(f"litebert corpus build my/texts --tokenizer tok --out {corpus} --valid-share 0.1", folder)
    run_command(
        f"litebert pretrain nano data.corpora=corpus --out runs/nano model.num_layers=2 {' '.join(PRETRAIN)}", folder
    )
    run_command(f"litebert pretrain cpu-small data.corpora=corpus --out runs/cpu-small {shlex.join(PRETRAIN)}", folder)
    for name in (HUB_NAME, "MODEL"):
        run_command(f"litebert convert runs/nano --out {name} --to huggingface", folder)
    for run, task, data in (
        ("sst-2", "sst-2", "glue"),
        ("with-exits", "sst-2", "glue"),
        ("cola", "cola", "glue"),
        ("pairs", "rte", "glue"),
        ("squad-v2", "squad-v2", "squad"),
        ("race", "race", "RACE"),
        ("tags", "tags", "tags.jsonl"),
    ):
        words = ["--task", task, "--data", data, "--out", f"runs/{run}", *FINETUNE]
        words += ["exit.enabled=true"] if run == "with-exits" else []
        run_command(shlex.join(["litebert", "finetune", "runs/nano", *words]), folder)
    (folder / "runs/squad").symlink_to("squad-v2")
    for name in ("RUN", "RUN1", "RUN2", "RUN3"):
        (folder / name).symlink_to("runs/squad-v2")
    return folder


def _write_tasks(folder: Path, texts: list[str]) -> None:
    """Random labels for random texts, in the files of GLUE, SQuAD and RACE."""
    rng = random.Random(1)
    layouts: dict[str, tuple[str, Callable[[int, str], str]]] = {
        "SST-2": ("sentence\tlabel", lambda n, text: f"{text}\t{n % 2}"),
        "CoLA": ("", lambda n, text: f"made\t{n % 2}\t\t{text}"),
        "RTE": (
            "index\tsentence1\tsentence2\tlabel",
            lambda n, text: f"{n}\t{text}\t{rng.choice(texts)}\t{('entailment', 'not_entailment')[n % 2]}",
        ),
    }
    for task, (header, line) in layouts.items():
        (folder / "glue" / task).mkdir(parents=True)
        for split in ("train", "dev"):
            rows = [line(n, text) for n, text in enumerate(texts[:40])]
            table = "\n".join([header, *rows] if header else rows) + "\n"
            (folder / "glue" / task / f"{split}.tsv").write_text(table, "utf-8")
        pair = task == "RTE"
        asked = ["index\tsentence1\tsentence2" if pair else "index\tsentence"]
        asked += [f"{n}\t{text}\t{text}" if pair else f"{n}\t{text}" for n, text in enumerate(texts[:5])]
        (folder / "glue" / task / "test.tsv").write_text("\n".join(asked) + "\n", "utf-8")
    (folder / "SST-2").symlink_to("glue/SST-2")
    (folder / "dev.tsv").symlink_to("glue/SST-2/dev.tsv")

    passages = [" ".join(texts[n : n + 12]) for n in range(0, 48, 4)]
    questions = [
        {
            "context": passage,
            "qas": [
                {
                    "id": f"{n}",
                    "question": f"{passage.split()[0]} {passage.split()[1]}?",
                    "answers": [{"text": passage.split()[2], "answer_start": passage.index(passage.split()[2])}],
                    "is_impossible": False,
                }
            ],
        }
        for n, passage in enumerate(passages)
    ]
    articles = [{"title": f"{n}", "paragraphs": questions[n::4]} for n in range(4)]
    (folder / "squad").mkdir()
    for name in ("train-v1.1", "dev-v1.1", "train-v2.0", "dev-v2.0"):
        content = json.dumps({"version": name[-3:], "data": articles})
        (folder / "squad" / f"{name}.json").write_text(content)
        (folder / f"{name}.json").write_text(content)
    shutil.copy(folder / "squad/train-v2.0.json", folder / "train.json")
    shutil.copy(folder / "squad/dev-v2.0.json", folder / "dev.json")
    shutil.copy(folder / "squad/dev-v2.0.json", folder / "questions.json")

    for split in ("train", "dev"):
        for level in ("middle", "high"):
            (folder / "RACE" / split / level).mkdir(parents=True)
            for n, passage in enumerate(passages[:6]):
                example = {
                    "id": f"{level}{n}.txt",
                    "article": passage,
                    "questions": ["What is _ ?"],
                    "options": [passage.split()[:4]],
                    "answers": ["ABCD"[n % 4]],
                }
                (folder / "RACE" / split / level / f"{n}.txt").write_text(json.dumps(example))
    choices = [
        {"id": f"{n}", "context": text, "question": "Who?", "choices": ["a dog", "a cat", "nobody"], "label": n % 3}
        for n, text in enumerate(texts)
    ]
    tags = [{"tokens": text.split(), "tags": ["O"] * (len(text.split()) - 1) + ["B-END"]} for text in texts]
    for name, rows in (("questions.jsonl", choices), ("tags.jsonl", tags)):
        (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.parent != DOCS or page.name not in FOLLOWED],
    ids=lambda page: f"{page.parent.name}-{page.stem}",
)
def test_everything_on_a_page_runs(page: Path, stage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [block for block in read_blocks(page) if not block.mark or block.mark == "needs: network"]
    if not any(block.language == "python" or block.is_shell for block in blocks):
        pytest.skip("nothing to run")
    folder = tmp_path / "reader"
    shutil.copytree(stage, folder, symlinks=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("LITEBERT_DATA", str(folder))
    names: dict[str, object] = {}
    for block in blocks:
        if block.language == "python":
            exec(compile(block.content.replace("layers=6", "layers=1"), str(page), "exec"), names)
        elif block.language == "toml" and (title := re.match(r"# ([\w-]+\.toml)\n", block.content)):
            Path(title[1]).write_text(block.content, "utf-8")
        elif block.is_shell:
            for number, line in enumerate(_shorten(block)):
                if re.search("litebert (pretrain|finetune) ", line) and "--out" not in line:
                    line += f" --out runs/line-{number}-of-{len(block.content)}"
                _forget_output(line, stage, folder)
                _type(line, folder)


def _shorten(block: Block) -> Iterator[str]:
    for line in block.lines:
        for shown, smaller in SMALLER.items():
            line = re.sub(shown, smaller, line)
        if re.search("litebert (pretrain|recipes check) ", line):
            own_vocabulary = "init.from=models/" in line
            line = _change(line, [*(PRETRAIN[:3] if own_vocabulary else PRETRAIN), "data.corpora=corpus"])
        if "litebert adapt " in line:
            line = _change(line, PRETRAIN[:2])
        if "litebert finetune " in line:
            line = _change(line, FINETUNE)
        yield line


def _change(line: str, changes: list[str]) -> str:
    """The command with these overrides instead of its own of the same keys."""
    keep = {"data.corpora"} & {word.partition("=")[0] for word in shlex.split(line)}
    changes = [change for change in changes if change.partition("=")[0] not in keep]
    keys = {change.partition("=")[0] for change in changes}
    return shlex.join([word for word in shlex.split(line) if word.partition("=")[0] not in keys] + changes)


def _forget_output(line: str, stage: Path, folder: Path) -> None:
    """Remove the stand-in for what a command is about to make itself, but not what an earlier line of the page made."""
    for name in re.findall(r"--out ([\w/.-]+)", line):
        output, stand_in = folder / name, stage / name
        if stand_in.is_dir() and output.is_dir() and output.stat().st_mtime_ns == stand_in.stat().st_mtime_ns:
            shutil.rmtree(output)


def _type(line: str, folder: Path) -> None:
    """Type a line into a shell, unless it starts what other tests start: make, pip, a program that needs a server."""
    words = shlex.split(line)
    if words[0] in ("make", "pip", "curl", ".") or words[:2] == ["python", "-m"] or "benchmarks/" in line:
        return
    bin_folder = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    line = re.sub(r"(^|\| )litebert ", rf"\1{shlex.quote(sys.executable)} -m litebert ", line)
    if words[:2] == ["litebert", "serve"]:
        _start_and_stop(f"{re.sub(' --port [0-9]+', '', line)} --port 0", folder)
        return
    done = subprocess.run(
        line,
        shell=True,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": bin_folder},
    )
    accepted = (0, 1) if words[:2] == ["litebert", "submission"] else (0,)  # 1: it found something to fix
    assert done.returncode in accepted, f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


def _start_and_stop(line: str, folder: Path) -> None:
    """A server that answers is a server that says where, and ends with 0 when it is asked to."""
    server = subprocess.Popen(f"exec {line}", shell=True, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert server.stdout is not None
    said = []
    try:
        for printed in server.stdout:
            said.append(printed.decode())
            if said[-1].startswith("Open http://"):
                break
        else:
            pytest.fail(f"{line}\n{''.join(said)}")
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=180)

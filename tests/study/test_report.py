"""A report: everything in it, asking nobody for anything, and only of arms that belong together."""

import csv
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from refusals import refuses

from litebert.core.errors import ConfigError, DataError
from litebert.study.arms import plan_arms
from litebert.study.identity import Texts
from litebert.study.markdown import write_markdown
from litebert.study.place import STUDY_FILE, keep_study_file, read_arm_report
from litebert.study.report import build_page, build_section, gather_sections, write_report
from litebert.study.results import check_company, list_commands, read_results
from litebert.study.spec import load_study
from tests.study.invented import CORPORA, invent_everything, write_invented

DOCS = Path(__file__).parents[2] / "docs"
NAMES = ("table-5", "figure-1", "layer-similarity")


def invent_folder(folder: Path, name: str, **changes: object) -> Path:
    for run in plan_arms(load_study(name), "laptop"):
        write_invented(folder, run, **{**invent_everything(run), **changes})  # type: ignore[arg-type]
    return folder


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of three studies, its Markdown apart."""
    root = tmp_path_factory.mktemp("report")
    folders = [invent_folder(root / "studies" / name, name) for name in NAMES]
    (folders[0] / "notes.md").write_text("Order came late.\n\nIt took an hour & a half.")
    (folders[0] / "conclusion.md").write_text("Order can be learned.\n")
    write_report(folders, root / "out", root / "docs" / "results.md")
    return root


def test_the_page_asks_nobody_for_anything(written: Path) -> None:
    page = (written / "out" / "index.html").read_text("utf-8")
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)[^"']""", page)
    assert "http" not in page
    assert "@import" not in page
    assert "url(" not in page.replace("url(#", "")


def test_the_page_has_every_study_claim_arm_and_figure(written: Path) -> None:
    page = (written / "out" / "index.html").read_text("utf-8")
    for name in NAMES:
        study = load_study(name)
        assert f'id="{name}-laptop"' in page
        for claim in (claim for claim in study.claims if "laptop" in claim.scales):
            assert claim.text.replace("'", "&#39;") in page
    assert "86.5" in page  # the paper's
    assert "<p>It took an hour &amp; a half.</p>" in page
    assert page.count("<svg") == 10 + 4 + 6
    assert "prefers-color-scheme: dark" in page
    assert "viewport" in page


def test_markdown_links_to_pictures_that_are_there(written: Path) -> None:
    text = (written / "docs" / "results.md").read_text("utf-8")
    links = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)
    assert len(links) == 6
    for link in links:
        assert (written / "docs" / link).resolve().read_bytes().startswith(b"\x89PNG")
    assert "litebert study run table-5 --scale laptop --seeds 1,2,3 --corpus corpora/main-ffff --data DATA\n" in text
    assert "It took an hour & a half." in text
    assert "| SOP | ours |" in text
    assert "| baseline |  | 4.5 | 77.0 |" in text
    assert re.search(r"\| \*\*None\*\* \| ours \| [\d.]+ ± [\d.]+ \| [\d.]+ ± [\d.]+ ○ \|", text)  # its NSP is below 77


def test_csv_and_json_hold_the_same_numbers(written: Path) -> None:
    sections = json.loads((written / "out" / "results.json").read_text())
    table = [row for section in sections for row in section["table"]]
    with (written / "out" / "results.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(table)
    assert [row["mean"] for row in rows] == [str(row["mean"]) for row in table]
    sop = next(row for row in table if (row["arm"], row["metric"]) == ("sop", "sop"))
    assert sop["published"] == 86.5
    assert sop["published_difference"] == pytest.approx(86.5 - 53.3)


def test_plain_numbers_include_seeds_and_the_interval_of_each_difference(written: Path) -> None:
    (results,) = read_results(written / "studies" / "table-5")
    sections = json.loads((written / "out" / "results.json").read_text())
    table = next(section["table"] for section in sections if section["study"] == "table-5")
    none, sop = (next(row for row in table if (row["arm"], row["metric"]) == (arm, "mlm")) for arm in ("none", "sop"))
    assert none["seeds"] == sop["seeds"] == [1, 2, 3]
    assert len(sop["values"]) == 3
    assert none["difference_half_width"] is None
    assert sop["difference_half_width"] == results.half_width_between("mlm", "sop", "none") > 0
    with (written / "out" / "results.csv").open(encoding="utf-8", newline="") as file:
        row = next(row for row in csv.DictReader(file) if (row["arm"], row["metric"]) == ("sop", "mlm"))
    assert row["seeds"] == "1 2 3"
    assert row["values"] == " ".join(map(str, sop["values"]))
    assert row["difference_half_width"] == str(sop["difference_half_width"])


def test_a_page_is_the_same_when_it_is_built_again(written: Path) -> None:
    (results,) = read_results(written / "studies" / "figure-1")
    assert build_page([build_section(results)]) == build_page([build_section(results)])


def test_a_folder_without_reports_is_refused(tmp_path: Path) -> None:
    with refuses(DataError, "no-finished-arm"):
        read_results(tmp_path)
    (tmp_path / "other.json").write_text("{}")
    with refuses(DataError, "corrupt-file", at="other.json"):
        read_results(tmp_path)


def test_a_report_that_lacks_any_of_its_keys_is_named(tmp_path: Path) -> None:
    (run,) = plan_arms(load_study("table-5"), "laptop", arms=["sop"], seeds=[1])
    path = write_invented(tmp_path, run, {"mlm": 1.0})
    report = json.loads(path.read_text())
    for key in report:
        path.write_text(json.dumps({name: value for name, value in report.items() if name != key}))
        with refuses(DataError, "corrupt-file", at="sop-seed-1.json"):
            read_arm_report(path)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("max_span = 10", "longest_span = 10", "unknown key 'masking.longest_span'"),
        ("max_span = 10", "max_span = ", "Invalid value"),
        ('"max_length": 64', '"longest": 64', "unknown key 'train.longest'"),
    ],
    ids=["removed-key", "broken", "removed-key-of-a-task"],
)
def test_a_report_whose_recipe_cannot_be_read_any_more_is_named(
    before: str, after: str, reason: str, tmp_path: Path
) -> None:
    (run,) = plan_arms(load_study("table-5"), "laptop", arms=["sop"], seeds=[1])
    path = write_invented(tmp_path, run, {"mlm": 1.0})
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after))
    with refuses(DataError, "corrupt-file", at=reason):
        read_results(tmp_path)


def test_an_arm_of_another_recipe_is_refused_with_what_changed(tmp_path: Path) -> None:
    (run,) = plan_arms(load_study("table-5"), "laptop", arms=["sop"], seeds=[1])
    path = write_invented(tmp_path, run, {"mlm": 1.0})
    text = path.read_text().replace("learning_rate = 0.001", "learning_rate = 0.002")
    path.write_text(text)
    with refuses(ConfigError, "options-changed", at="optim.learning_rate"):
        read_results(tmp_path)


def test_a_key_that_litebert_has_learned_since_does_not_make_an_arm_stale(tmp_path: Path) -> None:
    (run,) = plan_arms(load_study("table-5"), "laptop", arms=["sop"], seeds=[1])
    path = write_invented(tmp_path, run, {"mlm": 1.0})
    assert "max_span = 10\\n" in path.read_text()
    path.write_text(path.read_text().replace("max_span = 10\\n", ""))  # as if it had not been known then
    assert len(read_results(tmp_path)) == 1


def test_arms_of_other_words_or_other_text_do_not_stand_in_one_table(tmp_path: Path) -> None:
    study = load_study("table-5")
    (one,) = plan_arms(study, "laptop", arms=["sop"], seeds=[1])
    (other,) = plan_arms(study, "laptop", arms=["nsp"], seeds=[1], words=["train.steps=9000"])
    write_invented(tmp_path / "words", one, {"mlm": 1.0})
    write_invented(tmp_path / "words", other, {"mlm": 1.0})
    with refuses(ConfigError, "options-changed", at="train.steps"):
        read_results(tmp_path / "words")
    (nsp,) = plan_arms(study, "laptop", arms=["nsp"], seeds=[1])
    write_invented(tmp_path / "text", one, {"mlm": 1.0})
    write_invented(tmp_path / "text", nsp, {"mlm": 1.0}, corpora={"main": {**CORPORA["main"], "fingerprint": "0"}})
    with refuses(ConfigError, "options-changed"):
        read_results(tmp_path / "text")
    for number, run in enumerate(plan_arms(study, "laptop", seeds=[1])):  # the first of them reads no second text
        extra = {"extra": {**CORPORA["main"], "fingerprint": str(number)}} if number else {}
        write_invented(tmp_path / "second", run, {"mlm": 1.0}, corpora={**CORPORA, **extra})
    with refuses(ConfigError, "options-changed"):
        read_results(tmp_path / "second")


def test_no_arm_is_run_that_could_not_be_reported_with_the_finished_ones(tmp_path: Path) -> None:
    study = load_study("table-5")
    (sop,) = plan_arms(study, "laptop", arms=["sop"], seeds=[1])
    path = write_invented(tmp_path, sop, {"mlm": 1.0})
    nsp = plan_arms(study, "laptop", arms=["nsp"], seeds=[2])
    texts = Texts(CORPORA, {})
    check_company(nsp, tmp_path, texts)
    with refuses(ConfigError, "options-changed", at="sop-seed-1.json"):
        check_company(plan_arms(study, "laptop", arms=["nsp"], words=["train.steps=9000"]), tmp_path, texts)
    other = Texts({"main": {**CORPORA["main"], "fingerprint": "0"}}, {})
    with refuses(ConfigError, "options-changed"):
        check_company(nsp, tmp_path, other)
    path.write_text(path.read_text().replace("steps = 13000", "steps = 9000"))
    with refuses(ConfigError, "options-changed", at="sop-seed-1.json"):
        check_company(nsp, tmp_path, texts)


def test_a_part_of_a_study_names_the_commands_that_made_it(tmp_path: Path) -> None:
    study = load_study("table-5")
    for arm, seeds in {"sop": [1, 2], "nsp": [1, 2], "none": [1]}.items():
        for run in plan_arms(study, "laptop", arms=[arm], seeds=seeds, words=["train.steps=9000"]):
            write_invented(tmp_path, run, {"mlm": 1.0})
    (results,) = read_results(tmp_path)
    assert [command.partition(" --corpus")[0] for command in list_commands(results)[2:]] == [
        "litebert study run table-5 train.steps=9000 --scale laptop --arms none --seeds 1",
        "litebert study run table-5 train.steps=9000 --scale laptop --arms nsp,sop --seeds 1,2",
    ]


def test_arms_that_were_measured_in_other_ways_do_not_stand_in_one_table(tmp_path: Path) -> None:
    (run,) = plan_arms(load_study("table-5"), "laptop", arms=["sop"], seeds=[1])
    path = write_invented(tmp_path, run, {"mlm": 1.0})
    text = path.read_text()
    for before, after, reason in (
        ('"pairs": 16384', '"pairs": 4096', "pairs: 4096 -> 16384"),
        ('"learning_rate": 0.0003', '"learning_rate": 0.1', r"task mnli, recipe.optim.learning_rate: 0.1 -> 0.0003"),
        ('"metric": "mnli"', '"metric": "rte"', "task mnli: not measured; task rte: no longer measured"),
    ):
        assert before in text
        path.write_text(text.replace(before, after, 1))
        with refuses(ConfigError, "options-changed", at=reason):
            read_results(tmp_path)


def test_a_title_of_any_letters_breaks_no_page(tmp_path: Path) -> None:
    text = 'title = "Mine"\nsource = "me"\nabout = "It."\n[arms.a]\ntitle = \'<b> "&" \'\n'
    text += '[laptop]\nrecipe = "laptop"\nseeds = [1]\nmeasures = ["intrinsic"]\n'
    text += '[[figures]]\nkind = "values"\nof = ["mlm"]\n'
    (tmp_path / STUDY_FILE).write_text(text)
    for run in plan_arms(load_study(tmp_path / STUDY_FILE), "laptop"):
        write_invented(tmp_path, run, {"mlm": 20.0})
    (results,) = read_results(tmp_path)
    page = build_page([build_section(results)])
    for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ElementTree.fromstring(svg)
    assert "<b>" not in page


def test_a_users_own_study_is_read_from_the_folder_of_its_reports(tmp_path: Path) -> None:
    text = 'title = "Mine"\nsource = "me"\nabout = "It."\n[grid]\n"masking.rate" = [0.15, 0.3]\n'
    text += '[laptop]\nrecipe = "laptop"\nseeds = [1]\nmeasures = ["intrinsic"]\n'
    (tmp_path / "mine.toml").write_text(text)
    runs = plan_arms(load_study(tmp_path / "mine.toml"), "laptop")
    for run in runs:
        write_invented(tmp_path / "out", run, {"mlm": 20.0})
    with refuses(ConfigError, "unknown-study"):
        read_results(tmp_path / "out")
    (tmp_path / "out" / STUDY_FILE).write_text(text)
    (results,) = read_results(tmp_path / "out")
    assert results.columns == ["mlm", "hours", "measuring_hours"]
    assert list_commands(results) == [
        "litebert tokenizer train TEXT --vocab-size 8000 --out tokenizer-eeee",
        "litebert corpus build TEXT --tokenizer tokenizer-eeee --valid-share 0.05 --out corpora/main-ffff",
        "litebert study run mine.toml --scale laptop --seeds 1 --corpus corpora/main-ffff",
    ]


def test_commands_build_corpora_of_different_texts_in_different_folders(tmp_path: Path) -> None:
    openings = {**CORPORA["main"], "fingerprint": "a" * 64, "valid_share": 0.15, "first_sentences": 8}
    part = {**CORPORA["main"], "fingerprint": "b" * 64, "files": 2, "file_names": ["wiki_00.gz", "wiki_01.gz"]}
    commands = []
    for name, corpus in (("table-4", CORPORA["main"]), ("table-5", openings), ("roberta-table-1", part)):
        run = plan_arms(load_study(name), "laptop")[0]
        write_invented(tmp_path / name, run, {"mlm": 1.0}, corpora={"main": corpus})
        (results,) = read_results(tmp_path / name)
        commands += list_commands(results)[1:]
    made = "litebert corpus build {} --tokenizer tokenizer-eeee --valid-share {} --out {}"
    assert commands[::2] == [
        made.format("TEXT", "0.05", "corpora/main-ffff"),
        made.format("TEXT", "0.15 --first-sentences 8", "corpora/main-aaaa"),
        made.format("TEXT/wiki_00.gz TEXT/wiki_01.gz", "0.05", "corpora/main-bbbb"),
    ]
    assert commands[3].endswith("--corpus corpora/main-aaaa --data DATA")


def test_a_study_of_ones_own_is_reported_wherever_its_recipe_lay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = 'title = "Mine"\nsource = "me"\nabout = "It."\n[grid]\n"masking.rate" = [0.15, 0.3]\n'
    text += '[laptop]\nrecipe = "recipes/mine.toml"\nseeds = [1]\nmeasures = ["intrinsic"]\n'
    text += '[[laptop.tasks]]\ntask = "rte"\ndata = "glue"\nrecipe = "recipes/rte.toml"\n'
    monkeypatch.chdir(tmp_path)
    Path("recipes").mkdir()
    run = plan_arms(load_study("table-5"), "laptop")[0]
    Path("recipes/mine.toml").write_text(run.recipe.to_toml())
    Path("recipes/rte.toml").write_text("[train]\nsteps = 7\n")
    Path("mine.toml").write_text(text)
    study = load_study("mine.toml")
    for run in plan_arms(study, "laptop"):
        write_invented(tmp_path / "out", run, {"mlm": 20.0})
    keep_study_file("mine.toml", study, tmp_path / "out")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (results,) = read_results(tmp_path / "out")
    assert len(results.reports) == 2
    monkeypatch.chdir(tmp_path)
    text = text.replace("recipes/mine.toml", "laptop").replace("recipes/rte.toml", "two-core")
    Path("mine.toml").write_text(text)
    keep_study_file("mine.toml", load_study("mine.toml"), tmp_path / "out")
    assert not list((tmp_path / "out").glob("recipe-*"))  # those of the study as it was


def test_notes_belong_to_their_scale_or_arm(tmp_path: Path) -> None:
    study = load_study("table-1")
    for scale in ("paper", "laptop"):
        for run in plan_arms(study, scale):  # type: ignore[arg-type]
            write_invented(tmp_path / scale, run, {"parameters": 1.0, "memory": 1.0})
    pages = {s: write_markdown(gather_sections([tmp_path / s]), pictures="") for s in ("paper", "laptop")}
    note = study.at("laptop").notes[0]
    assert note in pages["laptop"]
    assert note not in pages["paper"]
    assert f"| BERT-xlarge ({study.arms['bert-xlarge'].note}) | ours |" in pages["paper"]
    assert "| BERT-large | ours |" in pages["paper"].replace("*", "")
    assert "3 claims agree;" in pages["paper"]  # exact numbers have no spread


def test_a_study_in_two_folders_is_refused(tmp_path: Path) -> None:
    run = plan_arms(load_study("table-5"), "laptop")[0]
    for name in ("a", "b"):
        write_invented(tmp_path / name, run, {"mlm": 1.0})
    with refuses(ConfigError, "repeated-value"):
        write_report([tmp_path / "a", tmp_path / "b"], tmp_path / "out")


def test_the_results_in_the_docs_are_made_of_the_reports_there() -> None:
    sections = gather_sections([folder for folder in (DOCS / "studies").iterdir() if folder.is_dir()])
    written = (DOCS / "results.md").read_text("utf-8")
    assert write_markdown(sections, pictures="results/").strip() in written, "make results"
    for section in sections:
        for number in range(1, len(section.figures) + 1):
            assert (DOCS / "results" / section.picture(number)).is_file()


def test_a_report_of_several_studies_opens_with_all_claims(written: Path) -> None:
    text = (written / "docs" / "results.md").read_text("utf-8")
    overview = text[text.index("### All claims") : text.index("![Every measured claim")]
    measured = [
        v for name in NAMES for v in build_section(read_results(written / "studies" / name)[0]).verdicts if v.ours
    ]
    assert overview.count("\n| ") == 1 + len(measured)  # and the header
    for verdict in measured:
        assert f"| {verdict.claim.text} | {verdict.paper} | {verdict.ours} | " in overview
    assert "- **ALBERT, Table 5.** Order can be learned." in text
    assert (written / "out" / "figures" / "verdicts.png").read_bytes().startswith(b"\x89PNG")

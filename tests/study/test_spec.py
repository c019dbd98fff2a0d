"""A study's file: read strictly; those that come with litebert say nothing that their own numbers deny."""

from dataclasses import replace
from pathlib import Path

import pytest
from refusals import refuses

from litebert.core.errors import ConfigError
from litebert.finetuning.recipe import load_finetune_recipe
from litebert.plan.devices import load_device
from litebert.pretraining.recipe import list_recipes
from litebert.study.arms import build_arm_recipe, choose_arms, corpora_of, plan_arms
from litebert.study.claims import holds, published_sides
from litebert.study.estimate import estimate_arm
from litebert.study.identity import describe_measures
from litebert.study.metrics import MATRICES, METRICS, SERIES
from litebert.study.results import Results
from litebert.study.spec import SCALES, TASK_SETS, ArmSpec, Scale, Study, list_studies, load_study, parse_study

STUDIES = {study.name: study for study in list_studies()}
EVERY_SCALE = [(name, scale) for name, study in STUDIES.items() for scale in study.scales]
A100 = load_device("a100-80g")
TASK_NAMES = {task.metric for study in STUDIES.values() for spec in study.scales.values() for task in spec.tasks}

OWN = """
title = "Mine"
source = "me"
about = "Whether it works."
[grid]
"masking.rate" = [0.15, 0.3]
"segments.max_length" = [32, 64]
[laptop]
recipe = "laptop"
seeds = [1]
measures = ["intrinsic"]
"""
CLAIM = 'text = "t"\nmetric = "mlm"\narm = "a"\nrelation = "above"\nto = 1'
SLIP = CLAIM.replace('"mlm"', '"mlmm"').replace('"a"', '"rate=0.15+max_length=32"')
TASK = 'task = "rte"\ndata = "glue"\nstarts_from = "mnli"'
MNLI = '[[laptop.tasks]]\ntask = "mnli"\ndata = "glue"\n'


def parse(text: str) -> Study:
    return parse_study(text, name="mine", where="mine.toml")


@pytest.mark.parametrize(("name", "scale"), EVERY_SCALE)
def test_every_study_expands_and_is_priced_at_every_scale(name: str, scale: str) -> None:
    study = STUDIES[name]
    runs = plan_arms(study, scale)  # type: ignore[arg-type]
    assert len(runs) == len(study.arms_at(scale)) * len(study.at(scale).seeds)  # type: ignore[arg-type]
    for run in runs:
        assert run.recipe.seed == run.seed
    for run in runs[: len(study.arms_at(scale))]:  # type: ignore[arg-type]
        cost = estimate_arm(run, A100, num_devices=64)
        assert cost.train_hours is not None, f"{run.name} fits on no A100"
        assert cost.hours > 0 or not run.at_scale.is_trained


def test_more_devices_train_faster_but_one_of_them_tunes() -> None:
    run = plan_arms(STUDIES["table-9"], "paper")[0]
    few, many = (estimate_arm(run, A100, num_devices=number) for number in (8, 64))
    assert few.train_hours is not None
    assert many.train_hours is not None
    assert many.train_hours < few.train_hours / 2
    assert many.task_hours == few.task_hours > 0


def test_a_task_without_a_rate_has_that_of_the_models_width() -> None:
    task = '[[laptop.tasks]]\ntask = "rte"\ndata = "glue"\nrecipe = "two-core"\n'
    (run,) = plan_arms(parse(OWN + task), "laptop", arms=["*0.15*=32"], words=["model.hidden_size=512"])
    recipe = load_finetune_recipe("rte", "two-core", hidden_size=512)
    assert recipe != load_finetune_recipe("rte", "two-core")
    assert describe_measures(run)["tasks"][0]["recipe"]["optim"]["learning_rate"] == recipe.optim.learning_rate
    assert run.recipe_of(run.at_scale.tasks[0]) == recipe


@pytest.mark.parametrize("name", STUDIES)
def test_arms_of_a_study_differ_from_each_other(name: str) -> None:
    study = STUDIES[name]
    for scale in study.scales:
        fingerprints = {run.recipe.fingerprint for run in plan_arms(study, scale, seeds=[1])}
        assert len(fingerprints) == len(study.arms_at(scale))


@pytest.mark.parametrize(("name", "scale"), EVERY_SCALE)
def test_the_papers_claims_are_true_of_the_papers_numbers_at_each_scale(name: str, scale: Scale) -> None:
    study = STUDIES[name]
    results = Results(study, scale, ())
    for claim in study.claims:
        own, other = published_sides(claim, results)
        if scale in claim.scales and own is not None and other is not None:
            assert holds(claim, own - other), claim.text


@pytest.mark.parametrize(("name", "scale"), EVERY_SCALE)
def test_the_arms_of_a_claim_are_run_at_its_scale_and_its_metric_is_measured_there(name: str, scale: Scale) -> None:
    study = STUDIES[name]
    tasks = {task.metric for task in study.at(scale).tasks}
    for claim in (claim for claim in study.claims if scale in claim.scales):
        arms = [claim.arm, *([claim.to] if isinstance(claim.to, str) else [])]
        assert set(arms) <= study.arms_at(scale).keys(), claim.text
        assert claim.metric not in TASK_NAMES - tasks, claim.text
        assert claim.metric != "avg" or len(tasks) > 1, claim.text


@pytest.mark.parametrize("name", STUDIES)
def test_columns_claims_and_figures_speak_of_known_numbers(name: str) -> None:
    study = STUDIES[name]
    ensembles = {f"{metric}-ensemble" for metric in METRICS}
    assert set(study.columns) <= METRICS.keys() | ensembles
    assert {claim.metric for claim in study.claims} <= set(study.columns)
    known = {
        "values": set(study.columns),
        "differences": set(study.columns),
        "series": set(SERIES),
        "series-differences": set(SERIES),
        "matrix": set(MATRICES),
    }
    for figure in study.figures:
        assert set(figure.of) <= known[figure.kind]
    for arm in study.arms.values():
        assert set(arm.published) <= set(study.columns)


def test_all_tables_and_figures_of_the_paper_are_there() -> None:
    wanted = {f"table-{number}" for number in range(1, 14)} | {"figure-1", "figure-2a", "figure-2b"}
    assert wanted <= STUDIES.keys()
    assert [name for name in STUDIES if name.startswith("table-")][-1] == "table-13"  # in the order of reading


def test_task_sets_read_data_that_tasks_know() -> None:
    assert [task.metric for task in TASK_SETS["paper"]] == ["squad-v1", "squad-v2", "mnli", "sst-2", "race"]
    assert "laptop" in list_recipes()


def test_a_grid_makes_an_arm_of_every_combination() -> None:
    study = parse(OWN)
    assert list(study.arms) == [
        "rate=0.15+max_length=32",
        "rate=0.15+max_length=64",
        "rate=0.3+max_length=32",
        "rate=0.3+max_length=64",
    ]
    assert study.reference == "rate=0.15+max_length=32"
    recipe = build_arm_recipe(study, "laptop", "rate=0.3+max_length=32", seed=7)
    assert (recipe.masking.rate, recipe.segments.max_length, recipe.seed) == (0.3, 32, 7)


def test_words_change_every_arm_and_an_arm_wins_over_the_scale() -> None:
    runs = plan_arms(STUDIES["table-11"], "laptop", words=["train.steps=700"], seeds=[3])
    assert {run.recipe.train.steps for run in runs} == {700}
    assert [run.recipe.model.num_layers for run in runs] == [1, 2, 3, 4, 6, 12]


def test_an_arm_that_starts_from_another_comes_after_it_and_names_it() -> None:
    runs = plan_arms(STUDIES["table-11"], "laptop", seeds=[3])
    assert [run.starts_from for run in runs][:2] == ["", "depth-1-seed-3"]
    recipe = runs[1].recipe_with({"main": Path("/text")}, Path("/weights"))
    assert (recipe.init.source, recipe.data.corpora) == ("/weights", ("/text",))


def test_paths_of_corpora_are_put_into_stages_too() -> None:
    late = ArmSpec(change={"stages": [{"at": 4500, "data": {"corpora": ["main", "extra"]}}]})
    (run,) = plan_arms(replace(STUDIES["figure-2a"], arms={"late": late}), "laptop", seeds=[1])
    assert corpora_of([run]) == ["main", "extra"]
    recipe = run.recipe_with({"main": Path("/a"), "extra": Path("/b")}, None)
    assert recipe.data.corpora == ("/a",)
    assert recipe.at(8999).data.corpora == ("/a", "/b")
    assert "extra" not in recipe.to_toml()


def test_an_arm_continues_from_a_step_of_another_which_keeps_it() -> None:
    trunk, branch = plan_arms(STUDIES["figure-2b"], "laptop", seeds=[3])
    assert (trunk.branch_steps, trunk.starts_at) == ({4500}, 0)
    assert (branch.branch_steps, branch.starts_at, branch.starts_from) == (set(), 4500, "with-seed-3")
    recipe = branch.recipe_with({"main": Path("/text")}, Path("/weights"))
    assert recipe.init.continues
    assert (recipe.at(4500).model.hidden_dropout_rate, trunk.recipe.at(4500).model.hidden_dropout_rate) == (0.0, 0.1)
    assert recipe.train.steps == trunk.recipe.train.steps  # and with them, the rate at each step


def test_an_arm_that_continues_another_costs_what_comes_after() -> None:
    trunk, branch = (estimate_arm(run, A100) for run in plan_arms(STUDIES["figure-2b"], "laptop", seeds=[1]))
    steps = 6500 - 4500
    assert branch.tokens == steps * 32 * 64
    assert branch.train_hours is not None
    assert trunk.train_hours is not None
    assert branch.train_hours / trunk.train_hours == pytest.approx(steps / 6500)


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("train.steps=4500", "bad-arm-start"),
        ("train.hours=1", "bad-arm-start"),
    ],
)
def test_a_step_that_a_run_does_not_come_to_is_refused_as_a_beginning(word: str, code: str) -> None:
    with refuses(ConfigError, code):
        plan_arms(STUDIES["figure-2b"], "laptop", words=[word])


def test_arms_are_chosen_by_name_or_pattern_in_the_studys_order() -> None:
    assert choose_arms(STUDIES["table-4"], "laptop", ["e128-none", "e768-a*"]) == [
        "e768-all",
        "e768-attention",
        "e128-none",
    ]
    with refuses(ConfigError, "unknown-arm"):
        choose_arms(STUDIES["table-4"], "laptop", ["e128-nine"])
    with refuses(ConfigError, "unknown-arm"):
        choose_arms(STUDIES["table-1"], "laptop", ["bert-xlarge"])


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ('about = "', 'abuot = "', "unknown-key"),
        ("[grid]", "[gird]", "unknown-key"),
        ("seeds = [1]", "seeds = []", "bad-study"),
        ('["intrinsic"]', '["intrinsik"]', "bad-value"),
        ("[0.15, 0.3]", "[]", "bad-study"),
        ("[0.15, 0.3]", "0.15", "bad-study"),
        ('recipe = "laptop"', "", "missing-key"),
        ('source = "me"', 'source = "me"\nreference = "rate=0.16"', "unknown-arm"),
        ("[laptop]", "[arms.x]\n[laptop]", "bad-study"),
        ("[grid]", f"[[claims]]\n{CLAIM}\n[grid]", "unknown-arm"),
        ('["intrinsic"]', '["intrinsic"]\ntasks = "papers"', "unknown-value"),
        ('source = "me"', 'source = "me"\ncolumns = ["mlm", "perplexityy"]', "unknown-metric"),
        ("[grid]", f"[[claims]]\n{SLIP}\n[grid]", "unknown-metric"),
        ("[grid]", '[[figures]]\nkind = "values"\nof = ["mll"]\n[grid]', "unknown-metric"),
        ("[grid]", '[[figures]]\nkind = "series"\nof = ["mll"]\n[grid]', "unknown-metric"),
        ('["intrinsic"]', f'["intrinsic"]\n[[laptop.tasks]]\n{TASK}', "bad-study"),
        ('["intrinsic"]', f'["intrinsic"]\n{MNLI}seeds = 0', "bad-study"),
        (
            '["intrinsic"]', f'["intrinsic"]\n{MNLI}[[laptop.tasks]]\n{TASK}\nseeds = 2',
            "bad-study",
        ),
        ('title = "Mine"', "title = Mine", "bad-study"),
    ],
)  # fmt: skip
def test_errors_in_a_study_file_name_the_key(before: str, after: str, code: str) -> None:
    assert before in OWN
    with refuses(ConfigError, code):
        parse(OWN.replace(before, after, 1))


@pytest.mark.parametrize("name", ["a/b", "a,b"])  # names of files, with commas between them in --arms
def test_an_arm_with_an_unusable_name_is_refused(name: str) -> None:
    grid = '[grid]\n"masking.rate" = [0.15, 0.3]\n"segments.max_length" = [32, 64]\n'
    with refuses(ConfigError, "bad-study"):
        parse(OWN.replace(grid, f'[arms."{name}"]\n'))


def test_a_step_to_start_at_is_one_of_an_arm() -> None:
    grid = '[grid]\n"masking.rate" = [0.15, 0.3]\n"segments.max_length" = [32, 64]\n'
    with refuses(ConfigError, "bad-study", at="arms.x.laptop.starts_at"):
        parse(OWN.replace(grid, "[arms.x]\nlaptop.starts_at = 5\n"))


def test_a_scale_without_arms_is_refused() -> None:
    grid = '[grid]\n"masking.rate" = [0.15, 0.3]\n"segments.max_length" = [32, 64]\n'
    with refuses(ConfigError, "bad-study", at="mine.toml"):
        parse(OWN.replace(grid, '[arms.x]\nscales = ["paper"]\n'))


def test_a_seed_is_run_once() -> None:
    with refuses(ConfigError, "repeated-value"):
        plan_arms(parse(OWN), "laptop", seeds=[1, 1])


def test_an_impossible_arm_is_refused_with_its_name() -> None:
    study = parse(OWN.replace("[32, 64]", "[32, 640]"))
    with refuses(ConfigError, "conflicting-options", at="0.15"):
        plan_arms(study, "laptop")


def test_a_study_is_found_by_name_or_by_path(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(OWN)
    assert load_study(str(tmp_path / "own.toml")).name == "own"
    (tmp_path / "latin.toml").write_bytes(OWN.replace("Mine", "Maß").encode("latin-1"))
    with refuses(ConfigError, "bad-encoding", at="latin.toml"):
        load_study(tmp_path / "latin.toml")
    with refuses(ConfigError, "unknown-study"):
        load_study("table5")
    with refuses(ConfigError, "missing-file"):
        load_study("nowhere.toml")
    with refuses(ConfigError, "unknown-scale"):
        load_study(tmp_path / "own.toml").at("paper")
    assert SCALES == ("paper", "laptop")

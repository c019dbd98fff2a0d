"""Names that the shell completes: recipes, studies, presets, tasks and hardware; files have the shell's completion."""


def list_recipes(incomplete: str) -> list[str]:
    from litebert.pretraining.recipe import list_recipes

    return [name for name in list_recipes() if name.startswith(incomplete)]


def list_studies(incomplete: str) -> list[str]:
    from litebert.study.spec import list_studies

    return [study.name for study in list_studies() if study.name.startswith(incomplete)]


def list_presets(incomplete: str) -> list[str]:
    from litebert.model.presets import PRESETS

    return [name for name in PRESETS if name.startswith(incomplete)]


def list_tasks(incomplete: str) -> list[str]:
    from litebert.tasks.catalog import list_readers

    return [name for name in list_readers() if name.startswith(incomplete)]


def list_hardware(incomplete: str) -> list[str]:
    from litebert.plan.devices import list_devices

    return [name for name in list_devices() if name.startswith(incomplete)]

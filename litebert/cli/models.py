"""`litebert models`: what each preset weighs and costs."""


def show_models() -> None:
    """Show the presets."""

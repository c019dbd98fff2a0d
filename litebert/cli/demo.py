"""`litebert demo`: a first look, with nothing to download."""

SENTENCE = "A lite BERT shares one layer across its whole depth."


def run_demo() -> None:
    """Show the models and send one sentence through an untrained nano ALBERT."""
    import torch

    from litebert.cli.models import show_models
    from litebert.model.model import build_model
    from litebert.model.presets import preset

    show_models()
    model = build_model(preset("nano")).eval()
    token_ids = torch.tensor([list(SENTENCE.encode())])  # bytes stand in for a vocabulary
    with torch.no_grad():
        output = model.encoder(token_ids, return_layers=True)
    print(f'\n"{SENTENCE}" through an UNTRAINED nano ALBERT (its numbers mean nothing yet):')
    for number, (before, after) in enumerate(zip(output.layers, output.layers[1:], strict=False), start=1):
        distance = (after - before).norm(dim=-1).mean()
        angle = torch.rad2deg(torch.cosine_similarity(before, after, dim=-1).clamp(-1, 1).acos()).mean()
        print(f"  layer {number} moves a token by {distance:.2f} (L2), {angle:.0f} degrees")

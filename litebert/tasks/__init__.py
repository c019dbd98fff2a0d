"""Tasks: what a model is fine-tuned for and evaluated on."""

"""Fine-tuning: the training run, its recipe and folder, seeds and grids."""

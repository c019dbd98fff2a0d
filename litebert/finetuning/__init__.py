"""Fine-tuning: the story, its recipe, its run folder, seeds and grids."""

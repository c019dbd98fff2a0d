"""Pre-training: the story, its recipe and its run folder."""

"""Pre-training objectives, one per file."""

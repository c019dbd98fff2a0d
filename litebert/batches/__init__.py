"""Shards to batches: segments, masks and packed rows, addressed by step."""

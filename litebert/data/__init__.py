"""From documents to batches: reading, shards, segments, masking, the stream."""

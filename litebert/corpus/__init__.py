"""Text files to shards: reading, splitting, encoding and storing a corpus."""

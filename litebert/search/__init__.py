"""Search by meaning: passages of text as vectors in a folder, and the nearest ones to a question."""

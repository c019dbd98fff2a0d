"""Extractive question answering: SQuAD 1.1 and 2.0, and users' questions in the same JSON."""

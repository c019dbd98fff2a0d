"""Reading comprehension with spans: SQuAD 1.1 and 2.0, and anybody's questions in the same JSON."""

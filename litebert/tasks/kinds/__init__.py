"""Kinds of task: classification, tags, multiple choice. Extractive question answering is in `squad/`."""

"""Reads examples from files: the published tasks' and people's own tables, in every layout that they come in."""

"""Semantic search: an index of passage vectors in a folder, and the passages nearest to a query."""

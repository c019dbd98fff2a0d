"""The demo: the whole main job on text that every Python carries, and a page that shows what came of it."""

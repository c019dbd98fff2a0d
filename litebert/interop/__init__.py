"""Other people's checkpoints: their names, layouts and quirks stop here."""

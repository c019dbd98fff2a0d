"""The demo: pre-training from raw text to report, on the documentation that ships with Python."""

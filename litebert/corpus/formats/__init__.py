"""Text formats: recognizing the format of a file, and parsing it into documents of sentences."""

"""From text to token ids: normalization, sentences, tokenizers. No torch here."""

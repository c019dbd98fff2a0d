"""From text to token ids: normalisation, sentences, tokenizers. No torch here."""

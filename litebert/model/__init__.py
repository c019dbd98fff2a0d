"""The one encoder that is ALBERT, BERT and RoBERTa by configuration. Touches no file."""

"""Evaluation: a fine-tuned model on its task, a pre-trained one on text."""

"""Evaluation of pre-trained models on text."""

"""Inference with trained models."""

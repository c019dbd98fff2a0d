"""Distillation: a small student learns from the outputs of a larger teacher."""

"""Plots: learning curves, confusion matrices, scatter plots, early-exit curves, and SVG charts for web pages."""

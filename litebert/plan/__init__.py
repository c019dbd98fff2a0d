"""Estimate a run's memory, communication volume and hours on other devices. Nothing is trained."""

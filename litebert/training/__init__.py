"""Training: optimizers, schedules, the loop, many processes."""

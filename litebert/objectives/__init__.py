"""What pre-training asks of a model; each objective is one file."""

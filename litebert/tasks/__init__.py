"""What a model is trained and measured on."""

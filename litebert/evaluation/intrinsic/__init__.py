"""What a pre-trained model is without being taught anything more: what it knows of unseen text, what its layers do."""

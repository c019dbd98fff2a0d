"""What a pre-trained model knows without being taught anything more: masked words and sentence pairs on unseen text."""

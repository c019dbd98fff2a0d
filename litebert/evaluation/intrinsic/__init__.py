"""Measurements of a pre-trained model without fine-tuning: its accuracy on unseen text, and what its layers do."""

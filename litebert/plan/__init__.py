"""What a run would need on devices that are not here: memory, messages, hours. Arithmetic; nothing is trained."""

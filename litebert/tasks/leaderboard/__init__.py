"""What leaderboards ask for: answer files and submissions, written, checked and scored."""

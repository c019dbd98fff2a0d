"""What everything stands on: errors, files, the run log, the runtime."""

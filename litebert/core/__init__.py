"""What all other packages use: errors, files, options, the run log, the runtime."""

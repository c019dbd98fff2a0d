"""The command line: one file per noun. Parses, calls one function, prints one result; nobody imports it."""

"""Studies: what varies, what is measured, tables and figures."""

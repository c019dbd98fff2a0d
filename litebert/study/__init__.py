"""Studies: arms with varied settings, their measurements, tables and figures."""

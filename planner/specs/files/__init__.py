"""Files as records: TOML, CSV and JSON, found by name or path; every fault of a file at once."""

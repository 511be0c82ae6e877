"""Tables of papers and the requests that answer them, and formulas in files."""

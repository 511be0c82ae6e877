"""Mathematical programs: arrays, named constraints, and the judge of every answer."""

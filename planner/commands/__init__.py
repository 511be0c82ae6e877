"""The commands beside `plan`, one file each: options to a call, an answer to a report."""

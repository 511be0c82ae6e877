"""Public measurements of serving, split by run into a calibrating and a judging half."""

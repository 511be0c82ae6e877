"""What users say of traffic: traces, lengths, arrivals, percentiles, classes, what may serve."""

"""What comes to a station, how long its passes take, and what no scheduler on it exceeds."""

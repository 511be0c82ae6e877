"""What is known and asked, as frozen records in SI units: devices, clusters, models, engines."""

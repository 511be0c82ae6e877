"""Drawings in SVG, and in letters, that documents hold; none of them a page.

axes, chart   frontiers, and what runs beside them
roofline      operations of a pass under the roofs of a device
floorplans    devices and the replicas on them; maps: the same in letters
experts       loads of ranks, and what each holds
staging       layers over stages, and over machines
fleets        what a class waits for, and rent over traffic
fits          predicted against measured times
"""

"""Plans, conflicts and errors as text and as JSON. Nothing here computes a figure.

terminal    a plan, in sections
phases      its two phases, side by side
proof       its certificate and the constants behind it
conflict    why there is no plan
problems    what is wrong with a request
failures    out of time, a failed check, a defect
catalogue   models, one or all
pools       topologies, one or all
devices     devices, one or all
frontiers   frontiers: their points, what proves them
comparison  plans of several cases, side by side
page        frontiers as a page of HTML
chart       their drawing; axes: where numbers are drawn
as_csv      frontiers as a table
survey_words  what several of these call things
as_json     all of them for machines; schemas in docs/schema
schema      those schemas, from the records
layout      lines, columns, bars
paint       colour, and what a stream can show
remarks     files that replace those that ship, fields without effect
progress    one line while a solver runs
helptext    `plan --help`
"""

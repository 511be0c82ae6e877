"""Answers and errors as text, pages, CSV and JSON. Nothing here computes a figure.

documents    what an answer says, and its renderers: text, HTML, CSV
answers      each kind of answer as a document; answer_kinds lists them
catalogue    what there is to plan with, as documents
drawings     pictures that documents hold
launch       commands that start engines
as_json      answers for machines; schemas in docs/schema
times        whose the times of an answer are; region: what was never measured
proof        certificates
words, lines, outlines, survey_words, engine_requests: what several reports say
messages     what went wrong: a request, time, a failed check, a defect; and what is said beside
delivery     an answer to streams and files; files, paint: how they are written
progress     one line while a solver runs
"""

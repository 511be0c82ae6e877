"""What an answer says, whoever shows it: a document, and what turns one into text, HTML or CSV.

blocks   notes, pairs, tables, drawings, commands; sections and documents of them
as_text  lines for a terminal
as_html  a page that needs nothing else
as_csv   its data as a table for machines
"""

"""Answers as documents, a module a kind; `answer_kinds` says which."""

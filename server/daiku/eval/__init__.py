"""Evaluation: tasks worked by a model or a script, checked by program, counted and compared."""

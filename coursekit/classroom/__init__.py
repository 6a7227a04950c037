"""Exercises made from their solutions, and grading: what a teacher needs."""

"""Requests that nobody wrote down, judged by what holds of every answer."""

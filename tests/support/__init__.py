"""Shared by several test modules: contents, runs, submissions, servers, hostile input."""

"""Slack's validation of blocks, views and messages, written from its documentation."""

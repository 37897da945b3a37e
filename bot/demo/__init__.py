"""`vistobueno demo`: the whole product on one machine, with a sandbox Slack and a small shop."""

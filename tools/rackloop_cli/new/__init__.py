"""The verbs that write what a user goes on from."""

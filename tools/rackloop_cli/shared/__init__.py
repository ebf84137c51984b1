"""Options, tables, prompts and sessions that several commands share."""

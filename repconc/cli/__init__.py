"""The command line: one file per verb. Nobody imports it."""

"""The HTTP service and its page: an index directory that a team can put behind its application."""

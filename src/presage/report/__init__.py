"""Pictures, the report page and model cards; nothing here computes an answer."""

"""Keep what was observed: columns and byte offsets into the untouched source."""

-- When something was last heard of a session: finds those that may be live without reading all.
CREATE INDEX session_last_heard ON session (coalesce(ended, started));

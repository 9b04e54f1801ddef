-- Time of the last activity: finds the sessions that may be live without a scan.
CREATE INDEX session_last_heard ON session (coalesce(ended, started));

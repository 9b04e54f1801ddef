-- Turns without an end: finds the sessions whose agent may be gone without a scan.
CREATE INDEX turn_running ON turn (session) WHERE state = 'running';

-- Parts by kind, and the user's messages: finds both without a scan (R-001-08).
CREATE INDEX part_kind ON part (kind);
CREATE INDEX part_user ON part (turn) WHERE role = 'user';

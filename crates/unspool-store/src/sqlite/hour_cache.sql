-- Of what was written to caches, what they hold for an hour: it costs more.
ALTER TABLE step ADD COLUMN cache_write_1h INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turn ADD COLUMN cache_write_1h INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN cache_write_1h INTEGER NOT NULL DEFAULT 0;

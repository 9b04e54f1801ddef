-- Tokens written to caches with a lifetime of one hour, which cost more. Included in cache_write.
ALTER TABLE step ADD COLUMN cache_write_1h INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turn ADD COLUMN cache_write_1h INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN cache_write_1h INTEGER NOT NULL DEFAULT 0;

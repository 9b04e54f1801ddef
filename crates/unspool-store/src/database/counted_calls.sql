-- Tool calls that a part stands for: a source that counts calls and does not list them (R-001-12).
ALTER TABLE part ADD COLUMN counted_calls INTEGER;

-- Two turns of a session never share a number, nor two parts of a turn a place (R-001-07). What an
-- earlier build may have written otherwise goes to the end, where `db check` reports it.
UPDATE turn SET number = (SELECT max(other.number) FROM turn AS other
        WHERE other.session = turn.session) + clash.nth
FROM (SELECT row, row_number() OVER (PARTITION BY session ORDER BY row) AS nth FROM
    (SELECT row, session, row_number() OVER (PARTITION BY session, number ORDER BY row) AS same
     FROM turn) WHERE same > 1) AS clash
WHERE clash.row = turn.row;
UPDATE part SET place = (SELECT max(other.place) FROM part AS other
        WHERE other.turn = part.turn) + clash.nth
FROM (SELECT row, row_number() OVER (PARTITION BY turn ORDER BY row) AS nth FROM
    (SELECT row, turn, row_number() OVER (PARTITION BY turn, place ORDER BY row) AS same
     FROM part) WHERE same > 1) AS clash
WHERE clash.row = part.row;

DROP INDEX turn_session;
CREATE UNIQUE INDEX turn_session ON turn (session, number);
DROP INDEX part_turn;
CREATE UNIQUE INDEX part_turn ON part (turn, place);

-- Of two indexes that fit equally well, SQLite takes the one that was created last: the smaller ones.
DROP INDEX turn_with_tools;
CREATE INDEX turn_with_tools ON turn (session, number) WHERE tools > 0;
DROP INDEX turn_running;
CREATE INDEX turn_running ON turn (session) WHERE state = 'running';
DROP INDEX turn_inherited;
CREATE INDEX turn_inherited ON turn (session) WHERE inherited;
DROP INDEX part_user;
CREATE INDEX part_user ON part (turn) WHERE role = 'user';

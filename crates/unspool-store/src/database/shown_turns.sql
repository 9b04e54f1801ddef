-- The times of turns that were copied from another session count only if there are no others, and a
-- preamble without content is no turn.
CREATE INDEX turn_inherited ON turn (session) WHERE inherited;

UPDATE session SET turns = (
    SELECT count(*) FROM turn WHERE turn.session = session.row
        AND (turn.number > 0 OR turn.parts > 0 OR EXISTS
            (SELECT 1 FROM part WHERE part.turn = turn.row AND part.role = 'user')))
WHERE row IN (SELECT session FROM turn WHERE number = 0 AND parts = 0);

UPDATE session SET (started, ended) = (
    SELECT iif(session.begun IS NULL, sums.started,
            min(coalesce(sums.started, session.begun), session.begun)), sums.ended
    FROM (SELECT min(min(coalesce(turn.started, turn.ended, turn.first),
                coalesce(turn.first, turn.started, turn.ended))) AS started,
            max(max(coalesce(turn.ended, turn.started, turn.last),
                coalesce(turn.last, turn.ended, turn.started))) AS ended
        FROM turn WHERE turn.session = session.row AND NOT turn.inherited) AS sums)
WHERE row IN (SELECT session FROM turn WHERE inherited)
    AND row IN (SELECT session FROM turn WHERE NOT inherited);

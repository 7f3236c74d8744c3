-- What lists of tasks are narrowed by, in indexes that hold only the tasks whose last attempt did not go well: a delivery that
-- succeeds at once is never in them.
create index task_reason_idx on river_job (project_id, (metadata ->> 'reason'), state, id desc) where metadata ->> 'reason' <> 'accepted';
create index task_error_type_idx on river_job (project_id, (metadata -> 'last' ->> 'errorType'), state, id desc)
    where metadata -> 'last' ->> 'errorType' is not null;

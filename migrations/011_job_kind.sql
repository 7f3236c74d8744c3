-- Nothing reads it, and each task writes it four times.
drop index if exists river_job_kind;

-- Whether the provider says that nobody is there: the fact may come before it is known which mail it is about.
alter table mail_feedback add column permanent boolean not null default false;

create table projects (
    id         text primary key,
    name       text not null check (length(name) between 1 and 80),
    profile    text not null default 'standard',
    created_at timestamptz not null default now()
);

create table users (
    id                 text primary key,
    email              text not null,
    password_hash      text,
    is_admin           boolean not null default false,
    email_confirmed_at timestamptz,
    created_at         timestamptz not null default now(),
    last_login_at      timestamptz
);
create unique index users_email_key on users (lower(email));

create table members (
    project_id text not null references projects (id) on delete cascade,
    user_id    text not null references users (id) on delete cascade,
    role       text not null check (role in ('owner', 'on_call', 'viewer')),
    created_at timestamptz not null default now(),
    primary key (project_id, user_id)
);
create index members_user_idx on members (user_id);

create table api_keys (
    id           text primary key,
    project_id   text not null references projects (id) on delete cascade,
    name         text not null,
    prefix       text not null,                 -- what the panel shows of it
    secret_hash  bytea not null,                -- SHA-256 of the whole key
    scopes       text[] not null,
    created_by   text not null,
    created_at   timestamptz not null default now(),
    last_used_at timestamptz,
    revoked_at   timestamptz
);
create unique index api_keys_secret_key on api_keys (secret_hash);
create index api_keys_project_idx on api_keys (project_id, created_at desc);

-- A user's wish to join a project. The row also tells how far the mail with the answer is.
create table access_requests (
    id          text primary key,
    project_id  text not null references projects (id) on delete cascade,
    user_id     text not null references users (id) on delete cascade,
    message     text not null default '',
    state       text not null default 'pending' check (state in ('pending', 'approved', 'declined')),
    role        text check (role in ('owner', 'on_call', 'viewer')),
    created_at  timestamptz not null default now(),
    decided_at  timestamptz,
    decided_by  text,
    mail_state  text check (mail_state in ('sending', 'sent', 'failed')),   -- null until there is a mail
    notified_at timestamptz,                                                -- the owners' mail was accepted
    replied_at  timestamptz                                                 -- the user's mail was accepted
);
create unique index access_requests_pending_key on access_requests (project_id, user_id) where state = 'pending';
create index access_requests_project_idx on access_requests (project_id, id desc);
create index access_requests_user_idx on access_requests (user_id, id desc);

-- scs keeps its rows here; the columns beside let people see and revoke their sessions.
create table sessions (
    token      text primary key,               -- SHA-256 of the token, in hex
    data       bytea not null,                  -- empty once the session has ended
    expiry     timestamptz not null,
    user_id    text,
    created_at timestamptz not null default now(),
    seen_at    timestamptz not null default now(),
    ended_at   timestamptz                      -- the row stays until its expiry, so that a late commit cannot revive it
);
create index sessions_expiry_idx on sessions (expiry);
create index sessions_user_idx on sessions (user_id) where user_id is not null;

-- Failed log-ins per account and per address, to slow guessing down.
create table login_throttle (
    key           text primary key,
    failures      integer not null,
    window_start  timestamptz not null,
    blocked_until timestamptz
);

-- One-time links: set-up of the first admin, confirmation of an address.
create table one_time_links (
    token_hash bytea primary key,
    purpose    text not null,
    user_id    text references users (id) on delete cascade,
    detail     jsonb not null default '{}',
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    used_at    timestamptz
);

create table audit_log (
    id           bigint generated always as identity primary key,
    at           timestamptz not null default now(),
    project_id   text,
    actor_kind   text not null check (actor_kind in ('user', 'api_key', 'system', 'cli')),
    actor_id     text not null,
    actor_name   text not null,
    action       text not null,       -- task.retry, endpoint.disable, …
    subject_kind text not null,       -- task, endpoint, …
    subject_id   text not null,
    detail       jsonb not null default '{}'
);
create index audit_log_project_idx on audit_log (project_id, id desc);
create index audit_log_subject_idx on audit_log (project_id, subject_kind, subject_id, id desc);
create trigger audit_log_append_only before update or delete on audit_log
    for each row execute function entrega_refuse_change();
create trigger audit_log_no_truncate before truncate on audit_log
    for each statement execute function entrega_refuse_change();

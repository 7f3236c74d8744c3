-- Notifications, how they leave, and what came back. A project_id of '' is the installation itself, whose mails confirm addresses.

-- Clear addresses, in one place that can be erased by recipient. Everything else names a recipient by ref: HMAC-SHA-256 of the
-- address under the project's key.
create table mail_keys (
    project_id text primary key,
    sealed     bytea not null,
    created_at timestamptz not null default now()
);
create table mail_recipients (
    project_id text not null,
    ref        bytea not null check (length(ref) = 32),
    address    text not null,
    created_at timestamptz not null default now(),
    primary key (project_id, ref)
);

-- A project's own transport; without a row it uses the installation's. The settings hold credentials and are sealed.
create table mail_transports (
    project_id text primary key references projects (id) on delete cascade,
    kind       text not null check (kind in ('capture', 'smtp', 'api')),
    sealed     bytea not null,
    version    bigint not null default 1,
    updated_at timestamptz not null default now()
);

-- A transport that refused our credentials pauses; after paused_until one message at a time tries it again. The fingerprint is of
-- the settings that were refused: other settings are not paused.
create table mail_pauses (
    project_id   text primary key,
    fingerprint  bytea not null,
    about        text not null,
    reason       text not null,
    refusals     bigint not null default 1,
    paused_since timestamptz not null,
    refused_at   timestamptz not null,
    paused_until timestamptz not null,
    probe_until  timestamptz
);

create table notifications (
    id                 text primary key,          -- the left part of the Message-ID, and the key that a mail API tells repeats by
    project_id         text not null,
    kind               text not null,
    task_id            bigint,
    order_id           text,
    idempotency_key    text,
    request_hash       bytea,
    about_kind         text,                      -- access_request or user: what gets its mark once the mail was accepted
    about_id           text,
    recipient_ref      bytea not null check (length(recipient_ref) = 32),
    -- What makes the bytes of the message, fixed here and never changed, so that every attempt sends the same.
    from_address       text not null,
    subject            text not null,
    body_text          text not null,
    body_html          text,
    boundary           text not null,
    message_id         text not null,
    dated_at           timestamptz not null,
    link_sealed        bytea,                     -- a one-time link from its first attempt until the mail was accepted
    link_made_at       timestamptz,
    slot_at            timestamptz,               -- the hour in which it took one of the recipient's slots
    owner_slot_at      timestamptz,
    held_until         timestamptz,               -- our own cap keeps it until then; its horizon counts from there
    transport          text,
    accepted_at        timestamptz,
    captured           boolean not null default false,
    provider_id        text,
    possible_duplicate boolean not null default false,
    feedback           text check (feedback in ('delayed', 'delivered', 'bounced', 'complained')),
    feedback_at        timestamptz,
    ended_reason       text,
    erased_at          timestamptz,
    created_at         timestamptz not null default now()
);
create unique index notifications_idempotency_key on notifications (project_id, idempotency_key) where idempotency_key is not null;
create index notifications_project_idx on notifications (project_id, id desc);
create index notifications_order_idx on notifications (project_id, order_id, id) where order_id is not null;
create index notifications_recipient_idx on notifications (project_id, recipient_ref, id desc);
create index notifications_about_idx on notifications (about_id) where about_id is not null;
create index notifications_provider_idx on notifications (provider_id) where provider_id is not null;
create index notifications_task_idx on notifications (task_id) where task_id is not null;

-- How many mails took a slot of a recipient in a clock hour. scope '' counts all kinds of the project.
create table mail_slots (
    project_id text not null,
    ref        bytea not null,
    scope      text not null,
    hour       timestamptz not null,
    used       integer not null,
    primary key (project_id, ref, scope, hour)
);
create index mail_slots_hour_idx on mail_slots (hour);

-- Recipients that get no more mail. A removed row stays, since its removal is a fact as well.
create table mail_suppressions (
    id              text primary key,
    project_id      text not null,
    ref             bytea not null check (length(ref) = 32),
    reason          text not null check (reason in ('hard_bounce', 'complaint')),
    detail          text not null default '',
    notification_id text,
    created_at      timestamptz not null default now(),
    removed_at      timestamptz,
    removed_by      text
);
create unique index mail_suppressions_standing_key on mail_suppressions (project_id, ref) where removed_at is null;
create index mail_suppressions_project_idx on mail_suppressions (project_id, id desc);

-- What a provider told later, each a fact of its own. One that is about no mail we know is kept all the same.
create table mail_feedback (
    id                  text primary key,
    project_id          text not null,
    provider            text not null,
    event_key           text not null,              -- the provider's id of the fact, or a hash over it
    kind                text not null check (kind in ('delayed', 'delivered', 'bounced', 'complained')),
    notification_id     text,
    provider_message_id text,
    status              text,                       -- the enhanced status, such as 5.1.1
    detail              text not null default '',
    occurred_at         timestamptz not null,
    received_at         timestamptz not null default now()
);
create unique index mail_feedback_event_key on mail_feedback (provider, event_key);
create index mail_feedback_notification_idx on mail_feedback (notification_id, occurred_at) where notification_id is not null;
create index mail_feedback_waiting_idx on mail_feedback (provider_message_id) where notification_id is null;

-- What the transport "capture" kept instead of sending it. The message may hold a one-time link, so it is sealed.
create table captured_mails (
    notification_id text primary key,
    project_id      text not null,
    ref             bytea not null,
    sealed          bytea not null,
    captured_at     timestamptz not null default now()
);
create index captured_mails_project_idx on captured_mails (project_id, notification_id desc);

-- When the newest confirmation mail of a user was accepted.
alter table users add column confirmation_sent_at timestamptz;

-- Hashes and digests are kept as bytes, half of their hex. What thousands of calls have in common is one row of `forms`.

create table run (
  run_id text primary key not null, name text not null, created_at text not null, parent_run text, parent_head blob,
  format_version integer not null, origin blob, hash blob not null
) strict;

create table blobs (
  digest blob primary key not null, codec text not null check (codec in ('raw', 'zlib')),
  size integer not null check (size >= 0), checksum integer not null, data blob not null
) strict;

create table events (
  seq integer primary key not null, type text not null, version integer not null check (version >= 1),
  recorded_at text not null, cause text, prev_hash blob not null, hash blob not null, data text not null
) strict;

create table forms (
  id integer primary key not null, role text not null, stage text not null, model text not null, request text not null
) strict;

create table calls (
  n integer primary key not null, slot text not null, attempt integer not null check (attempt >= 1),
  form integer not null references forms, texts blob not null,
  outcome text not null check (outcome in ('answered', 'failed')), response blob, trace blob, finish text not null,
  reply_model text not null, request_id text not null, input_tokens integer, output_tokens integer,
  cached_tokens integer, reasoning_tokens integer, latency_ms integer not null, tries text not null,
  ahead integer not null check (ahead in (0, 1)), repeats text not null,
  error_kind text not null, error_message text not null, recorded_at text not null,
  prev_hash blob not null, hash blob not null, unique (slot, attempt)
) strict;

-- In a BEFORE INSERT trigger an unset key reads as -1, and REPLACE has not yet deleted what it would replace.

create trigger run_one before insert on run when exists (select 1 from run)
begin select raise(abort, 'a log holds one run'); end;

create trigger blobs_once before insert on blobs when exists (select 1 from blobs where digest = new.digest)
begin select raise(abort, 'blobs is append-only'); end;

create trigger events_next before insert on events
  when new.seq is not 1 + coalesce((select max(seq) from events), 0)
    or new.prev_hash is not coalesce(
      (select hash from events where seq = new.seq - 1), (select coalesce(origin, hash) from run))
begin select raise(abort, 'events is append-only: wrong number or predecessor'); end;

create trigger forms_next before insert on forms
  when new.id is not 1 + coalesce((select max(id) from forms), 0)
begin select raise(abort, 'forms is append-only: wrong number'); end;

create trigger calls_next before insert on calls
  when new.n is not 1 + coalesce((select max(n) from calls), 0)
    or new.attempt is not 1 + coalesce((select max(attempt) from calls where slot = new.slot), 0)
    or new.prev_hash is not coalesce(
      (select hash from calls where n = new.n - 1), (select coalesce(origin, hash) from run))
    or not exists (select 1 from forms where id = new.form)
begin select raise(abort, 'calls is append-only: wrong number, attempt, form or predecessor'); end;

-- For people: the same rows with hashes and digests in hex, and each call with what its form says.

create view log_events as
select seq, type, version, recorded_at, cause, lower(hex(prev_hash)) as prev_hash, lower(hex(hash)) as hash, data
from events order by seq;

create view log_calls as
select n, slot, attempt, role, stage, model, request, lower(hex(texts)) as texts, outcome,
  iif(response is null, null, lower(hex(response))) as response,
  iif(trace is null, null, lower(hex(trace))) as trace, finish, reply_model, request_id, input_tokens,
  output_tokens, cached_tokens, reasoning_tokens, latency_ms, tries, error_kind, error_message, recorded_at,
  ahead, repeats,
  lower(hex(prev_hash)) as prev_hash, lower(hex(hash)) as hash
from calls join forms on forms.id = calls.form order by n;

create view log_blobs as
select lower(hex(digest)) as digest, codec, size, checksum, data from blobs order by blobs.rowid;

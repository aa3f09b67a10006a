-- Confirms the callers that wait.
select given.token_hash, app.app_id, app.expired
from
  (
    select set_config('service.token_hash', hash, true) as token_hash
    from json_array_elements_text($1::json) as hash
  ) as given
  join lateral (
    select
      set_config('service.app_id', t.app_id::text, true) as app_id,
      coalesce(t.expires_at <= now(), false) as expired
    from app_token t
    where t.token_hash = decode(given.token_hash, 'hex') and t.revoked_at is null
  ) as app on true
union all
select 'client ' || given.client_id, app.app_id, false
from
  (
    select set_config('service.client_id', id, true) as client_id
    from json_array_elements_text($2::json) as id
  ) as given
  join lateral (
    select set_config('service.app_id', a.id::text, true) as app_id
    from app a
    where a.client_id = given.client_id
  ) as app on true

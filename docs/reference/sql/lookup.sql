-- Reads version and total.
prepare lookup (
  text, -- $1: table
  bytea, -- $2: connectionHash
  bytea, -- $3: tokenHash
  bigint -- $4: connectionKey
) as
(
  select
    caller.app_id, caller.expired, c.id as connection_id, c.version, c.refreshed,
    case $1::text
      when 'portfolio_transaction' then c.portfolio_transactions
      when 'account_transaction' then c.account_transactions
    end as total_items
  from
    (
      select
        app.app_id, app.expired,
        set_config('service.connection_hash', encode($2::bytea, 'hex'), true) as connection_hash
      from
        (
          select app.app_id, app.expired
          from
            (
              select set_config('service.token_hash', encode($3::bytea, 'hex'), true) as token_hash
            ) as given
            join lateral (
              select
                set_config('service.app_id', t.app_id::text, true)::uuid as app_id,
                coalesce(t.expires_at <= now(), false) as expired
              from app_token t
              where t.token_hash = decode(given.token_hash, 'hex') and t.revoked_at is null
            ) as app on true
        ) as app
    ) as caller
    left join lateral (
      select
        set_config('service.connection_id', c.id::text, true)::bigint as id,
        c.portfolio_transactions, c.account_transactions, c.change_horizon,
        c.data_version || '.' || (extract(epoch from c.changed_at) * 1000000)::bigint as version,
        floor(extract(epoch from c.refreshed_at))::bigint as refreshed
      from connection as c
      where
        c.id = $4::bigint
        and c.app_id = caller.app_id
        and c.token_hash = $2::bytea
        and caller.expired = false
    ) as c on true
);

-- Reads all completed orders, newest first.
prepare assets_transfer_order (
  bytea, -- $1: connectionHash
  bytea, -- $2: tokenHash
  bigint, -- $3: connectionKey
  bigint -- $4: limit
) as
with
  lookup as materialized (
    select
      caller.app_id, caller.expired, c.id as connection_id, c.version, c.refreshed,
      null as total_items
    from
      (
        select
          app.app_id, app.expired,
          set_config('service.connection_hash', encode($1::bytea, 'hex'), true) as connection_hash
        from
          (
            select app.app_id, app.expired
            from
              (
                select
                  set_config('service.token_hash', encode($2::bytea, 'hex'), true) as token_hash
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
          c.id = $3::bigint
          and c.app_id = caller.app_id
          and c.token_hash = $1::bytea
          and caller.expired = false
      ) as c on true
  )
select
  lookup.app_id, lookup.expired, lookup.connection_id, lookup.version, lookup.refreshed,
  lookup.total_items, null, null, null, null, null, null, null, null, null, null, null, null, null,
  null
from lookup
union all
select null, null, null, null, null, null, rows.*
from
  lookup
  cross join lateral (
    select
      t.id, t.portfolio, t.investment, t.name, t.isin, t.currency, t.asset_type, t.titles, t.amount,
      t.total, t.marketer_name, t.marketer_cif, t.management_company_name, t.management_company_cif
    from assets_transfer_order as t
    where
      t.completed_at is not null
      and t.connection_id = $3::bigint
      and lookup.connection_id is not null
    order by t.completed_at desc, t.id desc
    limit $4::bigint
  ) as rows;

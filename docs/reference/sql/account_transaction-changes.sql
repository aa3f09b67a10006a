-- Reads the rows that changed since a cursor, and the ids of removed rows.
prepare account_transaction_changes (
  bigint, -- $1: connectionKey
  bigint, -- $2: since
  bigint, -- $3: sinceVersion
  bytea, -- $4: connectionHash
  bytea, -- $5: tokenHash
  bigint -- $6: limit
) as
with
  lookup as materialized (
    select
      caller.app_id, caller.expired, c.id as connection_id, c.version, c.refreshed,
      c.account_transactions as total_items, c.change_horizon as horizon,
      (
        select v.data_version || '.' || (extract(epoch from v.changed_at) * 1000000)::bigint
        from connection_version v
        where
          v.connection_id = $1::bigint
          and c.id is not null
          and $2::bigint > 0
          and v.data_version = $3::bigint
      ) as known,
      next.change_number as next_page,
      case
        when c.id is not null then (
          select string_agg(distinct '"' || r.movement_id || '"', ',')
          from account_transaction_removal r
          where
            r.connection_id = $1::bigint
            and c.id is not null
            and r.change_number > $2::bigint
            and $2::bigint > 0
            and r.change_number < case
              when next.change_number is null then 9223372036854775807
              else next.change_number
            end
            and r.movement_id is distinct from (
              select t.movement_id
              from account_transaction t
              where t.connection_id = $1::bigint and t.movement_id >= r.movement_id
              order by t.movement_id
              limit 1
            )
        )
      end as removed
    from
      (
        select
          app.app_id, app.expired,
          set_config('service.connection_hash', encode($4::bytea, 'hex'), true) as connection_hash
        from
          (
            select app.app_id, app.expired
            from
              (
                select
                  set_config('service.token_hash', encode($5::bytea, 'hex'), true) as token_hash
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
          c.id = $1::bigint
          and c.app_id = caller.app_id
          and c.token_hash = $4::bytea
          and caller.expired = false
      ) as c on true
      left join lateral (
        select change_number
        from
          (
            (
              select t.change_number
              from account_transaction t
              where
                t.connection_id = $1::bigint
                and c.id is not null
                and t.change_number > $2::bigint
              order by t.change_number
              limit $6::bigint + 1
            )
            union all
            (
              select t.change_number
              from account_transaction_removal t
              where
                t.connection_id = $1::bigint
                and c.id is not null
                and t.change_number > $2::bigint
                and $2::bigint > 0
              order by t.change_number
              limit $6::bigint + 1
            )
          ) as changes
        order by change_number
        offset $6::bigint
        limit 1
      ) as next on true
  )
select
  lookup.app_id, lookup.expired, lookup.connection_id, lookup.version, lookup.refreshed,
  lookup.total_items, lookup.horizon, lookup.known, lookup.next_page, lookup.removed, null, null,
  null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
  null, null, null
from lookup
union all
select null, null, null, null, null, null, null, null, null, null, rows.*
from
  lookup
  cross join lateral (
    select
      t.movement_id, t.account_id, t.type, t.amount, t.exchange_rate, t.commission, t.taxes,
      t.currency, t.local_currency, t.description, t.operation_date_day,
      t.original_operation_date_day, t.value_date_day, t.original_value_date_day,
      t.operation_date_hour, t.original_operation_date_hour, t.value_date_hour,
      t.original_value_date_hour, t.original_operation_date_tz, t.original_value_date_tz,
      t.investment
    from account_transaction as t
    where
      t.change_number > $2::bigint
      and t.change_number < case
        when lookup.next_page is null then 9223372036854775807
        else lookup.next_page
      end
      and t.connection_id = $1::bigint
      and lookup.connection_id is not null
    order by t.change_number
    limit $6::bigint
  ) as rows;

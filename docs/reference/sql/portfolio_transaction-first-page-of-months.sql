-- Reads the first page of a longer range.
prepare portfolio_transaction_first_page_of_months (
  date, -- $1: from
  date, -- $2: to
  bigint, -- $3: connectionKey
  bytea, -- $4: connectionHash
  bytea, -- $5: tokenHash
  bigint -- $6: limit
) as
with
  lookup as materialized (
    select
      caller.app_id, caller.expired, c.id as connection_id, c.version, c.refreshed,
      case
        when $1::date = '-infinity'
        and $2::date = 'infinity' then c.portfolio_transactions
        when c.id is not null then (
          select coalesce(sum(m.row_count), 0) as rows
          from portfolio_transaction_month as m
          where
            m.connection_id = $3::bigint
            and c.id is not null
            and m.first_day >= case
              when isfinite($1::date) then $1::date - (extract(day from $1::date)::integer - 1)
              else $1::date
            end
            and m.first_day <= $2::date
        ) - (
          select count(*) as rows
          from
            (
              select d.effective_day
              from portfolio_transaction as d
              where
                d.connection_id = $3::bigint
                and c.id is not null
                and d.effective_day >= case
                  when isfinite($1::date) then $1::date - (extract(day from $1::date)::integer - 1)
                  else $1::date
                end
                and d.effective_day < $1::date
              order by d.effective_day desc
            ) as rows
        ) - (
          select count(*) as rows
          from
            (
              select d.effective_day
              from portfolio_transaction as d
              where
                d.connection_id = $3::bigint
                and c.id is not null
                and d.effective_day > $2::date
                and d.effective_day < (
                  case
                    when isfinite($2::date) then $2::date - (
                      extract(day from $2::date)::integer - 1
                    )
                    else $2::date
                  end + interval '1 month'
                )::date
              order by d.effective_day desc
            ) as rows
        )
      end as total_items
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
          c.id = $3::bigint
          and c.app_id = caller.app_id
          and c.token_hash = $4::bytea
          and caller.expired = false
      ) as c on true
  )
select
  lookup.app_id, lookup.expired, lookup.connection_id, lookup.version, lookup.refreshed,
  lookup.total_items, null, null, null, null, null, null, null, null, null, null, null, null, null,
  null, null, null, null, null, null, null, null, null, null, null, null, null, null
from lookup
union all
select null, null, null, null, null, null, rows.*
from
  lookup
  cross join lateral (
    select
      t.transaction_id, t.portfolio_id, t.exchange_rate, t.type, t.titles, t.amount,
      t.amount_base_currency, t.commission, t.taxes, t.currency, t.local_currency, t.description,
      t.price, t.operation_date_day, t.original_operation_date_day, t.value_date_day,
      t.original_value_date_day, t.operation_date_hour, t.original_operation_date_hour,
      t.value_date_hour, t.original_value_date_hour, t.original_operation_date_tz,
      t.original_value_date_tz, t.investment, t.related_transaction, t.retention_from,
      t.retention_to
    from portfolio_transaction as t
    where
      t.effective_day >= $1::date
      and t.effective_day <= $2::date
      and t.connection_id = $3::bigint
      and lookup.connection_id is not null
    order by t.effective_day desc, t.operation_date_hour desc nulls last, t.transaction_id desc
    limit $6::bigint
  ) as rows;

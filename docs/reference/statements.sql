-- Every SQL statement of the service, by list. `npm run docs:renew` writes this file.
-- psql runs it: each statement is a PREPARE with the types of its parameters, for tokens of apps. For a token of an
-- identity provider, only the join with the app differs.

--------------------------------------------------------------------------------
-- portfolio-transactions
--------------------------------------------------------------------------------

-- Reads the first page of a range, and the number of all rows.
prepare portfolio_transaction_first_page (
  bytea, -- $1: connectionHash
  bytea, -- $2: tokenHash
  bigint, -- $3: connectionKey
  date, -- $4: from
  date, -- $5: to
  bigint -- $6: limit
) as
with
  lookup as materialized (
    select
      caller.app_id, caller.expired, c.id as connection_id, c.version, c.refreshed,
      c.portfolio_transactions as total_items
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
  app_id, expired, connection_id, version, refreshed, total_items,
  (null::portfolio_transaction).effective_day, (null::portfolio_transaction).transaction_id,
  (null::portfolio_transaction).portfolio_id, (null::portfolio_transaction).exchange_rate,
  (null::portfolio_transaction).type, (null::portfolio_transaction).titles,
  (null::portfolio_transaction).amount, (null::portfolio_transaction).amount_base_currency,
  (null::portfolio_transaction).commission, (null::portfolio_transaction).taxes,
  (null::portfolio_transaction).currency, (null::portfolio_transaction).local_currency,
  (null::portfolio_transaction).description, (null::portfolio_transaction).price,
  (null::portfolio_transaction).operation_date_day,
  (null::portfolio_transaction).original_operation_date_day,
  (null::portfolio_transaction).value_date_day,
  (null::portfolio_transaction).original_value_date_day,
  (null::portfolio_transaction).operation_date_hour,
  (null::portfolio_transaction).original_operation_date_hour,
  (null::portfolio_transaction).value_date_hour,
  (null::portfolio_transaction).original_value_date_hour,
  (null::portfolio_transaction).original_operation_date_tz,
  (null::portfolio_transaction).original_value_date_tz, (null::portfolio_transaction).investment,
  (null::portfolio_transaction).related_transaction, (null::portfolio_transaction).retention_from,
  (null::portfolio_transaction).retention_to
from lookup
union all
(
  select
    null::uuid as app_id, null::boolean as expired, null::bigint as connection_id,
    null::text as version, null::bigint as refreshed, null::bigint as total_items, t.effective_day,
    t.transaction_id, t.portfolio_id, t.exchange_rate, t.type, t.titles, t.amount,
    t.amount_base_currency, t.commission, t.taxes, t.currency, t.local_currency, t.description,
    t.price, t.operation_date_day, t.original_operation_date_day, t.value_date_day,
    t.original_value_date_day, t.operation_date_hour, t.original_operation_date_hour,
    t.value_date_hour, t.original_value_date_hour, t.original_operation_date_tz,
    t.original_value_date_tz, t.investment, t.related_transaction, t.retention_from, t.retention_to
  from portfolio_transaction as t
  where
    t.effective_day >= $4::date
    and t.effective_day <= $5::date
    and t.connection_id = $3::bigint
    and (select connection_id from lookup) is not null
  order by t.effective_day desc, t.operation_date_hour desc nulls last, t.transaction_id desc
  limit $6::bigint
);

-- Reads the first page of a short range, and counts its rows.
prepare portfolio_transaction_first_page_of_days (
  bigint, -- $1: connectionKey
  date, -- $2: from
  date, -- $3: to
  bytea, -- $4: connectionHash
  bytea, -- $5: tokenHash
  bigint -- $6: limit
) as
with
  lookup as materialized (
    select
      caller.app_id, caller.expired, c.id as connection_id, c.version, c.refreshed,
      (
        select count(*) as rows
        from
          (
            select d.effective_day
            from portfolio_transaction as d
            where
              d.connection_id = $1::bigint
              and c.id is not null
              and d.effective_day >= $2::date
              and d.effective_day <= $3::date
            order by d.effective_day desc
          ) as rows
      ) as total_items
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
  )
select
  app_id, expired, connection_id, version, refreshed, total_items,
  (null::portfolio_transaction).effective_day, (null::portfolio_transaction).transaction_id,
  (null::portfolio_transaction).portfolio_id, (null::portfolio_transaction).exchange_rate,
  (null::portfolio_transaction).type, (null::portfolio_transaction).titles,
  (null::portfolio_transaction).amount, (null::portfolio_transaction).amount_base_currency,
  (null::portfolio_transaction).commission, (null::portfolio_transaction).taxes,
  (null::portfolio_transaction).currency, (null::portfolio_transaction).local_currency,
  (null::portfolio_transaction).description, (null::portfolio_transaction).price,
  (null::portfolio_transaction).operation_date_day,
  (null::portfolio_transaction).original_operation_date_day,
  (null::portfolio_transaction).value_date_day,
  (null::portfolio_transaction).original_value_date_day,
  (null::portfolio_transaction).operation_date_hour,
  (null::portfolio_transaction).original_operation_date_hour,
  (null::portfolio_transaction).value_date_hour,
  (null::portfolio_transaction).original_value_date_hour,
  (null::portfolio_transaction).original_operation_date_tz,
  (null::portfolio_transaction).original_value_date_tz, (null::portfolio_transaction).investment,
  (null::portfolio_transaction).related_transaction, (null::portfolio_transaction).retention_from,
  (null::portfolio_transaction).retention_to
from lookup
union all
(
  select
    null::uuid as app_id, null::boolean as expired, null::bigint as connection_id,
    null::text as version, null::bigint as refreshed, null::bigint as total_items, t.effective_day,
    t.transaction_id, t.portfolio_id, t.exchange_rate, t.type, t.titles, t.amount,
    t.amount_base_currency, t.commission, t.taxes, t.currency, t.local_currency, t.description,
    t.price, t.operation_date_day, t.original_operation_date_day, t.value_date_day,
    t.original_value_date_day, t.operation_date_hour, t.original_operation_date_hour,
    t.value_date_hour, t.original_value_date_hour, t.original_operation_date_tz,
    t.original_value_date_tz, t.investment, t.related_transaction, t.retention_from, t.retention_to
  from portfolio_transaction as t
  where
    t.effective_day >= $2::date
    and t.effective_day <= $3::date
    and t.connection_id = $1::bigint
    and (select connection_id from lookup) is not null
  order by t.effective_day desc, t.operation_date_hour desc nulls last, t.transaction_id desc
  limit $6::bigint
);

-- Reads the first page of a range, and the number of its rows.
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
  app_id, expired, connection_id, version, refreshed, total_items,
  (null::portfolio_transaction).effective_day, (null::portfolio_transaction).transaction_id,
  (null::portfolio_transaction).portfolio_id, (null::portfolio_transaction).exchange_rate,
  (null::portfolio_transaction).type, (null::portfolio_transaction).titles,
  (null::portfolio_transaction).amount, (null::portfolio_transaction).amount_base_currency,
  (null::portfolio_transaction).commission, (null::portfolio_transaction).taxes,
  (null::portfolio_transaction).currency, (null::portfolio_transaction).local_currency,
  (null::portfolio_transaction).description, (null::portfolio_transaction).price,
  (null::portfolio_transaction).operation_date_day,
  (null::portfolio_transaction).original_operation_date_day,
  (null::portfolio_transaction).value_date_day,
  (null::portfolio_transaction).original_value_date_day,
  (null::portfolio_transaction).operation_date_hour,
  (null::portfolio_transaction).original_operation_date_hour,
  (null::portfolio_transaction).value_date_hour,
  (null::portfolio_transaction).original_value_date_hour,
  (null::portfolio_transaction).original_operation_date_tz,
  (null::portfolio_transaction).original_value_date_tz, (null::portfolio_transaction).investment,
  (null::portfolio_transaction).related_transaction, (null::portfolio_transaction).retention_from,
  (null::portfolio_transaction).retention_to
from lookup
union all
(
  select
    null::uuid as app_id, null::boolean as expired, null::bigint as connection_id,
    null::text as version, null::bigint as refreshed, null::bigint as total_items, t.effective_day,
    t.transaction_id, t.portfolio_id, t.exchange_rate, t.type, t.titles, t.amount,
    t.amount_base_currency, t.commission, t.taxes, t.currency, t.local_currency, t.description,
    t.price, t.operation_date_day, t.original_operation_date_day, t.value_date_day,
    t.original_value_date_day, t.operation_date_hour, t.original_operation_date_hour,
    t.value_date_hour, t.original_value_date_hour, t.original_operation_date_tz,
    t.original_value_date_tz, t.investment, t.related_transaction, t.retention_from, t.retention_to
  from portfolio_transaction as t
  where
    t.effective_day >= $1::date
    and t.effective_day <= $2::date
    and t.connection_id = $3::bigint
    and (select connection_id from lookup) is not null
  order by t.effective_day desc, t.operation_date_hour desc nulls last, t.transaction_id desc
  limit $6::bigint
);

-- Reads a later page, from the day of its first row: it skips only rows of that day.
prepare portfolio_transaction_later_page (
  date, -- $1: from
  date, -- $2: to
  bigint, -- $3: connectionKey
  bytea, -- $4: connectionHash
  bytea, -- $5: tokenHash
  bigint, -- $6: offset
  bigint -- $7: limit
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
      end as total_items, start.effective_day as newest_day, start.skipped
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
      left join lateral (
        select day.effective_day, day.skipped
        from
          (
            select *
            from
              (
                select
                  m.first_day,
                  (m.first_day + interval '1 month')::date as next,
                  m.row_count,
                  $6::bigint + (
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
                  ) - (
                    sum(m.row_count) over (
                      order by m.first_day desc rows unbounded preceding
                    ) - m.row_count
                  ) as skipped
                from portfolio_transaction_month as m
                where
                  m.connection_id = $3::bigint
                  and c.id is not null
                  and m.first_day >= case
                    when isfinite($1::date) then $1::date - (
                      extract(day from $1::date)::integer - 1
                    )
                    else $1::date
                  end
                  and m.first_day <= $2::date
              ) as months
            where skipped < row_count
            order by first_day desc
            limit 1
          ) as month
          cross join lateral (
            select *
            from
              (
                select
                  d.effective_day, d.row_count,
                  month.skipped - (
                    sum(d.row_count) over (
                      order by d.effective_day desc rows unbounded preceding
                    ) - d.row_count
                  ) as skipped
                from
                  (
                    select d.effective_day, count(*) as row_count
                    from portfolio_transaction as d
                    where
                      d.connection_id = $3::bigint
                      and c.id is not null
                      and d.effective_day >= month.first_day
                      and d.effective_day < month.next
                    group by d.effective_day
                    order by d.effective_day desc
                  ) as d
              ) as days
            where skipped < row_count
            order by effective_day desc
            limit 1
          ) as day
      ) as start on true
  )
select
  app_id, expired, connection_id, version, refreshed, total_items,
  (null::portfolio_transaction).effective_day, (null::portfolio_transaction).transaction_id,
  (null::portfolio_transaction).portfolio_id, (null::portfolio_transaction).exchange_rate,
  (null::portfolio_transaction).type, (null::portfolio_transaction).titles,
  (null::portfolio_transaction).amount, (null::portfolio_transaction).amount_base_currency,
  (null::portfolio_transaction).commission, (null::portfolio_transaction).taxes,
  (null::portfolio_transaction).currency, (null::portfolio_transaction).local_currency,
  (null::portfolio_transaction).description, (null::portfolio_transaction).price,
  (null::portfolio_transaction).operation_date_day,
  (null::portfolio_transaction).original_operation_date_day,
  (null::portfolio_transaction).value_date_day,
  (null::portfolio_transaction).original_value_date_day,
  (null::portfolio_transaction).operation_date_hour,
  (null::portfolio_transaction).original_operation_date_hour,
  (null::portfolio_transaction).value_date_hour,
  (null::portfolio_transaction).original_value_date_hour,
  (null::portfolio_transaction).original_operation_date_tz,
  (null::portfolio_transaction).original_value_date_tz, (null::portfolio_transaction).investment,
  (null::portfolio_transaction).related_transaction, (null::portfolio_transaction).retention_from,
  (null::portfolio_transaction).retention_to
from lookup
union all
(
  select
    null::uuid as app_id, null::boolean as expired, null::bigint as connection_id,
    null::text as version, null::bigint as refreshed, null::bigint as total_items, t.effective_day,
    t.transaction_id, t.portfolio_id, t.exchange_rate, t.type, t.titles, t.amount,
    t.amount_base_currency, t.commission, t.taxes, t.currency, t.local_currency, t.description,
    t.price, t.operation_date_day, t.original_operation_date_day, t.value_date_day,
    t.original_value_date_day, t.operation_date_hour, t.original_operation_date_hour,
    t.value_date_hour, t.original_value_date_hour, t.original_operation_date_tz,
    t.original_value_date_tz, t.investment, t.related_transaction, t.retention_from, t.retention_to
  from portfolio_transaction as t
  where
    t.effective_day >= $1::date
    and t.effective_day <= (select newest_day from lookup)
    and t.connection_id = $3::bigint
    and (select connection_id from lookup) is not null
  order by t.effective_day desc, t.operation_date_hour desc nulls last, t.transaction_id desc
  limit $7::bigint
  offset (select skipped from lookup)
);

-- Reads the version, and the number of rows of a range.
prepare portfolio_transaction_total (
  date, -- $1: from
  date, -- $2: to
  bigint, -- $3: connectionKey
  bytea, -- $4: connectionHash
  bytea -- $5: tokenHash
) as
(
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
                  when isfinite($2::date) then $2::date - (extract(day from $2::date)::integer - 1)
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
              select set_config('service.token_hash', encode($5::bytea, 'hex'), true) as token_hash
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
);

-- Reads the rows that changed since a cursor, and the ids of removed rows.
prepare portfolio_transaction_changes (
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
      c.portfolio_transactions as total_items, c.change_horizon as horizon,
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
          select string_agg(distinct '"' || r.transaction_id || '"', ',')
          from portfolio_transaction_removal r
          where
            r.connection_id = $1::bigint
            and c.id is not null
            and r.change_number > $2::bigint
            and $2::bigint > 0
            and r.change_number < case
              when next.change_number is null then 9223372036854775807
              else next.change_number
            end
            and r.transaction_id is distinct from (
              select t.transaction_id
              from portfolio_transaction t
              where t.connection_id = $1::bigint and t.transaction_id >= r.transaction_id
              order by t.transaction_id
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
              from portfolio_transaction t
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
              from portfolio_transaction_removal t
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
  app_id, expired, connection_id, version, refreshed, total_items, horizon, known, next_page,
  removed, (null::portfolio_transaction).change_number,
  (null::portfolio_transaction).transaction_id, (null::portfolio_transaction).portfolio_id,
  (null::portfolio_transaction).exchange_rate, (null::portfolio_transaction).type,
  (null::portfolio_transaction).titles, (null::portfolio_transaction).amount,
  (null::portfolio_transaction).amount_base_currency, (null::portfolio_transaction).commission,
  (null::portfolio_transaction).taxes, (null::portfolio_transaction).currency,
  (null::portfolio_transaction).local_currency, (null::portfolio_transaction).description,
  (null::portfolio_transaction).price, (null::portfolio_transaction).operation_date_day,
  (null::portfolio_transaction).original_operation_date_day,
  (null::portfolio_transaction).value_date_day,
  (null::portfolio_transaction).original_value_date_day,
  (null::portfolio_transaction).operation_date_hour,
  (null::portfolio_transaction).original_operation_date_hour,
  (null::portfolio_transaction).value_date_hour,
  (null::portfolio_transaction).original_value_date_hour,
  (null::portfolio_transaction).original_operation_date_tz,
  (null::portfolio_transaction).original_value_date_tz, (null::portfolio_transaction).investment,
  (null::portfolio_transaction).related_transaction, (null::portfolio_transaction).retention_from,
  (null::portfolio_transaction).retention_to
from lookup
union all
(
  select
    null::uuid as app_id, null::boolean as expired, null::bigint as connection_id,
    null::text as version, null::bigint as refreshed, null::bigint as total_items,
    null::bigint as horizon, null::text as known, null::bigint as next_page, null::text as removed,
    t.change_number, t.transaction_id, t.portfolio_id, t.exchange_rate, t.type, t.titles, t.amount,
    t.amount_base_currency, t.commission, t.taxes, t.currency, t.local_currency, t.description,
    t.price, t.operation_date_day, t.original_operation_date_day, t.value_date_day,
    t.original_value_date_day, t.operation_date_hour, t.original_operation_date_hour,
    t.value_date_hour, t.original_value_date_hour, t.original_operation_date_tz,
    t.original_value_date_tz, t.investment, t.related_transaction, t.retention_from, t.retention_to
  from portfolio_transaction as t
  where
    t.change_number > $2::bigint
    and t.change_number < (
      select case when next_page is null then 9223372036854775807 else next_page end
      from lookup
    )
    and t.connection_id = $1::bigint
    and (select connection_id from lookup) is not null
  order by t.change_number asc
  limit $6::bigint
);

--------------------------------------------------------------------------------
-- account-transactions
--------------------------------------------------------------------------------

-- Reads the first page of a range, and the number of all rows.
prepare account_transaction_first_page (
  bytea, -- $1: connectionHash
  bytea, -- $2: tokenHash
  bigint, -- $3: connectionKey
  date, -- $4: from
  date, -- $5: to
  bigint -- $6: limit
) as
with
  lookup as materialized (
    select
      caller.app_id, caller.expired, c.id as connection_id, c.version, c.refreshed,
      c.account_transactions as total_items
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
  app_id, expired, connection_id, version, refreshed, total_items,
  (null::account_transaction).effective_day, (null::account_transaction).movement_id,
  (null::account_transaction).account_id, (null::account_transaction).type,
  (null::account_transaction).amount, (null::account_transaction).exchange_rate,
  (null::account_transaction).commission, (null::account_transaction).taxes,
  (null::account_transaction).currency, (null::account_transaction).local_currency,
  (null::account_transaction).description, (null::account_transaction).operation_date_day,
  (null::account_transaction).original_operation_date_day,
  (null::account_transaction).value_date_day, (null::account_transaction).original_value_date_day,
  (null::account_transaction).operation_date_hour,
  (null::account_transaction).original_operation_date_hour,
  (null::account_transaction).value_date_hour, (null::account_transaction).original_value_date_hour,
  (null::account_transaction).original_operation_date_tz,
  (null::account_transaction).original_value_date_tz, (null::account_transaction).investment
from lookup
union all
(
  select
    null::uuid as app_id, null::boolean as expired, null::bigint as connection_id,
    null::text as version, null::bigint as refreshed, null::bigint as total_items, t.effective_day,
    t.movement_id, t.account_id, t.type, t.amount, t.exchange_rate, t.commission, t.taxes,
    t.currency, t.local_currency, t.description, t.operation_date_day,
    t.original_operation_date_day, t.value_date_day, t.original_value_date_day,
    t.operation_date_hour, t.original_operation_date_hour, t.value_date_hour,
    t.original_value_date_hour, t.original_operation_date_tz, t.original_value_date_tz, t.investment
  from account_transaction as t
  where
    t.effective_day >= $4::date
    and t.effective_day <= $5::date
    and t.connection_id = $3::bigint
    and (select connection_id from lookup) is not null
  order by t.effective_day desc, t.operation_date_hour desc nulls last, t.movement_id desc
  limit $6::bigint
);

-- Reads the first page of a short range, and counts its rows.
prepare account_transaction_first_page_of_days (
  bigint, -- $1: connectionKey
  date, -- $2: from
  date, -- $3: to
  bytea, -- $4: connectionHash
  bytea, -- $5: tokenHash
  bigint -- $6: limit
) as
with
  lookup as materialized (
    select
      caller.app_id, caller.expired, c.id as connection_id, c.version, c.refreshed,
      (
        select count(*) as rows
        from
          (
            select d.effective_day
            from account_transaction as d
            where
              d.connection_id = $1::bigint
              and c.id is not null
              and d.effective_day >= $2::date
              and d.effective_day <= $3::date
            order by d.effective_day desc
          ) as rows
      ) as total_items
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
  )
select
  app_id, expired, connection_id, version, refreshed, total_items,
  (null::account_transaction).effective_day, (null::account_transaction).movement_id,
  (null::account_transaction).account_id, (null::account_transaction).type,
  (null::account_transaction).amount, (null::account_transaction).exchange_rate,
  (null::account_transaction).commission, (null::account_transaction).taxes,
  (null::account_transaction).currency, (null::account_transaction).local_currency,
  (null::account_transaction).description, (null::account_transaction).operation_date_day,
  (null::account_transaction).original_operation_date_day,
  (null::account_transaction).value_date_day, (null::account_transaction).original_value_date_day,
  (null::account_transaction).operation_date_hour,
  (null::account_transaction).original_operation_date_hour,
  (null::account_transaction).value_date_hour, (null::account_transaction).original_value_date_hour,
  (null::account_transaction).original_operation_date_tz,
  (null::account_transaction).original_value_date_tz, (null::account_transaction).investment
from lookup
union all
(
  select
    null::uuid as app_id, null::boolean as expired, null::bigint as connection_id,
    null::text as version, null::bigint as refreshed, null::bigint as total_items, t.effective_day,
    t.movement_id, t.account_id, t.type, t.amount, t.exchange_rate, t.commission, t.taxes,
    t.currency, t.local_currency, t.description, t.operation_date_day,
    t.original_operation_date_day, t.value_date_day, t.original_value_date_day,
    t.operation_date_hour, t.original_operation_date_hour, t.value_date_hour,
    t.original_value_date_hour, t.original_operation_date_tz, t.original_value_date_tz, t.investment
  from account_transaction as t
  where
    t.effective_day >= $2::date
    and t.effective_day <= $3::date
    and t.connection_id = $1::bigint
    and (select connection_id from lookup) is not null
  order by t.effective_day desc, t.operation_date_hour desc nulls last, t.movement_id desc
  limit $6::bigint
);

-- Reads the first page of a range, and the number of its rows.
prepare account_transaction_first_page_of_months (
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
        and $2::date = 'infinity' then c.account_transactions
        when c.id is not null then (
          select coalesce(sum(m.row_count), 0) as rows
          from account_transaction_month as m
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
              from account_transaction as d
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
              from account_transaction as d
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
  app_id, expired, connection_id, version, refreshed, total_items,
  (null::account_transaction).effective_day, (null::account_transaction).movement_id,
  (null::account_transaction).account_id, (null::account_transaction).type,
  (null::account_transaction).amount, (null::account_transaction).exchange_rate,
  (null::account_transaction).commission, (null::account_transaction).taxes,
  (null::account_transaction).currency, (null::account_transaction).local_currency,
  (null::account_transaction).description, (null::account_transaction).operation_date_day,
  (null::account_transaction).original_operation_date_day,
  (null::account_transaction).value_date_day, (null::account_transaction).original_value_date_day,
  (null::account_transaction).operation_date_hour,
  (null::account_transaction).original_operation_date_hour,
  (null::account_transaction).value_date_hour, (null::account_transaction).original_value_date_hour,
  (null::account_transaction).original_operation_date_tz,
  (null::account_transaction).original_value_date_tz, (null::account_transaction).investment
from lookup
union all
(
  select
    null::uuid as app_id, null::boolean as expired, null::bigint as connection_id,
    null::text as version, null::bigint as refreshed, null::bigint as total_items, t.effective_day,
    t.movement_id, t.account_id, t.type, t.amount, t.exchange_rate, t.commission, t.taxes,
    t.currency, t.local_currency, t.description, t.operation_date_day,
    t.original_operation_date_day, t.value_date_day, t.original_value_date_day,
    t.operation_date_hour, t.original_operation_date_hour, t.value_date_hour,
    t.original_value_date_hour, t.original_operation_date_tz, t.original_value_date_tz, t.investment
  from account_transaction as t
  where
    t.effective_day >= $1::date
    and t.effective_day <= $2::date
    and t.connection_id = $3::bigint
    and (select connection_id from lookup) is not null
  order by t.effective_day desc, t.operation_date_hour desc nulls last, t.movement_id desc
  limit $6::bigint
);

-- Reads a later page, from the day of its first row: it skips only rows of that day.
prepare account_transaction_later_page (
  date, -- $1: from
  date, -- $2: to
  bigint, -- $3: connectionKey
  bytea, -- $4: connectionHash
  bytea, -- $5: tokenHash
  bigint, -- $6: offset
  bigint -- $7: limit
) as
with
  lookup as materialized (
    select
      caller.app_id, caller.expired, c.id as connection_id, c.version, c.refreshed,
      case
        when $1::date = '-infinity'
        and $2::date = 'infinity' then c.account_transactions
        when c.id is not null then (
          select coalesce(sum(m.row_count), 0) as rows
          from account_transaction_month as m
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
              from account_transaction as d
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
              from account_transaction as d
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
      end as total_items, start.effective_day as newest_day, start.skipped
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
      left join lateral (
        select day.effective_day, day.skipped
        from
          (
            select *
            from
              (
                select
                  m.first_day,
                  (m.first_day + interval '1 month')::date as next,
                  m.row_count,
                  $6::bigint + (
                    select count(*) as rows
                    from
                      (
                        select d.effective_day
                        from account_transaction as d
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
                  ) - (
                    sum(m.row_count) over (
                      order by m.first_day desc rows unbounded preceding
                    ) - m.row_count
                  ) as skipped
                from account_transaction_month as m
                where
                  m.connection_id = $3::bigint
                  and c.id is not null
                  and m.first_day >= case
                    when isfinite($1::date) then $1::date - (
                      extract(day from $1::date)::integer - 1
                    )
                    else $1::date
                  end
                  and m.first_day <= $2::date
              ) as months
            where skipped < row_count
            order by first_day desc
            limit 1
          ) as month
          cross join lateral (
            select *
            from
              (
                select
                  d.effective_day, d.row_count,
                  month.skipped - (
                    sum(d.row_count) over (
                      order by d.effective_day desc rows unbounded preceding
                    ) - d.row_count
                  ) as skipped
                from
                  (
                    select d.effective_day, count(*) as row_count
                    from account_transaction as d
                    where
                      d.connection_id = $3::bigint
                      and c.id is not null
                      and d.effective_day >= month.first_day
                      and d.effective_day < month.next
                    group by d.effective_day
                    order by d.effective_day desc
                  ) as d
              ) as days
            where skipped < row_count
            order by effective_day desc
            limit 1
          ) as day
      ) as start on true
  )
select
  app_id, expired, connection_id, version, refreshed, total_items,
  (null::account_transaction).effective_day, (null::account_transaction).movement_id,
  (null::account_transaction).account_id, (null::account_transaction).type,
  (null::account_transaction).amount, (null::account_transaction).exchange_rate,
  (null::account_transaction).commission, (null::account_transaction).taxes,
  (null::account_transaction).currency, (null::account_transaction).local_currency,
  (null::account_transaction).description, (null::account_transaction).operation_date_day,
  (null::account_transaction).original_operation_date_day,
  (null::account_transaction).value_date_day, (null::account_transaction).original_value_date_day,
  (null::account_transaction).operation_date_hour,
  (null::account_transaction).original_operation_date_hour,
  (null::account_transaction).value_date_hour, (null::account_transaction).original_value_date_hour,
  (null::account_transaction).original_operation_date_tz,
  (null::account_transaction).original_value_date_tz, (null::account_transaction).investment
from lookup
union all
(
  select
    null::uuid as app_id, null::boolean as expired, null::bigint as connection_id,
    null::text as version, null::bigint as refreshed, null::bigint as total_items, t.effective_day,
    t.movement_id, t.account_id, t.type, t.amount, t.exchange_rate, t.commission, t.taxes,
    t.currency, t.local_currency, t.description, t.operation_date_day,
    t.original_operation_date_day, t.value_date_day, t.original_value_date_day,
    t.operation_date_hour, t.original_operation_date_hour, t.value_date_hour,
    t.original_value_date_hour, t.original_operation_date_tz, t.original_value_date_tz, t.investment
  from account_transaction as t
  where
    t.effective_day >= $1::date
    and t.effective_day <= (select newest_day from lookup)
    and t.connection_id = $3::bigint
    and (select connection_id from lookup) is not null
  order by t.effective_day desc, t.operation_date_hour desc nulls last, t.movement_id desc
  limit $7::bigint
  offset (select skipped from lookup)
);

-- Reads the version, and the number of rows of a range.
prepare account_transaction_total (
  date, -- $1: from
  date, -- $2: to
  bigint, -- $3: connectionKey
  bytea, -- $4: connectionHash
  bytea -- $5: tokenHash
) as
(
  select
    caller.app_id, caller.expired, c.id as connection_id, c.version, c.refreshed,
    case
      when $1::date = '-infinity'
      and $2::date = 'infinity' then c.account_transactions
      when c.id is not null then (
        select coalesce(sum(m.row_count), 0) as rows
        from account_transaction_month as m
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
            from account_transaction as d
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
            from account_transaction as d
            where
              d.connection_id = $3::bigint
              and c.id is not null
              and d.effective_day > $2::date
              and d.effective_day < (
                case
                  when isfinite($2::date) then $2::date - (extract(day from $2::date)::integer - 1)
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
              select set_config('service.token_hash', encode($5::bytea, 'hex'), true) as token_hash
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
);

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
  app_id, expired, connection_id, version, refreshed, total_items, horizon, known, next_page,
  removed, (null::account_transaction).change_number, (null::account_transaction).movement_id,
  (null::account_transaction).account_id, (null::account_transaction).type,
  (null::account_transaction).amount, (null::account_transaction).exchange_rate,
  (null::account_transaction).commission, (null::account_transaction).taxes,
  (null::account_transaction).currency, (null::account_transaction).local_currency,
  (null::account_transaction).description, (null::account_transaction).operation_date_day,
  (null::account_transaction).original_operation_date_day,
  (null::account_transaction).value_date_day, (null::account_transaction).original_value_date_day,
  (null::account_transaction).operation_date_hour,
  (null::account_transaction).original_operation_date_hour,
  (null::account_transaction).value_date_hour, (null::account_transaction).original_value_date_hour,
  (null::account_transaction).original_operation_date_tz,
  (null::account_transaction).original_value_date_tz, (null::account_transaction).investment
from lookup
union all
(
  select
    null::uuid as app_id, null::boolean as expired, null::bigint as connection_id,
    null::text as version, null::bigint as refreshed, null::bigint as total_items,
    null::bigint as horizon, null::text as known, null::bigint as next_page, null::text as removed,
    t.change_number, t.movement_id, t.account_id, t.type, t.amount, t.exchange_rate, t.commission,
    t.taxes, t.currency, t.local_currency, t.description, t.operation_date_day,
    t.original_operation_date_day, t.value_date_day, t.original_value_date_day,
    t.operation_date_hour, t.original_operation_date_hour, t.value_date_hour,
    t.original_value_date_hour, t.original_operation_date_tz, t.original_value_date_tz, t.investment
  from account_transaction as t
  where
    t.change_number > $2::bigint
    and t.change_number < (
      select case when next_page is null then 9223372036854775807 else next_page end
      from lookup
    )
    and t.connection_id = $1::bigint
    and (select connection_id from lookup) is not null
  order by t.change_number asc
  limit $6::bigint
);

--------------------------------------------------------------------------------
-- transfer-orders
--------------------------------------------------------------------------------

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
      null::bigint as total_items
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
  app_id, expired, connection_id, version, refreshed, total_items,
  (null::assets_transfer_order).completed_at, (null::assets_transfer_order).id,
  (null::assets_transfer_order).portfolio, (null::assets_transfer_order).investment,
  (null::assets_transfer_order).name, (null::assets_transfer_order).isin,
  (null::assets_transfer_order).currency, (null::assets_transfer_order).asset_type,
  (null::assets_transfer_order).titles, (null::assets_transfer_order).amount,
  (null::assets_transfer_order).total, (null::assets_transfer_order).marketer_name,
  (null::assets_transfer_order).marketer_cif, (null::assets_transfer_order).management_company_name,
  (null::assets_transfer_order).management_company_cif
from lookup
union all
(
  select
    null::uuid as app_id, null::boolean as expired, null::bigint as connection_id,
    null::text as version, null::bigint as refreshed, null::bigint as total_items, t.completed_at,
    t.id, t.portfolio, t.investment, t.name, t.isin, t.currency, t.asset_type, t.titles, t.amount,
    t.total, t.marketer_name, t.marketer_cif, t.management_company_name, t.management_company_cif
  from assets_transfer_order as t
  where
    t.completed_at is not null
    and t.connection_id = $3::bigint
    and (select connection_id from lookup) is not null
  order by t.completed_at desc, t.id desc
  limit $4::bigint
);

--------------------------------------------------------------------------------
-- each list, if a response has no rows
--------------------------------------------------------------------------------

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

--------------------------------------------------------------------------------
-- health checks
--------------------------------------------------------------------------------

-- Reads version, role and migrations of the server, and the rights of the login.
prepare server as
select
  current_setting('server_version'),
  pg_is_in_recovery(),
  not row_security_active(to_regclass('public.connection')),
  string_agg(name, ',' order by name)
from public.kysely_migration;

-- Counts connections of a random sample by the time since their last refresh.
prepare refreshes as
select refreshed, connections
from sample_refreshes ();

import { type Kysely, sql } from 'kysely'

/**
 * Transactions and transfer orders (sections 2.2 to 2.7 of the specification). Every key begins with
 * the connection, so that the operator can partition or distribute a table by it.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await createDomains(db)

  // titles: a share count. amount, commission, taxes: in `currency`. price: per share.
  await sql`
    create table portfolio_transaction (
      connection_id bigint not null references connection on delete cascade,
      transaction_id uuid not null,
      portfolio_id uuid not null,
      type portfolio_transaction_type not null,
      exchange_rate exact_decimal,
      titles exact_decimal,
      amount exact_decimal,
      amount_base_currency exact_decimal,
      commission exact_decimal,
      taxes exact_decimal,
      price exact_decimal,
      currency short_text,
      local_currency short_text,
      description long_text,
      ${dateColumns},
      investment uuid,
      related_transaction uuid,
      retention_from exact_decimal,
      retention_to exact_decimal,
      ${changeNumber},
      primary key (connection_id, transaction_id),
      ${dateChecks},
      constraint retention_detail_whole check ((retention_from is null) = (retention_to is null))
    )`.execute(db)

  // amount: signed from the holder's view of the cash balance, in `currency`.
  await sql`
    create table account_transaction (
      connection_id bigint not null references connection on delete cascade,
      movement_id uuid not null,
      account_id uuid not null,
      type account_transaction_type not null,
      amount exact_decimal not null,
      exchange_rate exact_decimal,
      commission exact_decimal,
      taxes exact_decimal,
      currency short_text,
      local_currency short_text,
      description long_text,
      ${dateColumns},
      investment uuid,
      ${changeNumber},
      primary key (connection_id, movement_id),
      ${dateChecks}
    )`.execute(db)

  await sql`
    create table assets_transfer_order (
      connection_id bigint not null references connection on delete cascade,
      id uuid not null,
      portfolio short_text,
      investment uuid,
      name short_text,
      isin short_text,
      currency short_text,
      asset_type short_text,
      titles exact_decimal,
      amount exact_decimal,
      total boolean,
      marketer_name short_text,
      marketer_cif short_text,
      management_company_name short_text,
      management_company_cif short_text,
      -- Null until the end user has completed the order. The API returns only completed orders.
      completed_at timestamptz check (isfinite(completed_at)),
      primary key (connection_id, id),
      constraint marketer_whole check ((marketer_name is null) = (marketer_cif is null)),
      constraint management_company_whole
        check ((management_company_name is null) = (management_company_cif is null))
    )`.execute(db)

  // The API documents these orders of its lists.
  await sql`
    create index portfolio_transaction_list on portfolio_transaction
      (connection_id, effective_day desc, operation_date_hour desc nulls last, transaction_id desc)
  `.execute(db)
  await sql`
    create index account_transaction_list on account_transaction
      (connection_id, effective_day desc, operation_date_hour desc nulls last, movement_id desc)
  `.execute(db)
  for (const table of ['portfolio_transaction', 'account_transaction']) {
    await sql`create index ${sql.id(`${table}_changes`)} on ${sql.id(table)} (connection_id, change_number)`.execute(
      db,
    )
  }
  await sql`
    create index assets_transfer_order_list on assets_transfer_order
      (connection_id, completed_at desc, id desc) where completed_at is not null
  `.execute(db)
}

/**
 * Number of the row's last change: the data version of the connection after it and, in the low 31 bits,
 * an ordinal. The numbers of a connection become visible in ascending order. A writer that leaves 0 gets
 * the number from the triggers of migration 0003.
 */
const changeNumber = sql.raw('change_number bigint not null default 0')

/** The effective day is the first sort column of the list and the date that from/to filter. */
const dateColumns = sql.raw(`
      operation_date_day calendar_day,
      original_operation_date_day calendar_day,
      value_date_day calendar_day,
      original_value_date_day calendar_day,
      operation_date_hour short_text collate "C",
      original_operation_date_hour short_text,
      value_date_hour short_text,
      original_value_date_hour short_text,
      original_operation_date_tz short_text,
      original_value_date_tz short_text,
      effective_day date generated always as (coalesce(operation_date_day, value_date_day)) stored`)

const dateChecks = sql.raw(`
      constraint one_date check (operation_date_day is not null or value_date_day is not null)`)

async function createDomains(db: Kysely<unknown>): Promise<void> {
  // abs() < 10^38 also rejects NaN and the infinities, which PostgreSQL sorts above every number.
  await sql`
    create domain exact_decimal as numeric
      check (abs(value) < 1e38 and scale(value) <= 38)`.execute(db)
  // The API writes dates as YYYY-MM-DD, so the year has four digits.
  await sql`
    create domain calendar_day as date
      check (value between date '0001-01-01' and date '9999-12-31')`.execute(db)
  await sql`create domain short_text as text check (char_length(value) <= 255)`.execute(db)
  await sql`create domain long_text as text check (char_length(value) <= 10000)`.execute(db)
  await createClosedList(db, 'portfolio_transaction_type', portfolioTransactionTypes)
  await createClosedList(db, 'account_transaction_type', accountTransactionTypes)
}

async function createClosedList(db: Kysely<unknown>, name: string, values: string): Promise<void> {
  const list = sql.join(
    values
      .trim()
      .split(/\s+/)
      .map((value) => sql.lit(value)),
  )
  await sql`create domain ${sql.id(name)} as text check (value in (${list}))`.execute(db)
}

// Section 2.4. A migration must not change, so it does not import the list of src/schemas.
const portfolioTransactionTypes = `
  BUY COMPENSATION COUPON DELISTING DIVIDENDS EXPIRATION
  INHERITANCE_OR_DONATION_TRANSFER_IN INHERITANCE_OR_DONATION_TRANSFER_OUT
  ISIN_CHANGE_BUY ISIN_CHANGE_SELL MERGER_BUY MERGER_SELL OFF_MARKET_BUY OFF_MARKET_SELL
  PRODUCT_CHANGE_BUY PRODUCT_CHANGE_SELL RIGHTS_CONVERSION_BUY RIGHTS_CONVERSION_SELL
  RIGHTS_EXCLUSION RIGHTS_ISSUE SELL SHARE_ISSUE_PREMIUM SPINOFF SPLIT_BUY SPLIT_SELL
  TRANSFER_IN TRANSFER_OUT UNKNOWN`

// Section 2.5.
const accountTransactionTypes = `
  COUPON DEPOSIT DIVIDENDS DIVIDEND_RETENTION DIVIDEND_RETENTION_REFUND FEES FEES_REFUND
  FOREX_DEPOSIT FOREX_WITHDRAWAL GIFT INTEREST INTEREST_CHARGE RETURN_ON_CAPITAL TAXES TAX_REFUND
  WITHDRAWAL UNKNOWN`

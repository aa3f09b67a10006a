import express, { type Request, type Response } from 'express'
import stringify from 'fast-json-stringify'
import pg from 'pg'

/**
 * The usual design of a team that cares for speed: Express and pg with named statements and a compiled serializer, with
 * one query for the page and one for its total. It authenticates no client, and its two queries see two snapshots.
 */
pg.types.setTypeParser(pg.types.builtins.NUMERIC, Number)
pg.types.setTypeParser(pg.types.builtins.DATE, (day) => day)

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 })
const app = express()

const nullable = (type: string) => ({ type, nullable: true })
const text = nullable('string')
const number = nullable('number')

/** Types of the fields, in the order of the response. */
const PROPERTIES = {
  transactionId: text,
  portfolioId: text,
  exchangeRate: number,
  type: text,
  titles: number,
  amount: number,
  amountBaseCurrency: number,
  commission: number,
  taxes: number,
  currency: text,
  localCurrency: text,
  description: text,
  price: number,
  operationDateDay: text,
  originalOperationDateDay: text,
  valueDateDay: text,
  originalValueDateDay: text,
  operationDateHour: text,
  originalOperationDateHour: text,
  valueDateHour: text,
  originalValueDateHour: text,
  originalOperationDateTz: text,
  originalValueDateTz: text,
  investment: text,
  relatedTransaction: text,
  retentionDetail: {
    type: 'object',
    nullable: true,
    properties: { retentionFrom: number, retentionTo: number },
  },
}

const writePage = stringify({
  type: 'object',
  properties: {
    items: { type: 'array', items: { type: 'object', properties: PROPERTIES } },
    limit: { type: 'integer' },
    page: { type: 'integer' },
    totalItems: { type: 'integer' },
  },
})

const company = {
  type: 'object',
  nullable: true,
  properties: { name: text, cif: text },
}

const writeOrders = stringify({
  type: 'array',
  items: {
    type: 'object',
    properties: {
      id: text,
      portfolio: text,
      investment: text,
      name: text,
      isin: text,
      currency: text,
      assetType: text,
      titles: number,
      amount: number,
      total: number,
      marketer: company,
      managementCompany: company,
    },
  },
})

function sendJson(res: Response, body: string) {
  res.type('application/json').send(body)
}

const FIELDS = `
  transaction_id as "transactionId", portfolio_id as "portfolioId",
  exchange_rate as "exchangeRate", type, titles, amount,
  amount_base_currency as "amountBaseCurrency", commission, taxes, currency,
  local_currency as "localCurrency", description, price,
  operation_date_day as "operationDateDay",
  original_operation_date_day as "originalOperationDateDay",
  value_date_day as "valueDateDay", original_value_date_day as "originalValueDateDay",
  operation_date_hour as "operationDateHour",
  original_operation_date_hour as "originalOperationDateHour",
  value_date_hour as "valueDateHour", original_value_date_hour as "originalValueDateHour",
  original_operation_date_tz as "originalOperationDateTz",
  original_value_date_tz as "originalValueDateTz", investment,
  related_transaction as "relatedTransaction",
  retention_from as "retentionFrom", retention_to as "retentionTo"`

app.get('/connections/:id/portfolios/transactions', async (req, res) => {
  const { where, values } = conditions(req)
  const limit = Number(req.query.limit ?? 1000)
  const page = Number(req.query.page ?? 0)
  const [rows, count] = await Promise.all([
    pool.query({
      name: `page ${where}`,
      text: `select ${FIELDS} from portfolio_transaction where ${where}
       order by effective_day desc, operation_date_hour desc nulls last, transaction_id desc
       limit $${values.length + 1} offset $${values.length + 2}`,
      values: [...values, limit, limit * page],
    }),
    pool.query({
      name: `total ${where}`,
      text: `select count(*)::int as total from portfolio_transaction where ${where}`,
      values,
    }),
  ])
  const items = rows.rows.map(({ retentionFrom, retentionTo, ...row }) => ({
    ...row,
    retentionDetail: retentionFrom === null ? null : { retentionFrom, retentionTo },
  }))
  sendJson(res, writePage({ items, limit, page, totalItems: count.rows[0].total }))
})

function conditions({ params, query }: Request) {
  const values: unknown[] = [params.id]
  let where = 'connection_id = $1'
  if (query.from) where += ` and effective_day >= $${values.push(query.from)}`
  if (query.to) where += ` and effective_day <= $${values.push(query.to)}`
  return { where, values }
}

app.get('/connections/:id/assets-transfer', async (req, res) => {
  const { rows } = await pool.query({
    name: 'orders',
    text: `select * from assets_transfer_order where connection_id = $1 and completed_at is not null
     order by completed_at desc, id desc`,
    values: [req.params.id],
  })
  const named = (name: string | null, cif: string | null) => (name === null ? null : { name, cif })
  const orders = rows.map((row) => ({
    id: row.id,
    portfolio: row.portfolio,
    investment: row.investment,
    name: row.name,
    isin: row.isin,
    currency: row.currency,
    assetType: row.asset_type,
    titles: row.titles,
    amount: row.amount,
    total: row.total,
    marketer: named(row.marketer_name, row.marketer_cif),
    managementCompany: named(row.management_company_name, row.management_company_cif),
  }))
  sendJson(res, writeOrders(orders))
})

app.listen(Number(process.env.PORT), '127.0.0.1')

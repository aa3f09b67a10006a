import t from 'tap'
import { addCaller, listNames, lists } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { db, get } = await startService(t)

// Sections 2.4 and 2.5: 28 and 17 types, not imported from the schemas.
const types = {
  portfolio: `BUY COMPENSATION COUPON DELISTING DIVIDENDS EXPIRATION
    INHERITANCE_OR_DONATION_TRANSFER_IN INHERITANCE_OR_DONATION_TRANSFER_OUT ISIN_CHANGE_BUY
    ISIN_CHANGE_SELL MERGER_BUY MERGER_SELL OFF_MARKET_BUY OFF_MARKET_SELL PRODUCT_CHANGE_BUY
    PRODUCT_CHANGE_SELL RIGHTS_CONVERSION_BUY RIGHTS_CONVERSION_SELL RIGHTS_EXCLUSION RIGHTS_ISSUE
    SELL SHARE_ISSUE_PREMIUM SPINOFF SPLIT_BUY SPLIT_SELL TRANSFER_IN TRANSFER_OUT UNKNOWN`,
  account: `COUPON DEPOSIT DIVIDENDS DIVIDEND_RETENTION DIVIDEND_RETENTION_REFUND FEES FEES_REFUND
    FOREX_DEPOSIT FOREX_WITHDRAWAL GIFT INTEREST INTEREST_CHARGE RETURN_ON_CAPITAL TAXES TAX_REFUND
    WITHDRAWAL UNKNOWN`,
}

for (const list of listNames) {
  t.test(`${list}, type: every value of the closed list, and no other (contract 14)`, async (t) => {
    const { token, connection } = await addCaller(db)
    const all = types[list].trim().split(/\s+/)
    t.equal(all.length, list === 'portfolio' ? 28 : 17)
    await lists[list].add(db, connection, ...all.map((type) => ({ type }) as object))
    const { items } = (await get(connection[list], { token })).json()
    const got = items.map((item: Record<string, string>) => item.type)
    t.strictSame(got.toSorted(), all.toSorted())
    for (const type of ['', 'buy', 'GUESS', list === 'portfolio' ? 'DEPOSIT' : 'BUY']) {
      const other = { type } as object
      await t.rejects(lists[list].add(db, connection, other), { code: '23514' }, type)
    }
  })
}

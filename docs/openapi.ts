// Made of openapi.json by `npm run docs:renew`.
export interface paths {
    "/api/v1/queries/connections/{token}/portfolios/transactions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List portfolio transactions
         * @description Every movement of the investments of a connection, newest first, in pages.
         */
        get: operations["listPortfolioTransactions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/queries/connections/{token}/accounts/transactions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List account transactions
         * @description Every change of the cash balances of a connection, newest first, in pages.
         */
        get: operations["listAccountTransactions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/queries/connections/{token}/assets-transfer": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List assets transfer orders
         * @description Every transfer order that the end user completed, newest first, in one array.
         */
        get: operations["listAssetsTransferOrders"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * Portfolio transaction
         * @description A financial movement of an investment, in one portfolio. Every field is present; null says that it is not known. Decimals are exact: the digits are those that the institution gave, trailing zeros included, up to 38 before the point and 38 after it, never with an exponent. A binary float holds about 16 of them, so read these fields with a parser that keeps decimals. Signs are those of the institution. The demo data holds magnitudes throughout, and the direction is in `type`.
         */
        PortfolioTransaction: {
            /**
             * Transaction
             * Format: uuid
             * @description Identifier of the transaction; it stays the same when a field of it is corrected.
             * @example 0b6f3c52-8e1d-4a97-b1c4-5d2e7f90a863
             */
            transactionId: string;
            /**
             * Portfolio
             * Format: uuid
             * @description Identifier of the one portfolio that the transaction belongs to.
             * @example 7d94b2e8-15fa-4c60-9e3b-a8c1d6024f57
             */
            portfolioId: string;
            /**
             * Exchange rate
             * Format: decimal
             * @description Rate between two currencies that the institution applied, as it states it. The contract does not say which of them is the divisor: compare the amounts before you convert.
             * @example 1.0842
             */
            exchangeRate: number | null;
            /**
             * Portfolio transaction type
             * @description What happened, from a closed list. Shares: `+` adds `titles` to the position, `-` removes
             *     them, `=` leaves the position as it is, and `titles` only tells its size at that time.
             *
             *     A transaction that cannot be classified when it is first seen is `UNKNOWN` rather than a
             *     guess. Once that is resolved and the credential connects anew, the same `transactionId`
             *     carries the correct type.
             *
             *     | Value | Shares | Meaning |
             *     |---|---|---|
             *     | `BUY` | `+` | Securities or other assets are bought |
             *     | `COMPENSATION` | `=` | The holder is compensated for a corporate event of the asset, for instance with the cash of a forced sale that the sale itself does not state |
             *     | `COUPON` | `=` | A bond pays its regular interest, a fixed share of its face value |
             *     | `DELISTING` | `-` | A security is taken off a stock exchange |
             *     | `DIVIDENDS` | `=` | A company pays out part of its profit to its owners |
             *     | `EXPIRATION` | not given | The source of this contract gives neither its meaning nor its impact |
             *     | `INHERITANCE_OR_DONATION_TRANSFER_IN` | `+` | Assets arrive in the account because they were inherited or donated |
             *     | `INHERITANCE_OR_DONATION_TRANSFER_OUT` | `-` | Assets leave for another account because they were inherited or donated |
             *     | `ISIN_CHANGE_BUY` | `+` | Incoming side of a change of ISIN |
             *     | `ISIN_CHANGE_SELL` | `-` | Outgoing side of a change of ISIN |
             *     | `MERGER_BUY` | `+` | Incoming side of a merger |
             *     | `MERGER_SELL` | `-` | Outgoing side of a merger |
             *     | `OFF_MARKET_BUY` | `+` | Bought away from a formal exchange, or granted by something that the holder did not do |
             *     | `OFF_MARKET_SELL` | `-` | Sold away from a formal exchange, or by something that the holder does not control |
             *     | `PRODUCT_CHANGE_BUY` | `+` | Incoming side of a product change, which alters a trait such as the share class without being a full change of ISIN |
             *     | `PRODUCT_CHANGE_SELL` | `-` | Outgoing side of a product change |
             *     | `RIGHTS_CONVERSION_BUY` | `+` | Stock received for rights, as a rule in a scrip dividend or a capital increase |
             *     | `RIGHTS_CONVERSION_SELL` | `-` | Outgoing side of that conversion: the rights which became shares |
             *     | `RIGHTS_EXCLUSION` | `-` | Rights are sold, as a rule because the market no longer admits them |
             *     | `RIGHTS_ISSUE` | `+` | Rights are handed out, as a rule for a scrip dividend or a capital increase |
             *     | `SELL` | `-` | Securities or other assets are sold |
             *     | `SHARE_ISSUE_PREMIUM` | `=` | What comes in above the par value of newly issued shares |
             *     | `SPINOFF` | `+` | Shares granted because a subsidiary separates from its parent company |
             *     | `SPLIT_BUY` | `+` | Incoming side of a split |
             *     | `SPLIT_SELL` | `-` | Outgoing side of a split |
             *     | `TRANSFER_IN` | `+` | Securities are moved into the account |
             *     | `TRANSFER_OUT` | `-` | Securities are moved out of the account |
             *     | `UNKNOWN` | `=` | Not classified correctly so far |
             * @example BUY
             * @enum {string}
             */
            type: "BUY" | "COMPENSATION" | "COUPON" | "DELISTING" | "DIVIDENDS" | "EXPIRATION" | "INHERITANCE_OR_DONATION_TRANSFER_IN" | "INHERITANCE_OR_DONATION_TRANSFER_OUT" | "ISIN_CHANGE_BUY" | "ISIN_CHANGE_SELL" | "MERGER_BUY" | "MERGER_SELL" | "OFF_MARKET_BUY" | "OFF_MARKET_SELL" | "PRODUCT_CHANGE_BUY" | "PRODUCT_CHANGE_SELL" | "RIGHTS_CONVERSION_BUY" | "RIGHTS_CONVERSION_SELL" | "RIGHTS_EXCLUSION" | "RIGHTS_ISSUE" | "SELL" | "SHARE_ISSUE_PREMIUM" | "SPINOFF" | "SPLIT_BUY" | "SPLIT_SELL" | "TRANSFER_IN" | "TRANSFER_OUT" | "UNKNOWN";
            /**
             * Shares
             * Format: decimal
             * @description Number of shares or other units, fractions included. `type` tells whether they are added, removed, or only the size of the position.
             * @example 25.5
             */
            titles: number | null;
            /**
             * Amount
             * Format: decimal
             * @description Money that the transaction moves, in `currency`.
             * @example 312.38
             */
            amount: number | null;
            /**
             * Amount in the base currency
             * Format: decimal
             * @description The same amount in the base currency of the portfolio.
             * @example 288.12
             */
            amountBaseCurrency: number | null;
            /**
             * Commission
             * Format: decimal
             * @description What the institution charged for the transaction, in `currency`. The sign is the institution’s: some write a charge as a negative number.
             * @example 4.95
             */
            commission: number | null;
            /**
             * Taxes
             * Format: decimal
             * @description Taxes on the transaction, in `currency`. The sign is the institution’s: some write a charge as a negative number.
             * @example 12.31
             */
            taxes: number | null;
            /**
             * Currency
             * @description Currency of the amounts: an ISO 4217 code as a rule, otherwise what the institution writes (GBX for pence). Null where it names none.
             * @example EUR
             */
            currency: string | null;
            /**
             * Local currency
             * @description Second currency of the transaction, such as the one in which the asset is quoted, where the institution names one.
             * @example USD
             */
            localCurrency: string | null;
            /**
             * Description
             * @description Text that the institution gives the transaction, in its own language.
             * @example Dividendo 0,25 €/acción
             */
            description: string | null;
            /**
             * Price
             * Format: decimal
             * @description Price of one share or unit.
             * @example 12.25
             */
            price: number | null;
            /**
             * Operation date
             * Format: date
             * @description Day on which the transaction was made. Null only where `valueDateDay` is known. It is the day that lists are filtered and sorted by.
             * @example 2025-03-14
             */
            operationDateDay: string | null;
            /**
             * Operation date, as the institution states it
             * Format: date
             * @description Operation date in the institution’s own time zone, `originalOperationDateTz`.
             * @example 2025-03-14
             */
            originalOperationDateDay: string | null;
            /**
             * Value date
             * Format: date
             * @description Day from which the transaction counts in the position or the balance. Lists are filtered and sorted by it where there is no operation date.
             * @example 2025-03-18
             */
            valueDateDay: string | null;
            /**
             * Value date, as the institution states it
             * Format: date
             * @description Value date in the institution’s own time zone, `originalValueDateTz`.
             * @example 2025-03-18
             */
            originalValueDateDay: string | null;
            /**
             * Operation time
             * @description Time of day on `operationDateDay`. By convention HH:mm:ss; whatever else the institution writes is passed through.
             * @example 15:42:07
             */
            operationDateHour: string | null;
            /**
             * Operation time, as the institution states it
             * @description Time of day on `originalOperationDateDay`. By convention HH:mm:ss; whatever else the institution writes is passed through.
             * @example 16:42:07
             */
            originalOperationDateHour: string | null;
            /**
             * Value time
             * @description Time of day on `valueDateDay`. By convention HH:mm:ss; whatever else the institution writes is passed through.
             * @example 00:00:00
             */
            valueDateHour: string | null;
            /**
             * Value time, as the institution states it
             * @description Time of day on `originalValueDateDay`. By convention HH:mm:ss; whatever else the institution writes is passed through.
             * @example 00:00:00
             */
            originalValueDateHour: string | null;
            /**
             * Time zone of the original operation date
             * @description Time zone of the two original operation fields. By convention an IANA name; whatever else the institution writes is passed through.
             * @example Europe/Madrid
             */
            originalOperationDateTz: string | null;
            /**
             * Time zone of the original value date
             * @description Time zone of the two original value fields. By convention an IANA name; whatever else the institution writes is passed through.
             * @example Europe/Madrid
             */
            originalValueDateTz: string | null;
            /**
             * Investment
             * Format: uuid
             * @description Identifier of the investment that the transaction is about.
             * @example c1a9e0f2-6d3b-4b7e-9a51-70d2f8b3e645
             */
            investment: string | null;
            /**
             * Related transaction
             * Format: uuid
             * @description The `transactionId` of the transaction that this one goes with, such as the other side of a split.
             * @example e2d70a4c-3b98-4f15-8c6a-91b5f4037d2e
             */
            relatedTransaction: string | null;
            /**
             * Retention
             * @description What was retained of a payment. Both members are given, or the whole is null.
             * @example {
             *       "retentionFrom": 15,
             *       "retentionTo": 4
             *     }
             */
            retentionDetail: {
                /**
                 * Retention at the origin
                 * Format: decimal
                 * @description What was retained on the side that pays, as the institution states it.
                 * @example 15
                 */
                retentionFrom: number;
                /**
                 * Retention at the destination
                 * Format: decimal
                 * @description What was retained on the side that is paid, as the institution states it.
                 * @example 4
                 */
                retentionTo: number;
            } | null;
        };
        /**
         * Portfolio transactions
         * @description One page of the portfolio transactions of a connection.
         */
        PortfolioTransactionList: {
            /**
             * Items
             * @description The rows of this page, newest first by the effective date (`operationDateDay`, or `valueDateDay` where there is no operation date), then by `operationDateHour` (null last), then by identifier, all descending. Empty past the last page.
             */
            items: components["schemas"]["PortfolioTransaction"][];
            /**
             * Limit
             * @description Rows that a page holds at most: the value that was applied.
             * @example 1000
             */
            limit: number;
            /**
             * Page
             * @description Number of this page, the first is 0: the value that was applied.
             * @example 0
             */
            page: number;
            /**
             * Total of items
             * @description Exact number of rows between `from` and `to`, on all pages, counted in the same snapshot that the items come from.
             * @example 5213
             */
            totalItems: number;
        };
        /**
         * Account transaction
         * @description A financial movement of cash, in one account; it always changes the balance. Every field is present; null says that it is not known. Decimals are exact: the digits are those that the institution gave, trailing zeros included, up to 38 before the point and 38 after it, never with an exponent. A binary float holds about 16 of them, so read these fields with a parser that keeps decimals.
         */
        AccountTransaction: {
            /**
             * Movement
             * Format: uuid
             * @description Identifier of the transaction; it stays the same when a field of it is corrected.
             * @example 94c1f7a0-2e6d-4835-a7b9-0c3d5e8f1264
             */
            movementId: string;
            /**
             * Account
             * Format: uuid
             * @description Identifier of the one account whose balance the transaction changes.
             * @example 3a58e1d9-c047-4b2f-86d5-f19e7b20c4a3
             */
            accountId: string;
            /**
             * Account transaction type
             * @description Why the cash balance changed, from a closed list.
             *
             *     A transaction that cannot be classified when it is first seen is `UNKNOWN` rather than a
             *     guess. Once that is resolved and the credential connects anew, the same `movementId`
             *     carries the correct type.
             *
             *     | Value | Meaning |
             *     |---|---|
             *     | `COUPON` | Bonds or other fixed-income securities pay interest |
             *     | `DEPOSIT` | The holder pays cash in |
             *     | `DIVIDENDS` | A company pays its shareholders, as a rule out of its profit |
             *     | `DIVIDEND_RETENTION` | Dividends that the fund or investment firm keeps back instead of paying them out |
             *     | `DIVIDEND_RETENTION_REFUND` | Dividends kept back earlier are paid after all |
             *     | `FEES` | The institution charges for its services, such as management or a transaction; the commission of a connection to an exchange may be among them |
             *     | `FEES_REFUND` | Fees charged earlier are given back |
             *     | `FOREX_DEPOSIT` | Cash comes in from a currency exchange |
             *     | `FOREX_WITHDRAWAL` | Cash goes out for a currency exchange |
             *     | `GIFT` | The institution gives cash away, in a promotion for example |
             *     | `INTEREST` | An account or an investment that bears interest earns it |
             *     | `INTEREST_CHARGE` | Interest is charged, as a rule on a loan or on borrowed money |
             *     | `RETURN_ON_CAPITAL` | Part of the money once invested comes back; neither income nor a capital gain |
             *     | `TAXES` | Money is taken for taxes |
             *     | `TAX_REFUND` | Taxes paid earlier are given back |
             *     | `WITHDRAWAL` | The holder takes cash out |
             *     | `UNKNOWN` | Not classified correctly so far |
             * @example DEPOSIT
             * @enum {string}
             */
            type: "COUPON" | "DEPOSIT" | "DIVIDENDS" | "DIVIDEND_RETENTION" | "DIVIDEND_RETENTION_REFUND" | "FEES" | "FEES_REFUND" | "FOREX_DEPOSIT" | "FOREX_WITHDRAWAL" | "GIFT" | "INTEREST" | "INTEREST_CHARGE" | "RETURN_ON_CAPITAL" | "TAXES" | "TAX_REFUND" | "WITHDRAWAL" | "UNKNOWN";
            /**
             * Amount
             * Format: decimal
             * @description Change of the cash balance, in `currency`: positive when cash comes in to the holder, negative when it goes out. An institution’s own sign is passed through unchanged.
             * @example -49.9
             */
            amount: number;
            /**
             * Exchange rate
             * Format: decimal
             * @description Rate between two currencies that the institution applied, as it states it. The contract does not say which of them is the divisor: compare the amounts before you convert.
             * @example 1.0842
             */
            exchangeRate: number | null;
            /**
             * Commission
             * Format: decimal
             * @description What the institution charged for the transaction, in `currency`. The sign is the institution’s: some write a charge as a negative number.
             * @example 4.95
             */
            commission: number | null;
            /**
             * Taxes
             * Format: decimal
             * @description Taxes on the transaction, in `currency`. The sign is the institution’s: some write a charge as a negative number.
             * @example 12.31
             */
            taxes: number | null;
            /**
             * Currency
             * @description Currency of the amounts: an ISO 4217 code as a rule, otherwise what the institution writes (GBX for pence). Null where it names none.
             * @example EUR
             */
            currency: string | null;
            /**
             * Local currency
             * @description Second currency of the transaction, such as the one in which the asset is quoted, where the institution names one.
             * @example USD
             */
            localCurrency: string | null;
            /**
             * Description
             * @description Text that the institution gives the transaction, in its own language.
             * @example Dividendo 0,25 €/acción
             */
            description: string | null;
            /**
             * Operation date
             * Format: date
             * @description Day on which the transaction was made. Null only where `valueDateDay` is known. It is the day that lists are filtered and sorted by.
             * @example 2025-03-14
             */
            operationDateDay: string | null;
            /**
             * Operation date, as the institution states it
             * Format: date
             * @description Operation date in the institution’s own time zone, `originalOperationDateTz`.
             * @example 2025-03-14
             */
            originalOperationDateDay: string | null;
            /**
             * Value date
             * Format: date
             * @description Day from which the transaction counts in the position or the balance. Lists are filtered and sorted by it where there is no operation date.
             * @example 2025-03-18
             */
            valueDateDay: string | null;
            /**
             * Value date, as the institution states it
             * Format: date
             * @description Value date in the institution’s own time zone, `originalValueDateTz`.
             * @example 2025-03-18
             */
            originalValueDateDay: string | null;
            /**
             * Operation time
             * @description Time of day on `operationDateDay`. By convention HH:mm:ss; whatever else the institution writes is passed through.
             * @example 15:42:07
             */
            operationDateHour: string | null;
            /**
             * Operation time, as the institution states it
             * @description Time of day on `originalOperationDateDay`. By convention HH:mm:ss; whatever else the institution writes is passed through.
             * @example 16:42:07
             */
            originalOperationDateHour: string | null;
            /**
             * Value time
             * @description Time of day on `valueDateDay`. By convention HH:mm:ss; whatever else the institution writes is passed through.
             * @example 00:00:00
             */
            valueDateHour: string | null;
            /**
             * Value time, as the institution states it
             * @description Time of day on `originalValueDateDay`. By convention HH:mm:ss; whatever else the institution writes is passed through.
             * @example 00:00:00
             */
            originalValueDateHour: string | null;
            /**
             * Time zone of the original operation date
             * @description Time zone of the two original operation fields. By convention an IANA name; whatever else the institution writes is passed through.
             * @example Europe/Madrid
             */
            originalOperationDateTz: string | null;
            /**
             * Time zone of the original value date
             * @description Time zone of the two original value fields. By convention an IANA name; whatever else the institution writes is passed through.
             * @example Europe/Madrid
             */
            originalValueDateTz: string | null;
            /**
             * Investment
             * Format: uuid
             * @description Identifier of the investment that the transaction is about.
             * @example c1a9e0f2-6d3b-4b7e-9a51-70d2f8b3e645
             */
            investment: string | null;
        };
        /**
         * Account transactions
         * @description One page of the account transactions of a connection.
         */
        AccountTransactionList: {
            /**
             * Items
             * @description The rows of this page, newest first by the effective date (`operationDateDay`, or `valueDateDay` where there is no operation date), then by `operationDateHour` (null last), then by identifier, all descending. Empty past the last page.
             */
            items: components["schemas"]["AccountTransaction"][];
            /**
             * Limit
             * @description Rows that a page holds at most: the value that was applied.
             * @example 1000
             */
            limit: number;
            /**
             * Page
             * @description Number of this page, the first is 0: the value that was applied.
             * @example 0
             */
            page: number;
            /**
             * Total of items
             * @description Exact number of rows between `from` and `to`, on all pages, counted in the same snapshot that the items come from.
             * @example 5213
             */
            totalItems: number;
        };
        /**
         * Assets transfer order
         * @description An order to transfer assets, which the end user has filled in to the end. Every field is present; null says that it is not known. Decimals are exact: the digits are those that the institution gave, trailing zeros included, up to 38 before the point and 38 after it, never with an exponent. A binary float holds about 16 of them, so read these fields with a parser that keeps decimals.
         */
        AssetsTransferOrder: {
            /**
             * Order
             * Format: uuid
             * @description Identifier of the order.
             * @example d80f5b36-7a19-4ce2-b4f8-6e2c9d01a57b
             */
            id: string;
            /**
             * Portfolio
             * @description Portfolio that holds the assets, by the name or number that the order gives.
             * @example ES-4471-0093
             */
            portfolio: string | null;
            /**
             * Investment
             * Format: uuid
             * @description Identifier of the investment to transfer.
             * @example c1a9e0f2-6d3b-4b7e-9a51-70d2f8b3e645
             */
            investment: string | null;
            /**
             * Name
             * @description Name of the asset to transfer.
             * @example Fondo Ejemplo Renta Variable FI
             */
            name: string | null;
            /**
             * ISIN
             * @description International securities identification number of the asset (ISO 6166).
             * @example ES0100000001
             */
            isin: string | null;
            /**
             * Currency
             * @description Currency of `amount`: an ISO 4217 code as a rule. Null where the order names none.
             * @example EUR
             */
            currency: string | null;
            /**
             * Asset type
             * @description Kind of asset. The list is open: STOCK, ETF, RIGHTS, FUND, PP, BOND and WARRANT have been seen, and others may come.
             * @example FUND
             */
            assetType: string | null;
            /**
             * Shares
             * Format: decimal
             * @description Number of shares or other units to transfer, fractions included.
             * @example 104.3391
             */
            titles: number | null;
            /**
             * Amount
             * Format: decimal
             * @description Value to transfer, in `currency`.
             * @example 1846.2
             */
            amount: number | null;
            /**
             * Total
             * @description True when the whole position is to be transferred, false for a part of it.
             * @example true
             */
            total: boolean | null;
            /**
             * Marketer
             * @description Company that markets the asset. Both members are given, or the whole is null.
             * @example {
             *       "name": "Banco Ejemplo, S.A.",
             *       "cif": "A00000000"
             *     }
             */
            marketer: {
                /**
                 * Name
                 * @description Name of the company.
                 * @example Banco Ejemplo, S.A.
                 */
                name: string;
                /**
                 * CIF
                 * @description Tax identification code of the company.
                 * @example A00000000
                 */
                cif: string;
            } | null;
            /**
             * Management company
             * @description Company that manages the asset. Both members are given, or the whole is null.
             * @example {
             *       "name": "Gestora Ejemplo, S.G.I.I.C.",
             *       "cif": "A00000018"
             *     }
             */
            managementCompany: {
                /**
                 * Name
                 * @description Name of the company.
                 * @example Banco Ejemplo, S.A.
                 */
                name: string;
                /**
                 * CIF
                 * @description Tax identification code of the company.
                 * @example A00000000
                 */
                cif: string;
            } | null;
        };
        /**
         * Assets transfer orders
         * @description All orders that the user completed for the connection, the latest completed first. An order that was begun and not completed is not among them.
         */
        AssetsTransferOrderList: components["schemas"]["AssetsTransferOrder"][];
        /**
         * Problem
         * @description Why the request failed: one body for every error of every endpoint.
         */
        Problem: {
            /**
             * Status
             * @description The HTTP status of the answer.
             * @example 404
             * @enum {integer}
             */
            status: 400 | 401 | 404 | 405 | 429 | 500 | 503;
            /**
             * Code
             * @description What went wrong, for programs; from a closed list.
             *
             *     | Code | Status | Meaning |
             *     |---|---|---|
             *     | `missing_credentials` | 401 | The request has no `Authorization` header |
             *     | `malformed_credentials` | 401 | The `Authorization` header is not `Bearer` and one token |
             *     | `invalid_token` | 401 | The bearer token is not known, or it was revoked |
             *     | `expired_token` | 401 | The bearer token was valid and has expired |
             *     | `invalid_request` | 400 | Query parameters are at fault; `errors` lists every one |
             *     | `malformed_request` | 400 | The request cannot be read, for instance because its address does not decode |
             *     | `connection_not_found` | 404 | The calling app has no connection with this token |
             *     | `route_not_found` | 404 | The service has nothing at this address |
             *     | `method_not_allowed` | 405 | The address is read-only; `Allow` names its methods |
             *     | `too_many_requests` | 429 | The app has used up its quota; `Retry-After` tells when to go on |
             *     | `internal_error` | 500 | A fault of the service; its log knows the cause by `requestId` |
             *     | `service_unavailable` | 503 | Overloaded, or without its database; `Retry-After` tells when to try again |
             * @example connection_not_found
             * @enum {string}
             */
            code: "missing_credentials" | "malformed_credentials" | "invalid_token" | "expired_token" | "invalid_request" | "malformed_request" | "connection_not_found" | "route_not_found" | "method_not_allowed" | "too_many_requests" | "internal_error" | "service_unavailable";
            /**
             * Title
             * @description The status in words; always the same for one status.
             * @example Not Found
             */
            title: string;
            /**
             * Detail
             * @description What went wrong this time, for people. Programs read `code`.
             * @example This app has no connection with that token.
             */
            detail: string;
            /**
             * Request
             * @description The `X-Request-ID` of the answer. Quote it when you report a fault.
             * @example 6a0f2d94-71c3-4be8-9f25-d3b8e4c7a106
             */
            requestId: string;
            /**
             * Errors
             * @description Every fault of the query parameters; only with `invalid_request`.
             */
            errors?: components["schemas"]["ParameterFault"][];
        };
        /**
         * Parameter fault
         * @description One fault of one query parameter.
         */
        ParameterFault: {
            /**
             * Parameter
             * @description Name of the query parameter, as the request wrote it.
             * @example limit
             */
            parameter: string;
            /**
             * Code
             * @description The rule that the parameter breaks, for programs; from a closed list.
             *
             *     | Code | Meaning |
             *     |---|---|
             *     | `unknown_parameter` | There is no parameter of this name; the detail lists those |
             *     | `repeated_parameter` | The parameter is given more than once |
             *     | `invalid_format` | Not in digits, or not a day that exists, as the parameter demands |
             *     | `out_of_range` | Well formed, but below or above what the parameter allows |
             *     | `invalid_range` | `from` is after `to` |
             * @example out_of_range
             * @enum {string}
             */
            code: "unknown_parameter" | "repeated_parameter" | "invalid_format" | "out_of_range" | "invalid_range";
            /**
             * Detail
             * @description The rule in words, for people.
             * @example limit must be between 1 and 10000.
             */
            detail: string;
        };
    };
    responses: {
        /** @description Nothing has changed in the connection since the answer that `If-None-Match` names. */
        NotModified: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "X-Client-Trace-ID": components["headers"]["X-Client-Trace-ID"];
                ETag: components["headers"]["ETag"];
                "Last-Modified": components["headers"]["Last-Modified"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description The parameters cannot be used, or the request cannot be read. */
        BadRequest: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "X-Client-Trace-ID": components["headers"]["X-Client-Trace-ID"];
                "Cache-Control": components["headers"]["Cache-Control"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description The app token is missing or not valid. */
        Unauthorized: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "X-Client-Trace-ID": components["headers"]["X-Client-Trace-ID"];
                "Cache-Control": components["headers"]["Cache-Control"];
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description The calling app has no connection with this token. */
        NotFound: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "X-Client-Trace-ID": components["headers"]["X-Client-Trace-ID"];
                "Cache-Control": components["headers"]["Cache-Control"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description The method is none of `GET` and `HEAD`. */
        MethodNotAllowed: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "X-Client-Trace-ID": components["headers"]["X-Client-Trace-ID"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Allow: components["headers"]["Allow"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description The app has used up its quota. */
        TooManyRequests: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "X-Client-Trace-ID": components["headers"]["X-Client-Trace-ID"];
                "Cache-Control": components["headers"]["Cache-Control"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description The service failed. */
        InternalServerError: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "X-Client-Trace-ID": components["headers"]["X-Client-Trace-ID"];
                "Cache-Control": components["headers"]["Cache-Control"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description The service cannot answer now: too busy, or without its database. */
        ServiceUnavailable: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "X-Client-Trace-ID": components["headers"]["X-Client-Trace-ID"];
                "Cache-Control": components["headers"]["Cache-Control"];
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
    };
    parameters: {
        /**
         * @description Selects the connection. It is a credential of its own, beside the app token: keep it out of logs and of links that others see. A token that is unknown, or belongs to another app, gets the same 404.
         * @example DEMOSMALL1
         */
        token: string;
        /** @description First day of the result, inclusive, as YYYY-MM-DD. It is compared with the effective date (`operationDateDay`, or `valueDateDay` where there is no operation date). Without it the result begins with the oldest row. */
        from: string;
        /** @description Last day of the result, inclusive, as YYYY-MM-DD; not before `from`. It is compared with the same date as `from`. Without it the result ends with the newest row. */
        to: string;
        /** @description Rows of a page, 1 to 10000, in digits. More is refused with 400 rather than cut down, which would make rows go missing. */
        limit: string;
        /** @description Number of the page, 0 to 2147483647, in digits; the first page is 0. A page past the last one is empty and still tells `totalItems`. */
        page: string;
        /** @description The `ETag` of an answer that you still hold. If nothing has changed since, the answer is 304 without a body. */
        "If-None-Match": string;
        /** @description Your own name for the request, up to 128 visible ASCII characters; it comes back in the answer. Anything else is ignored. */
        "X-Client-Trace-ID": string;
    };
    requestBodies: never;
    headers: {
        /** @description Identifier that the service gave the request. Quote it when you report a fault. */
        "X-Request-ID": string;
        /** @description The `X-Client-Trace-ID` of the request, where it sent one that can be used. */
        "X-Client-Trace-ID": string;
        /** @description Names this state of this answer, as a weak validator, and means nothing else. Send it as `If-None-Match` when you ask for the same address again. */
        ETag: string;
        /** @description When the data of the connection last changed, as an HTTP date. */
        "Last-Modified": string;
        /** @description The answer is for one app only, and a stored copy must be checked before it is used again; an error (`no-store`) is not stored at all. */
        "Cache-Control": string;
        /** @description Request headers that the form of the answer depends on. */
        Vary: string;
        /** @description What is left of the quota, where there is one: `r` requests, until it is renewed in `t` seconds. */
        RateLimit: string;
        /** @description The quota, where there is one: `q` requests in a window of `w` seconds. */
        "RateLimit-Policy": string;
        /** @description Where the other pages are (RFC 8288): `first`, `prev`, `next` and `last`, relative to the address asked for. The first page has no `prev`, the last one no `next`. */
        Link: string;
        /** @description Compression of the body; absent where it is not compressed. */
        "Content-Encoding": string;
        /** @description Scheme to authenticate with (RFC 6750). With `error="invalid_token"` where a token was sent and not accepted. */
        "WWW-Authenticate": string;
        /** @description Methods that this address answers. */
        Allow: string;
        /** @description Seconds to wait before the next attempt. */
        "Retry-After": number;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    listPortfolioTransactions: {
        parameters: {
            query?: {
                /** @description First day of the result, inclusive, as YYYY-MM-DD. It is compared with the effective date (`operationDateDay`, or `valueDateDay` where there is no operation date). Without it the result begins with the oldest row. */
                from?: components["parameters"]["from"];
                /** @description Last day of the result, inclusive, as YYYY-MM-DD; not before `from`. It is compared with the same date as `from`. Without it the result ends with the newest row. */
                to?: components["parameters"]["to"];
                /** @description Rows of a page, 1 to 10000, in digits. More is refused with 400 rather than cut down, which would make rows go missing. */
                limit?: components["parameters"]["limit"];
                /** @description Number of the page, 0 to 2147483647, in digits; the first page is 0. A page past the last one is empty and still tells `totalItems`. */
                page?: components["parameters"]["page"];
            };
            header?: {
                /** @description The `ETag` of an answer that you still hold. If nothing has changed since, the answer is 304 without a body. */
                "If-None-Match"?: components["parameters"]["If-None-Match"];
                /** @description Your own name for the request, up to 128 visible ASCII characters; it comes back in the answer. Anything else is ignored. */
                "X-Client-Trace-ID"?: components["parameters"]["X-Client-Trace-ID"];
            };
            path: {
                /**
                 * @description Selects the connection. It is a credential of its own, beside the app token: keep it out of logs and of links that others see. A token that is unknown, or belongs to another app, gets the same 404.
                 * @example DEMOSMALL1
                 */
                token: components["parameters"]["token"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the portfolio transactions of a connection. */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "X-Client-Trace-ID": components["headers"]["X-Client-Trace-ID"];
                    ETag: components["headers"]["ETag"];
                    "Last-Modified": components["headers"]["Last-Modified"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Vary: components["headers"]["Vary"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    Link: components["headers"]["Link"];
                    "Content-Encoding": components["headers"]["Content-Encoding"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PortfolioTransactionList"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listAccountTransactions: {
        parameters: {
            query?: {
                /** @description First day of the result, inclusive, as YYYY-MM-DD. It is compared with the effective date (`operationDateDay`, or `valueDateDay` where there is no operation date). Without it the result begins with the oldest row. */
                from?: components["parameters"]["from"];
                /** @description Last day of the result, inclusive, as YYYY-MM-DD; not before `from`. It is compared with the same date as `from`. Without it the result ends with the newest row. */
                to?: components["parameters"]["to"];
                /** @description Rows of a page, 1 to 10000, in digits. More is refused with 400 rather than cut down, which would make rows go missing. */
                limit?: components["parameters"]["limit"];
                /** @description Number of the page, 0 to 2147483647, in digits; the first page is 0. A page past the last one is empty and still tells `totalItems`. */
                page?: components["parameters"]["page"];
            };
            header?: {
                /** @description The `ETag` of an answer that you still hold. If nothing has changed since, the answer is 304 without a body. */
                "If-None-Match"?: components["parameters"]["If-None-Match"];
                /** @description Your own name for the request, up to 128 visible ASCII characters; it comes back in the answer. Anything else is ignored. */
                "X-Client-Trace-ID"?: components["parameters"]["X-Client-Trace-ID"];
            };
            path: {
                /**
                 * @description Selects the connection. It is a credential of its own, beside the app token: keep it out of logs and of links that others see. A token that is unknown, or belongs to another app, gets the same 404.
                 * @example DEMOSMALL1
                 */
                token: components["parameters"]["token"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the account transactions of a connection. */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "X-Client-Trace-ID": components["headers"]["X-Client-Trace-ID"];
                    ETag: components["headers"]["ETag"];
                    "Last-Modified": components["headers"]["Last-Modified"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Vary: components["headers"]["Vary"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    Link: components["headers"]["Link"];
                    "Content-Encoding": components["headers"]["Content-Encoding"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AccountTransactionList"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listAssetsTransferOrders: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of an answer that you still hold. If nothing has changed since, the answer is 304 without a body. */
                "If-None-Match"?: components["parameters"]["If-None-Match"];
                /** @description Your own name for the request, up to 128 visible ASCII characters; it comes back in the answer. Anything else is ignored. */
                "X-Client-Trace-ID"?: components["parameters"]["X-Client-Trace-ID"];
            };
            path: {
                /**
                 * @description Selects the connection. It is a credential of its own, beside the app token: keep it out of logs and of links that others see. A token that is unknown, or belongs to another app, gets the same 404.
                 * @example DEMOSMALL1
                 */
                token: components["parameters"]["token"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All orders that the user completed for the connection, the latest completed first. An order that was begun and not completed is not among them. */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "X-Client-Trace-ID": components["headers"]["X-Client-Trace-ID"];
                    ETag: components["headers"]["ETag"];
                    "Last-Modified": components["headers"]["Last-Modified"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Vary: components["headers"]["Vary"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Content-Encoding": components["headers"]["Content-Encoding"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AssetsTransferOrderList"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
}

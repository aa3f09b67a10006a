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
         * @description A movement of an investment in one portfolio. Every field is present; null means unknown. Decimals are exact: they have the digits that the institution gave, with trailing zeros and without an exponent. A decimal has up to 38 digits before the point and 38 after it. A binary float keeps about 16 digits: read these fields with a parser that supports decimals. Signs are the institution’s. In the sample data all numbers are positive; `type` defines the direction.
         */
        PortfolioTransaction: {
            /**
             * Transaction
             * Format: uuid
             * @description Identifier of the transaction. It does not change when a field is corrected.
             * @example 0b6f3c52-8e1d-4a97-b1c4-5d2e7f90a863
             */
            transactionId: string;
            /**
             * Portfolio
             * Format: uuid
             * @description Identifier of the portfolio that the transaction belongs to.
             * @example 7d94b2e8-15fa-4c60-9e3b-a8c1d6024f57
             */
            portfolioId: string;
            /**
             * Exchange rate
             * @description Rate between two currencies, as the institution states it. The contract does not define which currency is the divisor: compare the amounts before you convert.
             * @example 1.0842
             */
            exchangeRate: components["schemas"]["Decimal"] | null;
            type: components["schemas"]["PortfolioTransactionType"];
            /**
             * Shares
             * @description Number of shares or other units, with fractions. `type` defines the effect on the position: added, removed, or only its size.
             * @example 25.5
             */
            titles: components["schemas"]["Decimal"] | null;
            /**
             * Amount
             * @description Money that the transaction moves, in `currency`.
             * @example 312.38
             */
            amount: components["schemas"]["Decimal"] | null;
            /**
             * Amount in the base currency
             * @description The same amount in the base currency of the portfolio.
             * @example 288.12
             */
            amountBaseCurrency: components["schemas"]["Decimal"] | null;
            /**
             * Commission
             * @description Charge of the institution for the transaction, in `currency`. The sign is the institution’s: some write a charge as a negative number.
             * @example 4.95
             */
            commission: components["schemas"]["Decimal"] | null;
            /**
             * Taxes
             * @description Taxes on the transaction, in `currency`. The sign is the institution’s: some write a charge as a negative number.
             * @example 12.31
             */
            taxes: components["schemas"]["Decimal"] | null;
            /**
             * Currency
             * @description Currency of the amounts: usually an ISO 4217 code, otherwise the institution’s own code (GBX for pence). Null if the institution names none.
             * @example EUR
             */
            currency: string | null;
            /**
             * Local currency
             * @description Second currency of the transaction, if the institution names one: for example the currency in which the asset is quoted.
             * @example USD
             */
            localCurrency: string | null;
            /**
             * Description
             * @description Text of the institution on the transaction, in the institution’s language.
             * @example Dividendo 0,25 €/acción
             */
            description: string | null;
            /**
             * Price
             * @description Price of one share or unit.
             * @example 12.25
             */
            price: components["schemas"]["Decimal"] | null;
            /**
             * Operation date
             * Format: date
             * @description Day of the transaction. Lists are filtered and sorted by it. It is null only if `valueDateDay` is known.
             * @example 2025-03-14
             */
            operationDateDay: string | null;
            /**
             * Original operation date
             * Format: date
             * @description Operation date in the institution’s time zone, `originalOperationDateTz`.
             * @example 2025-03-14
             */
            originalOperationDateDay: string | null;
            /**
             * Value date
             * Format: date
             * @description First day on which the transaction counts in the position or the balance. Lists are filtered and sorted by it if there is no operation date.
             * @example 2025-03-18
             */
            valueDateDay: string | null;
            /**
             * Original value date
             * Format: date
             * @description Value date in the institution’s time zone, `originalValueDateTz`.
             * @example 2025-03-18
             */
            originalValueDateDay: string | null;
            /**
             * Operation time
             * @description Time of day on `operationDateDay`, usually HH:mm:ss. Other notations are not changed.
             * @example 15:42:07
             */
            operationDateHour: string | null;
            /**
             * Original operation time
             * @description Time of day on `originalOperationDateDay`, usually HH:mm:ss. Other notations are not changed.
             * @example 16:42:07
             */
            originalOperationDateHour: string | null;
            /**
             * Value time
             * @description Time of day on `valueDateDay`, usually HH:mm:ss. Other notations are not changed.
             * @example 00:00:00
             */
            valueDateHour: string | null;
            /**
             * Original value time
             * @description Time of day on `originalValueDateDay`, usually HH:mm:ss. Other notations are not changed.
             * @example 00:00:00
             */
            originalValueDateHour: string | null;
            /**
             * Time zone of the original operation date
             * @description Time zone of the two original operation fields, usually an IANA name. Other names are not changed.
             * @example Europe/Madrid
             */
            originalOperationDateTz: string | null;
            /**
             * Time zone of the original value date
             * @description Time zone of the two original value fields, usually an IANA name. Other names are not changed.
             * @example Europe/Madrid
             */
            originalValueDateTz: string | null;
            /**
             * Investment
             * Format: uuid
             * @description Identifier of the investment that the transaction concerns.
             * @example c1a9e0f2-6d3b-4b7e-9a51-70d2f8b3e645
             */
            investment: string | null;
            /**
             * Related transaction
             * Format: uuid
             * @description `transactionId` of a transaction that belongs with this one, such as the other side of a split.
             * @example e2d70a4c-3b98-4f15-8c6a-91b5f4037d2e
             */
            relatedTransaction: string | null;
            /**
             * @description Amounts retained from a payment: both, or null.
             * @example {
             *       "retentionFrom": 15,
             *       "retentionTo": 4
             *     }
             */
            retentionDetail: components["schemas"]["RetentionDetail"] | null;
        };
        /**
         * Portfolio transactions
         * @description One page of the portfolio transactions of a connection.
         */
        PortfolioTransactionList: {
            /**
             * Items
             * @description Rows of this page, newest first. They are sorted by the effective date (`operationDateDay`, or `valueDateDay` if there is no operation date); then by `operationDateHour` (null last); then by identifier; all descending. A page past the last one is empty. With `since`: changed rows, in the order of their last change.
             */
            items: components["schemas"]["PortfolioTransaction"][];
            /**
             * Limit
             * Format: int32
             * @description Maximum number of rows in a page, as applied. With `since`, removed rows count, too.
             * @example 1000
             */
            limit: number;
            /**
             * Page
             * Format: int32
             * @description Number of this page, as applied; the first page is 0.
             * @example 0
             */
            page: number;
            /**
             * Total of items
             * Format: int64
             * @description Exact number of rows between `from` and `to` on all pages, counted in the same snapshot as the items. With `since`: of all rows.
             * @example 5213
             */
            totalItems: number;
            /**
             * Removed
             * @description Only with `since`: identifiers of rows that no longer exist.
             */
            removed?: string[];
            /**
             * Next cursor
             * @description Only with `since`: value of `since` for the next request. Opaque; valid for at least 400 days.
             * @example AAAAA3____8AAAAB_____xXQAZE
             */
            nextCursor?: string;
            /**
             * Has more
             * @description Only with `since`: true if more changes exist. When it is false, the copy of the client has exactly `totalItems` rows.
             */
            hasMore?: boolean;
        };
        /**
         * Account transaction
         * @description A movement of cash in one account. It always changes the balance. Every field is present; null means unknown. Decimals are exact: they have the digits that the institution gave, with trailing zeros and without an exponent. A decimal has up to 38 digits before the point and 38 after it. A binary float keeps about 16 digits: read these fields with a parser that supports decimals.
         */
        AccountTransaction: {
            /**
             * Movement
             * Format: uuid
             * @description Identifier of the transaction. It does not change when a field is corrected.
             * @example 94c1f7a0-2e6d-4835-a7b9-0c3d5e8f1264
             */
            movementId: string;
            /**
             * Account
             * Format: uuid
             * @description Identifier of the account whose balance the transaction changes.
             * @example 3a58e1d9-c047-4b2f-86d5-f19e7b20c4a3
             */
            accountId: string;
            type: components["schemas"]["AccountTransactionType"];
            /**
             * Amount
             * @description Change of the cash balance, in `currency`: positive for cash that comes in, negative for cash that goes out. The sign is the institution’s.
             * @example -49.9
             */
            amount: components["schemas"]["Decimal"];
            /**
             * Exchange rate
             * @description Rate between two currencies, as the institution states it. The contract does not define which currency is the divisor: compare the amounts before you convert.
             * @example 1.0842
             */
            exchangeRate: components["schemas"]["Decimal"] | null;
            /**
             * Commission
             * @description Charge of the institution for the transaction, in `currency`. The sign is the institution’s: some write a charge as a negative number.
             * @example 4.95
             */
            commission: components["schemas"]["Decimal"] | null;
            /**
             * Taxes
             * @description Taxes on the transaction, in `currency`. The sign is the institution’s: some write a charge as a negative number.
             * @example 12.31
             */
            taxes: components["schemas"]["Decimal"] | null;
            /**
             * Currency
             * @description Currency of the amounts: usually an ISO 4217 code, otherwise the institution’s own code (GBX for pence). Null if the institution names none.
             * @example EUR
             */
            currency: string | null;
            /**
             * Local currency
             * @description Second currency of the transaction, if the institution names one: for example the currency in which the asset is quoted.
             * @example USD
             */
            localCurrency: string | null;
            /**
             * Description
             * @description Text of the institution on the transaction, in the institution’s language.
             * @example Dividendo 0,25 €/acción
             */
            description: string | null;
            /**
             * Operation date
             * Format: date
             * @description Day of the transaction. Lists are filtered and sorted by it. It is null only if `valueDateDay` is known.
             * @example 2025-03-14
             */
            operationDateDay: string | null;
            /**
             * Original operation date
             * Format: date
             * @description Operation date in the institution’s time zone, `originalOperationDateTz`.
             * @example 2025-03-14
             */
            originalOperationDateDay: string | null;
            /**
             * Value date
             * Format: date
             * @description First day on which the transaction counts in the position or the balance. Lists are filtered and sorted by it if there is no operation date.
             * @example 2025-03-18
             */
            valueDateDay: string | null;
            /**
             * Original value date
             * Format: date
             * @description Value date in the institution’s time zone, `originalValueDateTz`.
             * @example 2025-03-18
             */
            originalValueDateDay: string | null;
            /**
             * Operation time
             * @description Time of day on `operationDateDay`, usually HH:mm:ss. Other notations are not changed.
             * @example 15:42:07
             */
            operationDateHour: string | null;
            /**
             * Original operation time
             * @description Time of day on `originalOperationDateDay`, usually HH:mm:ss. Other notations are not changed.
             * @example 16:42:07
             */
            originalOperationDateHour: string | null;
            /**
             * Value time
             * @description Time of day on `valueDateDay`, usually HH:mm:ss. Other notations are not changed.
             * @example 00:00:00
             */
            valueDateHour: string | null;
            /**
             * Original value time
             * @description Time of day on `originalValueDateDay`, usually HH:mm:ss. Other notations are not changed.
             * @example 00:00:00
             */
            originalValueDateHour: string | null;
            /**
             * Time zone of the original operation date
             * @description Time zone of the two original operation fields, usually an IANA name. Other names are not changed.
             * @example Europe/Madrid
             */
            originalOperationDateTz: string | null;
            /**
             * Time zone of the original value date
             * @description Time zone of the two original value fields, usually an IANA name. Other names are not changed.
             * @example Europe/Madrid
             */
            originalValueDateTz: string | null;
            /**
             * Investment
             * Format: uuid
             * @description Identifier of the investment that the transaction concerns.
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
             * @description Rows of this page, newest first. They are sorted by the effective date (`operationDateDay`, or `valueDateDay` if there is no operation date); then by `operationDateHour` (null last); then by identifier; all descending. A page past the last one is empty. With `since`: changed rows, in the order of their last change.
             */
            items: components["schemas"]["AccountTransaction"][];
            /**
             * Limit
             * Format: int32
             * @description Maximum number of rows in a page, as applied. With `since`, removed rows count, too.
             * @example 1000
             */
            limit: number;
            /**
             * Page
             * Format: int32
             * @description Number of this page, as applied; the first page is 0.
             * @example 0
             */
            page: number;
            /**
             * Total of items
             * Format: int64
             * @description Exact number of rows between `from` and `to` on all pages, counted in the same snapshot as the items. With `since`: of all rows.
             * @example 5213
             */
            totalItems: number;
            /**
             * Removed
             * @description Only with `since`: identifiers of rows that no longer exist.
             */
            removed?: string[];
            /**
             * Next cursor
             * @description Only with `since`: value of `since` for the next request. Opaque; valid for at least 400 days.
             * @example AAAAA3____8AAAAB_____xXQAZE
             */
            nextCursor?: string;
            /**
             * Has more
             * @description Only with `since`: true if more changes exist. When it is false, the copy of the client has exactly `totalItems` rows.
             */
            hasMore?: boolean;
        };
        /**
         * Assets transfer order
         * @description An order to transfer assets that the user completed. Every field is present; null means unknown. Decimals are exact: they have the digits that the institution gave, with trailing zeros and without an exponent. A decimal has up to 38 digits before the point and 38 after it. A binary float keeps about 16 digits: read these fields with a parser that supports decimals.
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
             * @description Portfolio that holds the assets, by the name or number in the order.
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
             * @description Currency of `amount`, usually an ISO 4217 code. Null if the order names none.
             * @example EUR
             */
            currency: string | null;
            /**
             * Asset type
             * @description Type of asset. The list is open: STOCK, ETF, RIGHTS, FUND, PP, BOND and WARRANT are known, and others may follow.
             * @example FUND
             */
            assetType: string | null;
            /**
             * Shares
             * @description Number of shares or other units to transfer, with fractions.
             * @example 104.3391
             */
            titles: components["schemas"]["Decimal"] | null;
            /**
             * Amount
             * @description Value to transfer, in `currency`.
             * @example 1846.2
             */
            amount: components["schemas"]["Decimal"] | null;
            /**
             * Total
             * @description True for a transfer of the whole position, false for a part of it.
             * @example true
             */
            total: boolean | null;
            /**
             * Marketer
             * @description Company that markets the asset, with both members, or null.
             * @example {
             *       "name": "Banco Ejemplo, S.A.",
             *       "cif": "A00000000"
             *     }
             */
            marketer: components["schemas"]["Company"] | null;
            /**
             * Management company
             * @description Company that manages the asset, with both members, or null.
             * @example {
             *       "name": "Gestora Ejemplo, S.G.I.I.C.",
             *       "cif": "A00000018"
             *     }
             */
            managementCompany: components["schemas"]["Company"] | null;
        };
        /**
         * Assets transfer orders
         * @description All orders that the user completed for the connection, the latest first. Unfinished orders are not included.
         */
        AssetsTransferOrderList: components["schemas"]["AssetsTransferOrder"][];
        /**
         * Portfolio transaction
         * @description A movement of an investment in one portfolio. Every field is present; null means unknown. Decimals are exact: they have the digits that the institution gave, with trailing zeros and without an exponent. A decimal has up to 38 digits before the point and 38 after it. It is a JSON string. Signs are the institution’s. In the sample data all numbers are positive; `type` defines the direction.
         */
        ExactPortfolioTransaction: {
            /**
             * Transaction
             * Format: uuid
             * @description Identifier of the transaction. It does not change when a field is corrected.
             * @example 0b6f3c52-8e1d-4a97-b1c4-5d2e7f90a863
             */
            transactionId: string;
            /**
             * Portfolio
             * Format: uuid
             * @description Identifier of the portfolio that the transaction belongs to.
             * @example 7d94b2e8-15fa-4c60-9e3b-a8c1d6024f57
             */
            portfolioId: string;
            /**
             * Exchange rate
             * @description Rate between two currencies, as the institution states it. The contract does not define which currency is the divisor: compare the amounts before you convert.
             * @example 1.0842
             */
            exchangeRate: components["schemas"]["ExactDecimal"] | null;
            type: components["schemas"]["PortfolioTransactionType"];
            /**
             * Shares
             * @description Number of shares or other units, with fractions. `type` defines the effect on the position: added, removed, or only its size.
             * @example 25.5
             */
            titles: components["schemas"]["ExactDecimal"] | null;
            /**
             * Amount
             * @description Money that the transaction moves, in `currency`.
             * @example 312.38
             */
            amount: components["schemas"]["ExactDecimal"] | null;
            /**
             * Amount in the base currency
             * @description The same amount in the base currency of the portfolio.
             * @example 288.12
             */
            amountBaseCurrency: components["schemas"]["ExactDecimal"] | null;
            /**
             * Commission
             * @description Charge of the institution for the transaction, in `currency`. The sign is the institution’s: some write a charge as a negative number.
             * @example 4.95
             */
            commission: components["schemas"]["ExactDecimal"] | null;
            /**
             * Taxes
             * @description Taxes on the transaction, in `currency`. The sign is the institution’s: some write a charge as a negative number.
             * @example 12.31
             */
            taxes: components["schemas"]["ExactDecimal"] | null;
            /**
             * Currency
             * @description Currency of the amounts: usually an ISO 4217 code, otherwise the institution’s own code (GBX for pence). Null if the institution names none.
             * @example EUR
             */
            currency: string | null;
            /**
             * Local currency
             * @description Second currency of the transaction, if the institution names one: for example the currency in which the asset is quoted.
             * @example USD
             */
            localCurrency: string | null;
            /**
             * Description
             * @description Text of the institution on the transaction, in the institution’s language.
             * @example Dividendo 0,25 €/acción
             */
            description: string | null;
            /**
             * Price
             * @description Price of one share or unit.
             * @example 12.25
             */
            price: components["schemas"]["ExactDecimal"] | null;
            /**
             * Operation date
             * Format: date
             * @description Day of the transaction. Lists are filtered and sorted by it. It is null only if `valueDateDay` is known.
             * @example 2025-03-14
             */
            operationDateDay: string | null;
            /**
             * Original operation date
             * Format: date
             * @description Operation date in the institution’s time zone, `originalOperationDateTz`.
             * @example 2025-03-14
             */
            originalOperationDateDay: string | null;
            /**
             * Value date
             * Format: date
             * @description First day on which the transaction counts in the position or the balance. Lists are filtered and sorted by it if there is no operation date.
             * @example 2025-03-18
             */
            valueDateDay: string | null;
            /**
             * Original value date
             * Format: date
             * @description Value date in the institution’s time zone, `originalValueDateTz`.
             * @example 2025-03-18
             */
            originalValueDateDay: string | null;
            /**
             * Operation time
             * @description Time of day on `operationDateDay`, usually HH:mm:ss. Other notations are not changed.
             * @example 15:42:07
             */
            operationDateHour: string | null;
            /**
             * Original operation time
             * @description Time of day on `originalOperationDateDay`, usually HH:mm:ss. Other notations are not changed.
             * @example 16:42:07
             */
            originalOperationDateHour: string | null;
            /**
             * Value time
             * @description Time of day on `valueDateDay`, usually HH:mm:ss. Other notations are not changed.
             * @example 00:00:00
             */
            valueDateHour: string | null;
            /**
             * Original value time
             * @description Time of day on `originalValueDateDay`, usually HH:mm:ss. Other notations are not changed.
             * @example 00:00:00
             */
            originalValueDateHour: string | null;
            /**
             * Time zone of the original operation date
             * @description Time zone of the two original operation fields, usually an IANA name. Other names are not changed.
             * @example Europe/Madrid
             */
            originalOperationDateTz: string | null;
            /**
             * Time zone of the original value date
             * @description Time zone of the two original value fields, usually an IANA name. Other names are not changed.
             * @example Europe/Madrid
             */
            originalValueDateTz: string | null;
            /**
             * Investment
             * Format: uuid
             * @description Identifier of the investment that the transaction concerns.
             * @example c1a9e0f2-6d3b-4b7e-9a51-70d2f8b3e645
             */
            investment: string | null;
            /**
             * Related transaction
             * Format: uuid
             * @description `transactionId` of a transaction that belongs with this one, such as the other side of a split.
             * @example e2d70a4c-3b98-4f15-8c6a-91b5f4037d2e
             */
            relatedTransaction: string | null;
            /**
             * @description Amounts retained from a payment: both, or null.
             * @example {
             *       "retentionFrom": "15",
             *       "retentionTo": "4"
             *     }
             */
            retentionDetail: components["schemas"]["ExactRetentionDetail"] | null;
        };
        /**
         * Portfolio transactions
         * @description One page of the portfolio transactions of a connection.
         */
        ExactPortfolioTransactionList: {
            /**
             * Items
             * @description Rows of this page, newest first. They are sorted by the effective date (`operationDateDay`, or `valueDateDay` if there is no operation date); then by `operationDateHour` (null last); then by identifier; all descending. A page past the last one is empty. With `since`: changed rows, in the order of their last change.
             */
            items: components["schemas"]["ExactPortfolioTransaction"][];
            /**
             * Limit
             * Format: int32
             * @description Maximum number of rows in a page, as applied. With `since`, removed rows count, too.
             * @example 1000
             */
            limit: number;
            /**
             * Page
             * Format: int32
             * @description Number of this page, as applied; the first page is 0.
             * @example 0
             */
            page: number;
            /**
             * Total of items
             * Format: int64
             * @description Exact number of rows between `from` and `to` on all pages, counted in the same snapshot as the items. With `since`: of all rows.
             * @example 5213
             */
            totalItems: number;
            /**
             * Removed
             * @description Only with `since`: identifiers of rows that no longer exist.
             */
            removed?: string[];
            /**
             * Next cursor
             * @description Only with `since`: value of `since` for the next request. Opaque; valid for at least 400 days.
             * @example AAAAA3____8AAAAB_____xXQAZE
             */
            nextCursor?: string;
            /**
             * Has more
             * @description Only with `since`: true if more changes exist. When it is false, the copy of the client has exactly `totalItems` rows.
             */
            hasMore?: boolean;
        };
        /**
         * Account transaction
         * @description A movement of cash in one account. It always changes the balance. Every field is present; null means unknown. Decimals are exact: they have the digits that the institution gave, with trailing zeros and without an exponent. A decimal has up to 38 digits before the point and 38 after it. It is a JSON string.
         */
        ExactAccountTransaction: {
            /**
             * Movement
             * Format: uuid
             * @description Identifier of the transaction. It does not change when a field is corrected.
             * @example 94c1f7a0-2e6d-4835-a7b9-0c3d5e8f1264
             */
            movementId: string;
            /**
             * Account
             * Format: uuid
             * @description Identifier of the account whose balance the transaction changes.
             * @example 3a58e1d9-c047-4b2f-86d5-f19e7b20c4a3
             */
            accountId: string;
            type: components["schemas"]["AccountTransactionType"];
            /**
             * Amount
             * @description Change of the cash balance, in `currency`: positive for cash that comes in, negative for cash that goes out. The sign is the institution’s.
             * @example -49.9
             */
            amount: components["schemas"]["ExactDecimal"];
            /**
             * Exchange rate
             * @description Rate between two currencies, as the institution states it. The contract does not define which currency is the divisor: compare the amounts before you convert.
             * @example 1.0842
             */
            exchangeRate: components["schemas"]["ExactDecimal"] | null;
            /**
             * Commission
             * @description Charge of the institution for the transaction, in `currency`. The sign is the institution’s: some write a charge as a negative number.
             * @example 4.95
             */
            commission: components["schemas"]["ExactDecimal"] | null;
            /**
             * Taxes
             * @description Taxes on the transaction, in `currency`. The sign is the institution’s: some write a charge as a negative number.
             * @example 12.31
             */
            taxes: components["schemas"]["ExactDecimal"] | null;
            /**
             * Currency
             * @description Currency of the amounts: usually an ISO 4217 code, otherwise the institution’s own code (GBX for pence). Null if the institution names none.
             * @example EUR
             */
            currency: string | null;
            /**
             * Local currency
             * @description Second currency of the transaction, if the institution names one: for example the currency in which the asset is quoted.
             * @example USD
             */
            localCurrency: string | null;
            /**
             * Description
             * @description Text of the institution on the transaction, in the institution’s language.
             * @example Dividendo 0,25 €/acción
             */
            description: string | null;
            /**
             * Operation date
             * Format: date
             * @description Day of the transaction. Lists are filtered and sorted by it. It is null only if `valueDateDay` is known.
             * @example 2025-03-14
             */
            operationDateDay: string | null;
            /**
             * Original operation date
             * Format: date
             * @description Operation date in the institution’s time zone, `originalOperationDateTz`.
             * @example 2025-03-14
             */
            originalOperationDateDay: string | null;
            /**
             * Value date
             * Format: date
             * @description First day on which the transaction counts in the position or the balance. Lists are filtered and sorted by it if there is no operation date.
             * @example 2025-03-18
             */
            valueDateDay: string | null;
            /**
             * Original value date
             * Format: date
             * @description Value date in the institution’s time zone, `originalValueDateTz`.
             * @example 2025-03-18
             */
            originalValueDateDay: string | null;
            /**
             * Operation time
             * @description Time of day on `operationDateDay`, usually HH:mm:ss. Other notations are not changed.
             * @example 15:42:07
             */
            operationDateHour: string | null;
            /**
             * Original operation time
             * @description Time of day on `originalOperationDateDay`, usually HH:mm:ss. Other notations are not changed.
             * @example 16:42:07
             */
            originalOperationDateHour: string | null;
            /**
             * Value time
             * @description Time of day on `valueDateDay`, usually HH:mm:ss. Other notations are not changed.
             * @example 00:00:00
             */
            valueDateHour: string | null;
            /**
             * Original value time
             * @description Time of day on `originalValueDateDay`, usually HH:mm:ss. Other notations are not changed.
             * @example 00:00:00
             */
            originalValueDateHour: string | null;
            /**
             * Time zone of the original operation date
             * @description Time zone of the two original operation fields, usually an IANA name. Other names are not changed.
             * @example Europe/Madrid
             */
            originalOperationDateTz: string | null;
            /**
             * Time zone of the original value date
             * @description Time zone of the two original value fields, usually an IANA name. Other names are not changed.
             * @example Europe/Madrid
             */
            originalValueDateTz: string | null;
            /**
             * Investment
             * Format: uuid
             * @description Identifier of the investment that the transaction concerns.
             * @example c1a9e0f2-6d3b-4b7e-9a51-70d2f8b3e645
             */
            investment: string | null;
        };
        /**
         * Account transactions
         * @description One page of the account transactions of a connection.
         */
        ExactAccountTransactionList: {
            /**
             * Items
             * @description Rows of this page, newest first. They are sorted by the effective date (`operationDateDay`, or `valueDateDay` if there is no operation date); then by `operationDateHour` (null last); then by identifier; all descending. A page past the last one is empty. With `since`: changed rows, in the order of their last change.
             */
            items: components["schemas"]["ExactAccountTransaction"][];
            /**
             * Limit
             * Format: int32
             * @description Maximum number of rows in a page, as applied. With `since`, removed rows count, too.
             * @example 1000
             */
            limit: number;
            /**
             * Page
             * Format: int32
             * @description Number of this page, as applied; the first page is 0.
             * @example 0
             */
            page: number;
            /**
             * Total of items
             * Format: int64
             * @description Exact number of rows between `from` and `to` on all pages, counted in the same snapshot as the items. With `since`: of all rows.
             * @example 5213
             */
            totalItems: number;
            /**
             * Removed
             * @description Only with `since`: identifiers of rows that no longer exist.
             */
            removed?: string[];
            /**
             * Next cursor
             * @description Only with `since`: value of `since` for the next request. Opaque; valid for at least 400 days.
             * @example AAAAA3____8AAAAB_____xXQAZE
             */
            nextCursor?: string;
            /**
             * Has more
             * @description Only with `since`: true if more changes exist. When it is false, the copy of the client has exactly `totalItems` rows.
             */
            hasMore?: boolean;
        };
        /**
         * Assets transfer order
         * @description An order to transfer assets that the user completed. Every field is present; null means unknown. Decimals are exact: they have the digits that the institution gave, with trailing zeros and without an exponent. A decimal has up to 38 digits before the point and 38 after it. It is a JSON string.
         */
        ExactAssetsTransferOrder: {
            /**
             * Order
             * Format: uuid
             * @description Identifier of the order.
             * @example d80f5b36-7a19-4ce2-b4f8-6e2c9d01a57b
             */
            id: string;
            /**
             * Portfolio
             * @description Portfolio that holds the assets, by the name or number in the order.
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
             * @description Currency of `amount`, usually an ISO 4217 code. Null if the order names none.
             * @example EUR
             */
            currency: string | null;
            /**
             * Asset type
             * @description Type of asset. The list is open: STOCK, ETF, RIGHTS, FUND, PP, BOND and WARRANT are known, and others may follow.
             * @example FUND
             */
            assetType: string | null;
            /**
             * Shares
             * @description Number of shares or other units to transfer, with fractions.
             * @example 104.3391
             */
            titles: components["schemas"]["ExactDecimal"] | null;
            /**
             * Amount
             * @description Value to transfer, in `currency`.
             * @example 1846.2
             */
            amount: components["schemas"]["ExactDecimal"] | null;
            /**
             * Total
             * @description True for a transfer of the whole position, false for a part of it.
             * @example true
             */
            total: boolean | null;
            /**
             * Marketer
             * @description Company that markets the asset, with both members, or null.
             * @example {
             *       "name": "Banco Ejemplo, S.A.",
             *       "cif": "A00000000"
             *     }
             */
            marketer: components["schemas"]["Company"] | null;
            /**
             * Management company
             * @description Company that manages the asset, with both members, or null.
             * @example {
             *       "name": "Gestora Ejemplo, S.G.I.I.C.",
             *       "cif": "A00000018"
             *     }
             */
            managementCompany: components["schemas"]["Company"] | null;
        };
        /**
         * Assets transfer orders
         * @description All orders that the user completed for the connection, the latest first. Unfinished orders are not included.
         */
        ExactAssetsTransferOrderList: components["schemas"]["ExactAssetsTransferOrder"][];
        /**
         * Problem
         * @description Reason of the error: one body for every error of every endpoint.
         */
        Problem: {
            /**
             * Status
             * Format: int32
             * @description HTTP status of the response.
             * @example 404
             * @enum {integer}
             */
            status: 400 | 401 | 404 | 405 | 410 | 412 | 429 | 500 | 503;
            /**
             * Code
             * @description Type of the error, for programs; from a closed list.
             *
             *     | Value | Status | Meaning |
             *     |---|---|---|
             *     | `missing_credentials` | 401 | The request has no `Authorization` header |
             *     | `malformed_credentials` | 401 | The `Authorization` header is not `Bearer` and one token |
             *     | `invalid_token` | 401 | The bearer token is unknown or revoked |
             *     | `expired_token` | 401 | The bearer token was valid and has expired |
             *     | `invalid_request` | 400 | Query parameters are not valid; `errors` lists each error |
             *     | `malformed_request` | 400 | The service cannot read the request, for example because its URL does not decode |
             *     | `connection_not_found` | 404 | The calling app has no connection with this token |
             *     | `route_not_found` | 404 | The service has no such path |
             *     | `cursor_expired` | 410 | The changes since this cursor are not known |
             *     | `data_changed` | 412 | The connection no longer has the data version in `version` |
             *     | `method_not_allowed` | 405 | The path is read-only; `Allow` lists its methods |
             *     | `too_many_requests` | 429 | The app has used up its quota |
             *     | `internal_error` | 500 | The service failed; its log has the cause under `requestId` |
             *     | `service_unavailable` | 503 | The service is overloaded or has no database |
             * @example connection_not_found
             * @enum {string}
             */
            code: "missing_credentials" | "malformed_credentials" | "invalid_token" | "expired_token" | "invalid_request" | "malformed_request" | "connection_not_found" | "route_not_found" | "cursor_expired" | "data_changed" | "method_not_allowed" | "too_many_requests" | "internal_error" | "service_unavailable";
            /**
             * Title
             * @description The status in words; the same for every error of one status.
             * @example Not Found
             */
            title: string;
            /**
             * Detail
             * @description The cause of this error, for people. Programs read `code`.
             * @example This app has no connection with this token.
             */
            detail: string;
            /**
             * Request
             * @description `X-Request-ID` of the response. Quote it when you report an error.
             * @example 6a0f2d94-71c3-4be8-9f25-d3b8e4c7a106
             */
            requestId: string;
            /**
             * Errors
             * @description Errors of the query parameters, 20 at most; only with `invalid_request`. With more errors, `detail` has their number.
             */
            errors?: components["schemas"]["ParameterFault"][];
        };
        /**
         * Parameter error
         * @description One error of one query parameter.
         */
        ParameterFault: {
            /**
             * Parameter
             * @description Name of the query parameter, as in the request.
             * @example limit
             */
            parameter: string;
            /**
             * Code
             * @description Rule that the parameter breaks, for programs; from a closed list.
             *
             *     | Value | Meaning |
             *     |---|---|
             *     | `unknown_parameter` | No parameter has this name; `detail` lists the valid names |
             *     | `repeated_parameter` | The request has the parameter more than once |
             *     | `invalid_format` | The value is not in digits, or not an existing day, as the parameter requires |
             *     | `out_of_range` | The value is below or above the limits of the parameter |
             *     | `invalid_range` | `from` is after `to` |
             *     | `invalid_cursor` | The value is not a cursor of this list and connection |
             *     | `excluded_parameter` | The parameter cannot be used together with `since`, or in an export |
             * @example out_of_range
             * @enum {string}
             */
            code: "unknown_parameter" | "repeated_parameter" | "invalid_format" | "out_of_range" | "invalid_range" | "invalid_cursor" | "excluded_parameter";
            /**
             * Detail
             * @description The rule in words, for people.
             * @example limit must be between 1 and 10000.
             */
            detail: string;
        };
        /**
         * Portfolio transaction type
         * @description Type of the movement, from a closed list. Shares: `+` adds `titles` to the position, `-`
         *     removes them. `=` does not change the position; `titles` is then its size at that time.
         *
         *     A transaction that cannot be classified at first has the type `UNKNOWN`. When the cause is
         *     resolved and the credential connects again, the same `transactionId` has the correct type.
         *
         *     | Value | Shares | Meaning |
         *     |---|---|---|
         *     | `BUY` | `+` | Securities or other assets are bought |
         *     | `COMPENSATION` | `=` | The holder is compensated for a corporate event of the asset, for example with the unstated cash of a forced sale |
         *     | `COUPON` | `=` | A bond pays its regular interest, a fixed share of its face value |
         *     | `DELISTING` | `-` | A security leaves a stock exchange |
         *     | `DIVIDENDS` | `=` | A company pays out part of its profit to its owners |
         *     | `EXPIRATION` | not defined | The source of this contract defines neither meaning nor effect |
         *     | `INHERITANCE_OR_DONATION_TRANSFER_IN` | `+` | Inherited or donated assets arrive in the account |
         *     | `INHERITANCE_OR_DONATION_TRANSFER_OUT` | `-` | Inherited or donated assets leave the account |
         *     | `ISIN_CHANGE_BUY` | `+` | Incoming side of a change of ISIN |
         *     | `ISIN_CHANGE_SELL` | `-` | Outgoing side of a change of ISIN |
         *     | `MERGER_BUY` | `+` | Incoming side of a merger |
         *     | `MERGER_SELL` | `-` | Outgoing side of a merger |
         *     | `OFF_MARKET_BUY` | `+` | Bought outside a formal exchange, or granted without an action of the holder |
         *     | `OFF_MARKET_SELL` | `-` | Sold outside a formal exchange, or by an event outside the holder’s control |
         *     | `PRODUCT_CHANGE_BUY` | `+` | Incoming side of a product change: a trait such as the share class changes, without a full change of ISIN |
         *     | `PRODUCT_CHANGE_SELL` | `-` | Outgoing side of a product change |
         *     | `RIGHTS_CONVERSION_BUY` | `+` | Stock received for rights, usually in a scrip dividend or a capital increase |
         *     | `RIGHTS_CONVERSION_SELL` | `-` | Outgoing side of that conversion: the rights that became shares |
         *     | `RIGHTS_EXCLUSION` | `-` | Rights are sold, usually because the market no longer admits them |
         *     | `RIGHTS_ISSUE` | `+` | Rights are granted, usually for a scrip dividend or a capital increase |
         *     | `SELL` | `-` | Securities or other assets are sold |
         *     | `SHARE_ISSUE_PREMIUM` | `=` | Amount above the par value of newly issued shares |
         *     | `SPINOFF` | `+` | Shares granted because a subsidiary separates from its parent company |
         *     | `SPLIT_BUY` | `+` | Incoming side of a split |
         *     | `SPLIT_SELL` | `-` | Outgoing side of a split |
         *     | `TRANSFER_IN` | `+` | Securities are moved into the account |
         *     | `TRANSFER_OUT` | `-` | Securities are moved out of the account |
         *     | `UNKNOWN` | `=` | Not classified correctly so far |
         * @example BUY
         * @enum {string}
         */
        PortfolioTransactionType: "BUY" | "COMPENSATION" | "COUPON" | "DELISTING" | "DIVIDENDS" | "EXPIRATION" | "INHERITANCE_OR_DONATION_TRANSFER_IN" | "INHERITANCE_OR_DONATION_TRANSFER_OUT" | "ISIN_CHANGE_BUY" | "ISIN_CHANGE_SELL" | "MERGER_BUY" | "MERGER_SELL" | "OFF_MARKET_BUY" | "OFF_MARKET_SELL" | "PRODUCT_CHANGE_BUY" | "PRODUCT_CHANGE_SELL" | "RIGHTS_CONVERSION_BUY" | "RIGHTS_CONVERSION_SELL" | "RIGHTS_EXCLUSION" | "RIGHTS_ISSUE" | "SELL" | "SHARE_ISSUE_PREMIUM" | "SPINOFF" | "SPLIT_BUY" | "SPLIT_SELL" | "TRANSFER_IN" | "TRANSFER_OUT" | "UNKNOWN";
        /**
         * Account transaction type
         * @description Reason why the cash balance changed, from a closed list.
         *
         *     A transaction that cannot be classified at first has the type `UNKNOWN`. When the cause is
         *     resolved and the credential connects again, the same `movementId` has the correct type.
         *
         *     | Value | Meaning |
         *     |---|---|
         *     | `COUPON` | Bonds or other fixed-income securities pay interest |
         *     | `DEPOSIT` | The holder pays cash in |
         *     | `DIVIDENDS` | A company pays its shareholders, usually out of its profit |
         *     | `DIVIDEND_RETENTION` | The fund or investment firm keeps dividends instead of paying them out |
         *     | `DIVIDEND_RETENTION_REFUND` | Dividends kept earlier are paid after all |
         *     | `FEES` | The institution charges for its services, such as management, a transaction or a connection to an exchange |
         *     | `FEES_REFUND` | Fees charged earlier are given back |
         *     | `FOREX_DEPOSIT` | Cash comes in from a currency exchange |
         *     | `FOREX_WITHDRAWAL` | Cash goes out for a currency exchange |
         *     | `GIFT` | The institution gives cash away, for example in a promotion |
         *     | `INTEREST` | An account or an investment earns interest |
         *     | `INTEREST_CHARGE` | Interest is charged, usually on a loan or on borrowed money |
         *     | `RETURN_ON_CAPITAL` | Part of the invested money comes back; neither income nor a capital gain |
         *     | `TAXES` | Money is taken for taxes |
         *     | `TAX_REFUND` | Taxes paid earlier are given back |
         *     | `WITHDRAWAL` | The holder takes cash out |
         *     | `UNKNOWN` | Not classified correctly so far |
         * @example DEPOSIT
         * @enum {string}
         */
        AccountTransactionType: "COUPON" | "DEPOSIT" | "DIVIDENDS" | "DIVIDEND_RETENTION" | "DIVIDEND_RETENTION_REFUND" | "FEES" | "FEES_REFUND" | "FOREX_DEPOSIT" | "FOREX_WITHDRAWAL" | "GIFT" | "INTEREST" | "INTEREST_CHARGE" | "RETURN_ON_CAPITAL" | "TAXES" | "TAX_REFUND" | "WITHDRAWAL" | "UNKNOWN";
        /**
         * Retention
         * @description Amounts retained from a payment. Both are always present.
         */
        RetentionDetail: {
            /**
             * Retention at the origin
             * @description Amount retained on the paying side, as the institution states it.
             * @example 15
             */
            retentionFrom: components["schemas"]["Decimal"];
            /**
             * Retention at the destination
             * @description Amount retained on the receiving side, as the institution states it.
             * @example 4
             */
            retentionTo: components["schemas"]["Decimal"];
        };
        /**
         * Retention
         * @description Amounts retained from a payment. Both are always present.
         */
        ExactRetentionDetail: {
            /**
             * Retention at the origin
             * @description Amount retained on the paying side, as the institution states it.
             * @example 15
             */
            retentionFrom: components["schemas"]["ExactDecimal"];
            /**
             * Retention at the destination
             * @description Amount retained on the receiving side, as the institution states it.
             * @example 4
             */
            retentionTo: components["schemas"]["ExactDecimal"];
        };
        /**
         * Company
         * @description A company. Both members are always present.
         */
        Company: {
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
        };
        /**
         * Decimal
         * Format: decimal
         * @description Decimals are exact: they have the digits that the institution gave, with trailing zeros and without an exponent. A decimal has up to 38 digits before the point and 38 after it. A binary float keeps about 16 digits: read these fields with a parser that supports decimals.
         * @example 1250.75
         */
        Decimal: number;
        /**
         * Exact decimal
         * Format: decimal
         * @description Decimals are exact: they have the digits that the institution gave, with trailing zeros and without an exponent. A decimal has up to 38 digits before the point and 38 after it. It is a JSON string.
         * @example 1250.75
         */
        ExactDecimal: string;
    };
    responses: {
        /** @description The connection has not changed since the response in `If-None-Match`. */
        NotModified: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "X-Client-Trace-ID": components["headers"]["X-Client-Trace-ID"];
                ETag: components["headers"]["ETag"];
                "Data-Version": components["headers"]["Data-Version"];
                "Last-Modified": components["headers"]["Last-Modified"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description The parameters are not valid, or the request cannot be read. */
        BadRequest: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "X-Client-Trace-ID": components["headers"]["X-Client-Trace-ID"];
                "Cache-Control": components["headers"]["Cache-Control"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                /** @description Request headers that the form of the response depends on. */
                Vary?: string;
                "Content-Encoding": components["headers"]["Content-Encoding"];
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
        /** @description The method is neither `GET` nor `HEAD`. */
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
        /** @description The service is overloaded or has no database. */
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
        /** @description Selects the connection. The token is a credential: keep it out of logs and shared links. An unknown token and a token of another app get the same 404. */
        token: string;
        /** @description First day of the result, inclusive, as YYYY-MM-DD. It is compared with the effective date (`operationDateDay`, or `valueDateDay` if there is no operation date). Without it, the result starts with the oldest row. */
        from: string;
        /** @description Last day of the result, inclusive, as YYYY-MM-DD; not before `from`. It is compared with the same date as `from`. Without it, the result ends with the newest row. */
        to: string;
        /** @description Rows of a page, 1 to 10000, in digits. A larger value is rejected with 400, because a smaller page would lose rows. */
        limit: string;
        /** @description Number of the page, 0 to 2147483647, in digits; the first page is 0. A page past the last one has no items, and has `totalItems`. */
        page: string;
        /** @description Returns the changes instead of a page. `start` returns all rows. Later requests send the `nextCursor` of the previous response. Not together with `from`, `to` or `page`. */
        since: string;
        /** @description Data version that the response must have: `Data-Version` of the first page. If the data has changed since, the response is 412. Not together with `since`. */
        version: string;
        /** @description `ETag` of a response that you have stored. If nothing has changed since, the response is 304 without a body. */
        "If-None-Match": string;
        /** @description Your name for the request, up to 128 visible ASCII characters. The response repeats it. Any other value is ignored. */
        "X-Client-Trace-ID": string;
    };
    requestBodies: never;
    headers: {
        /** @description Identifier of the request. Quote it when you report an error. */
        "X-Request-ID": string;
        /** @description `X-Client-Trace-ID` of the request, if it is valid. */
        "X-Client-Trace-ID": string;
        /** @description Opaque name of this state of the response, as a weak validator. Send it as `If-None-Match` with the next request for the same URL. */
        ETag: string;
        /** @description Version of the connection’s data that the response has. Send it as `version` with further pages, so that all pages have the same state. */
        "Data-Version": string;
        /** @description Time of the last change of the connection’s data, as an HTTP date. */
        "Last-Modified": string;
        /** @description The response is for one app only, and a cache must revalidate it before each use. An error (`no-store`) must not be stored. */
        "Cache-Control": string;
        /** @description Request headers that the form of the response depends on. */
        Vary: string;
        /** @description Rest of the quota, if a quota is set: `r` requests, until the quota is renewed in `t` seconds. */
        RateLimit: string;
        /** @description The quota, if one is set: `q` requests in a window of `w` seconds. */
        "RateLimit-Policy": string;
        /** @description URLs of other pages (RFC 8288): `first`, `prev`, `next` and `last`, relative to the URL of the request. The first page has no `prev`, the last one no `next`. An export has none. */
        Link: string;
        /** @description Only in an export: its number of rows. */
        "X-Total-Count": number;
        /** @description Only in an export: a file name. */
        "Content-Disposition": string;
        /** @description Compression of the body; absent if the body is not compressed. */
        "Content-Encoding": string;
        /** @description Authentication scheme (RFC 6750). It has `error="invalid_token"` if the request had a token that is not valid. */
        "WWW-Authenticate": string;
        /** @description Methods that this path supports. */
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
                /** @description First day of the result, inclusive, as YYYY-MM-DD. It is compared with the effective date (`operationDateDay`, or `valueDateDay` if there is no operation date). Without it, the result starts with the oldest row. */
                from?: components["parameters"]["from"];
                /** @description Last day of the result, inclusive, as YYYY-MM-DD; not before `from`. It is compared with the same date as `from`. Without it, the result ends with the newest row. */
                to?: components["parameters"]["to"];
                /** @description Rows of a page, 1 to 10000, in digits. A larger value is rejected with 400, because a smaller page would lose rows. */
                limit?: components["parameters"]["limit"];
                /** @description Number of the page, 0 to 2147483647, in digits; the first page is 0. A page past the last one has no items, and has `totalItems`. */
                page?: components["parameters"]["page"];
                /** @description Returns the changes instead of a page. `start` returns all rows. Later requests send the `nextCursor` of the previous response. Not together with `from`, `to` or `page`. */
                since?: components["parameters"]["since"];
                /** @description Data version that the response must have: `Data-Version` of the first page. If the data has changed since, the response is 412. Not together with `since`. */
                version?: components["parameters"]["version"];
            };
            header?: {
                /** @description `ETag` of a response that you have stored. If nothing has changed since, the response is 304 without a body. */
                "If-None-Match"?: components["parameters"]["If-None-Match"];
                /** @description Your name for the request, up to 128 visible ASCII characters. The response repeats it. Any other value is ignored. */
                "X-Client-Trace-ID"?: components["parameters"]["X-Client-Trace-ID"];
            };
            path: {
                /** @description Selects the connection. The token is a credential: keep it out of logs and shared links. An unknown token and a token of another app get the same 404. */
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
                    "Data-Version": components["headers"]["Data-Version"];
                    "Last-Modified": components["headers"]["Last-Modified"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Vary: components["headers"]["Vary"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    Link: components["headers"]["Link"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    "Content-Disposition": components["headers"]["Content-Disposition"];
                    "Content-Encoding": components["headers"]["Content-Encoding"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PortfolioTransactionList"];
                    "application/json;IEEE754Compatible=true": components["schemas"]["ExactPortfolioTransactionList"];
                    "application/x-ndjson": string;
                    "text/csv": string;
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            /** @description The cursor has expired. */
            410: {
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
            /** @description The data has changed since `version`. */
            412: {
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
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listAccountTransactions: {
        parameters: {
            query?: {
                /** @description First day of the result, inclusive, as YYYY-MM-DD. It is compared with the effective date (`operationDateDay`, or `valueDateDay` if there is no operation date). Without it, the result starts with the oldest row. */
                from?: components["parameters"]["from"];
                /** @description Last day of the result, inclusive, as YYYY-MM-DD; not before `from`. It is compared with the same date as `from`. Without it, the result ends with the newest row. */
                to?: components["parameters"]["to"];
                /** @description Rows of a page, 1 to 10000, in digits. A larger value is rejected with 400, because a smaller page would lose rows. */
                limit?: components["parameters"]["limit"];
                /** @description Number of the page, 0 to 2147483647, in digits; the first page is 0. A page past the last one has no items, and has `totalItems`. */
                page?: components["parameters"]["page"];
                /** @description Returns the changes instead of a page. `start` returns all rows. Later requests send the `nextCursor` of the previous response. Not together with `from`, `to` or `page`. */
                since?: components["parameters"]["since"];
                /** @description Data version that the response must have: `Data-Version` of the first page. If the data has changed since, the response is 412. Not together with `since`. */
                version?: components["parameters"]["version"];
            };
            header?: {
                /** @description `ETag` of a response that you have stored. If nothing has changed since, the response is 304 without a body. */
                "If-None-Match"?: components["parameters"]["If-None-Match"];
                /** @description Your name for the request, up to 128 visible ASCII characters. The response repeats it. Any other value is ignored. */
                "X-Client-Trace-ID"?: components["parameters"]["X-Client-Trace-ID"];
            };
            path: {
                /** @description Selects the connection. The token is a credential: keep it out of logs and shared links. An unknown token and a token of another app get the same 404. */
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
                    "Data-Version": components["headers"]["Data-Version"];
                    "Last-Modified": components["headers"]["Last-Modified"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Vary: components["headers"]["Vary"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    Link: components["headers"]["Link"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    "Content-Disposition": components["headers"]["Content-Disposition"];
                    "Content-Encoding": components["headers"]["Content-Encoding"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AccountTransactionList"];
                    "application/json;IEEE754Compatible=true": components["schemas"]["ExactAccountTransactionList"];
                    "application/x-ndjson": string;
                    "text/csv": string;
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            /** @description The cursor has expired. */
            410: {
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
            /** @description The data has changed since `version`. */
            412: {
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
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listAssetsTransferOrders: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of a response that you have stored. If nothing has changed since, the response is 304 without a body. */
                "If-None-Match"?: components["parameters"]["If-None-Match"];
                /** @description Your name for the request, up to 128 visible ASCII characters. The response repeats it. Any other value is ignored. */
                "X-Client-Trace-ID"?: components["parameters"]["X-Client-Trace-ID"];
            };
            path: {
                /** @description Selects the connection. The token is a credential: keep it out of logs and shared links. An unknown token and a token of another app get the same 404. */
                token: components["parameters"]["token"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All orders that the user completed for the connection, the latest first. Unfinished orders are not included. */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "X-Client-Trace-ID": components["headers"]["X-Client-Trace-ID"];
                    ETag: components["headers"]["ETag"];
                    "Data-Version": components["headers"]["Data-Version"];
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
                    "application/json;IEEE754Compatible=true": components["schemas"]["ExactAssetsTransferOrderList"];
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

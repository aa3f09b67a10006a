-- Tables and views that a SqliteStore of release 1.2.0 makes.
CREATE TABLE investment_copy (
  id integer primary key,
  connection text not null,
  list text not null,
  copy text not null,
  cursor text not null, version text, total_items integer, refreshed_at text,
  unique (connection, list, copy)
  );
CREATE TABLE investment_row (
  copy_id integer not null references investment_copy (id),
  id text not null,
  row text not null,
  primary key (copy_id, id)
  ) without rowid;
CREATE TABLE investment_history (
  number integer primary key autoincrement,
  connection text not null,
  list text not null,
  id text not null,
  before text,
  after text,
  seen_at text not null,
  cursor text not null
  );
CREATE VIEW portfolio_transactions as select connection, r.id, row,
  json_extract(row, '$.transactionId') as transactionId,
  json_extract(row, '$.portfolioId') as portfolioId,
  json_extract(row, '$.type') as type,
  json_extract(row, '$.titles') as titles,
  json_extract(row, '$.amount') as amount,
  json_extract(row, '$.amountBaseCurrency') as amountBaseCurrency,
  json_extract(row, '$.price') as price,
  json_extract(row, '$.exchangeRate') as exchangeRate,
  json_extract(row, '$.commission') as commission,
  json_extract(row, '$.taxes') as taxes,
  json_extract(row, '$.currency') as currency,
  json_extract(row, '$.localCurrency') as localCurrency,
  json_extract(row, '$.description') as description,
  json_extract(row, '$.operationDateDay') as operationDateDay,
  json_extract(row, '$.originalOperationDateDay') as originalOperationDateDay,
  json_extract(row, '$.valueDateDay') as valueDateDay,
  json_extract(row, '$.originalValueDateDay') as originalValueDateDay,
  json_extract(row, '$.operationDateHour') as operationDateHour,
  json_extract(row, '$.originalOperationDateHour') as originalOperationDateHour,
  json_extract(row, '$.valueDateHour') as valueDateHour,
  json_extract(row, '$.originalValueDateHour') as originalValueDateHour,
  json_extract(row, '$.originalOperationDateTz') as originalOperationDateTz,
  json_extract(row, '$.originalValueDateTz') as originalValueDateTz,
  json_extract(row, '$.investment') as investment,
  json_extract(row, '$.relatedTransaction') as relatedTransaction,
  json_extract(row, '$.retentionDetail.retentionFrom') as retentionFrom,
  json_extract(row, '$.retentionDetail.retentionTo') as retentionTo
  from investment_copy c join investment_row r on copy_id = c.id
  where list = 'portfolio_transactions' and copy = 'current';
CREATE VIEW account_transactions as select connection, r.id, row,
  json_extract(row, '$.movementId') as movementId,
  json_extract(row, '$.accountId') as accountId,
  json_extract(row, '$.type') as type,
  json_extract(row, '$.amount') as amount,
  json_extract(row, '$.exchangeRate') as exchangeRate,
  json_extract(row, '$.commission') as commission,
  json_extract(row, '$.taxes') as taxes,
  json_extract(row, '$.currency') as currency,
  json_extract(row, '$.localCurrency') as localCurrency,
  json_extract(row, '$.description') as description,
  json_extract(row, '$.operationDateDay') as operationDateDay,
  json_extract(row, '$.originalOperationDateDay') as originalOperationDateDay,
  json_extract(row, '$.valueDateDay') as valueDateDay,
  json_extract(row, '$.originalValueDateDay') as originalValueDateDay,
  json_extract(row, '$.operationDateHour') as operationDateHour,
  json_extract(row, '$.originalOperationDateHour') as originalOperationDateHour,
  json_extract(row, '$.valueDateHour') as valueDateHour,
  json_extract(row, '$.originalValueDateHour') as originalValueDateHour,
  json_extract(row, '$.originalOperationDateTz') as originalOperationDateTz,
  json_extract(row, '$.originalValueDateTz') as originalValueDateTz,
  json_extract(row, '$.investment') as investment
  from investment_copy c join investment_row r on copy_id = c.id
  where list = 'account_transactions' and copy = 'current';
CREATE VIEW transfer_orders as select connection, r.id, row,
  json_extract(row, '$.portfolio') as portfolio,
  json_extract(row, '$.investment') as investment,
  json_extract(row, '$.name') as name,
  json_extract(row, '$.isin') as isin,
  json_extract(row, '$.currency') as currency,
  json_extract(row, '$.assetType') as assetType,
  json_extract(row, '$.titles') as titles,
  json_extract(row, '$.amount') as amount,
  json_extract(row, '$.total') as total,
  json_extract(row, '$.marketer.name') as marketerName,
  json_extract(row, '$.marketer.cif') as marketerCif,
  json_extract(row, '$.managementCompany.name') as managementCompanyName,
  json_extract(row, '$.managementCompany.cif') as managementCompanyCif
  from investment_copy c join investment_row r on copy_id = c.id
  where list = 'transfer_orders' and copy = 'current';
CREATE VIEW investment_changes as 
  select number, connection, list, h.id,
  case when before is null then 'inserted' when after is null then 'removed' else 'updated' end as change,
  key as field,
  json_extract(before, fullkey) as before,
  json_extract(after, fullkey) as after,
  seen_at, cursor
  from investment_history h, json_each(before)
  where json_extract(before, fullkey) is not json_extract(after, fullkey)  union all 
  select number, connection, list, h.id,
  case when before is null then 'inserted' when after is null then 'removed' else 'updated' end as change,
  key as field,
  json_extract(before, fullkey) as before,
  json_extract(after, fullkey) as after,
  seen_at, cursor
  from investment_history h, json_each(after)
  where json_extract(before, fullkey) is not json_extract(after, fullkey) and (before is null or json_type(before, fullkey) is null);

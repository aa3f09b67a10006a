import { Column, Entity, PrimaryColumn } from 'typeorm'

const decimal = {
  type: 'numeric',
  transformer: { from: toNumber, to: (value: unknown) => value },
} as const

function toNumber(value: string | null): number | null {
  return value === null ? null : Number(value)
}

export class RetentionDetail {
  @Column({ ...decimal, name: 'retention_from' }) retentionFrom!: number
  @Column({ ...decimal, name: 'retention_to' }) retentionTo!: number
}

@Entity('portfolio_transaction')
export class PortfolioTransaction {
  @PrimaryColumn('bigint', { name: 'connection_id', select: false }) connectionId!: string
  @PrimaryColumn('uuid', { name: 'transaction_id' }) transactionId!: string
  @Column('date', { name: 'effective_day', select: false }) effectiveDay!: string
  @Column('uuid', { name: 'portfolio_id' }) portfolioId!: string
  @Column({ ...decimal, name: 'exchange_rate' }) exchangeRate!: number | null
  @Column('text') type!: string
  @Column(decimal) titles!: number | null
  @Column(decimal) amount!: number | null
  @Column({ ...decimal, name: 'amount_base_currency' }) amountBaseCurrency!: number | null
  @Column(decimal) commission!: number | null
  @Column(decimal) taxes!: number | null
  @Column('text') currency!: string | null
  @Column('text', { name: 'local_currency' }) localCurrency!: string | null
  @Column('text') description!: string | null
  @Column(decimal) price!: number | null
  @Column('date', { name: 'operation_date_day' }) operationDateDay!: string | null
  @Column('date', { name: 'original_operation_date_day' }) originalOperationDateDay!: string | null
  @Column('date', { name: 'value_date_day' }) valueDateDay!: string | null
  @Column('date', { name: 'original_value_date_day' }) originalValueDateDay!: string | null
  @Column('text', { name: 'operation_date_hour' }) operationDateHour!: string | null
  @Column('text', { name: 'original_operation_date_hour' })
  originalOperationDateHour!: string | null
  @Column('text', { name: 'value_date_hour' }) valueDateHour!: string | null
  @Column('text', { name: 'original_value_date_hour' }) originalValueDateHour!: string | null
  @Column('text', { name: 'original_operation_date_tz' }) originalOperationDateTz!: string | null
  @Column('text', { name: 'original_value_date_tz' }) originalValueDateTz!: string | null
  @Column('uuid') investment!: string | null
  @Column('uuid', { name: 'related_transaction' }) relatedTransaction!: string | null
  @Column(() => RetentionDetail, { prefix: false }) retentionDetail!: RetentionDetail | null
}

export class Marketer {
  @Column('text', { name: 'marketer_name' }) name!: string
  @Column('text', { name: 'marketer_cif' }) cif!: string
}

export class ManagementCompany {
  @Column('text', { name: 'management_company_name' }) name!: string
  @Column('text', { name: 'management_company_cif' }) cif!: string
}

@Entity('assets_transfer_order')
export class AssetsTransferOrder {
  @PrimaryColumn('bigint', { name: 'connection_id', select: false }) connectionId!: string
  @PrimaryColumn('uuid') id!: string
  @Column('text') portfolio!: string | null
  @Column('uuid') investment!: string | null
  @Column('text') name!: string | null
  @Column('text') isin!: string | null
  @Column('text') currency!: string | null
  @Column('text', { name: 'asset_type' }) assetType!: string | null
  @Column(decimal) titles!: number | null
  @Column(decimal) amount!: number | null
  @Column('boolean') total!: boolean | null
  @Column(() => Marketer, { prefix: false }) marketer!: Marketer | null
  @Column(() => ManagementCompany, { prefix: false }) managementCompany!: ManagementCompany | null
  @Column('timestamptz', { name: 'completed_at', select: false }) completedAt!: Date | null
}

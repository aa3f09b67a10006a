import 'reflect-metadata'
import { Controller, Get, Injectable, Module, Param, Query } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm'
import { Between, IsNull, LessThanOrEqual, MoreThanOrEqual, Not, type Repository } from 'typeorm'
import { AssetsTransferOrder, PortfolioTransaction } from './transactions.js'

interface ListQuery {
  from?: string
  to?: string
  limit?: string
  page?: string
}

function range({ from, to }: ListQuery) {
  if (from && to) return { effectiveDay: Between(from, to) }
  if (from) return { effectiveDay: MoreThanOrEqual(from) }
  return to ? { effectiveDay: LessThanOrEqual(to) } : {}
}

@Injectable()
class QueriesService {
  constructor(
    @InjectRepository(PortfolioTransaction)
    private readonly transactions: Repository<PortfolioTransaction>,
    @InjectRepository(AssetsTransferOrder)
    private readonly orders: Repository<AssetsTransferOrder>,
  ) {}

  async page(connectionId: string, query: ListQuery) {
    const limit = Number(query.limit ?? 1000)
    const page = Number(query.page ?? 0)
    const [items, totalItems] = await this.transactions.findAndCount({
      where: { connectionId, ...range(query) },
      order: {
        effectiveDay: 'DESC',
        operationDateHour: { direction: 'DESC', nulls: 'LAST' },
        transactionId: 'DESC',
      },
      take: limit,
      skip: limit * page,
    })
    return { items, limit, page, totalItems }
  }

  completed(connectionId: string) {
    return this.orders.find({
      where: { connectionId, completedAt: Not(IsNull()) },
      order: { completedAt: 'DESC', id: 'DESC' },
    })
  }
}

@Controller('connections/:id')
class QueriesController {
  constructor(private readonly queries: QueriesService) {}

  @Get('portfolios/transactions')
  page(@Param('id') id: string, @Query() query: ListQuery) {
    return this.queries.page(id, query)
  }

  @Get('assets-transfer')
  completed(@Param('id') id: string) {
    return this.queries.completed(id)
  }
}

@Module({
  imports: [
    TypeOrmModule.forRoot({
      type: 'postgres',
      url: process.env.DATABASE_URL,
      entities: [PortfolioTransaction, AssetsTransferOrder],
      extra: { max: 10 },
    }),
    TypeOrmModule.forFeature([PortfolioTransaction, AssetsTransferOrder]),
  ],
  controllers: [QueriesController],
  providers: [QueriesService],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: false })
await app.listen(Number(process.env.PORT), '127.0.0.1')

import { LogSamples } from './log-samples.ts'
import { PageSizes } from './page-sizes.ts'
import { Rejections } from './rejections.ts'
import { RequestLimit } from './request-limit.ts'
import { ResponseMemory } from './response-memory.ts'
import { Tenants } from './tenants.ts'
import { WriteScheduler } from './write-scheduler.ts'

/** Resources that the requests of an instance share. */
export class Limits {
  readonly requests: RequestLimit
  readonly memory: ResponseMemory
  readonly rejections = new Rejections()
  readonly pageSizes = new PageSizes()
  readonly logSamples = new LogSamples()
  readonly tenants = new Tenants()
  readonly writeScheduler = new WriteScheduler()

  constructor(maxRequests: number, responseBytes: number) {
    this.requests = new RequestLimit(maxRequests)
    this.memory = new ResponseMemory(responseBytes)
  }
}

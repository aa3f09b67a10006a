// The handler of the SDK must be of the same copy of the SDK as the server: it checks the class.
export { createMcpHandler } from '@modelcontextprotocol/server'
export { InvestmentData, type InvestmentDataOptions } from '../../typescript/src/index.ts'
export { createServer } from './server.ts'
export type { ServerOptions } from './tool.ts'

#!/usr/bin/env node
/** The program investment-data-mcp: serves one assistant over standard input and output. */
import './node-version.ts'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { InvestmentData } from '../../typescript/src/index.ts'
import { createServer } from './server.ts'
import { readSettings, type Settings, SettingsError } from './settings.ts'

/** Hosts wait about a minute for a tool. A first copy that takes longer continues with the next call. */
const CALL_TIMEOUT_MS = 45_000
/** Rows of a page: large ones, because the first call reads the whole connection. */
const PAGE_SIZE = 10_000

/** Standard output has only messages of the protocol. */
const print = (line: string) => process.stderr.write(`${line}\n`)

function serve({ baseUrl, token, connections, names }: Settings): void {
  const api = new InvestmentData({
    baseUrl,
    token,
    pageSize: PAGE_SIZE,
    callTimeoutMs: CALL_TIMEOUT_MS,
    onWarning: print,
  })
  serveStdio(() => createServer({ api, connections, names }), {
    onerror: ({ message }) => print(message),
  })
}

try {
  serve(readSettings(process.env))
} catch (error) {
  if (!(error instanceof SettingsError)) throw error
  print(error.message)
  process.exitCode = 2
}

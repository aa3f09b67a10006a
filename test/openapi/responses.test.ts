import { readFile } from 'node:fs/promises'
import t from 'tap'
import { EXAMPLES, type Examples } from '../../src/http/openapi/examples.ts'
import type { Problem } from '../../src/schemas/problem.ts'
import { formatJson, RENEWAL } from '../../tools/docs/committed.ts'
import { examplesOf } from '../../tools/docs/examples.ts'
import { startSeededService } from '../support/seeded-service.ts'
import type { ServiceResponse } from '../support/service.ts'
import { readContract } from './contract.ts'
import { everyResponse } from './every-response.ts'

const service = await startSeededService(t)
const contract = readContract((await service.get('/openapi.json')).text)

// Before everyResponse() breaks the database.
const examples = formatJson(JSON.stringify(await examplesOf(service)))
const all = await everyResponse(t, service)

const responsesOf = (operationId: string, status?: number) =>
  all
    .filter((one) => one.operationId === operationId)
    .map(({ response }) => response)
    .filter((response) => status === undefined || response.status === status)

const documented = (operationId: string, { status }: ServiceResponse) =>
  contract.responses.get(operationId)?.get(status)

t.test('each operation: every status of the document, and no other', async (t) => {
  for (const [operationId, responses] of contract.responses) {
    const statuses = responsesOf(operationId).map(({ status }) => status)
    t.strictSame([...new Set(statuses)].sort(), [...responses.keys()].sort(), operationId)
  }
})

t.test('every body: valid against the schema of its status', async (t) => {
  for (const { operationId, response } of all) {
    const type = response.headers.get('content-type')
    const body = documented(operationId, response)?.bodies.get(type)
    const name = `${operationId} ${response.status} ${type}`
    if (body === undefined) t.equal(response.text, '', name)
    else {
      const value = type?.startsWith('text/') ? response.text : response.json()
      t.equal(contract.errorsOf(value, body), '', name)
    }
  }
})

t.test('every header: documented, valid, and present if required', async (t) => {
  for (const { operationId, response } of all) {
    const expected = documented(operationId, response)
    const errors = expected && contract.headerErrorsOf(new Map(response.headers), expected)
    t.equal(errors, '', `${operationId} ${response.status}`)
  }
})

t.test('every header of the document: sent by a response', async (t) => {
  for (const [operationId, responses] of contract.responses) {
    for (const [status, { headers }] of responses) {
      for (const name of headers.keys()) {
        // The orders of the sample data are too small to be compressed.
        if (operationId === 'listAssetsTransferOrders' && name === 'content-encoding') continue
        const sent = responsesOf(operationId, status).some((response) => response.headers.has(name))
        t.ok(sent, `${operationId} ${status}: ${name}`)
      }
    }
  }
})

t.test('examples of 200: responses with the sample data, digit by digit', async (t) => {
  t.equal(await readFile(EXAMPLES, 'utf8'), examples, `if not: ${RENEWAL}`)
  for (const [operationId, byType] of Object.entries(JSON.parse(examples) as Examples)) {
    const documented = contract.responses.get(operationId)?.get(200)
    for (const [type, { sampleData }] of Object.entries(byType)) {
      const body = documented?.bodies.get(`${type}; charset=utf-8`)
      t.equal(contract.errorsOf(sampleData.value, body ?? {}), '', `${operationId} ${type}`)
    }
  }
})

t.test('examples of errors: equal to the responses, except for the request id', async (t) => {
  for (const [operationId, responses] of contract.responses) {
    for (const [status, { examples }] of responses) {
      if (status < 400) continue
      const bodies = responsesOf(operationId, status).map((response) => ({
        ...response.json(),
        requestId: '',
      }))
      for (const [code, { value }] of Object.entries(examples)) {
        // The example has the parameters of the lists, which the transfer orders do not have.
        if (code === 'invalid_request' && operationId === 'listAssetsTransferOrders') continue
        // It needs more rows than the memory holds: overload.test.ts.
        if (code === 'response_too_large') continue
        const body = bodies.find((problem) => problem.code === code)
        // The quota of the settings.
        if (code === 'too_many_requests') body.detail = (value as Problem).detail
        t.strictSame(body, { ...(value as object), requestId: '' }, `${operationId}: ${code}`)
      }
    }
  }
})

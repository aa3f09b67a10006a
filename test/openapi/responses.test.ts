import { readFile } from 'node:fs/promises'
import t from 'tap'
import { DEMO_RESPONSES, isJson } from '../../src/http/openapi/demo-responses.ts'
import { formatJson, RENEWAL } from '../../tools/docs/committed.ts'
import { DEMO_CONNECTION, DEMO_TOKEN, startSeededService } from '../support/seeded-service.ts'
import type { ServiceResponse } from '../support/service.ts'
import { readContract } from './contract.ts'
import { everyResponse } from './every-response.ts'

const service = await startSeededService(t)
const contract = readContract((await service.get('/openapi.json')).text)

// Before everyResponse() breaks the database.
const demoResponses: ServiceResponse[] = []
for (const { request, mediaType } of DEMO_RESPONSES) {
  const options = { token: DEMO_TOKEN, headers: { accept: mediaType } }
  demoResponses.push(await service.get(`${DEMO_CONNECTION}/${request}`, options))
}
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
  for (const [index, demo] of DEMO_RESPONSES.entries()) {
    const { operationId, file } = demo
    const response = demoResponses[index] as ServiceResponse
    const expected = isJson(demo) ? formatJson(response.text) : response.text
    t.equal(await readFile(file, 'utf8'), expected, `if not: ${RENEWAL}`)
    if (!isJson(demo)) continue
    const body = documented(operationId, response)?.bodies.get(response.headers.get('content-type'))
    t.equal(contract.errorsOf(response.json(), body ?? {}), '', file.pathname)
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
        t.strictSame(body, { ...(value as object), requestId: '' }, `${operationId}: ${code}`)
      }
    }
  }
})

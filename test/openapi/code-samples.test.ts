import { readFile } from 'node:fs/promises'
import t from 'tap'
import { codeSamples, PLACEHOLDER } from '../../src/http/docs-page/code-samples.js'
import { startService } from '../support/service.ts'

const service = await startService(t)

t.test('package names: those of clients/', async (t) => {
  const { name } = JSON.parse(await readFile('clients/typescript/package.json', 'utf8'))
  const pyproject = await readFile('clients/python/pyproject.toml', 'utf8')
  const { info, paths } = JSON.parse((await service.get('/openapi.json')).text)
  t.match(info.description, `npm install ${name} `)
  t.match(info.description, `pip install ${/^name = "(.*)"/m.exec(pyproject)?.[1]} `)
  t.match(codeSamples('', String(Object.keys(paths)[0]))[1]?.source, `from "${name}"`)
})

t.test('PUBLIC_URL: the address in all samples', async (t) => {
  const { get } = await startService(t, { environment: { PUBLIC_URL: 'https://api.example/v' } })
  const { text } = await get('/openapi.json')
  t.notMatch(text, PLACEHOLDER)
  const { paths, info } = JSON.parse(text)
  const samples = Object.values<{ get: { 'x-codeSamples': { source: string }[] } }>(paths)
    .flatMap((path) => path.get['x-codeSamples'])
    .map(({ source }) => source)
  t.equal(samples.length, 9)
  for (const written of [...samples, info.description]) {
    t.match(written, 'https://api.example/v')
  }
})

import { readdir } from 'node:fs/promises'
import t from 'tap'
import packageJson from '../../package.json' with { type: 'json' }
import { committedContract, lastRelease, RELEASES } from '../../tools/docs/releases.ts'
import { startService } from '../support/service.ts'

type Json = Record<string, unknown>

/** Names that a caller reads or sends, by the place where they stand. */
function namesOf(contract: Json): Map<string, string> {
  const names = new Map<string, string>()
  const visit = (value: unknown, place: string): void => {
    if (typeof value !== 'object' || value === null) return
    const { $ref, ...members } = value as Json
    if (typeof $ref === 'string' && !$ref.includes('/schemas/')) {
      visit(targetOf(contract, $ref), place)
      return
    }
    for (const [key, member] of Object.entries(members)) {
      const isNamed = /(?:properties|headers|responses|content|paths)$/.test(place)
      if (isNamed) names.set(`${place}/${key}`, key)
      if (key === 'enum') for (const each of member as string[]) names.set(`${place} ${each}`, each)
      else if (key === 'parameters') visitParameters(member as Json[], place)
      else visit(member, `${place}/${key}`)
    }
  }
  const visitParameters = (parameters: Json[], place: string) => {
    for (const each of parameters) {
      const resolved = typeof each.$ref === 'string' ? targetOf(contract, each.$ref) : each
      names.set(`${place} parameter ${resolved.name}`, String(resolved.name))
    }
  }
  visit({ paths: contract.paths }, '')
  visit({ schemas: (contract.components as Json).schemas }, '')
  return names
}

function targetOf(contract: Json, reference: string): Json {
  const steps = reference.slice('#/'.length).split('/')
  return steps.reduce((part, step) => part[step] as Json, contract)
}

const { text } = await (await startService(t)).get('/openapi.json')
const { description } = JSON.parse(text).info
/** Sections of the changelog by version. */
const sections = new Map<string, string>(
  [...description.matchAll(/^### Version (\S+)\n(.*?)(?=^##)/gms)].map(([, version, section]) => [
    version,
    section,
  ]),
)

t.test('changelog of the API: a section for this version and for each release', async (t) => {
  const released = (await readdir(RELEASES)).map((name) => name.replace(/^openapi-|\.json$/g, ''))
  for (const version of [packageJson.version, ...released]) t.ok(sections.has(version), version)
})

t.test(
  'changelog of the API: names each new name of the document, and each that is gone',
  async (t) => {
    const { contract } = await lastRelease()
    const [before, now] = [namesOf(contract), namesOf(await committedContract())]
    t.ok(now.size > 300, 'the names of operations and schemas')
    const section = sections.get(packageJson.version) ?? ''
    const added = [...now].filter(([place]) => !before.has(place))
    const removed = [...before].filter(([place]) => !now.has(place))
    const unnamed = [...added, ...removed].filter(([, name]) => !section.includes(`\`${name}\``))
    t.same(
      [...new Set(unnamed.map(([, name]) => name))],
      [],
      unnamed.map(([place]) => place).join('\n'),
    )
  },
)

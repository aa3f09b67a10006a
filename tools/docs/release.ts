/** Writes the document of this version, which later versions must not break: `npm run docs:release`. */
import { writeFile } from 'node:fs/promises'
import packageJson from '../../package.json' with { type: 'json' }
import { committedContract, RELEASES } from './releases.ts'

const file = new URL(`openapi-${packageJson.version}.json`, RELEASES)
await writeFile(file, `${JSON.stringify(await committedContract())}\n`)

import { existsSync, globSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { t } from 'tap'
import type { Plant } from '../../tools/plant.ts'

const LISTS = [...globSync('test/planted/*.ts'), ...globSync('test/simulation/planted*.ts')]

t.test('each planted fault applies, and the tests that find it exist', async (t) => {
  const problems: string[] = []
  let count = 0
  for (const list of LISTS) {
    const { plants }: { plants: Plant[] } = await import(pathToFileURL(resolve(list)).href)
    for (const { name, file, search, replace, tests = [] } of plants) {
      count += 1
      const found = readFileSync(file, 'utf8').split(search).length - 1
      if (found !== 1) problems.push(`${list}: ${name}: its text is ${found} times in ${file}`)
      if (search === replace) problems.push(`${list}: ${name}: nothing changes`)
      for (const test of tests)
        if (!existsSync(test)) problems.push(`${list}: ${name}: there is no ${test}`)
    }
  }
  t.strictSame(problems, [])
  t.ok(count >= 60, 'enough faults')
})

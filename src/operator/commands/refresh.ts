import { constants, setPriority } from 'node:os'
import type { Context } from '../command.ts'
import { findApp } from '../database.ts'
import { openInputs, shareOf } from '../inputs.ts'
import { refresh } from '../loading/refresh.ts'
import { pluralize, showProgress, toJson } from '../output.ts'

type Flags = { jobs: number; app?: string }

export async function run(context: Context, files: string[], { jobs, app }: Flags) {
  const { db, notice, stdout } = context
  // A service on the same machine then serves 2,100 instead of 1,400 daily syncs a second.
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
  const sources = await openInputs(files.length > 0 ? files : ['-'])
  const appId = app === undefined ? undefined : (await findApp(db, app)).id
  let lines = 0
  using _progress = showProgress(() => {
    return { step: 'Refreshing', done: pluralize(lines, 'line'), share: shareOf(sources) }
  })
  const onResult = (result: object) => {
    lines += 1
    return stdout(`${toJson(result)}\n`)
  }
  const { refreshed, failed } = await refresh(context, { sources, jobs, appId, onResult, notice })
  const done = `${pluralize(refreshed, 'connection')} refreshed`
  notice(failed > 0 ? `${done}, ${pluralize(failed, 'line')} failed.` : `${done}.`)
  return { failed: failed > 0 }
}

import { constants, setPriority } from 'node:os'
import type { Command } from 'commander'
import { examples, nonEmpty, type Run, wholeNumber } from '../command.ts'
import { findApp } from '../database.ts'
import { refresh } from '../loading/refresh.ts'
import { openInputs, shareOf } from '../loading/source.ts'
import { pluralize, toJson } from '../output.ts'

const FORMAT = `
A line is the refresh of one connection, and one transaction:
  {"connection":"<id>","portfolioTransactions":[…],"accountTransactions":[…],"transferOrders":[…]}
A list that is absent stays as it is. "replace":{"from":"YYYY-MM-DD","to":"YYYY-MM-DD"} also removes
the rows in this range that the lists of the line lack. The command prints a line with the result
after each commit. After a crash, continue at the first line without a result.
`

export function defineRefresh(command: Command, run: Run): void {
  command
    .argument('[file...]', 'files, also compressed by gzip; default: -, standard input')
    .option('--jobs <n>', 'number of sessions', wholeNumber(1, 999), 4)
    .option('--app <name>', 'the app of the connections; accepts their external ids, too', nonEmpty)
    .addHelpText('after', FORMAT)
    .addHelpText(
      'after',
      examples('refresh day.ndjson.gz > results.ndjson', 'refresh --app my-app -'),
    )
    .action(async (files: string[], { jobs, app }: { jobs: number; app?: string }) => {
      // A service on the same machine then serves 2,100 instead of 1,400 daily syncs a second.
      setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
      const sources = await openInputs(files.length > 0 ? files : ['-'])
      await run(
        async (context) => {
          const { notice, show, stdout } = context
          const appId = app === undefined ? undefined : (await findApp(context.db, app)).id
          let lines = 0
          show(() => {
            return { step: 'Refreshing', done: pluralize(lines, 'line'), share: shareOf(sources) }
          })
          const onResult = (result: object) => {
            lines += 1
            return stdout(`${toJson(result)}\n`)
          }
          const options = { sources, jobs, appId, onResult, notice }
          const { refreshed, failed } = await refresh(context, options)
          const done = `${pluralize(refreshed, 'connection')} refreshed`
          notice(failed > 0 ? `${done}, ${pluralize(failed, 'line')} failed.` : `${done}.`)
          return { failed: failed > 0 }
        },
        { sessions: jobs },
      )
    })
}

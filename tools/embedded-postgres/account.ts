import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'

/**
 * Under which account PostgreSQL's programs run. `prefix` is put before a command line; `owner` is
 * set when files must be given to another user first.
 */
export type Account = { prefix: string[]; owner?: { uid: number; gid: number } }

// PostgreSQL's messages are read back, so they come in one language.
const plain = ['env', 'LC_ALL=C']

/**
 * PostgreSQL refuses to run as root. A user namespace lets it see itself as another user while the
 * system still sees root, so that a clone in root's closed home works; where namespaces are
 * forbidden (in most containers) it runs as the system's postgres or nobody.
 * @param owner the user id that owns the data, where there are data already
 * @throws Error with one sentence when this machine has no such way
 */
export async function chooseAccount(owner: number | undefined): Promise<Account> {
  if (process.getuid?.() !== 0) return { prefix: plain }
  const other = await ordinaryUser()
  const fromBefore = owner !== undefined && owner !== 0
  if (fromBefore) return { prefix: plain, owner: { ...other, uid: owner } }
  // Both programs look their user up by number, so it has to be one that exists.
  const namespace = ['unshare', '--user', `--map-user=${other.uid}`, `--map-group=${other.gid}`]
  if (spawnSync('unshare', [...namespace.slice(1), 'true']).status === 0)
    return { prefix: [...plain, ...namespace] }
  if (owner === 0)
    throw new Error(
      'These data were made by root in a user namespace, and this machine forbids user namespaces: ' +
        'allow them, or choose another DATA_DIR.',
    )
  return { prefix: plain, owner: other }
}

async function ordinaryUser() {
  const users = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'))
  for (const wanted of ['postgres', 'nobody']) {
    const [, , uid, gid] = users.find(([name]) => name === wanted) ?? []
    if (uid && gid) return { uid: Number(uid), gid: Number(gid) }
  }
  throw new Error('PostgreSQL does not run as root: start as another user, or set DATABASE_URL.')
}

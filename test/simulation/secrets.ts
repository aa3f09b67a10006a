import type { World } from './world/world.ts'

/** Parts of secrets. */
export const SECRETS = { password: 'secret-of-the-login', token: 'token-of-a-connection' }

/** No message has a secret. */
export function keepsSecrets(world: World, message: string): void {
  for (const secret of Object.values(SECRETS))
    if (message.includes(secret)) world.violate('no message has a secret', message)
}

import { GenericContainer } from 'testcontainers'

/** Starts an image of PostgreSQL. */
export async function startContainer(image: string, password: string, command: string[]) {
  const container = await new GenericContainer(image)
    .withEnvironment({ POSTGRES_PASSWORD: password })
    .withCommand(command)
    .withExposedPorts(5432)
    .start()
  const place = `${container.getHost()}:${container.getMappedPort(5432)}`
  return {
    url: `postgresql://postgres:${password}@${place}/postgres`,
    stop: async () => void (await container.stop()),
  }
}

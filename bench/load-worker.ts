import { parentPort, workerData } from 'node:worker_threads'
import { generateLoad } from './load-generator.ts'

/** A crowd on a thread of its own, so that what it reads does not delay the clocks of others. */
parentPort?.postMessage(await generateLoad(workerData))

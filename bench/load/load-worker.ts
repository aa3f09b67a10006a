import { parentPort, workerData } from 'node:worker_threads'
import { generateLoad } from './load-generator.ts'

/** Generates load in a thread, so that reading responses does not delay other clients' clocks. */
parentPort?.postMessage(await generateLoad(workerData))

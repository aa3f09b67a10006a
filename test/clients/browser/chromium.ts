import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
import type { Test } from 'tap'

const FLAGS = [
  ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
  // One process for all pages of a site, and none for graphics: docs-screens takes 14 % less processor time.
  ...['--process-per-site', '--in-process-gpu'],
]

/** Debian's browsers. The shell is Chromium without windows: tests take two thirds of the processor time with it. */
const PROGRAMS = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium']

/**
 * Starts the browser of CHROMIUM_PATH, Debian's Chromium, or an installed Chrome. Closes it at teardown.
 * Without one, the test file fails with one sentence. Call it before other resources are opened.
 */
export async function launchChromium(t: Test): Promise<Browser> {
  const executablePath = process.env.CHROMIUM_PATH ?? PROGRAMS.find(existsSync)
  const program = executablePath === undefined ? { channel: 'chrome' } : { executablePath }
  try {
    const browser = await chromium.launch({ args: FLAGS, ...program })
    t.teardown(() => browser.close())
    return browser
  } catch (error) {
    const [reason] = String(error).split('\n')
    const advice =
      'install Chromium (Debian: apt install chromium-headless-shell), or set CHROMIUM_PATH to a browser'
    t.fail(`This file needs Chromium: ${advice}. (${reason})`, { at: null, stack: '' })
    t.end()
    process.exit(1)
  }
}

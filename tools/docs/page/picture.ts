/** What the picture of the page /docs in README.md shows, to know when it is old. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { PAGE } from './render.ts'
import { STORIES } from './stories.ts'

export const PICTURE = new URL('../../../docs/images/docs-page.png', import.meta.url)
/** The digest of what the picture showed when it was made. */
export const PICTURE_DIGEST = new URL('../../../docs/images/docs-page.sha256', import.meta.url)
/** The story of the picture. */
export const STORY = 'DEMOMERGER1'

const STYLE = new URL('../../../src/http/docs-page/page.css', import.meta.url)

interface Story {
  connection: string
}

/**
 * Returns the digest of the style, the contents and the story that the picture shows. The picture itself would differ by
 * fonts and browsers. The scripts and the sections are left out, because most changes of them do not show.
 */
export async function pictureDigest(): Promise<string> {
  const page = await readFile(PAGE, 'utf8')
  const [contents] = /<nav .*?<\/nav>/s.exec(page) ?? []
  const { stories } = JSON.parse(await readFile(STORIES, 'utf8')) as { stories: Story[] }
  const story = stories.find(({ connection }) => connection === STORY)
  if (contents === undefined || story === undefined)
    throw new Error('the page has no contents, or no story')
  const shown = [await readFile(STYLE, 'utf8'), contents, JSON.stringify(story)]
  return createHash('sha256').update(shown.join('\n')).digest('hex')
}

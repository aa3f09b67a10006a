import { Marked } from 'marked'

export const markdown = new Marked({
  renderer: {
    heading({ tokens, depth, text }) {
      return heading(depth, slug(text), this.parser.parseInline(tokens))
    },
    code: ({ text, lang }) => codeBlock(text, String(lang)),
  },
})

const slug = (text: string) =>
  text
    .toLowerCase()
    .replace(/[^\w\s-]/g, '')
    .replace(/\s/g, '-')

export const heading = (depth: number, id: string, html: string): string =>
  `<h${depth} id="${id}"><a href="#${id}">${html}</a></h${depth}>\n`

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`)

/** Renders code with the place of its buttons, which page.js adds. */
export const codeBlock = (text: string, label: string, attributes = ''): string =>
  `<div class="code"${attributes}><div class="bar"><span>${label}</span></div>${pre(text)}</div>\n`

export const pre = (text: string, attributes = ''): string =>
  `<pre${attributes}><code>${escapeHtml(text)}</code></pre>`

/** Lets lines break after slashes, and within names: after `_`, and before a capital. */
export const breakable = (text: string): string =>
  text.replace(/[/_](?=\w)|[a-z](?=[A-Z])/g, '$&<wbr>')

/** Writes an operation of the page as Markdown. */

/** What Markdown does not need. */
const LEFT_OUT = '[hidden], .bar, .send, thead, template, input, select'

const isShown = (element) => !element.matches(LEFT_OUT)

function inline({ childNodes }) {
  const parts = [...childNodes].map((node) => {
    if (node.nodeType === Node.TEXT_NODE) return node.data.replace(/\s+/g, ' ')
    if (node.matches('code')) return `\`${node.textContent}\``
    if (node.matches('a')) return `[${inline(node)}](${node.href})`
    return node.matches('button') ? '' : inline(node)
  })
  return parts.join('').trim()
}

const HEADINGS = { H3: '#', H4: '##', H5: '###' }

function* blocks(element) {
  const { tagName, children } = element
  if (!isShown(element)) return
  if (HEADINGS[tagName]) yield `${HEADINGS[tagName]} ${inline(element)}`
  else if (element.matches('p, dd, .route')) yield inline(element)
  else if (element.matches('dt')) yield `- ${inline(element)}`
  else if (element.matches('tr, .field'))
    yield `- ${[...children].filter(isShown).map(inline).join(' ')}`
  else if (element.matches('pre')) yield `\`\`\`\n${element.textContent}\n\`\`\``
  else for (const child of children) yield* blocks(child)
}

export const markdownOf = (operation) => `${[...blocks(operation)].join('\n\n')}\n`
